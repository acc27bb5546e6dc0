/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_block -- blocks of q4_k, q5_k, q6_k and iq4_nl: the decoding of parts of a row, codes that are not
 * valid, and the searches, byte for byte, against a plain version of them
 *
 * Blocks are decoded in tests/ggml.c too, against numbers in double. tests/doors/gguf_block.t compares the
 * searches with those of llama.cpp.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/random.h"
#include "case.h"
#include "num/code_form.h"
#include "num/gguf_block.h"

enum { N = 2816, ROWS = 6, BYTES = N / 256 * 210 };
static const float levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static const char *const names[] = { "q4_k", "q5_k", "q6_k", "iq4_nl" };

static struct format get(const char *name)
{
	struct format f;

	assert_true(format_parse(&f, name));
	return f;
}

/* ---- the searches, one group after the other, float by float ---- */

static int whole(float x)
{
	return (int)rintf(x);
}

static int within(int x, int low, int high)
{
	return x < low ? low : x > high ? high : x;
}

struct pair { float scale, low; int code[32]; };

/* x ≈ scale · code + low with factors w of the errors. */
static struct pair fit_pair(const float *x, const float *w, int top, float first, float step, int trials)
{
	struct pair y = { .low = x[0] };
	float high = x[0], sw = w[0], sx = sw * x[0], error = 0;

	for (int i = 1; i < 32; i++) {
		y.low = fminf(y.low, x[i]), high = fmaxf(high, x[i]);
		sw += w[i], sx += w[i] * x[i];
	}
	if (y.low > 0)
		y.low = 0;
	if (!(high > y.low))
		return y;
	for (int t = -1; t <= trials; t++) {
		struct pair z = { .low = y.low };
		const float by = (t < 0 ? (float)top : first + step * (float)t + (float)top) / (high - y.low);
		float q = 0, qq = 0, qx = 0, d, e = 0;

		for (int i = 0; i < 32; i++) {
			const float l = (float)(z.code[i] = within(whole(by * (x[i] - y.low)), 0, top));

			q += w[i] * l, qq += w[i] * l * l, qx += w[i] * l * x[i];
		}
		d = sw * qq - q * q;
		z.scale = t < 0 ? 1 / by : (sw * qx - sx * q) / d;
		if (t >= 0) {
			z.low = (qq * sx - q * qx) / d;
			if (z.low > 0)
				z.low = 0, z.scale = qx / qq;
		}
		for (int i = 0; i < 32; i++) {
			const float by_i = z.scale * (float)z.code[i] + z.low - x[i];

			e += w[i] * (by_i * by_i);
		}
		if (t < 0 || (d > 0 && e < error))
			y = z, error = e;
	}
	return y;
}

/* Eight scales by their largest (w NULL), or by least squares. */
static float fit_scales(const float x[8], const float *w, int code[8])
{
	float most = 0, by = 0, best = 0, sx = 0, sq = 0;

	for (int i = 0; i < 8; i++)
		most = fmaxf(most, x[i]), code[i] = 0;
	if (w ? most < 1e-15f : most <= 0)
		return 0;
	for (int t = -5; t <= 4 && w; t++) {
		const float z = t < -4 ? 63 / most : (0.1f * (float)t + 63) / most;
		float e = 0;

		for (int i = 0; i < 8; i++) {
			const float d = x[i] - 1 / z * (float)within(whole(z * x[i]), -64, 63);

			e += w[i] * d * d;
		}
		if (t < -4 || e < best)
			best = e, by = z;
	}
	for (int i = 0; i < 8; i++)
		code[i] = within(whole((w ? by : 63 / most) * x[i]), 0, 63);
	if (!w)
		return most / 63;
	for (int i = 0; i < 8; i++)
		sx += w[i] * x[i] * (float)code[i], sq += w[i] * (float)code[i] * (float)code[i];
	for (int pass = 0; pass < 5; pass++)
		for (int i = 0; i < 8; i++) {
			const float l = (float)code[i], ax = sx - w[i] * x[i] * l, aq = sq - w[i] * l * l;
			const int c = ax > 0 && aq > 0 ? within(whole(x[i] * aq / ax), 0, 63) : code[i];
			const float bx = ax + w[i] * x[i] * (float)c, bq = aq + w[i] * (float)c * (float)c;

			if (c != code[i] && bx * bx * sq > sx * sx * bq)
				code[i] = c, sx = bx, sq = bq;
		}
	return sq > 0 ? sx / sq : 0;
}

static float put_half(uint8_t *y, float x)
{
	_Float16 h = (_Float16)x;

	memcpy(y, &h, 2);
	return (float)h;
}

