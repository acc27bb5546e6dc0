/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plain.h -- runs kernels of lib/cuda on the processor
 *
 * The threads of a block are contexts with stacks of their own. One runs until it ends, or until it waits at
 * a barrier of the block or of its warp; then the next one runs. A thread that misses a barrier ends the
 * program.
 */
#ifndef TESTS_CUDA_PLAIN_H
#define TESTS_CUDA_PLAIN_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct plain_place { unsigned thread, threads, block, block_y, blocks; };
extern struct plain_place plain_place;
void plain_barrier(void);
float plain_warp_sum(float x);
uint64_t plain_clock(void);
/* Copies 16 bytes between multiples of 16 bytes; others end the program, as on a GPU. */
void plain_copy_16(void *y, const void *x);
enum { PLAIN_DYNAMIC = 227 << 10 };	/* bytes, as a block of an H100 can have */
extern char plain_dynamic[PLAIN_DYNAMIC];
/* together: the kernel has barriers; else its threads run one after the other without contexts. */
void plain_launch(void (*kernel)(const void *arguments), size_t blocks, size_t blocks_y, unsigned threads,
	const void *arguments, bool together);
/* Fills `bytes` of dynamic memory with NaN, before a launch. */
void plain_share(size_t bytes);
float plain_half(uint16_t x);

#define KERNEL(name, type) \
	static void name(type a); \
	static void name##_of(const void *arguments) { name(*(const type *)arguments); } \
	static void name(type a)
#define LAUNCH(name, blocks, blocks_y, threads, arguments) \
	plain_launch(name##_of, blocks, blocks_y, threads, &(arguments), false)
#define LAUNCH_TOGETHER(name, blocks, blocks_y, threads, arguments) \
	plain_launch(name##_of, blocks, blocks_y, threads, &(arguments), true)
#define KERNEL_OF(threads, blocks, name, type) KERNEL(name, type)
#define LAUNCH_DYNAMIC(name, blocks, blocks_y, threads, bytes, arguments) \
	do { \
		plain_share(bytes); \
		LAUNCH_TOGETHER(name, blocks, blocks_y, threads, arguments); \
	} while (0)
#define DYNAMIC plain_dynamic
#define UNROLL
#define DEVICE_FUNCTION static inline __attribute__((unused))
#define BLOCK_THREADS 16
#define SHARED static
#define BARRIER() plain_barrier()
#define THREAD plain_place.thread
#define THREADS plain_place.threads
#define BLOCK plain_place.block
#define BLOCK_Y plain_place.block_y
#define GRID plain_place.blocks

DEVICE_FUNCTION void add_count(int64_t *to, int64_t n) { *to += n; }
DEVICE_FUNCTION void add_int(int *to, int n) { *to += n; }
DEVICE_FUNCTION double rounded_product(double x, double y) { return x * y; }
DEVICE_FUNCTION uint32_t bits_of(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
DEVICE_FUNCTION float of_bits(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
DEVICE_FUNCTION float warp_sum(float x) { return plain_warp_sum(x); }
DEVICE_FUNCTION float half_to_float(uint16_t x) { return plain_half(x); }
DEVICE_FUNCTION void store_four(uint32_t *y, const uint32_t x[4])
{
	const _Alignas(16) uint32_t v[4] = { x[0], x[1], x[2], x[3] };

	plain_copy_16(y, v);
}

DEVICE_FUNCTION void load_four(uint32_t y[4], const uint32_t *x)
{
	_Alignas(16) uint32_t v[4];

	plain_copy_16(v, x);
	memcpy(y, v, sizeof v);
}

DEVICE_FUNCTION uint64_t clock_now(void) { return plain_clock(); }
#endif
