/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product.c -- the table of products, its rows of numbers that were prepared, and what is added; see product.h */
#include "quant/product.h"
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/bf16.h"
#include "num/linalg.h"
#include "num/tile.h"
#include "quant/product_exact.h"
#include "quant/product_integer.h"
#include "quant/product_packed.h"
#include "num/clones.h"

/* Rows that a thread takes at once, numbers below which one thread is quicker; alignment of workspaces. */
enum { ROWS = PRODUCT_ROWS, FEW_NUMBERS = 1 << 16, ALIGN = 64, LANES = 32 };

const char *const compute_types[] = {
	[COMPUTE_F32] = "f32", [COMPUTE_BF16] = "bf16", [COMPUTE_INT16] = "int16", NULL
};

enum half_type compute_half(enum compute_type type)
{
	return type == COMPUTE_BF16 ? HALF_BF16 : HALF_NONE;
}

static size_t float_size(const struct linear *l, size_t n)
{
	return n * l->in * sizeof(float);
}

static void float_weight(const struct product *p, size_t n, void *w)
{
	const size_t in = p->l->in;

	#pragma omp parallel for num_threads(threads) if (n * in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += ROWS)
		linear_weight(p->l, p->first + o, least(ROWS, n - o), (float (*)[in])((float *)w + o * in));
}

static void float_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const size_t in = p->l->in;
	const float (*w)[in] = p->weight;

	linalg_product(m, n, in, stride, y, input, w + (first - p->first), bias, add);
}

static void int16_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	(void)modality;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < m; t++)
		product_narrow(in, (float *)y + t * in, x[t]);
}

static bool has_amx(const struct product_row *row, const struct linear *l)
{
	(void)row, (void)l;
	return cpu_amx;
}

enum { BF16_WIDENED, BF16_PAIRS };	/* of product_row.way */

static bool has_pairs(const struct product_row *row, const struct linear *l)
{
	(void)row, (void)l;
	return cpu_bf16;
}

static size_t bf16_size(const struct linear *l, size_t n)
{
	return bf16_packed(n, l->in) * sizeof(uint32_t);
}

/* At most ROWS rows of the layer, rounded unless they are bf16 in the file. */
static void bf16_panel(const struct linear *l, size_t first, size_t n, uint32_t *panel)
{
	if (l->weight && l->weight_type == HALF_BF16) {
		bf16_pack(n, l->in, panel, (const uint16_t (*)[l->in])l->weight + first);
		return;
	}
	for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
		const size_t columns = least(LINEAR_COLUMNS, l->in - i);
		float wide[LINEAR_COLUMNS];
		uint16_t narrow[ROWS][columns];

		for (size_t o = 0; o < n; o++) {
			linear_columns(l, first + o, i, columns, wide);
			half_narrow(columns, narrow[o], wide, HALF_BF16);
		}
		bf16_pack(n, columns, panel + bf16_packed(ROWS, i), (const uint16_t (*)[columns])narrow);
	}
}

static void bf16_weight(const struct product *p, size_t n, void *w)
{
	const size_t in = p->l->in;

	#pragma omp parallel for num_threads(threads) if (n * in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += ROWS)
		bf16_panel(p->l, p->first + o, least(ROWS, n - o), (uint32_t *)w + bf16_packed(o, in));
}

static size_t bf16_input_size(const struct linear *l, size_t m)
{
	return m * l->in * sizeof(uint16_t);
}

static void bf16_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	(void)modality;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < m; t++)
		half_narrow(in, (uint16_t *)y + t * in, x[t], HALF_BF16);
}

static void bf16_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const uint32_t *w = (const uint32_t *)p->weight + bf16_packed(first - p->first, p->l->in);

	bf16_product(p->row->way == BF16_PAIRS, m, n, p->l->in, stride, y, input, w, bias, add);
}

/* x rounded to bf16 as a left side of num/tile.h, LINEAR_COLUMNS numbers at a time. */
static size_t amx_input_size(const struct linear *l, size_t m)
{
	return tile_left_size(m, l->in * sizeof(uint16_t));
}