static float squares(int n, const float *x)
{
	float sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

static void put_bits(uint8_t *y, int at, int bits, int value)
{
	for (int i = 0; i < bits; i++)
		if (value >> i & 1)
			y[(at + i) / 8] |= (uint8_t)(1 << (at + i) % 8);
}

static void plain_pairs(int bits, uint8_t *y, const float *x, const float *importance)
{
	const int top = (1 << bits) - 1, nibbles = bits == 4 ? 16 : 48;
	const float sigma2 = 2 * squares(256, x) / 256;
	struct pair fit[8];
	float scale[8], offset[8], sum[8], d, m;
	int s[8], b[8];

	for (int g = 0; g < 8; g++) {
		const float *u = x + 32 * g, mean = sqrtf(squares(32, u) / 32);
		float w[32];

		sum[g] = 0;
		for (int i = 0; i < 32; i++) {
			w[i] = importance ? importance[32 * g + i] * sqrtf(sigma2 + u[i] * u[i]) :
				mean + fabsf(u[i]);
			sum[g] += w[i];
		}
		fit[g] = importance ? fit_pair(u, w, top, -0.9f, 0.05f, 36) :
			bits == 4 ? fit_pair(u, w, top, -1, 0.1f, 20) : fit_pair(u, w, top, -0.5f, 0.1f, 15);
		scale[g] = fit[g].scale, offset[g] = -fit[g].low;
	}
	memset(y, 0, bits == 4 ? 144 : 176);
	d = put_half(y, fit_scales(scale, importance ? sum : NULL, s));
	m = put_half(y + 2, fit_scales(offset, importance ? sum : NULL, b));
	for (int g = 0; g < 8; g++) {
		const float step = d * (float)s[g], low = m * (float)b[g];

		put_bits(y + 4 + g % 4 + (g < 4 ? 0 : 8), 0, g < 4 ? 6 : 4, s[g]);
		put_bits(y + 4 + (g < 4 ? g + 4 : g + 4), g < 4 ? 0 : 4, g < 4 ? 6 : 4, b[g]);
		put_bits(y + 4 + g % 4, 6, g < 4 ? 0 : 2, s[g] >> 4);
		put_bits(y + 8 + g % 4, 6, g < 4 ? 0 : 2, b[g] >> 4);
		for (int i = 0; i < 32; i++) {
			const int q = step != 0 ? within(whole((x[32 * g + i] + low) / step), 0, top) :
				fit[g].code[i];

			put_bits(y + nibbles + g / 2 * 32 + i, g % 2 * 4, 4, q & 15);
			if (bits == 5)
				put_bits(y + 16 + i, g, 1, q >> 4);
		}
	}
}

static void plain_sixes(uint8_t *y, const float *x, const float *importance)
{
	float scale[16], most = 0, d;
	int code[256];

	for (int g = 0; g < 16; g++) {
		const float *u = x + 16 * g, *c = importance ? importance + 16 * g : NULL;
		float extreme = 0, best = 0;

		scale[g] = 0;
		for (int i = 0; i < 16; i++)
			extreme = fabsf(u[i]) > fabsf(extreme) ? u[i] : extreme;
		for (int i = 0; i < 16; i++)
			code[16 * g + i] = -32;
		for (int t = -10; t <= 9 && fabsf(extreme) >= 1e-15f; t++) {
			const float by = t < -9 ? -32 / extreme : -(32 + 0.1f * (float)t) / extreme;
			float sx = 0, sq = 0;
			int q[16];

			if (!t)
				continue;
			for (int i = 0; i < 16; i++) {
				const float w = c ? c[i] : u[i] * u[i];

				q[i] = within(whole(by * u[i]), -32, 31);
				sx += w * u[i] * (float)q[i], sq += w * (float)q[i] * (float)q[i];
			}
			if (t < -9 || (sq > 0 && sx * sx > best * sq)) {
				scale[g] = sq != 0 ? sx / sq : 0;
				best = scale[g] * sx;
				memcpy(code + 16 * g, q, sizeof q);
			}
		}
		most = fabsf(scale[g]) > fabsf(most) ? scale[g] : most;
	}
	memset(y, 0, 210);
	if (fabsf(most) < 1e-15f)
		return;
	d = put_half(y + 208, 1 / (-128 / most));
	for (int k = 0; k < 256; k++) {
		const int s = within(whole(-128 / most * scale[k / 16]), -128, 127), g = k % 128 / 32;
		const float step = d * (float)s;
		const int q = 32 + (step != 0 ? within(whole(x[k] / step), -32, 31) : code[k]);

		y[192 + k / 16] = (uint8_t)s;
		put_bits(y + k / 128 * 64 + k % 64, g / 2 * 4, 4, q & 15);
		put_bits(y + 128 + k / 128 * 32 + k % 32, 2 * g, 2, q >> 4);
	}
}

static int nearest_value(float x)
{
	int k = 0;

	for (int i = 1; i < 16; i++)	/* the upper one of two that are equally near */
		if (fabs((double)levels[i] - (double)x) <= fabs((double)levels[k] - (double)x))
			k = i;
	return k;
}

static void plain_values(uint8_t *y, const float *x, const float *importance)
{
	const float sigma2 = squares(32, x) * (2.f / 32);
	float extreme = 0, d = 0, best = 0;

	for (int i = 0; i < 32; i++)
		extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
	for (int t = -8; t <= 7 && fabsf(extreme) >= 1e-15f; t++) {
		const float by = t < -7 ? 1 / (-extreme / -127) : ((float)t - 127) / extreme;
		float sx = 0, sq = 0;

		for (int i = 0; i < 32; i++) {
			const float w = importance ? importance[i] * sqrtf(sigma2 + x[i] * x[i]) :
				x[i] * x[i];
			const float v = levels[nearest_value(by * x[i])];

			sx += w * v * x[i], sq += w * v * v;
		}
		if (t < -7 || (sq > 0 && sx * sx > best * sq)) {
			d = sq > 0 ? sx / sq : 0;
			best = d * sx;
		}
	}
	memset(y, 0, 18);
	put_half(y, d);
	for (int i = 0; i < 32; i++)
		put_bits(y + 2 + i % 16, i / 16 * 4, 4, nearest_value((d != 0 ? 1 / d : 0) * x[i]));
}

static void plain(const struct format *f, uint8_t *y, const float *x, const float *importance)
{
	const size_t columns = code_form(f)->columns;

	for (size_t i = 0; i < N; i += columns, y += code_bytes(f)) {
		const float *c = importance ? importance + i : NULL;

		if (f->n == 6)
			plain_sixes(y, x + i, c);
		else if (f->n)
			plain_pairs(f->n, y, x + i, c);
		else
			plain_values(y, x + i, c);
	}
}

/* ---- weights ---- */

static struct random_stream stream;
static uint64_t at;

static float normal(void)
{
	return (float)random_normal(&stream, at++);
}

static void gauss(float *x, float by)
{
	for (size_t i = 0; i < N; i++)
		x[i] = normal() * by;
}

static void like_gauss(float *x) { gauss(x, 0.02f); }
static void tiny(float *x) { gauss(x, 1e-7f); }		/* d is subnormal */
static void tinier(float *x) { gauss(x, 1e-12f); }	/* d is 0 */
static void vanishing(float *x) { gauss(x, 1e-30f); }
static void large(float *x) { gauss(x, 1e5f); }
static void zeros(float *x) { memset(x, 0, N * sizeof *x); }

static void equal(float *x)
{
	for (size_t i = 0; i < N; i++)
		x[i] = i / 64 % 2 ? 0.75f : -1.3f;
}

static void outliers(float *x)
{
	gauss(x, 1);
	for (size_t i = 0; i < N; i += 97)
		x[i] *= 100;
}

static void sparse(float *x)
{
	gauss(x, 1);
	for (size_t i = 0; i < N; i++)
		x[i] = i % 7 < 4 || i / 256 == 3 || i / 32 == 9 ? 0 : x[i];
}

static void positive(float *x)
{
	gauss(x, 1);
	for (size_t i = 0; i < N; i++)
		x[i] = fabsf(x[i]) + 0.3f;
}

static void ties(float *x)
{
	gauss(x, 1);
	for (size_t i = 0; i < N; i++)
		x[i] = rintf(x[i] * 4) / 4;
}

static const struct { const char *name; void (*fill)(float *x); } weights[] = {
	{ "normal", like_gauss }, { "tiny", tiny }, { "tinier", tinier }, { "vanishing", vanishing },
	{ "large", large }, { "zeros", zeros }, { "equal", equal }, { "outliers", outliers },
	{ "sparse", sparse }, { "positive", positive }, { "ties", ties },
};

/* Importances of similar and of very different sizes, and 0 for whole groups and single columns. */
static const float *importance_of(int kind, float *c)
{
	for (size_t i = 0; i < N; i++) {
		const float x = normal();

		c[i] = kind == 1 ? x * x : expf(3 * x);
		if (kind == 3 && (i % 20 == 3 || i / 256 == 2 || i / 32 == 21))
			c[i] = 0;
	}
	return kind ? c : NULL;
}

static void searches(void **unused)
{
	static uint8_t is[BYTES], want[BYTES];
	static float x[N], c[N];
	const enum cpu widest = cpu;

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
			for (int kind = 0; kind < 4; kind++) {
				const struct format f = get(names[k]);
				const float *importance = importance_of(kind, c);
				const size_t bytes = code_columns(&f, N);

				CASE("%s, %s weights, importance %d", names[k], weights[w].name, kind);
				weights[w].fill(x);
				plain(&f, want, x, importance);
				for (cpu = CPU_PLAIN; cpu <= widest; cpu++) {
					memset(is, 0x55, sizeof is);
					gguf_block_encode(&f, N, is, x, importance);
					assert_memory_equal(is, want, bytes);
				}
				cpu = widest;
				assert_int_equal(code_first_invalid(&f, bytes / code_bytes(&f), is),
					bytes / code_bytes(&f));
			}
}

/*
 * The mean squared error of a million normal numbers, in units of their variance: above that of any code of
 * as many bits. A step of 32 numbers from their minimum to their maximum, about 4.2 deviations, has
 * (4.2/top)²/12, 0.0065 with 15; the searches find smaller ones. With six bits, groups of 16 and codes from
 * -32, (2.0/32)²/12.
 */
static void errors(void **unused)
{
	static const double bits[] = { 4.5, 5.5, 6.5625, 4.5 }, most[] = { 0.0060, 0.0015, 0.0004, 0.0065 };
	enum { MANY = (1000000 + N - 1) / N };
	static uint8_t code[BYTES];
	static float x[N], y[N];

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		const struct format f = get(names[k]);
		double error = 0;

		CASE("%s", names[k]);
		assert_true(code_bits(&f, 1, N) == bits[k] * N);
		for (size_t row = 0; row < MANY; row++) {
			like_gauss(x);
			gguf_block_encode(&f, N, code, x, NULL);
			code_form(&f)->decode(&f, 0, 0, N, y, code, NULL, NULL);
			for (size_t i = 0; i < N; i++)
				error += pow((double)x[i] - (double)y[i], 2) / (N * MANY * 0.02 * 0.02);
		}
		print_message("# %s: %.4f bits, mse %.5f of the variance\n", names[k], bits[k], error);
		assert_true(error < most[k] && error > exp2(-2 * bits[k]));
	}
}

