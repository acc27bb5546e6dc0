/* SPDX-License-Identifier: GPL-3.0-or-later */
/* module.h -- functions of struct device (device/device.h), by file */
#ifndef CUDA_MODULE_H
#define CUDA_MODULE_H
#include "device/device.h"

/* activations.cu */
void gpu_norm(const struct device_norm *f, struct device_rows r, float *y, const float *x);
void gpu_add(size_t m, size_t n, size_t stride, float *y, const float *x, bool replace);
void gpu_add_bias(size_t m, size_t n, size_t stride, float *y, const float *bias);
void gpu_multiply_signs(size_t m, size_t n, float *x, const int8_t *sign);
void gpu_activate(int activation, size_t m, size_t n, size_t stride, float *y, const float *x);
void gpu_rope(const struct device_rope *r, float *x);
void gpu_round(const struct device_rounding *r, size_t m, size_t n, float *y, const float *x);
void gpu_quantize(const struct device_rounding *r, size_t m, size_t n, void *bytes, enum device_type type,
	float *scale, const float *x);

/* attend.cu */
void gpu_attention(const struct device_attention *a, float *y, const float *x);

/* hadamard.cu */
void gpu_rotate(size_t m, size_t n, size_t stride, size_t order, float *y, const float *x, const float *h);

/* packed.cu */
void gpu_packed(const struct device_packed *p);

/* products.cu */
void gpu_convert(size_t n, void *y, enum device_type to, const void *x, enum device_type from);
void gpu_product(const struct device_product *p);
void gpu_bytes(const struct device_bytes *p);

/* sums.cu */
void gpu_moments(const struct device_moments *s, enum device_type type, size_t rows, const float *x);
void gpu_symmetric(size_t n, float *y, const double *sum);

/* solve.cu */
void gpu_transpose(size_t m, size_t n, size_t stride, float *y, const float *x);
void gpu_transpose_codes(size_t m, size_t n, uint8_t *y, const uint8_t *x);
void gpu_ranges(const struct device_solve *s, float *low, float *high);
size_t gpu_factor(const struct device_factor *f);
void gpu_inverse(size_t live, const float *r, size_t n, const struct device_span *span, size_t widest);
void gpu_span(const struct device_solve *s, const struct device_span *span);
void gpu_block(const struct device_solve *s, const struct device_span *span, size_t first, size_t last);
void gpu_dead(const struct device_solve *s);
void gpu_quadratic(size_t m, size_t n, double *sum, const float *x, const float *h);

/* fit.cu */
void gpu_fit(const struct device_solve *s, const struct device_span *span, size_t group, size_t from,
	size_t n);

/* stopwatch.cu */
void gpu_copy(void *y, const void *x, size_t bytes);
void gpu_start(double later);
double gpu_stop(void);
#endif
