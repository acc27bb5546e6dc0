/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tile.c -- see tile.h
 *
 * A thread computes a block of the result in squares of 32 × 32. A square is four tiles: two tiles of the
 * left and two of the right side are loaded for four products. Columns are divided into slices. The slice of
 * a left panel fits in the first cache; the slices of both sides of a block, and its sums, fit in the
 * second.
 */
#include "num/tile.h"
#include <assert.h>
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Results depend on none of these. */
enum { PANEL = TILE_PANEL, SLICE = 1024, BLOCK_M = 256, BLOCK_N = 512 };
/* Number of products below which starting threads costs more than it saves. */
enum { FEW_PRODUCTS = 1 << 22 };

union square { float f32[PANEL][PANEL]; int32_t i32[PANEL][PANEL]; };
/* A square in memory; its rows start every `stride` bytes. */
struct panel_view { float *x; size_t stride; };

#ifdef __x86_64__
#define TILES __attribute__((target("amx-tile,amx-int8,amx-bf16")))

/*
 * Shapes of the tiles: 0 to 3 are sums, 4 and 5 are of the left side, 6 and 7 of the right side; depth:
 * bytes of columns in a tile. They are not on the stack, as gcc does not take _tile_loadconfig() for a read
 * of 64 bytes.
 */
struct shapes { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; };
#define SHAPES(depth) { .palette = 1, .bytes = { 64, 64, 64, 64, depth, depth, 64, 64 }, \
	.rows = { 16, 16, 16, 16, 16, 16, (depth) / 4, (depth) / 4 } }
static const struct shapes shapes[] = { SHAPES(16), SHAPES(32), SHAPES(64) };

TILES static void configure(size_t depth)
{
	_tile_loadconfig(&shapes[depth / 32]);
}

TILES static void release(void)
{
	_tile_release();
}

#define ADD_COLUMNS(name, MULTIPLY) \
TILES static void name(size_t depth, size_t first, size_t end, const char *left, const char *right) \
{ \
	for (size_t c = first; c < end; c += depth) { \
		const char *a = left + c / TILE_BYTES * TILE_BYTES * PANEL + c % TILE_BYTES; \
		const char *b = right + c * PANEL; \
\
		_tile_loadd(4, a, 64); \
		_tile_loadd(6, b, 128); \
		MULTIPLY(0, 4, 6); \
		_tile_loadd(7, b + 64, 128); \
		MULTIPLY(1, 4, 7); \
		_tile_loadd(5, a + 16 * 64, 64); \
		MULTIPLY(2, 5, 6); \
		MULTIPLY(3, 5, 7); \
	} \
}
ADD_COLUMNS(add_bf16, _tile_dpbf16ps)
ADD_COLUMNS(add_signed, _tile_dpbssd)
ADD_COLUMNS(add_unsigned, _tile_dpbsud)

/* to = from + the product of columns [first, end) of two panels. from.x NULL: zeros; from.stride 0: one row
 * for all rows. */
TILES static void square(enum tile_kind kind, size_t depth, size_t first, size_t end, const char *left,
	const char *right, struct panel_view from, struct panel_view to)
{
	static void (*const add[])(size_t, size_t, size_t, const char *, const char *) = {
		[TILE_BF16] = add_bf16, [TILE_SIGNED] = add_signed, [TILE_UNSIGNED] = add_unsigned,
	};

	__asm__ volatile("" ::: "memory");	/* writes are done before tiles are loaded */
	if (from.x) {
		const float *low = from.x + from.stride / sizeof *low * 16;

		_tile_loadd(0, from.x, from.stride);
		_tile_loadd(1, from.x + 16, from.stride);
		_tile_loadd(2, low, from.stride);
		_tile_loadd(3, low + 16, from.stride);
	} else {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	}
	add[kind](depth, first, end, left, right);
	_tile_stored(0, to.x, to.stride);
	_tile_stored(1, to.x + 16, to.stride);
	_tile_stored(2, to.x + to.stride / sizeof *to.x * 16, to.stride);
	_tile_stored(3, to.x + to.stride / sizeof *to.x * 16 + 16, to.stride);
}
#else
static void configure(size_t depth)
{
	(void)depth;
}

