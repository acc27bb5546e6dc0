/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stopwatch.cu -- time of the device, by its own clock, and a copy to compare with; see device/device.h */
#include "cuda/gpu.h"
#include "cuda/library.h"
#include "cuda/module.h"

enum { WIDE = 256, PIECE = 16, EACH = 4 };

struct copy_of { size_t pieces; uint32_t *y; const uint32_t *x; };

/* A thread copies EACH pieces of 16 bytes. */
KERNEL(copy, struct copy_of)
{
	const size_t first = (size_t)BLOCK * THREADS * EACH + THREAD;
	uint32_t v[EACH][4];

	UNROLL
	for (size_t i = 0; i < EACH; i++)
		if (first + i * THREADS < a.pieces)
			load_four(v[i], a.x + (first + i * THREADS) * 4);
	UNROLL
	for (size_t i = 0; i < EACH; i++)
		if (first + i * THREADS < a.pieces)
			store_four(a.y + (first + i * THREADS) * 4, v[i]);
}

void gpu_copy(void *y, const void *x, size_t bytes)
{
	const struct copy_of a = { bytes / PIECE, (uint32_t *)y, (const uint32_t *)x };

	LAUNCH(copy, blocks_of(a.pieces, WIDE * EACH), 1, WIDE, a);
}

struct stamp_of { uint64_t *time; uint64_t later; };

/* Writes the time, `later` nanoseconds from now. */
KERNEL(stamp, struct stamp_of)
{
	const uint64_t begin = clock_now();

	while (clock_now() - begin < a.later)
		;
	*a.time = clock_now();
}

static uint64_t *times;

void gpu_start(double later)
{
	struct stamp_of s = { times, (uint64_t)(later * 1e9) };

	if (!times)
		s.time = times = (uint64_t *)library_allocate(2 * sizeof *times);
	LAUNCH(stamp, 1, 1, 1, s);
}

double gpu_stop(void)
{
	const struct stamp_of s = { times + 1, 0 };
	uint64_t both[2];

	LAUNCH(stamp, 1, 1, 1, s);
	library_download(both, times, sizeof both);
	return (double)(both[1] - both[0]) * 1e-9;
}
