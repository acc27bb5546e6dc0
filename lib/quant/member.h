/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * member.h -- what may stand in the group of a linear layer (docs/format.md), as a table
 *
 * A row says what a dataset or an attribute of the group is called, what it holds, and where in struct
 * linear that stands. Reading, writing, what is left out when the rest of a group is copied, what a
 * comparison takes for a stored weight, and bits a weight follow from the rows. Functions take the table,
 * so that a structure that begins with a struct linear may have rows of its own.
 */
#ifndef QUANT_MEMBER_H
#define QUANT_MEMBER_H
#include <stdbool.h>
#include <stddef.h>
#include "quant/level.h"
#include "quant/linear.h"

enum member_type {
	/* datasets; struct linear holds a pointer to the elements */
	MEMBER_F32, MEMBER_U8, MEMBER_I8, MEMBER_I32, MEMBER_U32,
	MEMBER_FLOAT,		/* f32, f16 or bf16 as it is stored; `half` says which */
	MEMBER_WIDE,		/* f32, f16 or bf16, widened to f32 */
	MEMBER_SHORT,		/* the same, written as f16; int8 where `scaled` is there */
	/* a group; struct linear holds a pointer to the layer in it */
	MEMBER_LINEAR,
	/* attributes; struct linear holds the value */
	MEMBER_FORMAT,		/* struct format, by its name; "none" where the row is optional */
	MEMBER_WORD,		/* an enum: the place of the word in `words` */
	MEMBER_INT, MEMBER_LONG, MEMBER_SIZE,
	MEMBER_REAL,		/* float */
};

enum member_role {
	MEMBER_PARAMETER,	/* of the weight, or of how inputs are rounded */
	MEMBER_WEIGHT,		/* the weight in one of its forms; a layer has exactly one */
	MEMBER_TERM,		/* added to the product: copied as it is when the weight is written anew */
};

/* Forms of a weight, and sets of them. */
enum { FORM_PLAIN = 1, FORM_CODES = 2, FORM_PACKED = 4, FORM_QUANTIZED = FORM_CODES | FORM_PACKED,
	FORM_ANY = 7 };

enum { MEMBER_WHY = 160 };	/* bytes of a sentence that says what is wrong */

struct member {
	const char *name;	/* NULL ends a table */
	enum member_type type;
	enum member_role role;
	int forms;		/* layers that may have it; a weight: the form it is */
	size_t view;		/* offset in struct linear of the pointer, or of the value */
	size_t half;		/* MEMBER_FLOAT: offset of its enum half_type */
	size_t scaled;		/* MEMBER_SHORT: offset of the pointer to its scale */
	const char *with;	/* dataset that must stand beside it, or NULL */
	const char *of;		/* attribute of this dataset, not of the group */

	/* Datasets and groups: offsets of extents, size_t each; the file says what is 0 there. */
	int rank;
	size_t extent[2];
	/* Extent i where it follows from what l says already; 0: it does not. NULL: none does. */
	size_t (*follows)(const struct member *m, const struct linear *l, int i);
	const struct level *level;	/* of a parameter of weights: extents, if `follows`, and bits */

	/* Attributes */
	double min, max;	/* range of a number */
	const char *meaning;	/* for messages: "attribute group must be ..."; words of an enum */
	const char *const *words;	/* names of an enum, NULL-terminated from 1 on; 0 is the default */

	bool optional;
	bool (*there)(const struct linear *l);	/* whether a layer of these attributes has it; NULL: yes */
	const char *unless;	/* why it does not: "act_mode names no static scale" */
	/* Whether the n elements x, or the value, are what they can be; else why: "holds code 16, ...". */
	bool (*sound)(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY]);
	double (*bits)(const struct linear *l);	/* of an element, of a weight in all; NULL: 0 */
};

extern const struct member members[];	/* of struct linear */

/* Where l holds what stands at an offset, as `view`; to be read, and to be filled. */
const void *member_field(const struct linear *l, size_t offset);
void *member_fill(struct linear *l, size_t offset);
bool member_is_dataset(const struct member *m);
bool member_is_attribute(const struct member *m);
/* The weight's row of the form that l has, or NULL. */
const struct member *member_weight(const struct member rows[], const struct linear *l);
/* Whether l, whose weight has the given form, has this member. */
bool member_there(const struct member *m, const struct linear *l, int form);
/* Extents of a dataset by what l says, 0: not known; returns how many, 0: one value of any rank. */
int member_extents(const struct member *m, const struct linear *l, size_t dim[2]);

/* Extent i of a dataset as a file has it, where it does not follow from others. */
void member_set_extent(const struct member *m, struct linear *l, int i, size_t extent);

/*
 * What is stored a weight, in bits: codes and zero points at the format's width, scale at its type's, split
 * columns as they are stored, scale_tensor and scale8 at 32, group_index at ⌈log₂ groups⌉ a column, a
 * branch likewise; the type's width for a plain layer. Biases and activation scales do not count.
 */
double member_bits(const struct member rows[], const struct linear *l);
#endif
