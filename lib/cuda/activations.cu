/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activations.cu -- norms, activation functions, rotary positions, rounding of inputs; see device/device.h */
#include <math.h>
#include "cuda/gpu.h"
#include "cuda/module.h"
#include "cuda/weight_code.h"
#include "model/activation_names.h"

enum { WIDE = BLOCK_THREADS };

/* ---- norms: a block takes a vector ---- */

struct norm_of { struct device_norm f; struct device_rows r; float *y; const float *x; };

KERNEL(norm_vectors, struct norm_of)
{
	const size_t n = a.r.n, at = BLOCK / a.r.parts * a.r.stride + BLOCK % a.r.parts * n;
	const float *x = a.x + at;
	float *y = a.y + at, mean = 0, sum = 0, by;

	if (a.f.layer) {
		for (size_t i = THREAD; i < n; i += THREADS)
			sum += x[i];
		mean = block_sum(sum) / (float)n;
		sum = 0;
	}
	for (size_t i = THREAD; i < n; i += THREADS)
		sum += (x[i] - mean) * (x[i] - mean);
	by = (float)(1 / sqrt((double)block_sum(sum) / (double)n + a.f.eps));
	for (size_t i = THREAD; i < n; i += THREADS) {
		const float v = (x[i] - mean) * by * a.f.gain[i];

		y[i] = a.f.shift ? v + a.f.shift[i] : v;
	}
}

void gpu_norm(const struct device_norm *f, struct device_rows r, float *y, const float *x)
{
	const struct norm_of a = { *f, r, y, x };

	LAUNCH_TOGETHER(norm_vectors, r.rows * r.parts, 1, WIDE, a);
}

/* ---- numbers, one by one ---- */

struct rows_of { size_t m, n, stride; float *y; const float *x; bool replace; };

KERNEL(add_rows, struct rows_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD;
	float *y;

	if (i >= a.m * a.n)
		return;
	y = a.y + i / a.n * a.stride + i % a.n;
	*y = a.replace ? a.x[i] : *y + a.x[i];
}

void gpu_add(size_t m, size_t n, size_t stride, float *y, const float *x, bool replace)
{
	const struct rows_of a = { m, n, stride, y, x, replace };

	LAUNCH(add_rows, blocks_of(m * n, WIDE), 1, WIDE, a);
}

KERNEL(add_vector, struct rows_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD;

	if (i < a.m * a.n)
		a.y[i / a.n * a.stride + i % a.n] += a.x[i % a.n];
}

void gpu_add_bias(size_t m, size_t n, size_t stride, float *y, const float *bias)
{
	const struct rows_of a = { m, n, stride, y, bias, false };

	LAUNCH(add_vector, blocks_of(m * n, WIDE), 1, WIDE, a);
}

struct signs_of { size_t m, n; float *x; const int8_t *sign; };

KERNEL(multiply, struct signs_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD;

	if (i < a.m * a.n)
		a.x[i] *= (float)a.sign[i % a.n];
}

void gpu_multiply_signs(size_t m, size_t n, float *x, const int8_t *sign)
{
	const struct signs_of a = { m, n, x, sign };

	LAUNCH(multiply, blocks_of(m * n, WIDE), 1, WIDE, a);
}

/* ---- activation functions (forward/activation.c) ---- */

DEVICE_FUNCTION float clipped(float x, float min, float max)
{
	return x < min ? min : x > max ? max : x;
}

DEVICE_FUNCTION float softplus(float x)
{
	return x > 20 ? x : log1pf(expf(x));
}

DEVICE_FUNCTION float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

DEVICE_FUNCTION float gelu(float x)
{
	return x * 0.5f * erfcf(x * -0.70710678f);
}

