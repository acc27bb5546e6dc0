/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product.h -- products with the effective weight of a linear layer: the table of ways to make them
 *
 *	y_to = Σ_i ŵ_oi x̂_ti + b_o
 *
 * of the layer's effective weight and rounded input (quant/linear.h), as numbers of the type computed in:
 *
 *	f32	both as they are
 *	bf16	both rounded to bfloat16, sums in float
 *	int16	x̂ rounded to 16-bit integers under a scale max|x̂|/32639 of each 128 columns (two
 *		signed bytes hold 127·256 + 127), ŵ as it is
 *
 * A row of the table says what it is for (layers, types, how many rows of x, processors: base/cpu.h),
 * how it prepares weights and inputs, and how it multiplies. product_choose() takes the first that
 * fits, and no caller needs to know which. A product with few rows of x takes as long as its weights
 * take to come from memory, so there packed words (quant/pack.h) stay packed and halves stay halves; other
 * weights are prepared once, for many products.
 *
 * Columns taken out and a branch are added, of inputs that are not rounded: y += W_split x_split + B (A x), A
 * x and B by rows of the table too. A x is made once, with the input; for few rows of x the rest is one pass
 * over the output, of which a thread takes some rows and adds all that belongs to them (the fused product of
 * FBQuant section 4.3, of any main path and any branch).
 *
 * What a row computes differs from the product in double of the same x̂ and ŵ by at most
 *
 *	(columns·in + ends)·2⁻²⁴·(Σ|ŵ||x̂| + |b|) + chunk·Σ max|x̂|Σ|ŵ| + tiny·in·(1 + max|x̂| + max|ŵ|)
 *
 * with b all that is added, and the row's own
 *
 *	columns, ends	roundings of a sum in float: one for each number that a partial sum takes up, and
 *			those at the ends, where partial sums, scales and b come together
 *	chunk		of inputs in fixed point: half of the last place of each 128 columns, whose
 *			max|x̂| > 10⁻³⁰ and Σ|ŵ| it is multiplied by
 *	tiny		of processors that take numbers below it for zero
 *
 * and with a branch by the bound of A x times Σ|b|, and the bound of B's product. Columns taken out are
 * float.
 *
 * Nothing depends on the number of threads. Codes that a format does not have give any finite value;
 * a row of x that is not finite gives outputs that are not, unless the layer rounds its inputs: then what is
 * infinite saturates, and NaN stays.
 */
#ifndef PRODUCT_PRODUCT_H
#define PRODUCT_PRODUCT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cpu.h"
#include "num/half.h"
#include "quant/linear.h"

enum compute_type { COMPUTE_F32, COMPUTE_BF16, COMPUTE_INT16 };
/* What the inputs of every layer are rounded to; HALF_NONE: nothing, or to what depends on the layer. */
enum half_type compute_half(enum compute_type type);
extern const char *const compute_types[];	/* their names, NULL-terminated */
#define OPTION_COMPUTE_TYPE(var) { 0, "compute-type", \
	OPTION_ENUM(enum compute_type, var, compute_types), NULL, \
	"arithmetic of the linear products", .otherwise = "f32" }

enum {
	PRODUCT_FEW = 16,	/* rows of x up to which words stay packed: docs/results/fpe2m2-figure7.tsv */
	PRODUCT_COLUMNS = 128,	/* under one scale in int16 */
	PRODUCT_ROWS = 32,	/* parts of prepared weights begin at multiples of so many rows */
};

struct product {
	const struct product_row *row;
	const struct linear *l;		/* must stay as long as the product does */
	enum compute_type type;
	size_t first;			/* row of the layer that the weights begin with */
	const void *weight;		/* prepared; NULL: not yet */
	const struct product_row *row_a, *row_b;	/* of the branch; NULL: there is none */
	const void *weight_a, *weight_b;
};

struct product_row {
	const char *name;
	unsigned types;			/* bits 1 << enum compute_type */
	enum cpu cpu;			/* the narrowest processor */
	size_t min, max;		/* rows of x; max 0: any number */
	int way;			/* of rows that share functions: which */
	/* Whether it is for the layer, on this processor; NULL: yes. */
	bool (*fits)(const struct product_row *row, const struct linear *l);

	/* Weights: the bytes of n rows, and n rows from p->first on. */
	bool floats;			/* rows of float: those of layers side by side are one matrix */
	size_t (*weight_size)(const struct linear *l, size_t n);
	void (*weight_make)(const struct product *p, size_t n, void *w);
	/* Lets go of what is kept outside of w, which must not be empty then; NULL: nothing is. */
	void (*weight_free)(const struct product *p);

	/* Inputs: the bytes of m rows (NULL: they are multiplied as they are), and the rows, of x that was
	 * rounded as the layer says, unless the row does that: then it needs the modalities. */
	bool rounds;
	size_t (*input_size)(const struct linear *l, size_t m);
	void (*input_make)(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
		const uint8_t *modality);
	bool (*input_same)(const struct product *a, const struct product *b);	/* of any x; NULL: yes */

	void (*run)(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
		float y[m][stride], const void *input, const float *bias, bool add);
	struct { double columns, ends, chunk, tiny; } error;
};
extern const struct product_row product_rows[];	/* in the order of choice; the last one has no name */

/* Whether a row is for products with the layer's main weight and at most so many rows of x; rows 0: many. */
bool product_fits(const struct product_row *row, const struct linear *l, enum compute_type type, size_t rows);
/* The first row that fits; no weights prepared. */
struct product product_choose(const struct linear *l, enum compute_type type, size_t rows);

/* Bytes of the prepared weights of n rows. */
size_t product_size(const struct product *p, size_t n);
/* Prepares rows [first, first + n) in w, product_size() bytes; quicker if aligned as xalloc() does. */
void product_make(struct product *p, size_t first, size_t n, void *w);
/* Lets go of what rows keep outside of w for these weights, on a device say: before w is freed or used again,
 * and before p->l changes. Then none are prepared; does nothing where none were. */
void product_release(struct product *p);
/* Takes the layer's own weight, all of it, if that is what would be made of it. */
bool product_view(struct product *p);

/* Whether two products multiply the same numbers of the same x; what passes a branch is of one layer. */
bool product_input_same(const struct product *a, const struct product *b);
/* Whether they are one product over the rows of both, where b's weights are prepared right behind a's. */
bool product_joins(const struct product *a, const struct product *b);
/* Bytes of the workspace of product_input(). */
size_t product_workspace(const struct product *p, size_t m);
/*
 * What is multiplied of m rows of x: rounded as the layer says, under the scale of each row's modality
 * (NULL: all 0), then to the type. x itself, or in the workspace, which is aligned as xalloc() does.
 */
const void *product_input(const struct product *p, size_t m, void *workspace, const float x[m][p->l->in],
	const uint8_t *modality);
/*
 * y[m][stride] = x ŵᵀ + bias, or y += with `add`, of the prepared rows [first, first + n), first a
 * multiple of PRODUCT_ROWS behind p->first; bias[n], NULL: none; input: of product_input().
 */
void product_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);

/* The rounding of int16 alone; y may be x. */
void product_narrow(size_t n, float y[n], const float x[n]);
#endif
