/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product.h -- products with the effective weight of a linear layer, as a table of implementations
 *
 *	y_to = Σ_i ŵ_oi x̂_ti + b_o
 *
 * ŵ is the effective weight and x̂ the rounded input of the layer (quant/linear.h), in a compute type:
 *
 *	f32	both unchanged
 *	bf16	both rounded to bfloat16, sums in float
 *	int16	x̂ rounded to 16-bit integers with a scale max|x̂|/32639 for each 128 columns
 *		(32639 = 127·256 + 127 is the maximum of two signed bytes), ŵ unchanged
 *
 * Calling sequence:
 *
 *	p = product_choose(l, type, rows)	the first row of the table that fits
 *	product_make(&p, ...)			prepares weights once, in memory of product_size() bytes; or
 *						product_view(&p)
 *	product_input(&p, ...)			prepares inputs, in memory of product_workspace() bytes
 *	product_run(&p, ...)			multiplies; as often as needed
 *
 * No function can fail. Callers do not depend on the row that was chosen. A row of the table specifies its
 * use (layers, types, rows of x, processors: base/cpu.h), the preparation of weights and inputs, and the
 * product. The time of a product with few rows of x is the time to read its weights from memory. So such
 * products read packed words (quant/pack.h) and 16-bit weights as they are stored. Other weights are
 * prepared once for many products.
 *
 * Split columns and a branch are added, with inputs that are not rounded (unless A specifies it):
 * y += W_split x_split + B (A x).
 * Products with A and B also use rows of the table. A x is computed once, by product_input(). For few rows
 * of x, the rest is one pass over the output: a thread computes all terms of some output rows (the fused
 * product of FBQuant section 4.3, for any main path and any branch).
 *
 * The result of a row differs from the product of the same x̂ and ŵ in double by at most
 *
 *	(columns·in + ends)·2⁻²⁴·(Σ|ŵ||x̂| + |b|) + chunk·Σ max|x̂|Σ|ŵ| + tiny·in·(1 + max|x̂| + max|ŵ|)
 *
 * where b is the sum of all added numbers, and the constants are those of the row:
 *
 *	columns, ends	roundings of a sum in float: one for each number added to a partial sum, and those at
 *			the ends, where partial sums, scales and b are combined
 *	chunk		of inputs in fixed point: half of the last place of each 128 columns, times their
 *			max|x̂| > 10⁻³⁰ and Σ|ŵ|
 *	tiny		of processors that take numbers below it for zero
 *
 * With a branch, the bound of A x times Σ|b|, and the bound of the product with B, are added. Split columns
 * are in float.
 *
 * Results do not depend on the number of threads. With PRODUCT_APART to PRODUCT_FEW rows of x, the result of
 * a row has the same bits for any other rows and any number of them. Invalid codes give arbitrary finite
 * values. If a row of x is not finite, its outputs are not finite. If the layer rounds its inputs, infinite
 * inputs saturate, and NaN stays NaN.
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
/* The type to which the inputs of every layer are rounded; HALF_NONE: not rounded, or rounded as the layer
 * specifies. */
enum half_type compute_half(enum compute_type type);
extern const char *const compute_types[];	/* names by number, NULL-terminated */
#define OPTION_COMPUTE_TYPE(var) { 0, "compute-type", \
	OPTION_ENUM(enum compute_type, var, compute_types), NULL, \
	"arithmetic of linear layers", .default_value = "f32" }

enum {
	PRODUCT_FEW = 16,	/* maximum rows of x with packed words: docs/results/fpe2m2-figure7.tsv */
	PRODUCT_APART = 2,	/* minimum rows: see above */
	PRODUCT_COLUMNS = 128,	/* columns with one scale in int16 */
	PRODUCT_ROWS = 32,	/* products of parts of prepared weights start at multiples of it */
};

struct product {
	const struct product_row *row;
	const struct linear *l;		/* must exist as long as the product */
	enum compute_type type;
	size_t first;			/* first row of the layer in the prepared weights */
	const void *weight;		/* prepared; NULL: not yet */
	const struct product_row *row_a, *row_b;	/* for the branch; NULL: no branch */
	const void *weight_a, *weight_b;
};

struct product_row {
	const char *name;
	unsigned types;			/* bits 1 << enum compute_type */
	enum cpu cpu;			/* the narrowest processor */
	size_t min, max;		/* rows of x; max 0: any number */
	int variant;			/* for rows that share functions */
	/* Whether it supports the layer, on this processor; NULL: always. */
	bool (*fits)(const struct product_row *row, const struct linear *l);

	/* Weights: bytes of n prepared rows, and the preparation of n rows from p->first on. */
	bool floats;			/* prepared weights are rows of floats: layers can be joined */
	size_t (*weight_size)(const struct linear *l, size_t n);
	void (*weight_make)(const struct product *p, size_t n, void *w);

	/* Inputs: bytes of m prepared rows, and their preparation; input_size NULL: x needs no preparation.
	 * With `rounds`, input_make() rounds x as the layer specifies, and needs the modalities. Else x is
	 * already rounded. */
	bool rounds;
	size_t (*input_size)(const struct linear *l, size_t m);
	void (*input_make)(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
		const uint8_t *modality);
	/* Whether prepared inputs of a and b are equal for any x; NULL: yes. */
	bool (*input_same)(const struct product *a, const struct product *b);

	void (*run)(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
		float y[m][stride], const void *input, const float *bias, bool add);
	struct { double columns, ends, chunk, tiny; } error;
};
extern const struct product_row product_rows[];	/* in the order of choice; the last one has no name */

/* Whether a row supports products with the main weight of the layer and at most `rows` rows of x; 0: many
 * rows. */
bool product_fits(const struct product_row *row, const struct linear *l, enum compute_type type, size_t rows);
/* A product with the first row that fits. No weights are prepared. */
struct product product_choose(const struct linear *l, enum compute_type type, size_t rows);

/* Bytes of the prepared weights of n rows. */
size_t product_size(const struct product *p, size_t n);
/* Prepares rows [first, first + n) in w, product_size() bytes; faster if w is aligned as by xalloc(). */
void product_make(struct product *p, size_t first, size_t n, void *w);
/* Uses the weight of the layer without a copy, if the prepared weights would be equal to it. False if not. */
bool product_view(struct product *p);

/* Whether two products have equal prepared inputs for the same x. With a branch, only if a and b are the
 * same. */
bool product_input_same(const struct product *a, const struct product *b);
/* Whether a and b are one product over the rows of both, if the weights of b are prepared directly after
 * those of a. */
bool product_joins(const struct product *a, const struct product *b);
/* Bytes of the workspace of product_input(). */
size_t product_workspace(const struct product *p, size_t m);
/*
 * Prepared inputs of m rows of x: rounded as the layer specifies, with the scale of the modality of each row
 * (NULL: all 0), then converted to the type. The result is x itself or in the workspace, which is aligned as
 * by xalloc().
 */
const void *product_input(const struct product *p, size_t m, void *workspace, const float x[m][p->l->in],
	const uint8_t *modality);
/*
 * y = x ŵᵀ + bias, with `add` y += x ŵᵀ + bias, for the prepared rows [first, first + n). y is [m][n], and
 * its rows start every `stride` numbers. first - p->first must be a multiple of PRODUCT_ROWS. bias is [n];
 * NULL: no bias. input: the result of product_input().
 */
void product_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add);

/* y = x rounded as for int16; y may be x. */
void product_narrow(size_t n, float y[n], const float x[n]);
#endif
