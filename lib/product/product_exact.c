/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_exact.c -- see product_exact_private.h */
#include "product/product_exact_private.h"
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/bf16.h"
#include "num/bits.h"
#include "num/half.h"
#include "num/tile.h"
#include "product/product_integer_private.h"
#include "num/clones.h"

enum { PANEL = TILE_PANEL, UNIT = 16, BYTES_MAX = 65793, BLOCK_M = 256, BLOCK_N = 512 };
enum { FEW_NUMBERS = 1 << 16, FEW_PRODUCTS = 1 << 22 };

/* Whether and how a layer is multiplied: its values and inputs are integers times these units, or bf16. */
struct variant { bool fits; enum tile_kind kind; float weight_unit, input_unit; };

/*
 * Whether all values are bf16 numbers, multiples of 2⁻⁶⁰, and at most 2⁴⁸. Then products and all their sums
 * are multiples of 2⁻¹²⁰, so that none is subnormal, and sums of 10⁹ products are below 2¹²⁷. The difference
 * of a code and a zero point of 8 bits is within ±255, which is such a number.
 */
static bool are_bf16(size_t n, const float v[n])
{
	for (size_t i = 0; i < n; i++) {
		const float step = v[i] * 0x1p60f;

		if (float_bits(v[i]) & 0xffff || step != rintf(step) || fabsf(v[i]) > 0x1p48f)
			return false;
	}
	return true;
}

/* Whether this holds for the inputs of the layer and for the values of its codes, in the compute format if
 * it has one. */
static bool is_bf16(const struct linear *l)
{
	const struct format *f = l->compute.kind ? &l->compute : &l->storage;

	return (l->compute.kind ? are_bf16(1, &l->saturate) : linear_has_grid(l)) && are_bf16(256, f->grid) &&
		are_bf16(256, l->input.format.grid);
}

static struct variant variant_of(const struct linear *l)
{
	const struct format *weight = l->compute.kind ? &l->compute : &l->storage, *input = &l->input.format;
	const bool whole = l->compute.kind || (!l->group_index && (l->group <= 0 || l->group % UNIT == 0));
	const size_t group = !l->compute.kind && l->group > 0 ? (size_t)l->group : l->in;
	const bool wide = weight->asymmetric && weight->bits == 8;
	const struct variant bytes = { true, wide ? TILE_UNSIGNED : TILE_SIGNED,
		format_unit(weight, weight->asymmetric ? 255 : 127), format_unit(input, 127) };

	if (l->weight || !linear_rounds(l) || !whole)
		return (struct variant){ false };
	if ((l->compute.kind ? integer_computed(l) : linear_has_grid(l)) && bytes.weight_unit > 0 &&
	    bytes.input_unit > 0 && !input->asymmetric && group <= BYTES_MAX)
		return bytes;
	return (struct variant){ is_bf16(l), TILE_BF16, 1, 1 };
}

/* Bytes per number. */
static size_t size_of(const struct variant *w)
{
	return w->kind == TILE_BF16 ? 2 : 1;
}

/* The product without its left and right side. */
static struct tile_product shape_of(const struct linear *l, const struct variant *w)
{
	const size_t group = l->compute.kind || l->group <= 0 ? l->in : (size_t)l->group;
	const size_t columns = tile_columns(l->in * size_of(w));

	return (struct tile_product){ .kind = w->kind, .columns = columns, .groups = ceil_div(l->in, group),
		.group = group * size_of(w) };
}

bool exact_amx_fits(const struct product_row *row, const struct linear *l)
{
	(void)row;
	return cpu_amx && variant_of(l).fits;
}

/* Pairs support bf16 values in one group. */
bool exact_pairs_fits(const struct product_row *row, const struct linear *l)
{
	(void)row;
	return cpu_bf16 && !l->weight && linear_rounds(l) &&
		(l->compute.kind || (!l->group_index && l->groups == 1)) && is_bf16(l);
}

size_t exact_amx_weight_size(const struct linear *l, size_t n)
{
	const struct variant w = variant_of(l);
	const struct tile_product shape = shape_of(l, &w);

	return tile_right_size(&shape, n);
}

