/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product.c -- the table of products; addition of split columns and branches; see product.h */
#include "product/product.h"
#include "base/size.h"
#include "base/thread.h"
#include "product/product_exact_private.h"
#include "product/product_half_private.h"
#include "product/product_integer_private.h"
#include "product/product_number_private.h"
#include "product/product_packed_private.h"

/* Rows that a thread takes at once; numbers below which one thread is faster; alignment of workspaces. */
enum { ROWS = PRODUCT_ROWS, FEW_NUMBERS = 1 << 16, ALIGN = 64 };

const char *const compute_types[] = {
	[COMPUTE_F32] = "f32", [COMPUTE_BF16] = "bf16", [COMPUTE_INT16] = "int16", NULL
};

enum half_type compute_half(enum compute_type type)
{
	return type == COMPUTE_BF16 ? HALF_BF16 : HALF_NONE;
}

#define TYPE(name) (1u << COMPUTE_##name)
#define FLOATS \
	.floats = true, .weight_size = number_float_size, .weight_make = number_float_weight, \
	.run = number_float_run
#define FEW(type) \
	.types = TYPE(type), .min = PRODUCT_APART, .max = PRODUCT_FEW, FLOATS, .variant = NUMBER_FEW, \
	.error = { 1. / 8, 16 }
#define BF16 \
	.types = TYPE(BF16), .weight_size = number_bf16_size, .weight_make = number_bf16_weight
#define HALVES .input_size = number_bf16_input_size, .input_make = number_bf16_input, .run = number_bf16_run
#define PACKED(kind) \
	.types = TYPE(F32) | TYPE(INT16), .max = PRODUCT_FEW, .fits = packed_fits, \
	.variant = kind, .weight_size = packed_size, .weight_make = packed_weight, \
	.input_size = packed_input_size, .input_make = packed_input, .input_same = packed_input_same, \
	.run = packed_run

/*
 * Packed words: a table in memory is slower than arithmetic, and a table in a register is faster. Each lane
 * of a vector of n lanes sums in/n columns.
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
	{ "half", .types = TYPE(F32), .max = PRODUCT_FEW, .fits = half_fits, .weight_size = half_bytes,
		.weight_make = half_weight, .run = half_run, .error = { 1. / 8, 16 } },
	{ "exact-amx", .types = TYPE(F32), .min = PRODUCT_FEW + 1, .fits = exact_amx_fits,
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
	{ "integer-quads", .cpu = CPU_AVX2, .types = TYPE(F32), .variant = INTEGER_QUADS,
		.fits = integer_fits, .weight_size = integer_size, .weight_make = integer_weight,
		.rounds = true,
		.input_size = integer_input_size, .input_make = integer_input,
		.input_same = integer_input_same, .run = integer_quads_run, .error = { 1. / 16, 8 } },
	{ "integer-pairs", .cpu = CPU_AVX2, .types = TYPE(F32), .variant = INTEGER_PAIRS,
		.fits = integer_fits,
		.weight_size = integer_pairs_size, .weight_make = integer_pairs_weight, .rounds = true,
		.input_size = integer_pairs_input_size, .input_make = integer_pairs_input,
		.run = integer_pairs_run, .error = { 1. / 16, 8 } },
	{ "bf16-amx", BF16, .min = PRODUCT_FEW + 1, .fits = number_amx_fits,
		.input_size = number_amx_input_size,
		.input_make = number_amx_input, .run = number_amx_run, .error = { 2, 4, .tiny = 0x1p-125 } },
	{ "bf16-pairs", .cpu = CPU_AVX512, .variant = NUMBER_PAIRS, BF16, HALVES, .fits = number_pairs_fits,
		.error = { 2, 4, .tiny = 0x1p-126 } },
	{ "bf16-widened", BF16, HALVES, .error = { 2, 4 } },
	{ "few-int16", FEW(INT16), .input_size = number_float_size, .input_make = number_int16_input },
	{ "few-f32", FEW(F32) },
	{ "int16", TYPE(INT16), FLOATS, .input_size = number_float_size, .input_make = number_int16_input,
		.error = { 1, 3 } },
	{ "f32", TYPE(F32), FLOATS, .error = { 1, 3 } },
	{ NULL },
};

bool product_fits(const struct product_row *row, const struct linear *l, enum compute_type type, size_t rows)
{
	return row->types >> type & 1 && cpu >= row->cpu && (!row->max || (rows && rows <= row->max)) &&
		(!rows || rows >= row->min) && (!row->fits || row->fits(row, l));
}

static const struct product_row *first_that_fits(const struct linear *l, enum compute_type type, size_t rows)
{
	const struct product_row *row = product_rows;

	while (!product_fits(row, l, type, rows))
		row++;
	return row;
}

struct product product_choose(const struct linear *l, enum compute_type type, size_t rows)
{
	return (struct product){ .row = first_that_fits(l, type, rows), .l = l, .type = type,
		.row_a = l->branch_a ? first_that_fits(l->branch_a, type, rows) : NULL,
		.row_b = l->branch_b ? first_that_fits(l->branch_b, type, rows) : NULL };
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

bool product_input_same(const struct product *a, const struct product *b)
{
	return a == b || (!a->row_a && !b->row_a && a->row == b->row && a->type == b->type &&
		linear_splits_agree(a->l, b->l) && linear_inputs_agree(a->l, b->l) &&
		(!a->row->input_same || a->row->input_same(a, b)));
}

bool product_joins(const struct product *a, const struct product *b)
{
	return a->row->floats && !a->l->splits && product_input_same(a, b);
}

/* Prepared inputs of a layer with split columns or a branch. */
struct whole_input {
	const void *main, *branch;	/* prepared x, and A x for B */
	const float *split;		/* [m][splits] */
};

static bool is_more(const struct product *p)
{
	return p->row_a || p->l->splits;
}

/* Bytes of the inputs that the row prepares. In the workspace, rounded inputs follow them. */
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

/* Offsets of the inputs of split columns and branch, after the inputs of the main path. */
struct input_places { size_t split, ax, a, b, end; };

static struct input_places places(const struct product *p, size_t m)
{
	struct input_places y = { .split = aligned(sizeof(struct whole_input)) + main_workspace(p, m) };

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
	struct whole_input *y = workspace;
	char *at = workspace;
	struct input_places to;
	float *split;

	if (!is_more(p))
		return main_input(p, m, workspace, x, modality);
	to = places(p, m);
	split = (void *)(at + to.split);
	*y = (struct whole_input){ .main = main_input(p, m, at + aligned(sizeof *y), x, modality),
		.split = split };
	for (size_t t = 0; t < m; t++)
		for (size_t k = 0; k < l->splits; k++)
			split[t * l->splits + k] = x[t][l->split_index[k]];
	if (p->row_a) {
		const struct product a = branch_a(p), b = branch_b(p);
		float (*ax)[l->rank] = (void *)(at + to.ax);

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
	float y[m][stride], const struct whole_input *input, const float *bias, bool add)
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
		run_rows(p, first + o, min(step, n - o), m, stride, (float (*)[stride])&y[0][o], input,
			bias ? bias + o : NULL, add);
}
