/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_integer.c -- products of integers; see product_integer_private.h */
#include "product/product_integer_private.h"
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "product/product_panel_private.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Rows of a panel; rows of x that are multiplied with them at once; columns of a step; tiles of threads. */
enum { PANEL = PRODUCT_ROWS, ROWS = 8, STEP = 4, TILE_M = 256, TILE_N = 512 };
enum { QUAD_ROWS = 4, QUAD_STEPS = 8 };
enum { UNIT = 16, GROUP_MAX = 65793, FEW_NUMBERS = 1 << 16, FEW_PRODUCTS = 1 << 22 };

bool integers_of(struct integers *y, const struct format *f)
{
	y->unit = format_unit(f, f->asymmetric ? 255 : 127);
	y->offset = f->asymmetric || !(y->unit > 0) ? 0 : (int)(f->max / y->unit);
	for (int c = 0; y->unit > 0 && c < 1 << f->bits; c++)
		y->value[c] = (uint8_t)(f->grid[c] / y->unit + (float)y->offset);
	return y->unit > 0;
}

const struct format *integer_format(const struct linear *l)
{
	return l->compute.kind ? &l->compute : &l->storage;
}

size_t integer_group(const struct linear *l)
{
	return !l->compute.kind && l->group > 0 ? (size_t)l->group : l->in;
}

size_t integer_groups(const struct linear *l)
{
	return ceil_div(l->in, integer_group(l));
}

size_t integer_columns(const struct linear *l)
{
	return ceil_div(l->in, UNIT) * UNIT;
}

/* Whether sums of QUAD_STEPS products of four bytes stay within 16 bits. */
static bool fit_quads(const struct integers *codes, const struct format *f)
{
	uint8_t max = 0;

	for (int c = 0; c < 1 << f->bits; c++)
		max = codes->value[c] > max ? codes->value[c] : max;
	return max * 2 * 127 * QUAD_STEPS <= INT16_MAX;
}

bool integer_computed(const struct linear *l)
{
	const float unit = l->compute.kind ? format_unit(&l->compute, 127) : 0;

	return unit > 0 && l->saturate / unit == rintf(l->saturate / unit);
}

bool integer_fits(const struct product_row *row, const struct linear *l)
{
	const bool whole = l->compute.kind ? integer_computed(l) :
		linear_has_grid(l) && !l->group_index && (l->group <= 0 || l->group % UNIT == 0);
	struct integers weights, inputs;

	return (cpu_dot || row->variant != INTEGER_DOTS) && whole && linear_rounds(l) &&
		integer_group(l) <= GROUP_MAX && integers_of(&weights, integer_format(l)) &&
		integers_of(&inputs, &l->input.format) && inputs.offset &&
		(row->variant != INTEGER_QUADS || fit_quads(&weights, integer_format(l)));
}

/* Weights are panels of rows, [columns / STEP][PANEL][STEP] bytes. Each panel is followed by the terms of its
 * groups. */

struct terms { float scale[PANEL]; int32_t zero[PANEL]; };

static size_t panel_size(const struct linear *l)
{
	return integer_columns(l) * PANEL + integer_groups(l) * sizeof(struct terms);
}

size_t integer_size(const struct linear *l, size_t n)
{
	return ceil_div(n, PANEL) * panel_size(l);
}

void integer_values(const struct linear *l, const struct integers *k, size_t o, size_t i, size_t n,
	uint8_t value[n])
{
	uint8_t unpacked[LINEAR_COLUMNS];
	const uint8_t *code;
	float units[LINEAR_COLUMNS];
	int8_t q[LINEAR_COLUMNS];

	if (l->compute.kind) {
		linear_units(l, o, i, n, units);
		integer_bytes(n, q, units, 1 / k->unit);
		for (size_t j = 0; j < n; j++)
			value[j] = (uint8_t)(q[j] + k->offset);
		return;
	}
	code = linear_codes(l, o, i, n, unpacked);
	for (size_t j = 0; j < n; j++)
		value[j] = k->value[code[j]];
}

int integer_zero(const struct linear *l, const struct integers *k, size_t o, size_t g)
{
	return k->offset + (l->zero && !l->compute.kind ? l->zero[linear_scale_at(l, o, g)] : 0);
}

