/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * packed.h -- packed checkpoints: folders with a quantization_config in config.json, or with a
 * quantize_config.json (old GPTQ)
 *
 * The inverse of a target (export/target.h). The tensors "NAME.qweight", "NAME.scales", ... of a folder are
 * members of one layer NAME. A kind, a row of the table in packed.c, specifies the members and converts them
 * to codes and parameters. For the rest of the import the layer has one packed tensor NAME.weight [out, in].
 * Tensors that are not quantized are not changed.
 *
 *	struct packed *p = packed_open(config_name, &config, tensors);
 *
 *	name = packed_name(p, tensor);		for each tensor of the folder
 *	packed_shape(p, name, dim);
 *	layer = packed_read(p, name);
 *	packed_close(p);
 */
#ifndef IMPORT_PACKED_H
#define IMPORT_PACKED_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "import/safetensors.h"
#include "import/source_layer.h"

struct packed {
	const struct packed_kind *kind;
	struct safetensors *tensors;
	char *config_name;		/* the file with the configuration, for messages */
	const char *key;		/* "'quantization_config': ", or "" in a separate file */
	json_t *config;			/* the quantization_config */
	void *data;			/* of the kind */
};

/* A layer while it is read. */
struct packed_layer {
	const struct packed *p;
	const char *name;
	unsigned taken;			/* members that were read: a bit for each, by its number */
};

struct packed_kind {
	const char *method;		/* quant_method of quantization_config */
	const char *const *marks;	/* a layer with one of these members is packed; NULL-terminated */
	const char *const *members;	/* all members of a packed weight, with the marks; at most 32 */
	void (*open)(struct packed *p);	/* sets p->data; an unsupported setting is a fatal error */
	void (*close)(struct packed *p);
	/* Extents [out, in], from the shapes of members. */
	void (*shape)(struct packed_layer *l, size_t dim[2]);
	/* Codes and parameters. dim: from shape(). A member that neither function reads is an error. */
	struct source_layer (*read)(struct packed_layer *l, const size_t dim[2]);
};

/*
 * The kind of the checkpoint, from the text of its config.json. The quantization_config (compression_config
 * in old files) is removed from the text. If it is absent and a tensor NAME.qweight exists, the kind comes
 * from quantize_config.json in the same folder. NULL: weights are plain, or the text cannot be parsed. Fatal
 * errors: an unsupported kind, and codes without one of these files.
 */
struct packed *packed_open(const char *config_name, char **config, struct safetensors *tensors);
void packed_close(struct packed *p);
/* One line with strings and numbers of quantization_config, "KEY=VALUE" and "OBJECT.KEY=VALUE"; free() it. */
char *packed_history(const struct packed *p);
/* The name of the packed layer that has the tensor as a member, or NULL. free() it. */
char *packed_name(const struct packed *p, const char *tensor);
/* Whether the tensor is a scale or zero point of keys, values or queries, which are not supported. */
bool packed_is_ignored(const char *tensor);
/* The i-th member that the layer has, in the order of the kind; NULL: it has fewer. */
const char *packed_member(const struct packed *p, const char *name, size_t i);
/* The shape, and the layer with its values checked. */
void packed_shape(const struct packed *p, const char *name, size_t dim[2]);
struct source_layer packed_read(const struct packed *p, const char *name);

/* --- for kinds; errors are fatal, with the message "FILE: NAME.MEMBER: what is wrong" --- */

bool packed_has(const struct packed_layer *l, const char *member);
bool packed_is(const struct packed_layer *l, const char *member, const char *dtype);
/* The number of elements of a member; 0: absent. */
size_t packed_numbers(const struct packed_layer *l, const char *member);
/* Reads a member. dim: its extents, 0 for any extent. dtypes: the types that it may have, "I32 U32". */
struct safetensors_raw packed_member_data(struct packed_layer *l, const char *member, const char *dtypes,
	int rank, const size_t dim[]);
/* Reads a member of type F32, F16, BF16 or F8_E8M0 as floats; free() it. rank -1: any rank, with dim[0]
 * numbers. *type: the type of the member. */
float *packed_floats(struct packed_layer *l, const char *member, int rank, const size_t dim[],
	enum scale_type *type);
/*
 * A layer of extents dim[2] with the scales of a member, in the type of the member. If group is -1 the member
 * has one scale, else it is [⌈out/rows⌉, groups], with one row of scales for `rows` rows of the layer.
 */
struct source_layer packed_scaled(struct packed_layer *l, const char *member, const size_t dim[2],
	struct format storage, long group, size_t rows);
/* Marks a member that is not supported as read, for any type and extents. */
void packed_skip(struct packed_layer *l, const char *member);
_Noreturn void packed_refuse(const struct packed_layer *l, const char *member, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* At most 8 bits from bit `at` on. Words are `stride` apart; bits of a word count from its lowest bit. */
unsigned packed_field(const uint32_t word[], size_t stride, size_t at, int bits);
#endif
