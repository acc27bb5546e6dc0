/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * packed.cu -- products of few rows of x with packed codes; see device/device.h
 *
 * A lane takes the same columns of all weight rows of its block: a unit of 32 codes, whose x it keeps in
 * registers. So a block reads only codes, AHEAD rows at a time, and decodes each with two or three
 * operations. The warps of a block take the units of a row in turn. Their sums are added at the end, together
 * with the branch.
 */
#include "cuda/gpu.h"
#include "cuda/library.h"
#include "cuda/module.h"

enum { CODES = 32, LANES = 32, WARPS = 16, ROWS = 8, AHEAD = 4, PAIR = 2, TABLE = 1024 };

struct packed_of {
	struct device_packed p;
	size_t units, groups, each;	/* units of a row; groups; units of a group */
};

/* Code n of a unit (quant/pack.h). */
DEVICE_FUNCTION uint32_t code_of(const int bits, const uint32_t *w, const int n)
{
	const int pair = n / 2, half = 16 * (n % 2);

	switch (bits) {
	case 2: return w[n / 16] >> 2 * (n % 16) & 3;
	case 3: return (w[n / 16] >> 2 * (n % 16) & 3) | (w[2] >> n & 1) << 2;
	case 4: return w[n / 8] >> 4 * (n % 8) & 15;
	case 5: return (w[pair / 4] >> (pair % 4 * 4 + half) & 15) | (w[4] >> (15 - pair + half) & 1) << 4;
	case 6: return (w[n / 8] >> 4 * (n % 8) & 15) | (w[4 + n / 16] >> 2 * (n % 16) & 3) << 4;
	default: return w[n / 4] >> 8 * (n % 4) & 255;
	}
}

DEVICE_FUNCTION void load_unit(const int bits, uint32_t *y, const uint32_t *x)
{
	if (bits % 4 == 0)
		UNROLL
		for (int i = 0; i < bits; i += 4)
			load_four(y + i, x + i);
	else
		UNROLL
		for (int i = 0; i < bits; i++)
			y[i] = x[i];
}

/* At most CODES numbers of x, then zeros. */
DEVICE_FUNCTION void load_x(size_t left, float *y, const float *x)
{
	if (left >= CODES && (uintptr_t)x % 16 == 0)
		UNROLL
		for (int n = 0; n < CODES; n += 4)
			load_four((uint32_t *)(y + n), (const uint32_t *)(x + n));
	else
		UNROLL
		for (int n = 0; n < CODES; n++)
			y[n] = (size_t)n < left ? x[n] : 0;
}

/*
 * The number of a code. An integer is added to 2^23 by its bits, and 2^23 + shift is subtracted. The bits of
 * a float, moved to their places in a float of 32 bits, are the number times 2^(bias - 127).
 */
DEVICE_FUNCTION float value_of(const struct device_packed *p, const int bits, const enum device_code code,
	uint32_t c, float shift, const float *table)
{
	const uint32_t sign = 1u << (bits - 1);

	if (code == DEVICE_INTEGER)
		return of_bits(c | 0x4b000000u) - shift;
	if (code == DEVICE_FLOAT)
		return of_bits((c & (sign - 1)) << (23 - p->mantissa) | (c & sign) << (32 - bits)) *
			of_bits((uint32_t)(254 - p->bias) << 23);
	return bits <= 5 ? table[c * LANES + THREAD % LANES] : table[c];
}

/* sum[t] += scale · Σ x_t ŵ over the unit of the lane. */
DEVICE_FUNCTION void add_unit(const struct packed_of *a, const int bits, const enum device_code code,
	const int m, float *sum, const uint32_t *w, const float (*x)[CODES], size_t place, const float *table)
{
	const struct device_packed *p = &a->p;
	const float zero = p->zero ? (float)p->zero[place] : 0;
	const float shift = 8388608 + (float)p->offset + zero;
	float part[PAIR] = { 0, 0 };

	UNROLL
	for (int n = 0; n < CODES; n++) {
		const float v = value_of(p, bits, code, code_of(bits, w, n), shift, table);

		UNROLL
		for (int t = 0; t < m; t++)
			part[t] += x[t][n] * v;
	}
	UNROLL
	for (int t = 0; t < m; t++)
		sum[t] += part[t] * p->scale[place];
}

/* Row r of a block; after the last row, the first row of the block, whose sum is not used. */
DEVICE_FUNCTION size_t row_of(const struct device_packed *p, size_t first, int r)
{
	return first + (size_t)r < p->out ? first + (size_t)r : first;
}