/* Stores row o of the layer as row r of a panel. */
static void make_row(const struct linear *l, const struct integers *k, size_t o, size_t r,
	uint8_t codes[][PANEL][STEP], struct terms terms[])
{
	uint8_t value[LINEAR_COLUMNS];

	for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
		const size_t n = min(LINEAR_COLUMNS, l->in - i);

		integer_values(l, k, o, i, n, value);
		for (size_t j = i; j < i + n; j++)
			codes[j / STEP][r][j % STEP] = value[j - i];
	}
	for (size_t g = 0; g < integer_groups(l); g++) {
		terms[g].scale[r] = linear_unit_scale(l, o, g) * k->unit;
		terms[g].zero[r] = integer_zero(l, k, o, g);
	}
}

void integer_weight(const struct product *p, size_t n, void *w)
{
	const struct linear *l = p->l;
	struct integers k;

	integers_of(&k, integer_format(l));
	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += PANEL) {
		char *panel = (char *)w + o / PANEL * panel_size(l);

		memset(panel, 0, panel_size(l));
		for (size_t r = 0; r < min(PANEL, n - o); r++)
			make_row(l, &k, p->first + o + r, r, (uint8_t (*)[PANEL][STEP])panel,
				(struct terms *)(panel + integer_columns(l) * PANEL));
	}
}

/* Inputs are rows of bytes, followed by the scale of each row, then by the sums of q in each group. */

size_t integer_input_size(const struct linear *l, size_t m)
{
	return m * (integer_columns(l) + (1 + integer_groups(l)) * sizeof(float));
}

static float *scales(const struct linear *l, size_t m, const void *input)
{
	void *y = (char *)(uintptr_t)input + m * integer_columns(l);

	return y;
}

static int32_t *sums(const struct linear *l, size_t m, const void *input)
{
	void *y = scales(l, m, input) + m;

	return y;
}

CLONES(, bool, integer_bytes, (size_t n, int8_t q[n], const float v[n], float per_unit), (n, q, v, per_unit))
{
	int good = 1;

	for (size_t i = 0; i < n; i++) {
		good &= v[i] == v[i];
		q[i] = (int8_t)(int)(v[i] == v[i] ? v[i] * per_unit : 0);
	}
	return good;
}

CLONES(static, int32_t, sum_of_codes, (size_t n, const int8_t q[n]), (n, q))
{
	int32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += q[i];
	return sum;
}

void integer_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct linear *l = p->l;
	const size_t in = l->in, groups = integer_groups(l), group = integer_group(l);
	struct integers k;

	integers_of(&k, &l->input.format);
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static)
	for (size_t t = 0; t < m; t++) {
		const float scale = linear_input_scale(l, x[t], modality ? modality[t] : 0);
		int8_t *q = (int8_t *)y + t * integer_columns(l);
		int32_t *sum = sums(l, m, y) + t * groups;
		bool finite = true;

		memset(q + in, 0, integer_columns(l) - in);
		for (size_t i = 0; i < in; i += LINEAR_COLUMNS) {
			const size_t n = min(LINEAR_COLUMNS, in - i);
			float v[LINEAR_COLUMNS];

			format_values(&l->input.format, n, v, x[t] + i, scale);
			finite &= integer_bytes(n, q + i, v, 1 / k.unit);
		}
		for (size_t g = 0; g < groups; g++)
			sum[g] = sum_of_codes(min(group, in - g * group), q + g * group);
		scales(l, m, y)[t] = finite ? scale * k.unit : NAN;
	}
}

bool integer_input_same(const struct product *a, const struct product *b)
{
	return a->l->in == b->l->in && integer_group(a->l) == integer_group(b->l);
}

#ifdef __x86_64__
/* sum + Σ w x over each four bytes, w unsigned. The intrinsic of gcc 12 uses only half of the registers. */
__attribute__((CPU_AVX512_AND(",avx512vnni"), always_inline))
static inline __m512i dots(__m512i sum, __m512i w, __m512i x)
{
#ifdef _mm512_dpbusd_epi32	/* in plain C, for tests */
	return _mm512_dpbusd_epi32(sum, w, x);
#else
	__asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
	return sum;
#endif
}