static void amx_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	(void)modality;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < ceil_div(m, TILE_PANEL) * TILE_PANEL; t++)
		for (size_t i = 0; i < in; i += LINEAR_COLUMNS) {
			const size_t n = least(LINEAR_COLUMNS, in - i);
			uint16_t narrow[LINEAR_COLUMNS] = { 0 };

			if (t < m)
				half_narrow(n, narrow, x[t] + i, HALF_BF16);
			tile_place(in * sizeof *narrow, y, t, i * sizeof *narrow, n * sizeof *narrow, narrow);
		}
}

static void amx_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const uint32_t *w = (const uint32_t *)p->weight + bf16_packed(first - p->first, p->l->in);
	const struct tile_product t = { .kind = TILE_BF16, .left = input, .right = w,
		.columns = tile_columns(p->l->in * sizeof(uint16_t)) };

	tile_product(&t, m, n, stride, y, bias, add);
}

/* Halves as they stand, for few rows of x: they are half as much to read as floats. */
static bool half_fits(const struct product_row *row, const struct linear *l)
{
	(void)row;
	return l->weight && l->weight_type != HALF_NONE;
}

static size_t half_weight_size(const struct linear *l, size_t n)
{
	return n * l->in * sizeof(uint16_t);
}

static void half_weight(const struct product *p, size_t n, void *w)
{
	memcpy(w, (const uint16_t *)p->l->weight + p->first * p->l->in, half_weight_size(p->l, n));
}

/* y[t] += Σ w x_t, in lanes. */
CLONES(static, void, half_dots, (size_t n, size_t m, size_t stride, float y[m][LANES], const float w[n],
	const float x[m][stride]), (n, m, stride, y, w, x))
{
	for (size_t t = 0; t < m; t++) {
		float sum[LANES];

		memcpy(sum, y[t], sizeof sum);
		for (size_t i = 0; i < n; i += LANES)
			#pragma omp simd
			for (size_t j = 0; j < LANES; j++)
				sum[j] += w[i + j] * x[t][i + j];
		memcpy(y[t], sum, sizeof sum);
	}
}

/* One row of the weight; what is over after whole LANES is added one by one. */
static void half_row(const struct product *p, const uint16_t *w, size_t m, float y[m],
	const float x[m][p->l->in])
{
	const size_t in = p->l->in, whole = in / LANES * LANES;
	float lane[PRODUCT_FEW][LANES] = { { 0 } }, wide[LINEAR_COLUMNS];

	for (size_t i = 0; i < in; i += LINEAR_COLUMNS) {
		const size_t n = least(LINEAR_COLUMNS, in - i), some = i < whole ? least(n, whole - i) : 0;

		half_widen(n, wide, w + i, p->l->weight_type);
		half_dots(some, m, in, lane, wide, (const float (*)[in])&x[0][i]);
		for (size_t j = some; j < n; j++)
			for (size_t t = 0; t < m; t++)
				lane[t][j - some] += wide[j] * x[t][i + j];
	}
	for (size_t t = 0; t < m; t++) {
		for (size_t few = LANES / 2; few; few /= 2)
			for (size_t j = 0; j < few; j++)
				lane[t][j] += lane[t][j + few];
		y[t] = lane[t][0];
	}
}

static void half_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const size_t in = p->l->in;
	const uint16_t *w = (const uint16_t *)p->weight + (first - p->first) * in;
	const float (*x)[in] = input;

	#pragma omp parallel for num_threads(threads) if (m * n * in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o++)
		for (size_t t = 0, some; t < m; t += some) {
			float sum[PRODUCT_FEW];

			some = least(PRODUCT_FEW, m - t);
			half_row(p, w + o * in, some, sum, x + t);
			for (size_t k = 0; k < some; k++)
				y[t + k][o] = sum[k] + (bias ? bias[o] : 0) + (add ? y[t + k][o] : 0);
		}
}

#define TYPE(name) (1u << COMPUTE_##name)
#define FLOATS \
	.floats = true, .weight_size = float_size, .weight_make = float_weight, .run = float_run
#define BF16 \
	.types = TYPE(BF16), .weight_size = bf16_size, .weight_make = bf16_weight