static void release(void)
{
}

static void square(enum tile_kind kind, size_t depth, size_t first, size_t end, const char *left,
	const char *right, struct panel_view from, struct panel_view to)
{
	(void)kind, (void)depth, (void)first, (void)end, (void)left, (void)right, (void)from, (void)to;
	assert(!"tiles on a processor that has none");
}
#endif

/* total = or += the sums x of a group, times its scales. sum: sums of the m rows of the left side, or
 * NULL. */
CLONES(static, void, scale_integers, (size_t m, float total[restrict PANEL][PANEL],
	const int32_t x[restrict PANEL][PANEL], const struct tile_terms *restrict t, size_t groups,
	const int32_t *restrict sum, bool add), (m, total, x, t, groups, sum, add))
{
	for (size_t i = 0; i < m; i++) {
		const uint32_t s = sum ? (uint32_t)sum[i * groups] : 0;

		/* Unsigned arithmetic: the difference is in the range of int32_t, but the terms may not
		 * be. */
		for (size_t j = 0; j < PANEL; j++) {
			const uint32_t v = (uint32_t)x[i][j] - (uint32_t)t->zero[j] * s;

			total[i][j] = fmaf((float)(int32_t)v, t->scale[j], add ? total[i][j] : 0);
		}
	}
}

CLONES(static, void, scale_numbers, (size_t m, float total[restrict PANEL][PANEL],
	const float x[restrict PANEL][PANEL], const struct tile_terms *restrict t, bool add),
	(m, total, x, t, add))
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < PANEL; j++)
			total[i][j] = fmaf(x[i][j], t->scale[j], add ? total[i][j] : 0);
}

/* y = or += total · scale + bias; bias may be NULL. */
CLONES(static, void, finish, (size_t m, size_t n, size_t stride, float *restrict y,
	const float total[restrict PANEL][PANEL], const float scale[restrict m], const float *restrict bias,
	bool add), (m, n, stride, y, total, scale, bias, add))
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			float v = total[i][j] * scale[i];

			v = bias ? v + bias[j] : v;
			y[i * stride + j] = add ? v + y[i * stride + j] : v;
		}
}

/* Bytes of a right panel. */
static size_t panel_size(const struct tile_product *p)
{
	const size_t terms = p->group ? p->groups * sizeof(struct tile_terms) : 0;

	return p->right_step ? p->right_step : p->columns * PANEL + terms;
}

size_t tile_right_size(const struct tile_product *p, size_t n)
{
	return ceil_div(n, PANEL) * panel_size(p);
}

/* Bytes of columns that are multiplied at once: with several groups, the largest power of two that divides a
 * group. */
static size_t depth_of(const struct tile_product *p)
{
	return p->groups > 1 ? min(TILE_BYTES, p->group & -p->group) : TILE_BYTES;
}

/* A block of a product. */
struct block {
	const struct tile_product *p;
	size_t i, m, j, n;		/* its rows and columns */
	size_t stride;
	float *y;			/* its first number */
	const float *bias;
	bool add, upper;		/* upper: squares below the diagonal are omitted */
};

/* Initial sums of a square without scales: y with `add`, plus the bias. */
static void begin(const struct block *b, size_t m, size_t n, const float *y, const float *bias,
	float from[PANEL][PANEL])
{
	memset(from, 0, PANEL * sizeof *from);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			from[i][j] = b->add ? y[i * b->stride + j] : bias ? bias[j] : 0;
			from[i][j] += b->add && bias ? bias[j] : 0;
		}
}