/* Multiplies rows [t, t + m) of x with a panel of n rows. */
__attribute__((CPU_AVX512_AND(",avx512vnni")))
static void piece(const struct linear *l, size_t all, size_t t, size_t m, size_t n, size_t stride, float *y,
	const void *input, const char *panel, const float *bias, bool add)
{
	const __mmask16 mask[2] = { (__mmask16)((1u << min(n, 16)) - 1),
		(__mmask16)((1u << (n - min(n, 16))) - 1) };
	const size_t groups = integer_groups(l), group = integer_group(l) / STEP;
	const size_t steps = integer_columns(l) / STEP;
	const struct terms *terms = (const struct terms *)(panel + integer_columns(l) * PANEL);
	const float *scale = scales(l, all, input);
	_Alignas(64) float part[ROWS][PANEL] = { { 0 } };
	const uint32_t *x[ROWS];
	const int32_t *sum[ROWS];

	for (size_t i = 0; i < ROWS; i++) {
		x[i] = (const uint32_t *)((const char *)input + (t + min(i, m - 1)) * integer_columns(l));
		sum[i] = sums(l, all, input) + (t + min(i, m - 1)) * groups;
		/* the results are stored at the end, into lines that are read from memory meanwhile */
		__builtin_prefetch(y + min(i, m - 1) * stride, 1);
		__builtin_prefetch(y + min(i, m - 1) * stride + n - 1, 1);
	}
	for (size_t g = 0, s = 0; g < groups; g++) {
		const size_t end = g + 1 < groups ? (g + 1) * group : steps;
		__m512i dot[ROWS][2];

		memset(dot, 0, sizeof dot);
		for (; s < end; s++) {
			const __m512i w0 = _mm512_loadu_si512(panel + s * PANEL * STEP);
			const __m512i w1 = _mm512_loadu_si512(panel + s * PANEL * STEP + 64);

			for (int i = 0; i < ROWS; i++) {
				const __m512i xi = _mm512_set1_epi32((int)x[i][s]);

				dot[i][0] = dots(dot[i][0], w0, xi);
				dot[i][1] = dots(dot[i][1], w1, xi);
			}
		}
		for (int h = 0; h < 2; h++) {
			const __m512i zero = _mm512_loadu_si512(terms[g].zero + 16 * h);
			const __m512 s_og = _mm512_loadu_ps(terms[g].scale + 16 * h);

			for (int i = 0; i < ROWS; i++) {	/* all, so that they stay in registers */
				const __m512i v = _mm512_sub_epi32(dot[i][h],
					_mm512_mullo_epi32(zero, _mm512_set1_epi32(sum[i][g])));

				_mm512_store_ps(&part[i][16 * h], _mm512_fmadd_ps(_mm512_cvtepi32_ps(v), s_og,
					_mm512_load_ps(&part[i][16 * h])));
			}
		}
	}
	for (int h = 0; h < 2; h++)
		for (size_t i = 0; i < m; i++) {
			const __m512 s_t = _mm512_set1_ps(scale[t + i]);
			float *to = y + i * stride + 16 * h;
			__m512 v = _mm512_mul_ps(_mm512_load_ps(&part[i][16 * h]), s_t);

			if (bias)
				v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask[h], bias + 16 * h));
			if (add)
				v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask[h], to));
			_mm512_mask_storeu_ps(to, mask[h], v);
		}
}

/* sum + Σ w x over each two bytes, in 16 bits, w unsigned. Assembler for the reason given at pairs(). */
__attribute__((target("avx2,fma"), always_inline))
static inline __m256i quads(__m256i sum, __m256i w, __m256i x)
{
	__m256i product;

	__asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(w), "x"(x));
	return sum;
}

/* Steps [s, end) of four columns, for `rows` rows of x and 16 rows of the panel. */
__attribute__((target("avx2,fma"), always_inline))
static inline void quad_dots(int rows, __m256i dot[QUAD_ROWS][2], const char *const x[QUAD_ROWS],
	const char *panel, size_t s, size_t end)
{
	const __m256i ones = _mm256_set1_epi16(1);

	for (int i = 0; i < rows; i++)
		dot[i][0] = dot[i][1] = _mm256_setzero_si256();
	while (s < end) {
		const size_t few = s + min(QUAD_STEPS, end - s);
		__m256i sum[QUAD_ROWS][2];

		for (int i = 0; i < rows; i++)
			sum[i][0] = sum[i][1] = _mm256_setzero_si256();
		for (; s < few; s++) {
			const __m256i *w = (const __m256i *)(panel + s * PANEL * STEP);
			const __m256i w0 = _mm256_loadu_si256(w), w1 = _mm256_loadu_si256(w + 1);

			for (int i = 0; i < rows; i++) {
				int32_t four;

				memcpy(&four, x[i] + STEP * s, sizeof four);
				const __m256i xi = _mm256_set1_epi32(four);

				sum[i][0] = quads(sum[i][0], w0, xi);
				sum[i][1] = quads(sum[i][1], w1, xi);
			}
		}
		for (int i = 0; i < rows; i++)
			for (int h = 0; h < 2; h++)
				dot[i][h] = _mm256_add_epi32(dot[i][h], _mm256_madd_epi16(sum[i][h], ones));
	}
}

