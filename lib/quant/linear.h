/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * linear.h -- the linear layer, plain or quantized: views of the data of a file
 *
 * y = x Ŵᵀ + b, between two rotations if the layer has them. The codes and parameters of a quantized layer
 * are its only data; Ŵ is always rebuilt from them:
 *	Ŵ_oi = FP8((grid[code_oi] - zero_og)·(scale_og/scale_tensor))·scale8_o
 * where g is the group of column i. FP8(·), with saturation at `saturate`, and scale8 are present only if
 * the layer has a compute format (DPQ eq. 10, 11). scale_tensor is present only if the scale type has a
 * divisor (num/scale_type.h). Split columns and a low-rank branch are added to Ŵ.
 *
 * layer_read() (model/layer.h) or codes_view() fills a struct linear. The functions check nothing: members
 * are checked when they are read (quant/member.h). Matrices are row-major.
 */
#ifndef QUANT_LINEAR_H
#define QUANT_LINEAR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/format.h"
#include "num/half.h"

enum { LINEAR_MAX = 1000000000 };	/* columns of a layer or of a group */

#define LINEAR_CLIP_MIN 0x1p-6	/* minimum of the attribute act_clip */
enum input_mode { INPUT_AS_IS, INPUT_STATIC_TENSOR, INPUT_DYNAMIC_TOKEN, INPUT_STATIC_MODALITY };
extern const char *const input_modes[];	/* names in files; INPUT_AS_IS has none: NULL */

/* Rounding of the inputs of a layer (activation quantization). */
struct input_scale {
	enum input_mode mode;
	struct format format;
	const float *scale;		/* [modalities], static modes only */
	size_t modalities;
	float clip;			/* dynamic: the range is clip·max|x| of the token; 0: max|x| */
};

/*
 * A rotation of rows of n numbers: x becomes (x ∘ signs) H/√order, where H has n / order blocks
 * (num/hadamard.h). The inverse is x Hᵀ/√order ∘ signs.
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

	/* [code_rows][code_columns] of the storage format (num/code_form.h), [out][in] for most formats.
	 * Columns are in their original order. NULL: packed. */
	const uint8_t *codes;
	const uint32_t *packed;		/* [code_rows][pack_words() of a row of codes], or NULL */
	const float *scale;		/* [out][groups]; per tensor: [1]; of the type storage.scales */
	const float *scale_tensor;	/* [1], divides the scales; or NULL */
	const uint8_t *zero;		/* [out][groups]; per tensor: [1]; NULL: the format is symmetric */
	struct format storage;
	long group;			/* columns per group; 0: per channel; -1: per tensor */
	size_t groups;			/* columns of scale and zero */
	const int32_t *group_index;	/* [in] the group of each column, or NULL: column / group */

	struct format compute;		/* kind NULL: 16-bit arithmetic */
	float saturate;			/* largest |dequantized| in FP8 units; 0: compute.max */
	const float *scale8;		/* [scales8] */
	size_t scales8;			/* 1 or out */

	/*
	 * Rotations of inputs (`in` numbers) and of outputs (`out` numbers); two-sided incoherence, QuIP#,
	 * Tseng et al. 2024, section 3. Inputs are rotated first. Then the sum of the products with Ŵ, split
	 * columns and branch is multiplied by the inverse of rotation_out, and the bias is added. So the
	 * rows and the columns of Ŵ are the rotated rows and columns of the weight of the layer.
	 */
	struct linear_rotation rotation_in, rotation_out;
	/*
	 * Split columns (rotation magnitude suppression, MQuant section 4.3). Column split_index[k] is 0 in
	 * the weight; split_weight[o][k]·split_scale[k] is added to Ŵ there. Inputs of split columns are not
	 * rounded.
	 */
	size_t splits;
	const int32_t *split_index;	/* [splits] */
	const float *split_weight;	/* [out][splits]; in files f16, or int8 if split_scale is present */
	const float *split_scale;	/* [splits], or NULL: 1 */

	/* Low-rank branch: B A is added to Ŵ, A [rank][in], B [out][rank] (FBQuant eq. 1). Its inputs are
	 * rounded only if branch_a->input specifies it. NULL: no branch. A and B themselves have no
	 * branch. */
	size_t rank;
	const struct linear *branch_a, *branch_b;

	struct input_scale input;
};

