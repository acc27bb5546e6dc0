/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vector.c -- norms, exponentials and activations of rows of numbers; see vector.h
 *
 * A sum in float has 16 partial sums, so that the compiler can vectorize it without reordering. The order is
 * the same on every processor. Operations are not contracted to fused ones, so that the bits are also the
 * same.
 *
 * exp: n = round(x / ln 2), then a polynomial in x - n ln 2: in float the polynomial of Cephes expf, in
 * double the Taylor sum, whose remainder is below 2^-52.
 */
#include "num/vector.h"
#include <math.h>
#include <stdint.h>
#include "base/thread.h"
#include "num/clones.h"
/* Otherwise the bounds of exp_of() become branches, which are computed for every number and are slow if they
 * underflow. */
#pragma GCC optimize ("no-thread-jumps")

/* Number of partial sums; rows that a thread takes at once; numbers below which one thread is faster. */
enum { LANES = 16, ROWS = 16, FEW = 1 << 16 };

static inline float fold(float sum[LANES])
{
	for (size_t n = LANES / 2; n; n /= 2)
		for (size_t i = 0; i < n; i++)
			sum[i] += sum[i + n];
	return sum[0];
}

CLONES(static, float, row_sum, (size_t n, const float x[n]), (n, x))
{
	float sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += x[i + j];
	for (; i < n; i++)
		sum[i % LANES] += x[i];
	return fold(sum);
}

CLONES(static, float, sum_of_squares, (size_t n, const float x[n], float mean), (n, x, mean))
{
	float sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += (x[i + j] - mean) * (x[i + j] - mean);
	for (; i < n; i++)
		sum[i % LANES] += (x[i] - mean) * (x[i] - mean);
	return fold(sum);
}

/* A row whose squares overflow becomes NaN, not 0, so that later results are not taken for valid numbers. */
static void norm_row(size_t n, float y[n], const float x[n], float mean, const float gain[n],
	const float *shift, double eps)
{
	const float squares = sum_of_squares(n, x, mean);
	float scale = isfinite(squares) ? (float)(1 / sqrt((double)squares / (double)n + eps)) : NAN;

	for (size_t i = 0; i < n; i++)
		y[i] = (x[i] - mean) * scale * gain[i] + (shift ? shift[i] : 0);
}

void vector_rmsnorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++)
		norm_row(n, y[i], x[i], 0, gain, shift, eps);
}

void vector_layernorm(size_t m, size_t n, float y[m][n], const float x[m][n], const float gain[n],
	const float *shift, double eps)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++)
		norm_row(n, y[i], x[i], row_sum(n, x[i]) / (float)n, gain, shift, eps);
}

static inline float exp_of(float x)
{
	const float round = 0x1.8p23f;
	float n, r, p;
	union { float f; uint32_t u; } two;

	x = x < -87.0f ? -87.0f : x;
	x = x > 88.0f ? 88.0f : x;
	n = (x * 1.44269504f + round) - round;
	r = x - n * 0.693359375f + n * 2.12194440e-4f;
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1;
	two.u = (uint32_t)((int32_t)n + 127) << 23;
	return p * two.f;
}

CLONES(, double, vector_sum_exp, (size_t n, const float x[n], float shift), (n, x, shift))
{
	double sum[LANES] = { 0 }, s = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += (double)exp_of(x[i + j] - shift);
	for (; i < n; i++)
		sum[i % LANES] += (double)exp_of(x[i] - shift);
	for (size_t j = 0; j < LANES; j++)
		s += sum[j];
	return s;
}

/* exp(x) for x ≤ 0. */
static inline double exp_of_double(double x)
{
	const double round = 0x1.8p52;
	double n, r, p;
	union { double f; uint64_t u; } two;

	x = x < -708 ? -708 : x;
	two.f = x * 0x1.71547652b82fep0 + round;	/* its last places contain n */
	n = two.f - round;
	r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
	p = 1.0 / 479001600;
	p = p * r + 1.0 / 39916800;
	p = p * r + 1.0 / 3628800;
	p = p * r + 1.0 / 362880;
	p = p * r + 1.0 / 40320;
	p = p * r + 1.0 / 5040;
	p = p * r + 1.0 / 720;
	p = p * r + 1.0 / 120;
	p = p * r + 1.0 / 24;
	p = p * r + 1.0 / 6;
	p = p * r + 0.5;
	p = p * r * r + r + 1;
	two.u = (two.u + 1023) << 52;
	return p * two.f;
}

CLONES(, void, vector_sum_exp_pair,
	(size_t n, double sum[3], const float x[n], float a, const float y[n], float b), (n, sum, x, a, y, b))
{
	double ex[LANES] = { 0 }, ey[LANES] = { 0 }, d[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++) {
			double u = (double)x[i + j], v = (double)y[i + j], e = exp_of_double(u - (double)a);

			ex[j] += e;
			ey[j] += exp_of_double(v - (double)b);
			d[j] += e * (u - v);
		}
	for (; i < n; i++) {
		double u = (double)x[i], v = (double)y[i], e = exp_of_double(u - (double)a);

		ex[i % LANES] += e;
		ey[i % LANES] += exp_of_double(v - (double)b);
		d[i % LANES] += e * (u - v);
	}
	sum[0] = sum[1] = sum[2] = 0;
	for (size_t j = 0; j < LANES; j++)
		sum[0] += ex[j], sum[1] += ey[j], sum[2] += d[j];
}

CLONES(, float, vector_max, (size_t n, const float x[n]), (n, x))
{
	enum { MANY = 4 * LANES };	/* the order does not matter here */
	float max[MANY];
	size_t i = 0;

	for (size_t j = 0; j < MANY; j++)
		max[j] = -INFINITY;
	for (; i + MANY <= n; i += MANY)
		for (size_t j = 0; j < MANY; j++)
			max[j] = x[i + j] > max[j] ? x[i + j] : max[j];
	for (size_t j = 0; i < n; i++, j++)
		max[j] = x[i] > max[j] ? x[i] : max[j];
	for (size_t k = MANY / 2; k; k /= 2)
		for (size_t j = 0; j < k; j++)
			max[j] = max[j + k] > max[j] ? max[j + k] : max[j];
	return max[0];
}

CLONES(, void, vector_silu, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] / (1 + exp_of(-x[i]));
}

void vector_gelu(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i++)
		y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}

CLONES(, void, vector_gelu_tanh, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	/* ½(1 + tanh z) = 1 / (1 + e^-2z) */
	for (size_t i = 0; i < n; i++) {
		float z = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);

		y[i] = x[i] / (1 + exp_of(-2 * z));
	}
}

CLONES(, void, vector_quick_gelu, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] / (1 + exp_of(-1.702f * x[i]));
}

CLONES(, void, vector_times, (size_t n, float y[restrict n], const float x[restrict n]), (n, y, x))
{
	for (size_t i = 0; i < n; i++)
		y[i] *= x[i];
}
