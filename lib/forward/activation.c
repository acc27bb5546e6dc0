/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activation.c -- see activation.h */
#include "forward/activation.h"
#include "base/thread.h"
#include "num/linalg.h"

enum { ROWS = 16, FEW = 1 << 16 };	/* numbers, below which one thread is quicker */

/* NaN stays. */
static void relu(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] < 0 ? 0 : x[i];
}

void mlp_activate(enum activation activation, size_t m, size_t n, size_t stride, float *y, const float *x)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < m; i++) {
		switch (activation) {
		case ACTIVATION_SILU:		linalg_silu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_GELU:		linalg_gelu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_GELU_TANH:	linalg_gelu_tanh(n, y + i * n, x + i * stride); break;
		case ACTIVATION_QUICK_GELU:	linalg_quick_gelu(n, y + i * n, x + i * stride); break;
		case ACTIVATION_RELU:		relu(n, y + i * n, x + i * stride); break;
		}
		if (stride > n)		/* a gate stands before up */
			linalg_times(n, y + i * n, x + i * stride + n);
	}
}