/* The group of a column: group_index[i], i/group, or 0. */
size_t linear_group(const struct linear *l, size_t column);
/* The number of groups of a row of `in` columns: ceil(in/group); 1 per channel and per tensor. */
size_t linear_groups(size_t in, long group);

/* Rows [first, first + n) of the effective weight Ŵ, without split columns and branch. */
void linear_weight(const struct linear *l, size_t first, size_t n, float w[n][l->in]);
/* Columns [i, i + n) of one row of Ŵ; n ≤ LINEAR_COLUMNS, i a multiple of 32. */
enum { LINEAR_COLUMNS = 256 };
void linear_columns(const struct linear *l, size_t row, size_t i, size_t n, float w[n]);
/*
 * The same for a quantized layer, without the outermost scale: FP8(·), or grid[code] - zero without a
 * compute format. linear_unit_scale() returns that scale, for a row and a group; with a compute format it
 * does not depend on the group.
 */
void linear_units(const struct linear *l, size_t row, size_t i, size_t n, float w[n]);
float linear_unit_scale(const struct linear *l, size_t row, size_t group);
/* The number of elements of scale[] and zero[], and the index of the element of a row and group. */
static inline size_t linear_scales(const struct linear *l)
{
	return l->group == -1 ? 1 : l->out * l->groups;
}

static inline size_t linear_scale_at(const struct linear *l, size_t row, size_t group)
{
	return l->group == -1 ? 0 : row * l->groups + group;
}

/* Rows of the whole weight: linear_weight() plus split columns plus branch. */
void linear_whole(const struct linear *l, size_t first, size_t n, float w[n][l->in]);
/* The weight of split column k in a row: split_weight·split_scale. */
float linear_split(const struct linear *l, size_t row, size_t k);
/* Bytes [i, i + n) of a row of codes, i a multiple of 32. unpacked: memory for them, used if codes are
 * packed. */
const uint8_t *linear_codes(const struct linear *l, size_t row, size_t i, size_t n, uint8_t unpacked[n]);
/* Whether each weight is (grid[code] - zero) times the scale of its row and group. Then products may use the
 * codes of linear_codes(), one byte per column, instead of numbers. */
bool linear_has_grid(const struct linear *l);

/* Whether two rotations of n numbers are the same; whether those of two layers of the same extents are. */
bool linear_rotations_agree(size_t n, const struct linear_rotation *a, const struct linear_rotation *b);
bool linear_same_rotations(const struct linear *a, const struct linear *b);
/*
 * Whether a rotation of inputs belongs to the layer: it has signs. Then statistics of the inputs, such as
 * Hessians, are of those before the rotation. A Hadamard matrix without signs belongs to the basis of the
 * model: statistics are of the rotated inputs.
 */
static inline bool linear_own_rotation(const struct linear_rotation *in)
{
	return in->signs;
}

/* Whether two layers have the same split columns. */
bool linear_splits_agree(const struct linear *a, const struct linear *b);
/* Name, in a file, of the first member with a rotation that transforms of weights do not support: signs, or a
 * rotation of outputs. They support a Hadamard matrix of the inputs. NULL: no such member. */
const char *linear_two_sided(const struct linear *l);

/* Whether the layer rounds its inputs; whether two layers round the same input to the same numbers. */
bool linear_rounds(const struct linear *l);
bool linear_inputs_agree(const struct linear *a, const struct linear *b);

/* largest/max; 1 if that is not above 0. */
float linear_scale_of(float largest, float max);
/* The scale for the inputs x of a token; modality: of the token. */
float linear_input_scale(const struct linear *l, const float x[l->in], uint8_t modality);
/*
 * Rounded inputs. Without rounding, y = x. Otherwise y is x rounded to input.format. A static scale is
 * scale[modality of the token] (modality NULL: all 0). A dynamic scale is clip·max|x|/format.max of the
 * token, over the columns that are not split. y may be x.
 */
void linear_input(const struct linear *l, size_t tokens, float y[tokens][l->in], const float x[tokens][l->in],
	const uint8_t *modality);
#endif