#define HALVES .input_size = bf16_input_size, .input_make = bf16_input, .run = bf16_run
#define PACKED(kind) \
	.types = TYPE(F32) | TYPE(INT16), .most = PRODUCT_FEW, .fits = packed_fits, \
	.way = kind, .weight_size = packed_size, .weight_make = packed_weight, \
	.input_size = packed_input_size, .input_make = packed_input, .input_same = packed_input_same, \
	.run = packed_run

/*
 * Packed words: a table in memory is slower than arithmetic, one in a register quicker. A vector of n
 * lanes adds up in/n columns.
 */
const struct product_row product_rows[] = {
	{ "packed-fixed", .cpu = CPU_AVX512, PACKED(PACKED_FIXED), .error = { 1. / 128, 16, 0x1p-31 } },
	{ "packed-table-avx512", .cpu = CPU_AVX512, PACKED(PACKED_TABLE), .error = { 1. / 16, 16 } },
	{ "packed-integer-avx512", .cpu = CPU_AVX512, PACKED(PACKED_INTEGER), .error = { 1. / 16, 16 } },
	{ "packed-half-avx512", .cpu = CPU_AVX512, PACKED(PACKED_HALF), .error = { 1. / 16, 16 } },
	{ "packed-half-avx2", .cpu = CPU_AVX2, PACKED(PACKED_HALF), .error = { 1. / 8, 16 } },
	{ "packed-integer-avx2", .cpu = CPU_AVX2, PACKED(PACKED_INTEGER), .error = { 1. / 8, 16 } },
	{ "packed-table-avx2", .cpu = CPU_AVX2, PACKED(PACKED_TABLE), .error = { 1. / 8, 16 } },
	{ "packed-plain", PACKED(PACKED_PLAIN), .error = { 1. / 16, 16 } },
	{ "half", .types = TYPE(F32), .most = PRODUCT_FEW, .fits = half_fits, .weight_size = half_weight_size,
		.weight_make = half_weight, .run = half_run, .error = { 1. / 16, 8 } },
	{ "exact-amx", .types = TYPE(F32), .least = PRODUCT_FEW + 1, .fits = exact_amx_fits,
		.weight_size = exact_amx_weight_size, .weight_make = exact_amx_weight, .rounds = true,
		.input_size = exact_amx_input_size, .input_make = exact_amx_input,
		.input_same = exact_amx_input_same, .run = exact_amx_run, .error = { 2, 8 } },
	{ "integer-dots", .cpu = CPU_AVX512, .types = TYPE(F32), .fits = integer_fits,
		.weight_size = integer_size, .weight_make = integer_weight, .rounds = true,
		.input_size = integer_input_size, .input_make = integer_input,
		.input_same = integer_input_same, .run = integer_run, .error = { 1. / 16, 8 } },
	{ "exact-pairs", .cpu = CPU_AVX512, .types = TYPE(F32), .fits = exact_pairs_fits,
		.weight_size = exact_pairs_weight_size, .weight_make = exact_pairs_weight, .rounds = true,
		.input_size = exact_pairs_input_size, .input_make = exact_pairs_input,
		.run = exact_pairs_run, .error = { 2, 8 } },
	{ "integer-pairs", .cpu = CPU_AVX2, .types = TYPE(F32), .way = INTEGER_PAIRS, .fits = integer_fits,
		.weight_size = integer_pairs_size, .weight_make = integer_pairs_weight, .rounds = true,
		.input_size = integer_pairs_input_size, .input_make = integer_pairs_input,
		.run = integer_pairs_run, .error = { 1. / 16, 8 } },
	{ "bf16-amx", BF16, .least = PRODUCT_FEW + 1, .fits = has_amx, .input_size = amx_input_size,
		.input_make = amx_input, .run = amx_run, .error = { 2, 4, .tiny = 0x1p-125 } },
	{ "bf16-pairs", .cpu = CPU_AVX512, .way = BF16_PAIRS, BF16, HALVES, .fits = has_pairs,
		.error = { 2, 4, .tiny = 0x1p-126 } },
	{ "bf16-widened", BF16, HALVES, .error = { 2, 4 } },
	{ "int16", TYPE(INT16), FLOATS, .input_size = float_size, .input_make = int16_input,
		.error = { 1, 3 } },
	{ "f32", TYPE(F32), FLOATS, .error = { 1, 3 } },
	{ NULL },
};

