/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_pair.c -- the row integer-pairs; see product_integer_private.h */
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "product/product_integer_private.h"
#include "product/product_panel_private.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { FEW_NUMBERS = 1 << 16 };

/*
 * Pairs: codes minus their zero points, and inputs, are 16-bit numbers. Weights are panels of PAIR_PANEL
 * rows, [columns / 2][PAIR_PANEL][2] numbers, followed by the scales [groups][PAIR_PANEL]. Inputs are rows,
 * followed by the scale of each row.
 */
enum { PAIR_PANEL = 16, PAIR_ROWS = 4, PAIR_TILE_M = 128 };

static size_t pair_panel_size(const struct linear *l)
{
	return (integer_columns(l) * sizeof(int16_t) + integer_groups(l) * sizeof(float)) * PAIR_PANEL;
}

size_t integer_pairs_size(const struct linear *l, size_t n)
{
	return ceil_div(n, PAIR_PANEL) * pair_panel_size(l);
}

/* Stores row o of the layer as row r of a panel. */
static void make_pair_row(const struct linear *l, const struct integers *k, size_t o, size_t r,
	int16_t pairs[][PAIR_PANEL][2], float scale[][PAIR_PANEL])
{
	uint8_t value[LINEAR_COLUMNS];

	for (size_t g = 0; g < integer_groups(l); g++) {
		const size_t end = min((g + 1) * integer_group(l), l->in);
		const int zero = integer_zero(l, k, o, g);

		scale[g][r] = linear_unit_scale(l, o, g) * k->unit;
		for (size_t i = g * integer_group(l); i < end; i++) {
			if (i % LINEAR_COLUMNS == 0)
				integer_values(l, k, o, i, min(LINEAR_COLUMNS, l->in - i), value);
			pairs[i / 2][r][i % 2] = (int16_t)(value[i % LINEAR_COLUMNS] - zero);
		}
	}
}

void integer_pairs_weight(const struct product *p, size_t n, void *w)
{
	const struct linear *l = p->l;
	struct integers k;

	integers_of(&k, integer_format(l));
	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += PAIR_PANEL) {
		char *panel = (char *)w + o / PAIR_PANEL * pair_panel_size(l);

		memset(panel, 0, pair_panel_size(l));
		for (size_t r = 0; r < min(PAIR_PANEL, n - o); r++)
			make_pair_row(l, &k, p->first + o + r, r, (int16_t (*)[PAIR_PANEL][2])panel,
				(float (*)[PAIR_PANEL])(panel +
					integer_columns(l) * PAIR_PANEL * sizeof(int16_t)));
	}
}

size_t integer_pairs_input_size(const struct linear *l, size_t m)
{
	return m * (integer_columns(l) * sizeof(int16_t) + sizeof(float));
}

static float *pair_scales(const struct linear *l, size_t m, const void *input)
{
	void *y = (char *)(uintptr_t)input + m * integer_columns(l) * sizeof(int16_t);

	return y;
}

void integer_pairs_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct linear *l = p->l;
	struct integers k;

	integers_of(&k, &l->input.format);
	#pragma omp parallel for num_threads(threads) if (m * l->in > FEW_NUMBERS) schedule(static)
	for (size_t t = 0; t < m; t++) {
		const float s = linear_input_scale(l, x[t], modality ? modality[t] : 0);
		int16_t *q = (int16_t *)y + t * integer_columns(l);
		bool finite = true;

		memset(q + l->in, 0, (integer_columns(l) - l->in) * sizeof *q);
		for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
			const size_t n = min(LINEAR_COLUMNS, l->in - i);
			float v[LINEAR_COLUMNS];
			int8_t bytes[LINEAR_COLUMNS];

			format_values(&l->input.format, n, v, x[t] + i, s);
			finite &= integer_bytes(n, bytes, v, 1 / k.unit);
			for (size_t j = 0; j < n; j++)
				q[i + j] = bytes[j];
		}
		pair_scales(l, m, y)[t] = finite ? s * k.unit : NAN;
	}
}

#ifdef __x86_64__
/* sum + Σ w x over each two numbers. From intrinsics, gcc 12 computes all products first, and runs out of
 * registers. */
__attribute__((target("avx2,fma"), always_inline))
static inline __m256i pairs(__m256i sum, __m256i w, __m256i x)
{
	__m256i product;

	__asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(w), "x"(x));
	return sum;
}

/* Steps [s, end) of two columns, for PAIR_ROWS rows of x and 16 rows of the panel. */
__attribute__((target("avx2,fma"), always_inline))
static inline void pair_dots(__m256i dot[PAIR_ROWS][2], const int16_t *const x[PAIR_ROWS],
	const int16_t *panel, size_t s, size_t end)
{
	for (int i = 0; i < PAIR_ROWS; i++)
		dot[i][0] = dot[i][1] = _mm256_setzero_si256();
	for (; s < end; s++) {
		const __m256i w0 = _mm256_loadu_si256((const __m256i *)(panel + s * PAIR_PANEL * 2));
		const __m256i w1 = _mm256_loadu_si256((const __m256i *)(panel + s * PAIR_PANEL * 2 + 16));

		for (int i = 0; i < PAIR_ROWS; i++) {
			int32_t two;

			memcpy(&two, x[i] + 2 * s, sizeof two);
			const __m256i xi = _mm256_set1_epi32(two);

			dot[i][0] = pairs(dot[i][0], w0, xi);
			dot[i][1] = pairs(dot[i][1], w1, xi);
		}
	}
}

/* Multiplies rows [t, t + m) of x with a panel of n rows. */
__attribute__((target("avx2,fma")))
static void pair_piece(const struct linear *l, size_t all, size_t t, size_t m, size_t n, size_t stride,
	float *y, const void *input, const char *panel, const float *bias, bool add)
{
	const size_t groups = integer_groups(l), steps = integer_columns(l) / 2, group = integer_group(l) / 2;
	const float *scale = (const float *)(panel + integer_columns(l) * PAIR_PANEL * sizeof(int16_t));
	const float *input_scale = pair_scales(l, all, input);
	_Alignas(32) float part[PAIR_ROWS][PAIR_PANEL] = { { 0 } };
	const int16_t *x[PAIR_ROWS];

	for (size_t i = 0; i < PAIR_ROWS; i++)
		x[i] = (const int16_t *)input + (t + min(i, m - 1)) * integer_columns(l);
	for (size_t g = 0; g < groups; g++) {
		__m256i dot[PAIR_ROWS][2];

		pair_dots(dot, x, (const int16_t *)panel, g * group,
			g + 1 < groups ? (g + 1) * group : steps);
		for (int h = 0; h < 2; h++) {
			const __m256 s_og = _mm256_loadu_ps(scale + g * PAIR_PANEL + 8 * h);

			for (int i = 0; i < PAIR_ROWS; i++)
				_mm256_store_ps(&part[i][8 * h],
					_mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[i][h]), s_og,
						_mm256_load_ps(&part[i][8 * h])));
		}
	}
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			float v = part[i][j] * input_scale[t + i];

			v = bias ? v + bias[j] : v;
			y[i * stride + j] = add ? v + y[i * stride + j] : v;
		}
}
#else
#define pair_piece NULL		/* not called: no layer fits */
#endif

void integer_pairs_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct panels panels = { PAIR_PANEL, pair_panel_size(p->l), PAIR_TILE_M, PAIR_ROWS,
		pair_piece };

	integer_panels(&panels, p, first, n, m, stride, y, input, bias, add);
}
