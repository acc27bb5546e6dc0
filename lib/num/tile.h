/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tile.h -- products of matrices by the processor's tiles (AMX): of bf16, and of bytes
 *
 * A tile is 16 rows of 64 bytes. Of a left tile a[16][k] and a right one b[k][16] an instruction adds a b
 * to a tile of float (bf16, k = 32) or int32 (bytes, k = 64). Sums of bytes are exact. Those of bf16 are not
 * fmaf()'s: for each number two sums, of the even and of the odd k, start from +0 and take up their products
 * fused; they are added to each other, then to the tile; subnormal numbers count as zero, and so does what
 * is subnormal after rounding to 24 bits with unbounded exponent. Without scales, |y - a b| is
 * within the bound of num/bf16.h.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS, TDPBSSD.
 *
 * Both sides are laid out for tiles once. "Columns" are along k and count in bytes; rows are filled up with
 * zeros to multiples of TILE_PANEL, columns to multiples of TILE_BYTES.
 */
#ifndef NUM_TILE_H
#define NUM_TILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILE_BYTES = 64, TILE_PANEL = 32 };
enum tile_kind {
	TILE_BF16,		/* bf16 × bf16, sums in float */
	TILE_SIGNED,		/* signed bytes × signed bytes, sums in int32 */
	TILE_UNSIGNED,		/* signed bytes × unsigned bytes on the right */
};

/* Scale and zero point of each row of a right panel in one group. */
struct tile_terms { float scale[TILE_PANEL]; int32_t zero[TILE_PANEL]; };

/*
 * A product of m × n numbers. Without scales (group 0), of bf16:
 *	y_to = Σ_i a_ti b_oi
 * With scales, g being groups of `group` columns, the last one as long as it is:
 *	y_to = s_t Σ_g s_go (Σ_{i in g} a_ti b_oi - zero_go Σ_{i in g} a_ti)
 * the sums of a group in float or int32, the sum over groups by fmaf() in their order.
 */
struct tile_product {
	enum tile_kind kind;
	size_t columns;			/* a multiple of TILE_BYTES */
	/* Panels [columns / 64][32][64] of the left side. */
	const void *left;
	/* Panels [columns / 4][32][4] of the right side; with scales terms[groups] behind each. */
	const void *right;
	size_t right_step;		/* bytes from panel to panel; 0: side by side */
	size_t group, groups;		/* bytes of a group, a multiple of 16, and how many; 0: no scales */
	const float *scale;		/* [m] */
	const int32_t *sum;		/* [m][groups]: Σ a_ti; NULL: every zero is 0 */
};

/* Bytes of n rows of the right side. */
size_t tile_right_size(const struct tile_product *p, size_t n);

/*
 * y[m][stride] = the product + bias[n] (NULL: none), or y += with `add`. The processor has tiles (cpu_amx
 * in base/cpu.h). A number of y depends on its two rows only, not on the others nor on the number of threads.
 */
void tile_product(const struct tile_product *p, size_t m, size_t n, size_t stride, float y[m][stride],
	const float *bias, bool add);

/* Bytes of columns, filled up; of a left side of m rows of so many bytes, and the place of one in it. */
size_t tile_columns(size_t bytes);
size_t tile_left_size(size_t m, size_t bytes);
/*
 * n bytes of a row of the left side, from byte `first` on, a multiple of TILE_BYTES; what is missing to the
 * next multiple becomes zero. bytes: of whole rows.
 */
void tile_place(size_t bytes, void *left, size_t row, size_t first, size_t n, const void *x);

/*
 * Upper triangle of h += Σ_s x_sᵀ x_s over blocks of m rows of bf16: the product of a block in float, the sum
 * over blocks in double and in their order. The workspace is aligned to 64 bytes.
 */
size_t tile_gram_workspace(size_t m, size_t n);
void tile_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n],
	void *workspace);
#endif
