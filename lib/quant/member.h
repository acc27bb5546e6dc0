/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * member.h -- table of the members of a linear layer in a file (docs/format.md)
 *
 * A row specifies the name of a dataset or attribute of the group, its type and extents, its field in struct
 * linear, and its valid values. All code that reads, writes, copies and compares layers, and that counts
 * bits per weight, uses these rows. Functions take the table as an argument, so that a structure that begins
 * with a struct linear may have further rows.
 *
 * Nothing here is a fatal error: `is_valid` returns false and writes the reason, and the caller prints it.
 */
#ifndef QUANT_MEMBER_H
#define QUANT_MEMBER_H
#include <stdbool.h>
#include <stddef.h>
#include "quant/level.h"
#include "quant/linear.h"

enum member_type {
	/* datasets; the field is a pointer to the elements */
	MEMBER_F32, MEMBER_U8, MEMBER_I8, MEMBER_I32, MEMBER_U32,
	MEMBER_FLOAT,		/* f32, f16 or bf16 in the stored type, which is in the field `half` */
	MEMBER_WIDE,		/* f32, f16 or bf16, widened to f32 */
	MEMBER_SHORT,		/* as MEMBER_WIDE; written as f16, or as int8 if `scaled` is present */
	/* a group; the field is a pointer to the layer in it */
	MEMBER_LINEAR,
	/* attributes; the field is the value */
	MEMBER_FORMAT,		/* struct format, by its name; "none" is allowed if the row is optional */
	MEMBER_WORD,		/* an enum: the index of the word in `words` */
	MEMBER_INT, MEMBER_LONG, MEMBER_SIZE,
	MEMBER_REAL,		/* float */
};

enum member_role {
	MEMBER_PARAMETER,	/* of the weight, or of the rounding of inputs */
	MEMBER_WEIGHT,		/* the weight in one of its forms; a layer has exactly one */
	MEMBER_TERM,		/* added to the product: copied unchanged when the weight is rewritten */
};

/* Forms of a weight, and sets of forms. */
enum { FORM_PLAIN = 1, FORM_CODES = 2, FORM_PACKED = 4, FORM_QUANTIZED = FORM_CODES | FORM_PACKED,
	FORM_ANY = 7 };

enum { MEMBER_WHY = 160 };	/* bytes of the text of a reason */

struct member {
	const char *name;	/* NULL ends a table */
	enum member_type type;
	enum member_role role;
	int forms;		/* forms of layers that may have it; of a weight: its form */
	size_t view;		/* offset of the field in struct linear, a pointer or the value */
	size_t half;		/* MEMBER_FLOAT: offset of its enum half_type */
	size_t scaled;		/* MEMBER_SHORT: offset of the pointer to its scale */
	const char *requires;	/* dataset that is required with it, or NULL */
	const char *of;		/* dataset whose attribute it is; NULL: attribute of the group */

	/* Datasets and groups: offsets of the extents in struct linear, size_t each. An extent that is 0
	 * there is taken from the file. */
	int rank;
	size_t extent[2];
	/* Extent i if it follows from other fields of l, else 0; NULL: no extent follows. */
	size_t (*follows)(const struct member *m, const struct linear *l, int i);
	const struct level *level;	/* of a parameter of weights: bits, and extents if `follows` */

	/* Attributes */
	double min, max;	/* range of a number */
	const char *meaning;	/* for messages: "attribute group must be ..."; words of an enum */
	const char *const *words;	/* names of an enum, NULL-terminated from 1 on; 0 is the default */

	bool optional;
	bool (*is_allowed)(const struct linear *l);	/* by the attributes of l; NULL: always */
	const char *absent_because;	/* reason if they do not: "act_mode names no static scale" */
	/* Whether the n elements x, or the value, are valid; if not, `why` is the reason: "holds code 16,
	 * ...". */
	bool (*is_valid)(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY]);
	double (*bits)(const struct linear *l);	/* of an element; MEMBER_WEIGHT: of all weights; NULL: 0 */
};

extern const struct member members[];	/* of struct linear */

/* Address of the field at an offset, to be read, and to be set. */
const void *member_field(const struct linear *l, size_t offset);
void *member_fill(struct linear *l, size_t offset);
/* The value of an attribute that is a number. */
double member_number(const struct member *m, const struct linear *l);
bool member_is_dataset(const struct member *m);
bool member_is_attribute(const struct member *m);
/* The row of the weight of l, in its form, or NULL. */
const struct member *member_weight(const struct member rows[], const struct linear *l);
/* Whether l, whose weight has this form, has the member. */
bool member_is_present(const struct member *m, const struct linear *l, int form);
/* Extents of a dataset from the fields of l, 0: unknown. Returns their number; 0: one value, of any rank. */
int member_extents(const struct member *m, const struct linear *l, size_t dim[2]);

/* Sets extent i in l from the extent in a file, unless it follows from other fields. */
void member_set_extent(const struct member *m, struct linear *l, int i, size_t extent);

/*
 * Stored bits per weight. Codes and zero points count with the bits of the format, scales with the bits of
 * their type, split columns with their stored bits, scale_tensor and scale8 with 32, group_index with ⌈log₂
 * groups⌉ per column. A branch counts in the same way. A plain weight counts with the bits of its type.
 * Biases and activation scales do not count.
 */
double member_bits(const struct member rows[], const struct linear *l);
#endif
