/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer.h -- linear layers in a file: reading one, writing one
 *
 * A linear layer is a group (docs/format.md): `weight`, or `codes`, `scale`,
 * `zero` with the attributes that say how they are meant. Every shape is
 * checked; what cannot be read stops the tool with "FILE: PATH: ...".
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
	struct linear linear;	/* views of the part, valid as long as it is */
};

/* out, in: extents that are expected, 0 for any. */
struct layer layer_read(const struct part *part, const char *path, size_t out, size_t in);
/* Dies if the layer's inputs pass something first, where there is no such place: tables, the head. */
void layer_plain(const struct part *part, const struct layer *l);
void layer_free(struct layer *l);

/*
 * Writes what `l` holds as the group `path`: a plain layer's weight, or codes
 * and parameters. With `from`, the other members and attributes of its group
 * (bias, what this module does not know) are copied first.
 */
void layer_write(struct output *out, const struct part *from, const char *path, const struct linear *l);

/* By a table of members; *l may begin a larger structure, all zero but for extents that are expected. */
void layer_read_members(const struct part *part, const char *path, const struct member rows[],
	struct linear *l);
void layer_write_members(struct output *out, const struct part *from, const char *path,
	const struct member rows[],
	const struct linear *l);

/* The type of numbers; HALF_NONE: f32, or none of these. */
enum half_type tensor_half(enum tensor_type type);
/* What a weight may be stored as: dies on other types, naming path. */
enum half_type layer_half(const struct part *part, const char *path, enum tensor_type type);
/* A vector of f32, f16 or bf16 as float; free() it. n: the extent expected. NULL if there is none. */
float *layer_vector(const struct part *part, const char *path, size_t n);

/* "group/name"; free() it. */
char *layer_member(const char *group, const char *name);
/* part_has(), part_find() and output_write() of that path. */
bool layer_has(const struct part *part, const char *group, const char *name);
bool layer_find(const struct part *part, const char *group, const char *name, enum tensor_type type, int rank,
	const size_t dim[], struct tensor *t);
void layer_put(struct output *out, const char *group, const char *name, struct tensor t);
/* Whether the group holds a linear layer, and a quantized one. */
bool layer_there(const struct part *part, const char *path);
bool layer_quantized(const struct part *part, const char *path);
/* Whether the group is the branch of a linear layer: a part of that, and no layer of the file. */
bool layer_is_branch(const struct part *part, const char *path);
#endif
