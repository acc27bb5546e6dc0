/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * e8p.c -- see e8p.h
 *
 * The nearest point under a shift has the largest product with y = x - shift, less ‖a‖²/2. For a pattern a
 * these are the signs of y. If the sum of a is odd with them, the entry with the smallest a_i |y_i| has the
 * other sign. So a pattern takes eight products and their minimum. All 256 patterns are tried.
 */
#include "num/e8p.h"
#include <math.h>
#include <string.h>
#include "num/clones.h"

enum { COLUMNS = E8P_COLUMNS, LANES = E8P_LANES, ENTRIES = 256, PAIRS = 128, DOUBLES = 240 };

struct book {
	float point[ENTRIES][COLUMNS];	/* patterns, or points of E8 */
	float half[ENTRIES];		/* ‖point‖²/2 */
	bool odd[ENTRIES];		/* the sum of a pattern */
};
static struct book patterns, points;	/* constant after the constructor */

/* Positions of ½ in the 29 patterns of norm² 12. */
static const char outer[] = "123023013012367357347356346345267257247256246245"
	"167157147156146045067057047056046014237";

static void add_norm(struct book *b, size_t k)
{
	float sum = 0;

	for (size_t i = 0; i < COLUMNS; i++) {
		b->half[k] += b->point[k][i] * b->point[k][i] / 2;
		sum += b->point[k][i];
	}
	b->odd[k] = (int)sum % 2;
}

static void fill_patterns(struct book *b)
{
	enum { ALL = 3 * 3 * 3 * 3 * 3 * 3 * 3 * 3 };
	const float most = 10;
	size_t k = 0;

	for (size_t c = 0; c < ALL; c++) {
		size_t digits = c;

		b->half[k] = 0;
		for (size_t i = COLUMNS; i-- > 0; digits /= 3)
			b->point[k][i] = 0.5f + (float)(digits % 3);
		add_norm(b, k);
		k += 2 * b->half[k] <= most;
	}
	for (const char *at = outer; *at; at += 3, k++) {
		for (size_t i = 0; i < COLUMNS; i++)
			b->point[k][i] = memchr(at, '0' + (int)i, 3) ? 0.5f : 1.5f;
		b->half[k] = 0;
		add_norm(b, k);
	}
}

/* The point of a code of the third bit. */
static void point_of_e8(size_t code, float g[COLUMNS])
{
	size_t i = 0, j = 1, ones = 0;

	memset(g, 0, COLUMNS * sizeof *g);
	if (code >= DOUBLES) {
		g[(code - DOUBLES) / 2] = code == ENTRIES - 1 ? 0 : code % 2 ? -2 : 2;
		return;
	}
	if (code < PAIRS) {
		for (i = 0; i < COLUMNS; i++) {
			const bool negative = i < COLUMNS - 1 ? code >> i & 1 : ones % 2;

			ones += negative;
			g[i] = negative ? -0.5f : 0.5f;
		}
		return;
	}
	for (size_t pair = (code - PAIRS) / 4; pair > 0; pair--)
		if (++j == COLUMNS)
			j = ++i + 1;
	g[i] = code & 1 ? -1 : 1;
	g[j] = code & 2 ? -1 : 1;
}

__attribute__((constructor))
static void fill_books(void)
{
	fill_patterns(&patterns);
	for (size_t k = 0; k < ENTRIES; k++) {
		point_of_e8(k, points.point[k]);
		add_norm(&points, k);
	}
}

static bool parity(unsigned x)
{
	return __builtin_popcount(x) % 2;
}

/* The entry i of the point of a code of E8P. */
static float entry(const uint8_t code[2], size_t i)
{
	const bool minus = parity(code[0]), odd = patterns.odd[code[1]];
	const unsigned negative = code[0] ^ minus ^ (unsigned)odd << (COLUMNS - 1);
	const float a = patterns.point[code[1]][i];

	return (negative >> i & 1 ? -a : a) + (minus ? -0.25f : 0.25f);
}

/* 1 over the factor of the second code (QuIP#). It widens what g₁ leaves of Gaussian weights to the spread
 * for which g₂ is best. */
static float second(const struct format *f)
{
	return f->n == 3 ? 1 / 2.04f : 1 / 3.45f;
}

/* The entry i of what a code of the format represents. */
static float value(const struct format *f, const uint8_t code[], size_t i)
{
	switch (f->n) {
	case 3:		return entry(code, i) + points.point[code[2]][i] * second(f);
	case 4:		return entry(code, i) + entry(code + 2, i) * second(f);
	default:	return entry(code, i);
	}
}

static void decode(const struct format *f, size_t row, size_t i, size_t n, float w[n], const uint8_t code[],
	const float scale[n], const uint8_t zero[n])
{
	const size_t bytes = (size_t)f->bits / 8;

	(void)row, (void)zero;
	for (size_t j = 0; j < n; j++)
		w[j] = value(f, code + (i + j) / COLUMNS * bytes, (i + j) % COLUMNS) * scale[j];
}

const struct code_form e8p_form = { .rows = 1, .columns = COLUMNS, .decode = decode };

bool e8p_fill(struct format *f)
{
	f->n = f->n ? f->n : 2;
	f->bits = f->n * COLUMNS;
	f->max = 2.75f;
	return f->n <= 4;
}

/* QuIP#'s, found there by a search. */
double e8p_rms(const struct format *f)
{
	return f->n == 3 ? 0.98 : 1.03;
}

/*
 * For each lane, the pattern with the largest product of its point and x, less half of its norm; `score` is
 * this number. x: magnitudes; odd: 1 if an odd number of entries is negative, else 0.
 */
