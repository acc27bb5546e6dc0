/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer.h -- linear layers in a file: reading and writing
 *
 * A linear layer is a group (docs/format.md) with `weight`, or with `codes`, `scale`, `zero` and attributes
 * that define their meaning. The members are rows of a table (quant/member.h).
 *
 * Calling sequence: layer_read(), use of l.linear, layer_free(). layer_write() writes a layer.
 *
 * Every shape is checked. A layer that is not valid is a fatal error, "FILE: PATH: ...".
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"
#include "model/config.h"
#include "quant/linear.h"
#include "quant/member.h"

struct layer {
	const char *file;	/* for messages; valid as long as the part */
	char *path;		/* of the group */
	struct linear linear;	/* views of the part */
};

/* Reads a layer. out, in: the expected extents, 0 for any. */
struct layer layer_read(const struct part *part, const char *path, size_t out, size_t in);
/* Reads attributes and extents only, and no data. Pointers in l.linear say which datasets are present, and
 * must not be followed. Data are not checked. */
struct layer layer_outline(const struct part *part, const char *path);
/* Fatal error if the layer has a rotation, split columns or a branch, which only layers of blocks may have.
 * For embeddings and the head. */
void layer_require_plain(const struct part *part, const struct layer *l);
void layer_free(struct layer *l);

/* Writes l as the group `path`: the weight of a plain layer, or codes and parameters. With `from`, the
 * other members and attributes of its group (bias, unknown members) are copied first. */
void layer_write(struct output *out, const struct part *from, const char *path, const struct linear *l);

/* Read and write the members of a table. *l may begin a larger structure; it is all zero except for
 * expected extents. */
void layer_read_members(const struct part *part, const char *path, const struct member rows[],
	struct linear *l);
void layer_write_members(struct output *out, const struct part *from, const char *path,
	const struct member rows[],
	const struct linear *l);

/* The half type of a tensor type; HALF_NONE for all others. */
enum half_type tensor_half(enum tensor_type type);
/* The half type of a weight. Fatal error, naming path, if the type is not f32, f16 or bf16. */
enum half_type layer_half(const struct part *part, const char *path, enum tensor_type type);
/* Reads a vector of n f32, f16 or bf16 numbers as floats; the caller frees it. NULL if it is absent. Fatal
 * error if a number is not finite. */
float *layer_vector(const struct part *part, const char *path, size_t n);

/* The path "group/name"; the caller frees it. */
char *layer_member(const char *group, const char *name);
/* part_has(), part_find() and output_write() of the path "group/name". */
bool layer_has(const struct part *part, const char *group, const char *name);
bool layer_find(const struct part *part, const char *group, const char *name, enum tensor_type type, int rank,
	const size_t dim[], struct tensor *t);
void layer_put(struct output *out, const char *group, const char *name, struct tensor t);
/* Whether the group is a linear layer, and whether it is a quantized one. */
bool layer_exists(const struct part *part, const char *path);
bool layer_quantized(const struct part *part, const char *path);
/* Whether the group is the low-rank branch of a linear layer, and so not a layer of its own. */
bool layer_is_branch(const struct part *part, const char *path);
#endif