/* Any part of a row is that of the whole row. */
static void parts(void **unused)
{
	static uint8_t code[BYTES];
	static float x[N], whole_row[N], part[256];

	(void)unused;
	outliers(x);
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		const struct format f = get(names[k]);
		const struct code_form *form = code_form(&f);

		CASE("%s", names[k]);
		gguf_block_encode(&f, N, code, x, NULL);
		(void (*const [])(size_t n, float y[], const uint8_t block[])){ q4_k_decode, q5_k_decode,
			q6_k_decode, iq4_nl_decode }[k]
			(N / form->columns, whole_row, code);
		for (size_t i = 0; i < N; i += 29)
			for (size_t n = 1; n <= 256 && i + n <= N; n += 51) {
				const size_t first = i / form->columns;

				form->decode(&f, 0, i % form->columns, n, part, code + first * code_bytes(&f),
					NULL, NULL);
				assert_memory_equal(part, whole_row + i, n * sizeof *part);
			}
	}
}

/* A block with an infinite or undefined half float is refused. */
static void valid(void **unused)
{
	static const size_t halves[][2] = { { 0, 2 }, { 0, 2 }, { 208, 208 }, { 0, 0 } };
	static uint8_t code[BYTES];
	static float x[N];

	(void)unused;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		const struct format f = get(names[k]);
		const size_t bytes = code_bytes(&f), n = N / code_form(&f)->columns;

		CASE("%s", names[k]);
		assert_true(code_has_scales(&f) && !code_is_any(&f, false) && !code_packs(&f));
		for (int j = 0; j < 2; j++) {
			like_gauss(x);
			gguf_block_encode(&f, N, code, x, NULL);
			assert_int_equal(code_first_invalid(&f, n, code), n);
			code[3 * bytes + halves[k][j] + 1] = j ? 0xfe : 0x7c;
			code[3 * bytes + halves[k][j]] = 0;
			assert_int_equal(code_first_invalid(&f, n, code), 3);
		}
		for (float by = 1e10f; by < 1e31f; by *= 1e4f) {
			gauss(x, by);
			gguf_block_encode(&f, N, code, x, NULL);
			assert_int_equal(code_first_invalid(&f, n, code), 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(searches), cmocka_unit_test(errors), cmocka_unit_test(parts),
		cmocka_unit_test(valid),
	};

	stream = random_open(1, "gguf_block");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