/* Adds columns [first, end) to the square at row i, column j of the block; sums: of the slices before. */
static void add_slice(const struct block *b, size_t i, size_t j, size_t first, size_t end, union square *sums)
{
	const struct tile_product *p = b->p;
	const char *left = (const char *)p->left + (b->i + i) * p->columns;
	const char *right = (const char *)p->right + (b->j + j) / PANEL * panel_size(p);
	const size_t m = min(PANEL, b->m - i), n = min(PANEL, b->n - j), side = sizeof sums->f32[0];
	const float *bias = b->bias ? b->bias + j : NULL;
	float *y = b->y + i * b->stride + j;
	const bool whole = m == PANEL && n == PANEL, ends = end == p->columns;
	struct panel_view from = { sums->f32[0], side }, to = from;

	/* A whole square needs no copy, unless it has both y and a bias to begin with. */
	if (ends && whole)
		to = (struct panel_view){ y, b->stride * sizeof *y };
	if (!first && whole && !(b->add && bias))
		from = b->add ? (struct panel_view){ y, b->stride * sizeof *y } :
			(struct panel_view){ (float *)(uintptr_t)bias, 0 };
	else if (!first)
		begin(b, m, n, y, bias, sums->f32);
	square(p->kind, TILE_BYTES, first, end, left, right, from, to);
	if (ends && !whole)
		for (size_t r = 0; r < m; r++)
			memcpy(y + r * b->stride, sums->f32[r], n * sizeof *y);
}

/* The same with scales, for group g. sums: with several groups, the sums of the groups before; with one
 * group, the sums of its slices before. */
static void add_group(const struct block *b, size_t i, size_t j, size_t first, size_t end, size_t g,
	union square *sums)
{
	const struct tile_product *p = b->p;
	const char *left = (const char *)p->left + (b->i + i) * p->columns;
	const char *right = (const char *)p->right + (b->j + j) / PANEL * panel_size(p);
	const struct tile_terms *terms = (const struct tile_terms *)(right + p->columns * PANEL) + g;
	const size_t m = min(PANEL, b->m - i), n = min(PANEL, b->n - j);
	const bool grouped = p->groups > 1, ends = end == p->columns;
	_Alignas(64) union square own;
	union square *x = grouped ? &own : sums, *total = grouped ? sums : &own;
	const struct panel_view at = { x->f32[0], sizeof x->f32[0] };

	square(p->kind, depth_of(p), first, end, left, right,
		first && !grouped ? at : (struct panel_view){ NULL, 0 }, at);
	if (!grouped && !ends)
		return;
	if (p->kind == TILE_BF16)
		scale_numbers(m, total->f32, x->f32, terms, grouped && first);
	else
		scale_integers(m, total->f32, x->i32, terms, p->groups,
			p->sum ? p->sum + (b->i + i) * p->groups + g : NULL, grouped && first);
	if (ends)
		finish(m, n, b->stride, b->y + i * b->stride + j, total->f32, p->scale + b->i + i,
			b->bias ? b->bias + j : NULL, b->add);
}

static void run_block(const struct block *b)
{
	const struct tile_product *p = b->p;
	_Alignas(64) union square sums[BLOCK_M / PANEL][BLOCK_N / PANEL];

	for (size_t first = 0, end, g = 0; first < p->columns; first = end, g += p->groups > 1) {
		end = min(p->columns, first + (p->groups > 1 ? p->group : SLICE));
		if (p->groups > 1 && g + 1 == p->groups)
			end = p->columns;
		for (size_t i = 0; i < b->m; i += PANEL)
			for (size_t j = 0; j < b->n; j += PANEL)
				if (b->upper && b->i + i >= b->j + j + PANEL)
					continue;
				else if (p->group)
					add_group(b, i, j, first, end, g, &sums[i / PANEL][j / PANEL]);
				else
					add_slice(b, i, j, first, end, &sums[i / PANEL][j / PANEL]);
	}
}

void tile_product(const struct tile_product *p, size_t m, size_t n, size_t stride, float y[m][stride],
	const float *bias, bool add)
{
	const bool many = m * n * p->columns > FEW_PRODUCTS;

	#pragma omp parallel num_threads(threads) if (many)
	{
		configure(depth_of(p));
		#pragma omp for schedule(dynamic) collapse(2) nowait
		for (size_t j = 0; j < n; j += BLOCK_N)
			for (size_t i = 0; i < m; i += BLOCK_M) {
				struct block b = { p, i, min(BLOCK_M, m - i), j, min(BLOCK_N, n - j),
					stride, &y[i][j], bias ? bias + j : NULL, add, false };

				run_block(&b);
			}
		release();
	}
}