/* Stores row o of the layer as row r of a panel. */
static void make_row(const struct linear *l, const struct variant *w, size_t o, size_t r, char *panel)
{
	const struct tile_product shape = shape_of(l, w);
	struct tile_terms *terms = (struct tile_terms *)(void *)(panel + shape.columns * PANEL);
	const size_t size = size_of(w), each = 4 / size;
	/* Codes of 8 bits minus a zero point do not fit in a signed byte. So codes are stored, and the zero
	 * point is applied to the sums. */
	const bool codes = w->kind == TILE_UNSIGNED;

	for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
		const size_t n = min(LINEAR_COLUMNS, l->in - i);
		union { int8_t byte[LINEAR_COLUMNS]; uint16_t half[LINEAR_COLUMNS]; char x[1]; } v;
		float wide[LINEAR_COLUMNS];
		uint8_t unpacked[LINEAR_COLUMNS];

		if (!codes)
			linear_units(l, o, i, n, wide);
		if (codes)
			memcpy(v.byte, linear_codes(l, o, i, n, unpacked), n);
		else if (w->kind == TILE_BF16)
			half_narrow(n, v.half, wide, HALF_BF16);
		else
			integer_bytes(n, v.byte, wide, 1 / w->weight_unit);
		for (size_t j = 0; j < n; j++)
			memcpy(panel + ((i + j) / each * PANEL + r) * 4 + (i + j) % each * size,
				v.x + j * size, size);
	}
	for (size_t g = 0; g < shape.groups; g++) {
		terms[g].scale[r] = linear_unit_scale(l, o, g) * w->weight_unit;
		terms[g].zero[r] = codes ? l->zero[l->group == -1 ? 0 : o * l->groups + g] : 0;
	}
}

void exact_amx_weight(const struct product *p, size_t n, void *w)
{
	const struct linear *l = p->l;
	const size_t size = exact_amx_weight_size(l, 1);
	const struct variant variant = variant_of(l);

	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += PANEL) {
		char *panel = (char *)w + o / PANEL * size;

		memset(panel, 0, size);
		for (size_t r = 0; r < min(PANEL, n - o); r++)
			make_row(l, &variant, p->first + o + r, r, panel);
	}
}

/* The left side of m rows is followed by the scale of each row, then by the sums of its bytes in each
 * group. */
static float *scales(const struct linear *l, const struct variant *w, size_t m, const void *input)
{
	return (float *)(void *)((char *)(uintptr_t)input + tile_left_size(m, l->in * size_of(w)));
}

static int32_t *sums(const struct linear *l, const struct variant *w, size_t m, const void *input)
{
	return (int32_t *)(void *)(scales(l, w, m, input) + m);
}

size_t exact_amx_input_size(const struct linear *l, size_t m)
{
	const struct variant w = variant_of(l);
	const size_t groups = shape_of(l, &w).groups;

	return tile_left_size(m, l->in * size_of(&w)) + m * (1 + groups) * sizeof(float);
}

CLONES(static, void, add_up, (size_t n, const int8_t q[n], size_t first, size_t group, int32_t *sum),
	(n, q, first, group, sum))
{
	for (size_t i = 0; i < n; i += UNIT) {
		int32_t s = 0;

		for (size_t j = 0; j < UNIT; j++)
			s += i + j < n ? q[i + j] : 0;
		sum[(first + i) / group] += s;
	}
}

/* Prepares row t of x. */
static void place_row(const struct linear *l, const struct variant *w, size_t t, void *y,
	const float x[l->in], float *scale, int32_t *sum)
{
	const struct tile_product shape = shape_of(l, w);
	const size_t size = size_of(w), in = l->in;
	const float s = *scale;

	for (size_t i = 0; i < in; i += LINEAR_COLUMNS) {
		const size_t n = min(LINEAR_COLUMNS, in - i);
		float v[LINEAR_COLUMNS];
		uint16_t half[LINEAR_COLUMNS];
		int8_t byte[LINEAR_COLUMNS];

		format_values(&l->input.format, n, v, x + i, s);
		if (w->kind == TILE_BF16)
			half_narrow(n, half, v, HALF_BF16);
		else if (!integer_bytes(n, byte, v, 1 / w->input_unit))
			*scale = NAN;
		if (w->kind == TILE_UNSIGNED)
			add_up(n, byte, i, shape.group, sum);
		tile_store_row(in * size, y, t, i * size, n * size, size == 1 ? (const void *)byte : half);
	}
	*scale *= w->input_unit;
}

void exact_amx_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct linear *l = p->l;
	const struct variant w = variant_of(l);
	const size_t panels = ceil_div(m, PANEL), groups = shape_of(l, &w).groups;

	memset(sums(l, &w, m, y), 0, m * groups * sizeof(int32_t));
	memset((char *)y + tile_left_size((panels - 1) * PANEL, l->in * size_of(&w)), 0,
		tile_left_size(PANEL, l->in * size_of(&w)));
	#pragma omp parallel for num_threads(threads) if (m * l->in > FEW_NUMBERS) schedule(static, PANEL)
	for (size_t t = 0; t < m; t++) {
		float *scale = scales(l, &w, m, y) + t;

		*scale = linear_input_scale(l, x[t], modality ? modality[t] : 0);
		place_row(l, &w, t, y, x[t], scale, sums(l, &w, m, y) + t * groups);
	}
}