/* As piece(), for m ≤ rows. */
__attribute__((target("avx2,fma"), always_inline))
static inline void quad_rows(int rows, const struct linear *l, size_t all, size_t t, size_t m, size_t n,
	size_t stride, float *y, const void *input, const char *panel, const float *bias, bool add)
{
	const size_t groups = integer_groups(l), group = integer_group(l) / STEP;
	const size_t steps = integer_columns(l) / STEP;
	const struct terms *terms = (const struct terms *)(panel + integer_columns(l) * PANEL);
	const float *scale = scales(l, all, input);
	_Alignas(32) float part[QUAD_ROWS][PANEL] = { { 0 } };
	const char *x[QUAD_ROWS];
	const int32_t *sum[QUAD_ROWS];

	for (int i = 0; i < rows; i++) {
		x[i] = (const char *)input + (t + min((size_t)i, m - 1)) * integer_columns(l);
		sum[i] = sums(l, all, input) + (t + min((size_t)i, m - 1)) * groups;
	}
	for (size_t h = 0; h < n; h += 16)
		for (size_t g = 0; g < groups; g++) {
			__m256i dot[QUAD_ROWS][2];

			quad_dots(rows, dot, x, panel + h * STEP, g * group,
				g + 1 < groups ? (g + 1) * group : steps);
			for (size_t o = 0; o < 16; o += 8) {
				const __m256 s_og = _mm256_loadu_ps(terms[g].scale + h + o);
				const int32_t *z = terms[g].zero + h + o;
				const __m256i zero = _mm256_loadu_si256((const __m256i *)z);

				for (int i = 0; i < rows; i++) {
					const __m256i v = _mm256_sub_epi32(dot[i][o / 8],
						_mm256_mullo_epi32(zero, _mm256_set1_epi32(sum[i][g])));
					float *to = &part[i][h + o];

					_mm256_store_ps(to, _mm256_fmadd_ps(_mm256_cvtepi32_ps(v), s_og,
						_mm256_load_ps(to)));
				}
			}
		}
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			float v = part[i][j] * scale[t + i];

			v = bias ? v + bias[j] : v;
			y[i * stride + j] = add ? v + y[i * stride + j] : v;
		}
}

__attribute__((target("avx2,fma")))
static void quad_piece(const struct linear *l, size_t all, size_t t, size_t m, size_t n, size_t stride,
	float *y, const void *input, const char *panel, const float *bias, bool add)
{
	if (m == 1)
		quad_rows(1, l, all, t, m, n, stride, y, input, panel, bias, add);
	else
		quad_rows(QUAD_ROWS, l, all, t, m, n, stride, y, input, panel, bias, add);
}

#else
#define piece NULL		/* not called: no layer fits */
#define quad_piece NULL
#endif

void integer_panels(const struct panels *a, const struct product *p, size_t first, size_t n, size_t m,
	size_t stride, float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const char *weight = (const char *)p->weight + (first - p->first) / a->panel * a->size;
	const bool many = m * n * l->in > FEW_PRODUCTS;

	#pragma omp parallel for num_threads(threads) if (many) schedule(dynamic) collapse(2)
	for (size_t column = 0; column < n; column += TILE_N)
		for (size_t row = 0; row < m; row += a->tile_m)
			for (size_t o = column; o < min(n, column + TILE_N); o += a->panel)
				for (size_t t = row; t < min(m, row + a->tile_m); t += a->rows)
					a->piece(l, m, t, min(a->rows, m - t), min(a->panel, n - o),
						stride, &y[t][o], input, weight + o / a->panel * a->size,
						bias ? bias + o : NULL, add);
}

void integer_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add)
{
	const struct panels panels = { PANEL, panel_size(p->l), TILE_M, ROWS, piece };

	integer_panels(&panels, p, first, n, m, stride, y, input, bias, add);
}

void integer_quads_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct panels panels = { PANEL, panel_size(p->l), TILE_M, QUAD_ROWS, quad_piece };

	integer_panels(&panels, p, first, n, m, stride, y, input, bias, add);
}
