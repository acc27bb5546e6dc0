/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * library.h -- operations of CUDA's libraries: memory, products, factors
 *
 * library.cu calls the runtime, cuBLAS and cuSOLVER. tests/cuda/plain.c does the same on the processor. An
 * error ends the program by the function of ptq_device().
 */
#ifndef CUDA_LIBRARY_H
#define CUDA_LIBRARY_H
#include <stdbool.h>
#include <stddef.h>
#include "device/device.h"

/* Opens the device. Returns its name, or NULL without a device. */
const char *library_open(const struct device_host *host);
void *library_allocate(size_t bytes);
void library_release(void *x);
void library_clear(void *x, size_t bytes);
void library_upload(void *x, const void *host, size_t bytes);
void library_download(void *host, const void *x, size_t bytes);
void library_pin(void *host, size_t bytes);
void library_unpin(void *host);

/*
 * c = alpha op(a) op(b) + beta c, row-major, for `batch` matrices; op(a) is [m][k], op(b) is [k][n]. Sums are
 * in float; numbers of a and b are not rounded to TF32.
 */
struct gemm {
	size_t m, n, k;
	bool transpose_a, transpose_b;
	float alpha, beta;
	const void *a, *b;
	float *c;
	size_t lda, ldb, ldc;		/* numbers from row to row, as stored */
	enum device_type type;		/* of a and b: f32 or bf16 */
	size_t batch, step_a, step_b, step_c;	/* batch 0: 1; steps: numbers from matrix to matrix */
};
void library_gemm(const struct gemm *g);
/* c[m][n] = a[m][k] b[n][k]ᵀ of bytes, in int32 or, for e4m3, in float. k and n are multiples of 16. */
struct gemm_bytes {
	size_t m, n, k;
	enum device_type type;		/* int8 or e4m3 */
	const void *a, *b;
	void *c;
};
void library_gemm_bytes(const struct gemm_bytes *g);
/*
 * The Cholesky factor of a symmetric a[n][n], row-major: a = L Lᵀ. It reads the lower triangle, and L
 * replaces it. Returns 0, or the number (from 1) of the first pivot that is not positive.
 */
size_t library_cholesky(size_t n, float *a);
#endif