bool exact_amx_input_same(const struct product *a, const struct product *b)
{
	const struct variant v = variant_of(a->l), w = variant_of(b->l);

	return a->l->in == b->l->in && v.kind == w.kind &&
		shape_of(a->l, &v).group == shape_of(b->l, &w).group;
}

void exact_amx_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const struct variant w = variant_of(l);
	struct tile_product t = shape_of(l, &w);

	t.left = input;
	t.right = (const char *)p->weight + exact_amx_weight_size(l, first - p->first);
	t.scale = scales(l, &w, m, input);
	t.sum = w.kind == TILE_UNSIGNED ? sums(l, &w, m, input) : NULL;
	tile_product(&t, m, n, stride, y, bias, add);
}

/* ---- by pairs ---- */

size_t exact_pairs_weight_size(const struct linear *l, size_t n)
{
	return bf16_packed(n, l->in) * sizeof(uint32_t);
}

void exact_pairs_weight(const struct product *p, size_t n, void *w)
{
	const struct linear *l = p->l;

	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += PANEL)
		for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
			const size_t columns = min(LINEAR_COLUMNS, l->in - i);
			uint16_t half[PANEL][columns];
			float units[LINEAR_COLUMNS];

			for (size_t r = 0; r < min(PANEL, n - o); r++) {
				linear_units(l, p->first + o + r, i, columns, units);
				half_narrow(columns, half[r], units, HALF_BF16);
			}
			bf16_pack(min(PANEL, n - o), columns,
				(uint32_t *)w + bf16_packed(o, l->in) + bf16_packed(PANEL, i),
				(const uint16_t (*)[columns])half);
		}
}

/* Prepared inputs are rows of bf16, followed by the scale of each row. */
static float *pair_scales(const struct linear *l, size_t m, const void *input)
{
	return (float *)(void *)((char *)(uintptr_t)input + ceil_div(m * l->in, 2) * 2 * sizeof(uint16_t));
}

size_t exact_pairs_input_size(const struct linear *l, size_t m)
{
	return (ceil_div(m * l->in, 2) + m) * sizeof(float);
}

void exact_pairs_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct linear *l = p->l;

	#pragma omp parallel for num_threads(threads) if (m * l->in > FEW_NUMBERS) schedule(static, PANEL)
	for (size_t t = 0; t < m; t++) {
		const float scale = linear_input_scale(l, x[t], modality ? modality[t] : 0);

		for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
			const size_t n = min(LINEAR_COLUMNS, l->in - i);
			float v[LINEAR_COLUMNS];

			format_values(&l->input.format, n, v, x[t] + i, scale);
			half_narrow(n, (uint16_t *)y + t * l->in + i, v, HALF_BF16);
		}
		pair_scales(l, m, y)[t] = scale;
	}
}

/* y = or += total · scale · each + bias. */
CLONES(static, void, finish_block, (size_t m, size_t n, size_t stride, float *restrict y,
	const float total[restrict m][BLOCK_N], const float scale[restrict m], const float each[restrict n],
	const float *restrict bias, bool add), (m, n, stride, y, total, scale, each, bias, add))
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			const float v = total[i][j] * each[j] * scale[i] + (bias ? bias[j] : 0);

			y[i * stride + j] = add ? v + y[i * stride + j] : v;
		}
}

void exact_pairs_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const bool many = m * n * l->in > FEW_PRODUCTS;
	const uint16_t (*x)[l->in] = input;
	const uint32_t *w = (const uint32_t *)p->weight + bf16_packed(first - p->first, l->in);

	#pragma omp parallel for num_threads(threads) if (many) schedule(dynamic) collapse(2)
	for (size_t j = 0; j < n; j += BLOCK_N)
		for (size_t i = 0; i < m; i += BLOCK_M) {
			const size_t rows = min(BLOCK_M, m - i), columns = min(BLOCK_N, n - j);
			float total[BLOCK_M][BLOCK_N], each[BLOCK_N];

			for (size_t o = 0; o < columns; o++)
				each[o] = linear_unit_scale(l, first + j + o, 0);
			bf16_product(cpu_bf16, rows, columns, l->in, BLOCK_N, total, &x[i],
				w + bf16_packed(j, l->in), NULL, false);
			finish_block(rows, columns, stride, &y[i][j], (const float (*)[BLOCK_N])total,
				pair_scales(l, m, input) + i, each, bias ? bias + j : NULL, add);
		}
}
