/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plain.c -- lib/cuda/library.h, and the barriers of plain.h, on the processor */
#include <cblas.h>
#include <lapacke.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include "cuda/gpu.h"
#include "cuda/library.h"

/* ---- threads of a block ---- */

enum { STACK = 64 << 10, MOST = 1024, WARP = 32 };

struct plain_place plain_place;
_Alignas(16) char plain_dynamic[PLAIN_DYNAMIC];
/* A thread has a context, which continues with the next block. Jumps between contexts need no system call. */
static struct {
	jmp_buf home, thread[MOST];
	ucontext_t start_home, start[MOST];
	unsigned made;			/* threads that have a context */
	bool ended[MOST], together;
	void (*kernel)(const void *);
	const void *arguments;
	size_t steps;			/* threads that came to a barrier or ended: a sweep adds some */
	struct barrier { unsigned came, number; } whole, warp[MOST / WARP];
} block;

static void fail(const char *why)
{
	fprintf(stderr, "plain device: %s\n", why);
	abort();
}

/* Leaves the thread until the block comes back to it. */
static void leave(unsigned thread)
{
	if (!_setjmp(block.thread[thread]))
		_longjmp(block.home, 1);
}

/* Waits at a barrier of n threads. */
static void wait_at(struct barrier *m, unsigned n)
{
	const unsigned thread = plain_place.thread, number = m->number;

	if (!block.together)
		fail("a kernel of LAUNCH() has a barrier");
	block.steps++;
	if (++m->came == n) {
		m->came = 0;
		m->number++;
	}
	while (m->number == number)
		leave(thread);
}

void plain_barrier(void)
{
	wait_at(&block.whole, plain_place.threads);
}

static void wait_for_warp(void)
{
	const unsigned warp = plain_place.thread / WARP, left = plain_place.threads - warp * WARP;

	wait_at(&block.warp[warp], left < WARP ? left : WARP);
}

float plain_warp_sum(float x)
{
	static float shared[MOST];
	const unsigned first = plain_place.thread / WARP * WARP;
	float sum = 0;

	shared[plain_place.thread] = x;
	wait_for_warp();
	for (unsigned i = first; i < first + WARP && i < plain_place.threads; i++)
		sum += shared[i];
	wait_for_warp();
	return sum;
}

uint64_t plain_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void plain_copy_16(void *y, const void *x)
{
	if (((uintptr_t)y | (uintptr_t)x) % 16)
		fail("16 bytes are read from or written to an address that is no multiple of 16");
	memcpy(y, x, 16);
}

void plain_share(size_t bytes)
{
	if (bytes > PLAIN_DYNAMIC)
		fail("a block has too much shared memory");
	memset(plain_dynamic, 0xff, bytes);
}

static void run_thread(void)
{
	const unsigned thread = plain_place.thread;

	for (;;) {
		leave(thread);
		block.kernel(block.arguments);
		block.ended[thread] = true;
		block.steps++;
	}
}

/* Gives the next thread a context, which waits for a block. */
static void make_thread(void)
{
	ucontext_t *c = &block.start[block.made];

	plain_place.thread = block.made;
	getcontext(c);
	c->uc_stack.ss_sp = malloc(STACK);
	c->uc_stack.ss_size = STACK;
	if (!c->uc_stack.ss_sp)
		fail("out of memory");
	makecontext(c, run_thread, 0);
	if (!_setjmp(block.home))
		swapcontext(&block.start_home, c);
	block.made++;
}

static void resume(unsigned thread)
{
	plain_place.thread = thread;
	if (!_setjmp(block.home))
		_longjmp(block.thread[thread], 1);
}

static void run_block(unsigned threads)
{
	const struct plain_place place = plain_place;

	if (threads > MOST)
		fail("too many threads");
	while (block.made < threads)
		make_thread();
	plain_place = place;
	memset(block.ended, 0, sizeof block.ended);
	memset(block.warp, 0, sizeof block.warp);
	memset(&block.whole, 0, sizeof block.whole);
	for (unsigned left = threads; left;) {
		const size_t steps = block.steps;

		for (unsigned t = left = 0; t < threads; t++)
			if (!block.ended[t]) {
				resume(t);
				left += !block.ended[t];
			}
		if (left && block.steps == steps)
			fail("a thread misses a barrier of its block or warp");
	}
}