size_t tile_columns(size_t bytes)
{
	return ceil_div(bytes, TILE_BYTES) * TILE_BYTES;
}

size_t tile_left_size(size_t m, size_t bytes)
{
	return ceil_div(m, PANEL) * PANEL * tile_columns(bytes);
}

void tile_store_row(size_t bytes, void *left, size_t row, size_t first, size_t n, const void *x)
{
	char *panel = (char *)left + row / PANEL * PANEL * tile_columns(bytes);

	for (size_t c = 0; c < n; c += TILE_BYTES) {
		char *y = panel + (first + c) * PANEL + row % PANEL * TILE_BYTES;

		memcpy(y, (const char *)x + c, min(TILE_BYTES, n - c));
		memset(y + min(TILE_BYTES, n - c), 0, TILE_BYTES - min(TILE_BYTES, n - c));
	}
}

/* Transposes 32 rows of 32 numbers of x; rows from m on and numbers from n on are taken for zero. */
CLONES(static, void, transpose, (size_t m, size_t n, size_t stride, uint32_t left[restrict PANEL][PANEL / 2],
	uint32_t right[restrict PANEL / 2][PANEL], const uint16_t *restrict x),
	(m, n, stride, left, right, x))
{
	for (size_t r = 0; r < PANEL; r += 2) {
		uint32_t pair[PANEL] = { 0 };

		for (size_t c = 0; r < m && c < n; c++)
			pair[c] = x[r * stride + c];
		for (size_t c = 0; r + 1 < m && c < n; c++)
			pair[c] |= (uint32_t)x[(r + 1) * stride + c] << 16;
		for (size_t c = 0; c < PANEL; c++)
			right[r / 2][c] = pair[c];
	}
	for (size_t c = 0; c < PANEL; c++)
		for (size_t r = 0; r < PANEL / 2; r++)
			left[c][r] = right[r][c];
}

/* Adds the numbers of one block on and above the diagonal to h. */
static void gram_block(const struct tile_product *p, size_t n, size_t i, size_t j, double h[n][n])
{
	_Alignas(64) float y[BLOCK_M][BLOCK_N];
	const struct block b = { p, i, min(BLOCK_M, n - i), j, min(BLOCK_N, n - j), BLOCK_N, y[0], NULL,
		false, true };

	run_block(&b);
	for (size_t r = 0; r < b.m; r++) {
		const size_t skip = i + r > j ? i + r - j : 0;

		if (skip < b.n)
			linalg_sum(b.n - skip, &h[i + r][j + skip], &y[r][skip]);
	}
}

size_t tile_gram_workspace(size_t m, size_t n)
{
	return 2 * tile_left_size(n, m * sizeof(uint16_t));
}

void tile_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n],
	void *workspace)
{
	const size_t steps = ceil_div(m, PANEL), panels = ceil_div(n, PANEL);
	const bool many = blocks * m * n * n > FEW_PRODUCTS;
	uint32_t (*left)[PANEL][PANEL / 2] = workspace;
	uint32_t (*right)[PANEL / 2][PANEL] = (uint32_t (*)[PANEL / 2][PANEL])(left + panels * steps);
	const struct tile_product p = { .kind = TILE_BF16, .columns = steps * TILE_BYTES, .left = left,
		.right = right };

	for (size_t s = 0; s < blocks; s++) {
		#pragma omp parallel for num_threads(threads) if (many) schedule(static)
		for (size_t k = 0; k < steps; k++)
			for (size_t c = 0; c < panels; c++)
				transpose(min(PANEL, m - k * PANEL), min(PANEL, n - c * PANEL), n,
					left[c * steps + k], right[c * steps + k],
					&x[s][k * PANEL][c * PANEL]);
		#pragma omp parallel num_threads(threads) if (many)
		{
			configure(TILE_BYTES);
			#pragma omp for schedule(dynamic) collapse(2) nowait
			for (size_t i = 0; i < n; i += BLOCK_M)
				for (size_t j = 0; j < n; j += BLOCK_N)
					if (i < j + BLOCK_N)
						gram_block(&p, n, i, j, h);
			release();
		}
	}
}
