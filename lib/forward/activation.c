/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activation.c -- see activation.h */
#include "forward/activation.h"
#include <math.h>
#include "base/thread.h"
#include "num/vector.h"

enum { ROWS = 16, FEW = 1 << 16 };	/* FEW: numbers, up to which one thread is faster */

/* The comparisons keep NaN. */
static void relu(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] < 0 ? 0 : x[i];
}

static float clipped(float x, float min, float max)
{
	return x < min ? min : x > max ? max : x;
}

/* log(1 + e^x), without an overflow of e^x */
static float softplus(float x)
{
	return x > 20 ? x : log1pf(expf(x));
}

static float gelu_10(float x)
{
	return clipped(x * 0.5f * erfcf(x * -0.70710678f), -10, 10);
}

static float hardswish(float x)
{
	return x * clipped(x + 3, 0, 6) / 6;
}

/* The distribution function of a normal variable; mean and deviation are those of Ma et al., Mega (2022). */
static float laplace(float x)
{
	return 0.5f * erfcf((0.707107f - x) / (0.282095f * 1.41421356f));
}

static float leaky_relu(float x)
{
	return x < 0 ? 0.01f * x : x;
}

static float linear(float x)
{
	return x;
}

static float mish(float x)
{
	return x * tanhf(softplus(x));
}

static float relu2(float x)
{
	return x < 0 ? 0 : x * x;
}

static float relu6(float x)
{
	return clipped(x, 0, 6);
}

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

static float sqrtsoftplus(float x)
{
	return sqrtf(softplus(x));
}

/* One of them is set: a loop over many numbers, for activations of common models, or the function of one. */
static const struct row {
	void (*many)(size_t n, float y[], const float x[]);
	float (*one)(float x);
} rows[ACTIVATIONS] = {
	[ACTIVATION_SILU] = { vector_silu, NULL },
	[ACTIVATION_GELU] = { vector_gelu, NULL },
	[ACTIVATION_GELU_TANH] = { vector_gelu_tanh, NULL },
	[ACTIVATION_QUICK_GELU] = { vector_quick_gelu, NULL },
	[ACTIVATION_RELU] = { relu, NULL },
	[ACTIVATION_GELU_10] = { NULL, gelu_10 },
	[ACTIVATION_HARDSWISH] = { NULL, hardswish },
	[ACTIVATION_LAPLACE] = { NULL, laplace },
	[ACTIVATION_LEAKY_RELU] = { NULL, leaky_relu },
	[ACTIVATION_LINEAR] = { NULL, linear },
	[ACTIVATION_MISH] = { NULL, mish },
	[ACTIVATION_RELU2] = { NULL, relu2 },
	[ACTIVATION_RELU6] = { NULL, relu6 },
	[ACTIVATION_SIGMOID] = { NULL, sigmoid },
	[ACTIVATION_SQRTSOFTPLUS] = { NULL, sqrtsoftplus },
	[ACTIVATION_TANH] = { NULL, tanhf },
};

void mlp_activate(enum activation activation, size_t m, size_t n, size_t stride, float *y, const float *x)
{
	const struct row *row = &rows[activation];

	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++) {
		if (row->many)
			row->many(n, y + i * n, x + i * stride);
		for (size_t j = 0; row->one && j < n; j++)
			y[i * n + j] = row->one(x[i * stride + j]);
		if (stride > n)		/* gate, then up */
			vector_times(n, y + i * n, x + i * stride + n);
	}
}