DEVICE_FUNCTION float gelu_tanh(float x)
{
	return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

DEVICE_FUNCTION float activation_of(int f, float x)
{
	switch (f) {
	case ACTIVATION_SILU: return x * sigmoid(x);
	case ACTIVATION_GELU: return gelu(x);
	case ACTIVATION_GELU_TANH: return gelu_tanh(x);
	case ACTIVATION_QUICK_GELU: return x * sigmoid(1.702f * x);
	case ACTIVATION_RELU: return x < 0 ? 0 : x;
	case ACTIVATION_GELU_10: return clipped(gelu(x), -10, 10);
	case ACTIVATION_HARDSWISH: return x * clipped(x + 3, 0, 6) / 6;
	case ACTIVATION_LAPLACE: return 0.5f * erfcf((0.707107f - x) / (0.282095f * 1.41421356f));
	case ACTIVATION_LEAKY_RELU: return x < 0 ? 0.01f * x : x;
	case ACTIVATION_MISH: return x * tanhf(softplus(x));
	case ACTIVATION_RELU2: return x < 0 ? 0 : x * x;
	case ACTIVATION_RELU6: return clipped(x, 0, 6);
	case ACTIVATION_SIGMOID: return sigmoid(x);
	case ACTIVATION_SQRTSOFTPLUS: return sqrtf(softplus(x));
	case ACTIVATION_TANH: return tanhf(x);
	default: return x;
	}
}

struct activate_of { int f; size_t m, n, stride; float *y; const float *x; };

KERNEL(activate, struct activate_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD;
	const float *x;
	float y;

	if (i >= a.m * a.n)
		return;
	x = a.x + i / a.n * a.stride + i % a.n;
	y = activation_of(a.f, *x);
	a.y[i] = a.stride > a.n ? y * x[a.n] : y;
}

void gpu_activate(int activation, size_t m, size_t n, size_t stride, float *y, const float *x)
{
	const struct activate_of a = { activation, m, n, stride, y, x };

	LAUNCH(activate, blocks_of(m * n, WIDE), 1, WIDE, a);
}

/* ---- rotary positions: a thread takes a pair ---- */

struct rope_of { struct device_rope r; float *x; };

KERNEL(rotate_pairs, struct rope_of)
{
	const struct device_rope r = a.r;
	const size_t i = (size_t)BLOCK * THREADS + THREAD, pair = i % r.half, vector = i / r.half;
	const size_t row = vector / r.heads;
	size_t at, apart = r.interleaved ? 1 : r.half;
	float *x, c, s, u, v;

	if (row >= r.rows)
		return;
	at = (size_t)r.position[row * r.axes + (r.axis ? r.axis[pair] : 0)] * r.half + pair;
	c = r.cosine[at], s = r.sine[at];
	x = a.x + row * r.stride + vector % r.heads * r.head_dim + pair * (r.interleaved ? 2 : 1);
	u = x[0], v = x[apart];
	x[0] = u * c - v * s;
	x[apart] = v * c + u * s;
}

void gpu_rope(const struct device_rope *r, float *x)
{
	const struct rope_of a = { *r, x };

	LAUNCH(rotate_pairs, blocks_of(r->rows * r->heads * r->half, WIDE), 1, WIDE, a);
}

/* ---- rounding of inputs: a block takes a row ---- */

struct rounding_of {
	struct device_format f;
	float scale, clip;
	size_t n;
	void *y;
	enum device_type type;		/* of y */
	float *of_row;			/* [rows] scales, or NULL */
	const float *x;
};

KERNEL(round_row, struct rounding_of)
{
	const float *x = a.x + (size_t)BLOCK * a.n;
	const size_t at = (size_t)BLOCK * a.n;
	float largest = 0, scale = a.scale, bad = 0;

	for (size_t i = THREAD; i < a.n; i += THREADS) {
		largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
		bad = x[i] != x[i] ? x[i] : bad;
	}
	largest = block_max(largest);
	if (scale == 0) {
		scale = a.clip > 0 ? a.clip * largest / a.f.max : largest / a.f.max;
		scale = scale > 0 ? scale : 1;
	}
	for (size_t i = THREAD; i < a.n; i += THREADS) {
		const float v = value_nearest(&a.f, (double)x[i] / scale);

		if (a.type == DEVICE_F32)
			((float *)a.y)[at + i] = x[i] != x[i] ? x[i] : v * scale;
		else if (a.type == DEVICE_INT8)
			((int8_t *)a.y)[at + i] = (int8_t)(int)v;
		else
			((uint8_t *)a.y)[at + i] = float_to_e4m3(v);
	}
	if (!a.of_row)
		return;
	bad = block_sum(bad);
	if (THREAD == 0)
		a.of_row[BLOCK] = scale + bad;
}

void gpu_quantize(const struct device_rounding *r, size_t m, size_t n, void *bytes, enum device_type type,
	float *scale, const float *x)
{
	const struct rounding_of a = { *r->format, r->scale, r->clip, n, bytes, type, scale, x };

	LAUNCH_TOGETHER(round_row, m, 1, WIDE, a);
}

void gpu_round(const struct device_rounding *r, size_t m, size_t n, float *y, const float *x)
{
	const struct rounding_of a = { *r->format, r->scale, r->clip, n, y, DEVICE_F32, NULL, x };

	LAUNCH_TOGETHER(round_row, m, 1, WIDE, a);
}