bool product_fits(const struct product_row *row, const struct linear *l, enum compute_type type, size_t rows)
{
	return row->types >> type & 1 && cpu >= row->cpu && (!row->most || (rows && rows <= row->most)) &&
		(!rows || rows >= row->least) && (!row->fits || row->fits(row, l));
}

static const struct product_row *choose(const struct linear *l, enum compute_type type, size_t rows)
{
	const struct product_row *row = product_rows;

	while (!product_fits(row, l, type, rows))
		row++;
	return row;
}

struct product product_choose(const struct linear *l, enum compute_type type, size_t rows)
{
	return (struct product){ .row = choose(l, type, rows), .l = l, .type = type,
		.row_a = l->branch_a ? choose(l->branch_a, type, rows) : NULL,
		.row_b = l->branch_b ? choose(l->branch_b, type, rows) : NULL };
}

static struct product branch_a(const struct product *p)
{
	return (struct product){ .row = p->row_a, .l = p->l->branch_a, .type = p->type,
		.weight = p->weight_a };
}

static struct product branch_b(const struct product *p)
{
	return (struct product){ .row = p->row_b, .l = p->l->branch_b, .type = p->type, .first = p->first,
		.weight = p->weight_b };
}

static size_t aligned(size_t bytes)
{
	return ceil_div(bytes, ALIGN) * ALIGN;
}

size_t product_size(const struct product *p, size_t n)
{
	const size_t own = p->row->weight_size(p->l, n);

	if (!p->row_a)
		return own;
	return aligned(own) + aligned(p->row_a->weight_size(p->l->branch_a, p->l->rank)) +
		p->row_b->weight_size(p->l->branch_b, n);
}

void product_make(struct product *p, size_t first, size_t n, void *w)
{
	struct product a, b;

	p->first = first;
	p->weight = w;
	p->row->weight_make(p, n, w);
	if (!p->row_a)
		return;
	p->weight_a = (char *)w + aligned(p->row->weight_size(p->l, n));
	p->weight_b = (const char *)p->weight_a + aligned(p->row_a->weight_size(p->l->branch_a, p->l->rank));
	a = branch_a(p), b = branch_b(p);
	a.row->weight_make(&a, p->l->rank, (char *)w + ((const char *)p->weight_a - (char *)w));
	b.row->weight_make(&b, n, (char *)w + ((const char *)p->weight_b - (char *)w));
}

bool product_view(struct product *p)
{
	if (!p->row->floats || !p->l->weight || p->l->weight_type != HALF_NONE || p->row_a)
		return false;
	p->first = 0;
	p->weight = p->l->weight;
	return true;
}

static bool same_columns(const struct linear *a, const struct linear *b)
{
	return a->splits == b->splits && (!a->splits ||
		!memcmp(a->split_index, b->split_index, a->splits * sizeof *a->split_index));
}

bool product_input_same(const struct product *a, const struct product *b)
{
	return a == b || (!a->row_a && !b->row_a && a->row == b->row && a->type == b->type &&
		same_columns(a->l, b->l) && linear_inputs_agree(a->l, b->l) &&
		(!a->row->input_same || a->row->input_same(a, b)));
}

bool product_joins(const struct product *a, const struct product *b)
{
	return a->row->floats && !a->l->splits && product_input_same(a, b);
}

/* What is multiplied, where more than the main weight is. */
struct input {
	const void *main, *branch;	/* prepared x, and A x for B */
	const float *split;		/* [m][splits] */
};

static bool is_more(const struct product *p)
{
	return p->row_a || p->l->splits;
}

/* Of inputs as the row prepares them; behind them are rounded ones. */
static size_t input_size(const struct product *p, size_t m)
{
	return p->row->input_size ? aligned(p->row->input_size(p->l, m)) : 0;
}