CLONES(static, void, best_patterns, (const struct book *b, const float x[COLUMNS][LANES],
	const float odd[LANES], float score[LANES], int32_t which[LANES]), (b, x, odd, score, which))
{
	for (size_t l = 0; l < LANES; l++)
		score[l] = -INFINITY, which[l] = 0;
	for (size_t k = 0; k < ENTRIES; k++) {
		const float *a = b->point[k], half = b->half[k], other = b->odd[k];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			float p[COLUMNS], low[4], sum;

			for (size_t i = 0; i < COLUMNS; i++)
				p[i] = a[i] * x[i][l];
			for (size_t i = 0; i < 4; i++)
				low[i] = p[i] < p[i + 4] ? p[i] : p[i + 4];
			low[0] = low[0] < low[2] ? low[0] : low[2];
			low[1] = low[1] < low[3] ? low[1] : low[3];
			low[0] = low[0] < low[1] ? low[0] : low[1];
			sum = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7])) - half;
			sum -= odd[l] != other ? 2 * low[0] : 0;
			which[l] = sum > score[l] ? (int32_t)k : which[l];
			score[l] = sum > score[l] ? sum : score[l];
		}
	}
}

/* The point with the largest product with x, less half of its norm. */
CLONES(static, void, best_points, (const struct book *b, const float x[COLUMNS][LANES], int32_t which[LANES]),
	(b, x, which))
{
	float score[LANES];

	for (size_t l = 0; l < LANES; l++)
		score[l] = -INFINITY, which[l] = 0;
	for (size_t k = 0; k < ENTRIES; k++) {
		const float *a = b->point[k], half = b->half[k];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const float sum = a[0] * x[0][l] + a[1] * x[1][l] + a[2] * x[2][l] + a[3] * x[3][l] +
				a[4] * x[4][l] + a[5] * x[5][l] + a[6] * x[6][l] + a[7] * x[7][l] - half;

			which[l] = sum > score[l] ? (int32_t)k : which[l];
			score[l] = sum > score[l] ? sum : score[l];
		}
	}
}

/* Magnitudes of x - shift, and whether the number of its negative entries is odd. */
CLONES(static, void, fold, (float shift, const float x[COLUMNS][LANES], float y[COLUMNS][LANES],
	float odd[LANES]), (shift, x, y, odd))
{
	for (size_t l = 0; l < LANES; l++)
		odd[l] = 0;
	for (size_t i = 0; i < COLUMNS; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const float v = x[i][l] - shift;

			odd[l] = v < 0 ? 1 - odd[l] : odd[l];
			y[i][l] = v < 0 ? -v : v;
		}
}

/* The code of a pattern for lane l. */
static void encode(size_t pattern, bool minus, const float x[COLUMNS][LANES], size_t l, uint8_t code[2])
{
	const float *a = patterns.point[pattern], shift = minus ? -0.25f : 0.25f;
	const bool odd = patterns.odd[pattern];
	unsigned negative = 0, least = 0;

	for (unsigned i = 0; i < COLUMNS; i++) {
		negative |= (unsigned)(x[i][l] < shift) << i;
		if (a[i] * fabsf(x[i][l] - shift) < a[least] * fabsf(x[least][l] - shift))
			least = i;
	}
	if (parity(negative) != odd)
		negative ^= 1u << least;
	code[0] = (uint8_t)(negative ^ (unsigned)odd << (COLUMNS - 1) ^ minus);
	code[1] = (uint8_t)pattern;
}

/* Codes of E8P in bytes `at` and at + 1 of each lane. */
static void nearest(uint8_t code[LANES][E8P_BYTES], size_t at, const float x[COLUMNS][LANES])
{
	float y[COLUMNS][LANES], odd[LANES], score[2][LANES];
	int32_t which[2][LANES];

	for (int minus = 0; minus < 2; minus++) {
		fold(minus ? -0.25f : 0.25f, x, y, odd);
		best_patterns(&patterns, (const float (*)[LANES])y, odd, score[minus], which[minus]);
	}
	for (size_t l = 0; l < LANES; l++) {
		float sum = 0;
		bool minus;

		for (size_t i = 0; i < COLUMNS; i++)
			sum += x[i][l];
		minus = score[1][l] - sum / 4 > score[0][l] + sum / 4;
		encode((size_t)which[minus][l], minus, x, l, code[l] + at);
	}
}

/* Codes of the third bit in byte 2 of each lane. */
static void nearest_of_e8(uint8_t code[LANES][E8P_BYTES], const float x[COLUMNS][LANES])
{
	int32_t which[LANES];

	best_points(&points, x, which);
	for (size_t l = 0; l < LANES; l++)
		code[l][2] = (uint8_t)which[l];
}

void e8p_nearest(const struct format *f, uint8_t code[LANES][E8P_BYTES], float y[COLUMNS][LANES],
	const float x[COLUMNS][LANES])
{
	float rest[COLUMNS][LANES];

	nearest(code, 0, x);
	for (size_t i = 0; i < COLUMNS; i++)
		for (size_t l = 0; l < LANES; l++)
			rest[i][l] = (x[i][l] - entry(code[l], i)) / second(f);
	if (f->n == 4)
		nearest(code, 2, (const float (*)[LANES])rest);
	if (f->n == 3)
		nearest_of_e8(code, (const float (*)[LANES])rest);
	for (size_t i = 0; i < COLUMNS; i++)
		for (size_t l = 0; l < LANES; l++)
			y[i][l] = value(f, code[l], i);
}
