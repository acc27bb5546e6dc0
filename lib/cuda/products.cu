/* SPDX-License-Identifier: GPL-3.0-or-later */
/* products.cu -- conversions and products; see device/device.h */
#include "cuda/gpu.h"
#include "cuda/growing.h"
#include "cuda/library.h"
#include "cuda/module.h"

enum { WIDE = BLOCK_THREADS };

struct convert_of { size_t n; void *y; enum device_type to; const void *x; enum device_type from; };

KERNEL(convert, struct convert_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD;
	float v;

	if (i >= a.n)
		return;
	v = a.from == DEVICE_F32 ? ((const float *)a.x)[i] :
		a.from == DEVICE_BF16 ? bf16_to_float(((const uint16_t *)a.x)[i]) :
		half_to_float(((const uint16_t *)a.x)[i]);
	if (a.to == DEVICE_F32)
		((float *)a.y)[i] = v;
	else if (a.to == DEVICE_INT8)
		((int8_t *)a.y)[i] = (int8_t)(int)v;
	else if (a.to == DEVICE_E4M3)
		((uint8_t *)a.y)[i] = float_to_e4m3(v);
	else
		((uint16_t *)a.y)[i] = float_to_bf16(v);
}

void gpu_convert(size_t n, void *y, enum device_type to, const void *x, enum device_type from)
{
	const struct convert_of a = { n, y, to, x, from };

	LAUNCH(convert, blocks_of(n, WIDE), 1, WIDE, a);
}

void gpu_product(const struct device_product *p)
{
	static struct growing scratch;
	struct gemm g = { .m = p->m, .n = p->n, .k = p->k, .transpose_b = true, .alpha = 1,
		.beta = p->add ? 1.f : 0.f, .a = p->x, .b = p->w, .c = p->y, .lda = p->k, .ldb = p->k,
		.ldc = p->stride, .type = p->type };

	if (p->type == DEVICE_BF16) {
		void *narrow = growing_of(&scratch, p->m * p->k * sizeof(uint16_t));

		gpu_convert(p->m * p->k, narrow, DEVICE_BF16, p->x, DEVICE_F32);
		g.a = narrow;
	}
	library_gemm(&g);
}

struct scale_of { struct device_bytes p; const void *sums; };

KERNEL(scale, struct scale_of)
{
	const size_t i = (size_t)BLOCK * THREADS + THREAD, row = i / a.p.n, column = i % a.p.n;
	float v, *y;

	if (row >= a.p.m)
		return;
	v = a.p.type == DEVICE_INT8 ? (float)((const int32_t *)a.sums)[i] : ((const float *)a.sums)[i];
	v = v * a.p.row[row] * a.p.column[column];
	y = a.p.y + row * a.p.stride + column;
	*y = a.p.add ? *y + v : v;
}

void gpu_bytes(const struct device_bytes *p)
{
	static struct growing scratch;
	const struct gemm_bytes g = { p->m, p->n, p->k, p->type, p->x, p->w,
		growing_of(&scratch, p->m * p->n * sizeof(float)) };
	const struct scale_of a = { *p, g.c };

	library_gemm_bytes(&g);
	LAUNCH(scale, blocks_of(p->m * p->n, WIDE), 1, WIDE, a);
}
