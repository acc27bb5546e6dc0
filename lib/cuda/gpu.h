/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gpu.h -- the words in which kernels are written
 *
 * nvcc compiles a file of this folder as CUDA. gcc compiles it as C, with tests/cuda/plain.h, which runs the
 * threads of a block one after the other on the processor. So a file is written in what C and C++ share.
 *
 *	struct twice { size_t n; float *x; };
 *
 *	KERNEL(twice, struct twice)			a.n, a.x are the arguments
 *	{
 *		const size_t i = (size_t)BLOCK * THREADS + THREAD;
 *
 *		if (i < a.n)
 *			a.x[i] *= 2;
 *	}
 *	...
 *	LAUNCH(twice, blocks, 1, 256, t);
 *
 * A kernel whose threads wait for each other (BARRIER(), block_sum(), ...) is launched by LAUNCH_TOGETHER().
 * All threads of a block must call BARRIER(), and all threads of a warp warp_sum(). LAUNCH_DYNAMIC() also
 * gives the block bytes of shared memory, at DYNAMIC. KERNEL_OF() is for blocks of at most `threads` threads.
 * It limits their registers such that `blocks` of them fit into a multiprocessor.
 */
#ifndef CUDA_GPU_H
#define CUDA_GPU_H
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

void gpu_check(cudaError_t error, const char *what);
#define KERNEL(name, type) static __global__ void name(const type a)
#define KERNEL_OF(threads, blocks, name, type) \
	static __global__ void __launch_bounds__(threads, blocks) name(const type a)
#define LAUNCH(name, blocks, blocks_y, threads, arguments) \
	do { \
		if ((blocks) && (blocks_y)) \
			name<<<dim3((unsigned)(blocks), (unsigned)(blocks_y)), threads>>>(arguments); \
		gpu_check(cudaGetLastError(), #name); \
	} while (0)
#define LAUNCH_TOGETHER LAUNCH
#define LAUNCH_DYNAMIC(name, blocks, blocks_y, threads, bytes, arguments) \
	gpu_launch(name, #name, dim3((unsigned)(blocks), (unsigned)(blocks_y)), threads, bytes, arguments)
#define DEVICE_FUNCTION static __device__ __forceinline__
#define BLOCK_THREADS 256		/* of most kernels; few on the processor */
#define SHARED __shared__
extern __shared__ uint4 gpu_dynamic[];
#define DYNAMIC ((char *)gpu_dynamic)
#define BARRIER() __syncthreads()
#define UNROLL _Pragma("unroll")
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define BLOCK blockIdx.x
#define BLOCK_Y blockIdx.y
#define GRID gridDim.x

/* A launch with more than 48 KiB of shared memory needs an attribute of the kernel. */
template <typename type>
static inline void gpu_launch(void (*kernel)(type), const char *name, dim3 blocks, unsigned threads,
	size_t bytes, const type &arguments)
{
	if (bytes > 48 << 10)
		gpu_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
			(int)bytes), name);
	kernel<<<blocks, threads, bytes>>>(arguments);
	gpu_check(cudaGetLastError(), name);
}

DEVICE_FUNCTION void add_count(int64_t *to, int64_t n)
{
	atomicAdd((unsigned long long *)to, (unsigned long long)n);
}

DEVICE_FUNCTION void add_int(int *to, int n)
{
	atomicAdd(to, n);
}

/* x y, rounded before anything is added to it. */
DEVICE_FUNCTION double rounded_product(double x, double y) { return __dmul_rn(x, y); }
DEVICE_FUNCTION uint32_t bits_of(float x) { return __float_as_uint(x); }
DEVICE_FUNCTION float of_bits(uint32_t x) { return __uint_as_float(x); }
DEVICE_FUNCTION float warp_sum(float x)
{
	for (int i = 16; i; i /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, i);
	return x;
}

DEVICE_FUNCTION float half_to_float(uint16_t x) { return __half2float(__ushort_as_half(x)); }

/* Four words, from a multiple of 16 bytes. */
DEVICE_FUNCTION void load_four(uint32_t y[4], const uint32_t *x)
{
	const uint4 v = *(const uint4 *)x;

	y[0] = v.x, y[1] = v.y, y[2] = v.z, y[3] = v.w;
}

DEVICE_FUNCTION void store_four(uint32_t *y, const uint32_t x[4])
{
	*(uint4 *)y = make_uint4(x[0], x[1], x[2], x[3]);
}

/* Nanoseconds of a clock. */
DEVICE_FUNCTION uint64_t clock_now(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t) :: "memory");
	return t;
}
#else
#include "../../tests/cuda/plain.h"
#endif

/* The number of blocks of n numbers, `each` a block. */
static inline size_t blocks_of(size_t n, size_t each)
{
	return (n + each - 1) / each;
}

/* bf16: the nearest, ties to even; NaN stays NaN. */
DEVICE_FUNCTION uint16_t float_to_bf16(float x)
{
	const uint32_t u = bits_of(x);

	return (uint16_t)(x != x ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* The byte of a number that E4M3 represents, |x| <= 448: 3 bits of mantissa, bias 7, subnormal below 2^-6. */
DEVICE_FUNCTION uint8_t float_to_e4m3(float x)
{
	const uint32_t u = bits_of(x), sign = u >> 24 & 0x80, a = u & 0x7fffffff;
	const float size = of_bits(a);

	return (uint8_t)(sign | (size < 0.015625f ? (uint32_t)(int)(size * 512) : (a >> 20) - (120u << 3)));
}

DEVICE_FUNCTION float e4m3_to_float(uint8_t c)
{
	const uint32_t sign = (uint32_t)(c & 0x80) << 24, e = c >> 3 & 15, m = c & 7;

	return of_bits(sign | bits_of(e ? of_bits((e + 120) << 23 | m << 20) : (float)m / 512));
}

DEVICE_FUNCTION float bf16_to_float(uint16_t x)
{
	return of_bits((uint32_t)x << 16);
}

/* The sum of x over the threads of a block, and the maximum. There are 2^k threads, at most 1024. */
DEVICE_FUNCTION float block_sum(float x)
{
	SHARED float sum[1024];

	BARRIER();
	sum[THREAD] = x;
	BARRIER();
	for (unsigned half = THREADS / 2; half; half /= 2) {
		if (THREAD < half)
			sum[THREAD] += sum[THREAD + half];
		BARRIER();
	}
	return sum[0];
}

DEVICE_FUNCTION float block_max(float x)
{
	SHARED float most[1024];

	BARRIER();
	most[THREAD] = x;
	BARRIER();
	for (unsigned half = THREADS / 2; half; half /= 2) {
		if (THREAD < half && !(most[THREAD] >= most[THREAD + half]))
			most[THREAD] = most[THREAD + half];
		BARRIER();
	}
	return most[0];
}
#endif
