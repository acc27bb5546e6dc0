/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linear.h -- the linear layer, plain or quantized: views of what a file holds
 *
 * y = x Ŵᵀ + b, between two rotations where it has them. A quantized layer has one truth, its codes and
 * parameters; Ŵ is always rebuilt from them:
 *	Ŵ_oi = FP8((grid[code_oi] - zero_og)·(scale_og/scale_tensor))·scale8_o
 * where g is the group of column i, and FP8(·), with saturation at `saturate`,
 * and scale8 are there only if the layer has a compute format (DPQ eq. 10, 11);
 * scale_tensor only if the type of its scales is divided (num/scale_type.h). Split columns and a low-rank
 * branch are added to that.
 */
#ifndef QUANT_LINEAR_H
#define QUANT_LINEAR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"
#include "num/half.h"

enum { LINEAR_MAX = 1000000000 };	/* columns of a layer or of a group */

#define LINEAR_CLIP_MIN 0x1p-6	/* of act_clip */
enum input_mode { INPUT_AS_IS, INPUT_STATIC_TENSOR, INPUT_DYNAMIC_TOKEN, INPUT_STATIC_MODALITY };

/* How a layer rounds its inputs (activation quantization). */
struct input_scale {
	enum input_mode mode;
	struct format format;
	const float *scale;		/* [modalities], static modes only */
	size_t modalities;
	float clip;			/* dynamic: of the token's max|x|; 0: all of it */
};

/*
 * A rotation of rows of n numbers: x becomes (x ∘ signs) H/√order, H of n / order blocks (num/hadamard.h).
 * Its inverse is x Hᵀ/√order ∘ signs.
 */
struct linear_rotation {
	const int8_t *signs;		/* [n] of 1 and -1; NULL: all 1 */
	size_t hadamard;		/* order; 0: no Hadamard matrix */
};

struct linear {
	size_t out, in;
	const float *bias;		/* [out] or NULL */

	const void *weight;		/* [out][in], the plain layer; NULL once quantized */
	enum half_type weight_type;

	/* [code_rows][code_columns] of the storage format (num/code_form.h): of most formats [out][in]. In
	 * the original column order; NULL where they are packed */
	const uint8_t *codes;
	const uint32_t *packed;		/* [code_rows][pack_words() of a row of codes], or NULL */
	const float *scale;		/* [out][groups]; per tensor: one value; of the type storage.scales */
	const float *scale_tensor;	/* [1], which divides them, or NULL */
	const uint8_t *zero;		/* likewise; asymmetric formats only, else NULL */
	struct format storage;
	long group;			/* columns a group; 0: per channel; -1: per tensor */
	size_t groups;			/* columns of scale and zero */
	const int32_t *group_index;	/* [in], or NULL: column / group */

	struct format compute;		/* kind NULL: 16-bit arithmetic */
	float saturate;			/* largest |dequantized| in FP8 units; 0: the format's top */
	const float *scale8;		/* [scales8] */
	size_t scales8;			/* 1 or out */

	/*
	 * Rotations on either side of the weight, of `in` and of `out` numbers (two-sided incoherence: QuIP#,
	 * Tseng et al. 2024, section 3). Inputs are rotated first, and the products with Ŵ, split columns
	 * and branch pass the inverse of the other, before the bias. So rows and columns of Ŵ are those of
	 * the layer's weight, each rotated.
	 */
	struct linear_rotation rotation_in, rotation_out;
	/*
	 * Split columns: taken out of the weight, which is 0 there (rotation magnitude suppression, MQuant
	 * section 4.3): Ŵ has split_weight[o][k]·split_scale[k] in column split_index[k]. Their inputs are
	 * not rounded.
	 */
	size_t splits;
	const int32_t *split_index;	/* [splits] */
	const float *split_weight;	/* [out][splits]; in files f16, or int8 where there is a scale */
	const float *split_scale;	/* [splits], or NULL: 1 */

	/* Low-rank branch, added: Ŵ + B A, A [rank][in], B [out][rank], of inputs that are not rounded unless
	 * A says so (FBQuant eq. 1). NULL: there is none; a branch has none. */
	size_t rank;
	const struct linear *branch_a, *branch_b;

	struct input_scale input;
};

/* The group of a column: group_index[i], i/group, or 0. */
size_t linear_group(const struct linear *l, size_t column);
/* How many groups a row of `in` columns has: ceil(in/group), 1 per channel and per tensor. */
size_t linear_groups(size_t in, long group);

/* Effective weight Ŵ of the main path, without split columns and branch: rows [first, first + n). */
void linear_weight(const struct linear *l, size_t first, size_t n, float w[n][l->in]);
/* The same of columns [i, i + n) of one row, n ≤ LINEAR_COLUMNS, i a multiple of 32. */
enum { LINEAR_COLUMNS = 256 };
void linear_columns(const struct linear *l, size_t row, size_t i, size_t n, float w[n]);
/*
 * Such columns of a quantized layer without their outermost scale: FP8(·), or grid[code] - zero. The scale is
 * that of the row and the group; with a compute format all columns are one group.
 */
void linear_units(const struct linear *l, size_t row, size_t i, size_t n, float w[n]);
float linear_unit_scale(const struct linear *l, size_t row, size_t group);
/* Of scale[] and zero[]: how many there are, and which is that of a row and group. */
static inline size_t linear_scales(const struct linear *l)
{
	return l->group == -1 ? 1 : l->out * l->groups;
}

static inline size_t linear_scale_at(const struct linear *l, size_t row, size_t group)
{
	return l->group == -1 ? 0 : row * l->groups + group;
}

/* All that the layer multiplies: linear_weight(), and split columns, and the branch. */
void linear_whole(const struct linear *l, size_t first, size_t n, float w[n][l->in]);
/* Of a split column, in a row: split_weight·split_scale. */
float linear_split(const struct linear *l, size_t row, size_t k);
/* Bytes [i, i + n) of a row of codes, i a multiple of 32; unpacked: where they go if they are packed. */
const uint8_t *linear_codes(const struct linear *l, size_t row, size_t i, size_t n, uint8_t unpacked[n]);
/* Whether a weight is (grid[code] - zero) times the scale of its row and group, so that products may take its
 * codes by linear_codes(), a byte for each column, in the place of its numbers. */
bool linear_has_grid(const struct linear *l);

/* Whether two rotations of n numbers are the same. */
bool linear_rotations_agree(size_t n, const struct linear_rotation *a, const struct linear_rotation *b);
/* Whether two layers have the same split columns. */
bool linear_splits_agree(const struct linear *a, const struct linear *b);
/* The first member, by its name in a file, that rotates inputs or outputs in another way than by a Hadamard
 * of the inputs alone, which transforms of weights know; NULL: there is none. */
const char *linear_two_sided(const struct linear *l);

/* Whether the layer rounds its inputs, and whether two layers make the same numbers of the same input. */
bool linear_rounds(const struct linear *l);
bool linear_inputs_agree(const struct linear *a, const struct linear *b);

/* largest/top, or 1 where that is not above 0. */
float linear_scale_of(float largest, float max);
/* The scale that a token's inputs x are rounded under; modality: of the token. */
float linear_input_scale(const struct linear *l, const float x[l->in], uint8_t modality);
/*
 * What the layer's arithmetic makes of its input: y = x, or x rounded to format under scale[modality of the
 * token] (modality NULL: all 0), or under a scale of the token's own, clip·max|x|/top of columns that are in
 * the weight (dynamic). y may be x.
 */
void linear_input(const struct linear *l, size_t tokens, float y[tokens][l->in], const float x[tokens][l->in],
	const uint8_t *modality);
#endif