/* The product of the rows of a block with m rows of x. */
DEVICE_FUNCTION void multiply(const struct packed_of *a, const int bits, const enum device_code code,
	const int m)
{
	SHARED float part[WARPS][ROWS][PAIR], table[TABLE];
	const struct device_packed *p = &a->p;
	const size_t first = (size_t)BLOCK * ROWS, lane = THREAD % LANES, warp = THREAD / LANES;
	const size_t warps = THREADS / LANES, words = a->units * (size_t)bits;
	float sum[ROWS][PAIR];

	for (size_t i = THREAD; p->table && i < (size_t)(bits <= 5 ? LANES << bits : 1 << bits); i += THREADS)
		table[i] = p->table[bits <= 5 ? i / LANES : i];
	BARRIER();
	UNROLL
	for (int r = 0; r < ROWS; r++)
		sum[r][0] = sum[r][1] = 0;
	for (size_t unit = warp * LANES + lane; unit < a->units; unit += THREADS) {
		float x[PAIR][CODES];

		UNROLL
		for (int t = 0; t < m; t++)
			load_x(p->in - unit * CODES, x[t], p->x + (size_t)t * p->in + unit * CODES);
		UNROLL
		for (int r = 0; r < ROWS; r += AHEAD) {
			uint32_t w[AHEAD][8];

			UNROLL
			for (int i = 0; i < AHEAD; i++)
				load_unit(bits, w[i], p->packed + row_of(p, first, r + i) * words +
					unit * (size_t)bits);
			UNROLL
			for (int i = 0; i < AHEAD; i++)
				add_unit(a, bits, code, m, sum[r + i], w[i], x,
					row_of(p, first, r + i) * a->groups + unit / a->each, table);
		}
	}
	UNROLL
	for (int r = 0; r < ROWS; r++)
		UNROLL
		for (int t = 0; t < m; t++) {
			const float all = warp_sum(sum[r][t]);

			if (lane == 0)
				part[warp][r][t] = all;
		}
	BARRIER();
	for (size_t i = warp; i < ROWS * (size_t)m; i += warps) {
		const size_t r = i / (size_t)m, t = i % (size_t)m, row = first + r;
		float *y = p->y + t * p->stride + row, all = lane < warps ? part[lane][r][t] : 0;

		for (size_t k = lane; row < p->out && k < p->rank; k += LANES)
			all += p->ax[t * p->rank + k] * (p->type == DEVICE_BF16 ?
				bf16_to_float(((const uint16_t *)p->b)[row * p->rank + k]) :
				((const float *)p->b)[row * p->rank + k]);
		all = warp_sum(all);
		if (lane == 0 && row < p->out)
			*y = p->add ? *y + all : all;
	}
}

#define ROWS_OF(bits, m) \
	KERNEL_OF(WARPS * LANES, 1, rows_##bits##_##m, struct packed_of) \
	{ \
		if (a.p.code == DEVICE_INTEGER) \
			multiply(&a, bits, DEVICE_INTEGER, m); \
		else if (a.p.code == DEVICE_FLOAT) \
			multiply(&a, bits, DEVICE_FLOAT, m); \
		else \
			multiply(&a, bits, DEVICE_TABLE, m); \
	}
#define WIDTH(bits) ROWS_OF(bits, 1) ROWS_OF(bits, 2)
WIDTH(2) WIDTH(3) WIDTH(4) WIDTH(5) WIDTH(6) WIDTH(8)
#define RUN(bits) \
	case bits: \
		if (a.p.m == 1) \
			LAUNCH_TOGETHER(rows_##bits##_1, blocks, 1, threads, a); \
		else \
			LAUNCH_TOGETHER(rows_##bits##_2, blocks, 1, threads, a); \
		break

void gpu_packed(const struct device_packed *p)
{
	struct packed_of a = { *p, blocks_of(p->in, CODES), 1, blocks_of(p->in, CODES) };
	const size_t blocks = blocks_of(p->out, ROWS), warps = blocks_of(a.units, LANES);
	const unsigned threads = (unsigned)(warps < WARPS ? warps : WARPS) * LANES;

	if (p->group) {
		a.each = p->group / CODES;
		a.groups = blocks_of(a.units, a.each);
	}
	for (size_t t = 0; t < p->m; t += PAIR) {
		a.p.m = p->m - t < PAIR ? p->m - t : PAIR;
		a.p.x = p->x + t * p->in;
		a.p.ax = p->rank ? p->ax + t * p->rank : NULL;
		a.p.y = p->y + t * p->stride;
		switch (p->bits) {
		RUN(2);
		RUN(3);
		RUN(4);
		RUN(5);
		RUN(6);
		RUN(8);
		default: break;
		}
	}
}
