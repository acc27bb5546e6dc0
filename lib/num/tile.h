/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tile.h -- products of bf16 matrices and of byte matrices by the processor's tiles (AMX)
 *
 * A tile is 16 rows of 64 bytes. From a left tile a[16][k] and a right tile b[k][16], an instruction adds a b
 * to a tile of float (bf16, k = 32) or int32 (bytes, k = 64). Sums of bytes are exact.
 *
 * Sums of bf16 are not those of fmaf(). Each number has two sums, over the even and over the odd k. They
 * start from +0, and products are fused with them. The two sums are added to each other, then to the tile.
 * Subnormal numbers count as zero, and so do results that are subnormal after rounding to 24 bits with
 * unbounded exponent. Without scales, |y - a b| is within the bound of num/bf16.h.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS, TDPBSSD.
 *
 * Both sides have a layout for tiles. "Columns" are along k and count in bytes. Rows are padded with zeros to
 * multiples of TILE_PANEL, columns to multiples of TILE_BYTES.
 *
 * Calling sequence: tile_store_row() for the rows of the left side; the caller lays out the right side; then
 * tile_product(). The processor must have tiles (cpu_amx in base/cpu.h).
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
	TILE_UNSIGNED,		/* signed bytes on the left × unsigned bytes on the right, sums in int32 */
};

/* Scale and zero point of each row of a right panel in one group. */
struct tile_terms { float scale[TILE_PANEL]; int32_t zero[TILE_PANEL]; };

/*
 * A product of m × n numbers. Without scales (group 0), for bf16:
 *	y_to = Σ_i a_ti b_oi
 * With scales, where g are groups of `group` columns, the last one possibly shorter or longer:
 *	y_to = s_t Σ_g s_go (Σ_{i in g} a_ti b_oi - zero_go Σ_{i in g} a_ti)
 * The sums of a group are in float or int32. The sum over groups is by fmaf(), in their order.
 */
struct tile_product {
	enum tile_kind kind;
	size_t columns;			/* a multiple of TILE_BYTES */
	/* Panels [columns / 64][32][64] of the left side. */
	const void *left;
	/* Panels [columns / 4][32][4] of the right side; with scales, each is followed by terms[groups]. */
	const void *right;
	size_t right_step;		/* bytes from panel to panel; 0: contiguous */
	size_t group, groups;		/* bytes of a group, a multiple of 16; groups; 0: no scales */
	const float *scale;		/* [m] */
	const int32_t *sum;		/* [m][groups]: Σ a_ti; NULL: every zero is 0 */
};

/* Bytes of a right side of n rows. */
size_t tile_right_size(const struct tile_product *p, size_t n);

/*
 * y = product + bias, with `add` y += product + bias; y [m][n], whose rows start every `stride` numbers; bias
 * [n], NULL: no bias. A number of y depends on one row of each side only, not on the number of threads.
 */
void tile_product(const struct tile_product *p, size_t m, size_t n, size_t stride, float y[m][stride],
	const float *bias, bool add);

/* Bytes of a row after padding, and of a left side of m rows; bytes: of a row. */
size_t tile_columns(size_t bytes);
size_t tile_left_size(size_t m, size_t bytes);
/*
 * Copies n bytes x to a row of the left side, from byte `first` on, a multiple of TILE_BYTES. The bytes after
 * them, up to the next multiple, become zero. bytes: of a whole row.
 */
void tile_store_row(size_t bytes, void *left, size_t row, size_t first, size_t n, const void *x);

/*
 * Upper triangle of h += Σ_s x_sᵀ x_s over blocks of m rows of bf16. The product of a block is computed in
 * float. The sum over blocks is computed in double, in their order. The workspace is aligned to 64 bytes.
 */
size_t tile_gram_workspace(size_t m, size_t n);
void tile_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n],
	void *workspace);
#endif
