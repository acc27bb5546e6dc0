/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_tile.c -- see product_tile.h */
#include "quant/product_tile.h"
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/half.h"
#include "num/tile.h"
#include "num/clones.h"

enum { PANEL = TILE_PANEL, UNIT = 16, BYTES_MOST = 65793, FEW_NUMBERS = 1 << 16 };

/* How a layer is multiplied, if it is: its values and inputs are integers times these, or bf16. */
struct way { bool fits; enum tile_kind kind; float weight_unit, input_unit; };

/* Whether all values are bf16 numbers, none so small that a sum of products of two could be below 2^-126. */
static bool is_bf16(const struct format *f)
{
	float wide[256];
	uint16_t half[256];

	half_narrow(256, half, f->grid, HALF_BF16);
	half_widen(256, wide, half, HALF_BF16);
	for (int c = 0; c < 1 << f->bits; c++) {
		const float v = f->grid[c] * 0x1p60f;

		if (wide[c] != f->grid[c] || v != rintf(v) || fabsf(f->grid[c]) > 0x1p30f)
			return false;
	}
	return true;
}

static struct way way_of(const struct linear *l)
{
	const struct format *weight = l->compute.kind ? &l->compute : &l->storage, *input = &l->input.format;
	const bool whole = l->compute.kind || (!l->group_index && (l->group <= 0 || l->group % UNIT == 0));
	const size_t group = l->group > 0 ? (size_t)l->group : l->in;
	const bool wide = weight->asymmetric && weight->bits == 8;
	const struct way bytes = { true, wide ? TILE_UNSIGNED : TILE_SIGNED, format_unit(weight),
		format_unit(input) };

	if (l->weight || !linear_rounds(l) || !whole)
		return (struct way){ false };
	if (!l->compute.kind && bytes.weight_unit > 0 && bytes.input_unit > 0 && !input->asymmetric &&
	    group <= BYTES_MOST)
		return bytes;
	return (struct way){ is_bf16(weight) && is_bf16(input), TILE_BF16, 1, 1 };
}

/* Bytes of a number. */
static size_t size_of(const struct way *w)
{
	return w->kind == TILE_BF16 ? 2 : 1;
}

/* Without the two sides. */
static struct tile_product shape_of(const struct linear *l, const struct way *w)
{
	const size_t group = l->compute.kind || l->group <= 0 ? l->in : (size_t)l->group;
	const size_t columns = tile_columns(l->in * size_of(w));

	return (struct tile_product){ .kind = w->kind, .columns = columns, .groups = ceil_div(l->in, group),
		.group = group * size_of(w) };
}

bool tile_fits(const struct product_row *row, const struct linear *l)
{
	(void)row;
	return cpu_tiles && way_of(l).fits;
}

size_t tile_weight_size(const struct linear *l, size_t n)
{
	const struct way w = way_of(l);
	const struct tile_product shape = shape_of(l, &w);

	return tile_right_size(&shape, n);
}

/* Integers of values that are finite; 0 of others. */
CLONES(static, bool, to_bytes, (size_t n, int8_t q[n], const float v[n], float per_unit), (n, q, v, per_unit))
{
	int good = 1;

	for (size_t i = 0; i < n; i++) {
		good &= v[i] == v[i];
		q[i] = (int8_t)(int)(v[i] == v[i] ? v[i] * per_unit : 0);
	}
	return good;
}

/* Row o of the layer as row r of a panel. */
static void make_row(const struct linear *l, const struct way *w, size_t o, size_t r, char *panel)
{
	const struct tile_product shape = shape_of(l, w);
	struct tile_terms *terms = (struct tile_terms *)(void *)(panel + shape.columns * PANEL);
	const size_t size = size_of(w), each = 4 / size;
	/* Codes of all 256 values with a zero point fit no signed byte without it. */
	const bool codes = w->kind == TILE_UNSIGNED;

	for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
		const size_t n = least(LINEAR_COLUMNS, l->in - i);
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
			to_bytes(n, v.byte, wide, 1 / w->weight_unit);
		for (size_t j = 0; j < n; j++)
			memcpy(panel + ((i + j) / each * PANEL + r) * 4 + (i + j) % each * size,
				v.x + j * size, size);
	}
	for (size_t g = 0; g < shape.groups; g++) {
		terms[g].scale[r] = linear_unit_scale(l, o, g) * w->weight_unit;
		terms[g].zero[r] = codes ? l->zero[l->group == -1 ? 0 : o * l->groups + g] : 0;
	}
}

void tile_weight(const struct product *p, size_t n, void *w)
{
	const struct linear *l = p->l;
	const size_t size = tile_weight_size(l, 1);
	const struct way way = way_of(l);

	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += PANEL) {
		char *panel = (char *)w + o / PANEL * size;

		memset(panel, 0, size);
		for (size_t r = 0; r < least(PANEL, n - o); r++)
			make_row(l, &way, p->first + o + r, r, panel);
	}
}

/* Behind the left side of m rows: the scale of each, then its sums of bytes over the groups. */
static float *scales(const struct linear *l, const struct way *w, size_t m, const void *input)
{
	return (float *)(void *)((char *)(uintptr_t)input + tile_left_size(m, l->in * size_of(w)));
}

static int32_t *sums(const struct linear *l, const struct way *w, size_t m, const void *input)
{
	return (int32_t *)(void *)(scales(l, w, m, input) + m);
}

size_t tile_input_size(const struct linear *l, size_t m)
{
	const struct way w = way_of(l);
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

/* Row t of x. */
static void place_row(const struct linear *l, const struct way *w, size_t t, void *y, const float x[l->in],
	float *scale, int32_t *sum)
{
	const struct tile_product shape = shape_of(l, w);
	const size_t size = size_of(w), in = l->in;
	const float s = *scale;

	for (size_t i = 0; i < in; i += LINEAR_COLUMNS) {
		const size_t n = least(LINEAR_COLUMNS, in - i);
		float v[LINEAR_COLUMNS];
		uint16_t half[LINEAR_COLUMNS];
		int8_t byte[LINEAR_COLUMNS];

		format_values(&l->input.format, n, v, x + i, s);
		if (w->kind == TILE_BF16)
			half_narrow(n, half, v, HALF_BF16);
		else if (!to_bytes(n, byte, v, 1 / w->input_unit))
			*scale = NAN;
		if (w->kind == TILE_UNSIGNED)
			add_up(n, byte, i, shape.group, sum);
		tile_place(in * size, y, t, i * size, n * size, size == 1 ? (const void *)byte : half);
	}
	*scale *= w->input_unit;
}

void tile_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct linear *l = p->l;
	const struct way w = way_of(l);
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

bool tile_input_same(const struct product *a, const struct product *b)
{
	const struct way v = way_of(a->l), w = way_of(b->l);

	return a->l->in == b->l->in && v.kind == w.kind &&
		shape_of(a->l, &v).group == shape_of(b->l, &w).group;
}

void tile_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const struct way w = way_of(l);
	struct tile_product t = shape_of(l, &w);

	t.left = input;
	t.right = (const char *)p->weight + tile_weight_size(l, first - p->first);
	t.scale = scales(l, &w, m, input);
	t.sum = w.kind == TILE_UNSIGNED ? sums(l, &w, m, input) : NULL;
	tile_product(&t, m, n, stride, y, bias, add);
}