void plain_launch(void (*kernel)(const void *arguments), size_t blocks, size_t blocks_y, unsigned threads,
	const void *arguments, bool together)
{
	block.kernel = kernel;
	block.arguments = arguments;
	block.together = together;
	for (size_t y = 0; y < blocks_y; y++)
		for (size_t x = 0; x < blocks; x++) {
			plain_place = (struct plain_place){ 0, threads, (unsigned)x, (unsigned)y,
				(unsigned)blocks };
			if (together)
				run_block(threads);
			else
				for (unsigned t = 0; t < threads; t++) {
					plain_place.thread = t;
					kernel(arguments);
				}
		}
}

/* ---- library.h ---- */

static const struct device_host *of_program;

const char *library_open(const struct device_host *host)
{
	of_program = host;
	return "plain";
}

void *library_allocate(size_t bytes)
{
	void *x = malloc(bytes ? bytes : 1);

	if (!x)
		of_program->fail("plain device: out of memory");
	memset(x, 0xff, bytes);		/* NaN: memory that was not written is seen */
	return x;
}

void library_release(void *x)
{
	free(x);
}

void library_clear(void *x, size_t bytes)
{
	memset(x, 0, bytes);
}

void library_upload(void *x, const void *host, size_t bytes)
{
	memcpy(x, host, bytes);
}

void library_download(void *host, const void *x, size_t bytes)
{
	memcpy(host, x, bytes);
}

void library_pin(void *host, size_t bytes)
{
	(void)host, (void)bytes;
}

void library_unpin(void *host)
{
	(void)host;
}

float plain_half(uint16_t x)
{
	const int exponent = x >> 10 & 31, mantissa = x & 1023;
	const float y = exponent == 31 ? mantissa ? NAN : INFINITY :
		exponent ? ldexpf(1024 + (float)mantissa, exponent - 25) : ldexpf((float)mantissa, -24);

	return x >> 15 ? -y : y;
}

/* A matrix as floats: itself, or memory that is to be freed. */
static float *floats(const void *x, size_t rows, size_t columns, size_t ld, enum device_type type)
{
	float *y;

	if (type == DEVICE_F32)
		return (float *)(uintptr_t)x;
	y = malloc(rows * ld * sizeof *y);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			y[i * ld + j] = of_bits((uint32_t)((const uint16_t *)x)[i * ld + j] << 16);
	return y;
}

void library_gemm(const struct gemm *g)
{
	const size_t size = g->type == DEVICE_F32 ? 4 : 2;

	for (size_t i = 0; i < (g->batch ? g->batch : 1); i++) {
		const char *from_a = (const char *)g->a + i * g->step_a * size;
		const char *from_b = (const char *)g->b + i * g->step_b * size;
		float *a = floats(from_a, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, g->lda,
			g->type);
		float *b = floats(from_b, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, g->ldb,
			g->type);

		cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
			g->transpose_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
			g->alpha, a, (int)g->lda, b, (int)g->ldb, g->beta, g->c + i * g->step_c,
			(int)g->ldc);
		if (g->type != DEVICE_F32)
			free(a), free(b);
	}
}

void library_gemm_bytes(const struct gemm_bytes *g)
{
	for (size_t i = 0; i < g->m; i++)
		for (size_t j = 0; j < g->n; j++) {
			const uint8_t *a = (const uint8_t *)g->a + i * g->k;
			const uint8_t *b = (const uint8_t *)g->b + j * g->k;
			int32_t whole = 0;
			float sum = 0;

			for (size_t k = 0; k < g->k; k++)
				if (g->type == DEVICE_INT8)
					whole += (int8_t)a[k] * (int8_t)b[k];
				else
					sum += e4m3_to_float(a[k]) * e4m3_to_float(b[k]);
			if (g->type == DEVICE_INT8)
				((int32_t *)g->c)[i * g->n + j] = whole;
			else
				((float *)g->c)[i * g->n + j] = sum;
		}
}

size_t library_cholesky(size_t n, float *a)
{
	const lapack_int info = LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, a, (lapack_int)n);

	return info > 0 ? (size_t)info : 0;
}