/* Whether inputs are rounded before the row prepares them. */
static bool rounds_before(const struct product *p)
{
	return linear_rounds(p->l) && !p->row->rounds;
}

static size_t main_workspace(const struct product *p, size_t m)
{
	return aligned(input_size(p, m) + (rounds_before(p) ? m * p->l->in * sizeof(float) : 0));
}

static const void *main_input(const struct product *p, size_t m, void *workspace, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	if (rounds_before(p)) {
		float (*rounded)[in] = (float (*)[in])((char *)workspace + input_size(p, m));

		linear_input(p->l, m, rounded, x, modality);
		x = (const float (*)[in])rounded;
	}
	if (!p->row->input_size)
		return x;
	p->row->input_make(p, m, workspace, x, modality);
	return workspace;
}

/* Where what is added has its inputs, behind the main path's. */
struct places { size_t split, ax, a, b, end; };

static struct places places(const struct product *p, size_t m)
{
	struct places y = { .split = aligned(sizeof(struct input)) + main_workspace(p, m) };

	y.ax = y.a = y.b = y.end = y.split + aligned(m * p->l->splits * sizeof(float));
	if (p->row_a) {
		const struct product a = branch_a(p), b = branch_b(p);

		y.a = y.ax + aligned(m * p->l->rank * sizeof(float));
		y.b = y.a + main_workspace(&a, m);
		y.end = y.b + main_workspace(&b, m);
	}
	return y;
}

size_t product_workspace(const struct product *p, size_t m)
{
	return is_more(p) ? places(p, m).end : main_workspace(p, m);
}

const void *product_input(const struct product *p, size_t m, void *workspace, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct linear *l = p->l;
	struct input *y = workspace;
	char *at = workspace;
	struct places to;

	if (!is_more(p))
		return main_input(p, m, workspace, x, modality);
	to = places(p, m);
	*y = (struct input){ .main = main_input(p, m, at + aligned(sizeof *y), x, modality),
		.split = (float *)(at + to.split) };
	for (size_t t = 0; t < m; t++)
		for (size_t k = 0; k < l->splits; k++)
			((float *)(at + to.split))[t * l->splits + k] = x[t][l->split_index[k]];
	if (p->row_a) {
		const struct product a = branch_a(p), b = branch_b(p);
		float (*ax)[l->rank] = (float (*)[l->rank])(at + to.ax);

		a.row->run(&a, 0, l->rank, m, l->rank, ax, main_input(&a, m, at + to.a, x, modality), NULL,
			false);
		y->branch = main_input(&b, m, at + to.b, (const float (*)[l->rank])ax, modality);
	}
	return y;
}

static void add_columns(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const float x[m][p->l->splits])
{
	const size_t splits = p->l->splits;

	#pragma omp parallel for num_threads(threads) if (m * n * splits > FEW_NUMBERS) schedule(static)
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < n; o++)
			for (size_t k = 0; k < splits; k++)
				y[t][o] += x[t][k] * linear_split(p->l, first + o, k);
}

static void run_rows(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const struct input *input, const float *bias, bool add)
{
	const struct product b = branch_b(p);

	p->row->run(p, first, n, m, stride, y, input->main, bias, add);
	if (p->row_b)
		b.row->run(&b, first, n, m, stride, y, input->branch, NULL, true);
	if (p->l->splits)
		add_columns(p, first, n, m, stride, y, (const float (*)[p->l->splits])input->split);
}

void product_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add)
{
	const bool few = m <= PRODUCT_FEW && n * p->l->in * m > FEW_NUMBERS;
	const size_t parts = ceil_div(n, (size_t)threads * ROWS * ROWS) * (size_t)threads;
	const size_t step = few ? ceil_div(ceil_div(n, parts), ROWS) * ROWS : n;

	if (!is_more(p)) {
		p->row->run(p, first, n, m, stride, y, input, bias, add);
		return;
	}
	#pragma omp parallel for num_threads(threads) if (few) schedule(dynamic)
	for (size_t o = 0; o < n; o += step)
		run_rows(p, first + o, least(step, n - o), m, stride, (float (*)[stride])&y[0][o], input,
			bias ? bias + o : NULL, add);
}
