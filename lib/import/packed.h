/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * packed.h -- kinds of packed checkpoints: folders whose config.json has a quantization_config, or that have
 * a quantize_config.json (old GPTQ)
 *
 * The reverse of a target (export/target.h). Tensors of a folder "NAME.qweight", "NAME.scales", ... are
 * members of one layer NAME; a kind, a row of the table in packed.c, says which members there are, and makes
 * codes and parameters of them. To the rest of the import the layer has a tensor NAME.weight [out, in], which
 * is packed. What is not quantized stays as it is.
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
	char *config_name;		/* the file that has the configuration, for messages */
	const char *key;		/* "'quantization_config': ", or "" in a file of its own */
	json_t *config;			/* the quantization_config */
	void *data;			/* of the kind */
};

/* A layer that is read. */
struct packed_layer {
	const struct packed *p;
	const char *name;
	unsigned taken;			/* members, by their numbers */
};

struct packed_kind {
	const char *method;		/* quant_method of quantization_config */
	const char *const *marks;	/* a layer that has one of these members is packed; NULL-terminated */
	const char *const *members;	/* all that a packed weight may consist of, marks too; at most 32 */
	void (*open)(struct packed *p);	/* dies where quantization_config is not understood; p->data */
	void (*close)(struct packed *p);
	/* Extents [out, in], by what the files say of the members. */
	void (*shape)(struct packed_layer *l, size_t dim[2]);
	/* Codes and parameters; members that neither takes must not be there. dim: what shape() found. */
	struct source_layer (*read)(struct packed_layer *l, const size_t dim[2]);
};

/*
 * The kind of the checkpoint by the text of its config.json, from which it removes the quantization_config
 * (compression_config in old files); where there is none, but a tensor NAME.qweight, by quantize_config.json
 * in the same folder. NULL: weights are plain, or the text cannot be read. Dies if the kind is not known, and
 * if there are codes and no file says of which kind.
 */
struct packed *packed_open(const char *config_name, char **config, struct safetensors *tensors);
void packed_close(struct packed *p);
/* Words and numbers of quantization_config, "KEY=VALUE" and "OBJECT.KEY=VALUE", a line; free() it. */
char *packed_history(const struct packed *p);
/* The layer, if the tensor is a member of one that is packed; else NULL. free() it. */
char *packed_name(const struct packed *p, const char *tensor);
/* Whether the tensor is a scale or zero point of keys, values or queries, which have no place here. */
bool packed_left(const char *tensor);
/* The i-th member that is there, in the order of the kind's; NULL: there are fewer. */
const char *packed_member(const struct packed *p, const char *name, size_t i);
/* What the kind reads, checked. */
void packed_shape(const struct packed *p, const char *name, size_t dim[2]);
struct source_layer packed_read(const struct packed *p, const char *name);

/* --- for kinds; all die with "FILE: NAME.MEMBER: what is wrong" --- */

bool packed_has(const struct packed_layer *l, const char *member);
bool packed_is(const struct packed_layer *l, const char *member, const char *dtype);
/* How many numbers a member has; 0: it is not there. */
size_t packed_numbers(const struct packed_layer *l, const char *member);
/* A member; dims: 0 for any extent; dtypes: those it may have, "I32 U32". */
struct safetensors_raw packed_take(struct packed_layer *l, const char *member, const char *dtypes, int rank,
	const size_t dim[]);
/* The same of F32, F16, BF16 and F8_E8M0 in float; free() it. rank -1: of any rank, dim[0] numbers. *type:
 * theirs. */
float *packed_floats(struct packed_layer *l, const char *member, int rank, const size_t dim[],
	enum scale_type *type);
/*
 * A layer of extents dim[2] with the scales of a member and of their type: one where group is -1, else
 * [⌈out/rows⌉, groups], each for so many rows.
 */
struct source_layer packed_scaled(struct packed_layer *l, const char *member, const size_t dim[2],
	struct format storage, long group, size_t rows);
/* Takes a member, of any type and extents, that has no form here. */
void packed_skip(struct packed_layer *l, const char *member);
_Noreturn void packed_refuse(const struct packed_layer *l, const char *member, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* At most 8 bits from bit `at` on, of words that are `stride` apart, each from its lowest bit on. */
unsigned packed_field(const uint32_t word[], size_t stride, size_t at, int bits);
#endif
