/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trellis.c -- see trellis.h
 *
 * The states before state t are ⌊t/2ᵏ⌋ + h 2^(L-k), h < 2ᵏ. So a step takes a minimum over h for each of
 * 2^(L-k) states' upper bits, and one sum for each of 2ᴸ states.
 */
#include "num/trellis.h"
#include <math.h>
#include <string.h>
#include "base/cut.h"
#include "num/half.h"
#include "num/clones.h"

enum { SIDE = TRELLIS_SIDE, T = TRELLIS_WEIGHTS, DEFAULT = 12, LEAST = 10, MOST = 16, PIECE = 256 };

static bool fill(struct format *f, bool three)
{
	f->y = f->y ? f->y : DEFAULT;
	f->bias = three;
	f->bits = f->x * T;
	f->max = 4;
	return f->x >= 1 && f->x <= 4 && f->y >= LEAST && f->y <= MOST;
}

bool trellis_fill_1mad(struct format *f)
{
	return fill(f, false);
}

bool trellis_fill_3inst(struct format *f)
{
	return fill(f, true);
}

/* The weights of n ≤ PIECE states. */
static void values_of(const struct format *f, size_t n, float y[n], const uint32_t state[n])
{
	uint16_t half[2][PIECE] = { { 0 } };
	float x[2][PIECE];

	for (size_t i = 0; i < n; i++) {
		const uint32_t z = f->bias ? 89226354 * state[i] + 64248484 : 34038481 * state[i] + 76625530;

		y[i] = ((float)((z & 255) + (z >> 8 & 255) + (z >> 16 & 255) + (z >> 24)) - 510) / 147.8005f;
		half[0][i] = (uint16_t)((z & 0x8fff) ^ 0x3b60);
		half[1][i] = (uint16_t)((z >> 16 & 0x8fff) ^ 0x3b60);
	}
	if (!f->bias)
		return;
	half_widen(n, x[0], half[0], HALF_F16);
	half_widen(n, x[1], half[1], HALF_F16);
	for (size_t i = 0; i < n; i++)
		x[0][i] += x[1][i];		/* exact in float */
	half_narrow(n, half[0], x[0], HALF_F16);
	half_widen(n, y, half[0], HALF_F16);
}

static unsigned bit(const uint8_t code[], size_t j)
{
	return code[j / 8] >> (7 - j % 8) & 1;
}

/* The state of weight p. */
static uint32_t state_at(const struct format *f, const uint8_t code[], size_t p)
{
	const size_t bits = (size_t)f->bits, first = p * (size_t)f->x;
	uint32_t t = 0;

	for (size_t j = 0; j < (size_t)f->y; j++)
		t = t << 1 | bit(code, (first + j) % bits);
	return t;
}

static void decode(const struct format *f, size_t row, size_t i, size_t n, float w[n], const uint8_t code[],
	const float scale[n], const uint8_t zero[n])
{
	const size_t bytes = (size_t)f->bits / 8;
	uint32_t state[PIECE];

	(void)zero;
	for (size_t j = 0; j < n; j++)
		state[j] = state_at(f, code + (i + j) / SIDE * bytes, row * SIDE + (i + j) % SIDE);
	values_of(f, n, w, state);
	for (size_t j = 0; j < n; j++)
		w[j] *= scale[j];
}

const struct code_form trellis_form = { .rows = SIDE, .columns = SIDE, .decode = decode };

/* The values of all states. */
static void all_values(const struct format *f, float value[])
{
	uint32_t state[PIECE];

	for (uint32_t t = 0; t < 1u << f->y; t += PIECE) {
		for (uint32_t i = 0; i < PIECE; i++)
			state[i] = t + i;
		values_of(f, PIECE, value + t, state);
	}
}

double trellis_rms(const struct format *f)
{
	double sum = 0;

	for (uint32_t t = 0; t < 1u << f->y; t++) {
		float v;

		values_of(f, 1, &v, &t);
		sum += (double)v * (double)v;
	}
	return sqrt(ldexp(sum, -f->y)) * (f->x > 2 ? 0.95 : 1);		/* least errors of a search */
}

struct run {
	const struct format *f;
	size_t states, uppers;		/* 2^L, 2^(L-k) */
	bool *made;			/* whether `value` is filled */
	float *value, *cost;		/* [states] */
	float *least;			/* [uppers] of the states before */
	uint8_t *from;			/* [T][uppers] their h */
};

static size_t lay_out(struct run *u, const struct format *f, char *base)
{
	const size_t states = (size_t)1 << f->y, uppers = states >> f->x;
	size_t at = 0;

	*u = (struct run){ .f = f, .states = states, .uppers = uppers };
	u->made = cut(base, &at, 1, sizeof *u->made);
	u->value = cut(base, &at, states, sizeof *u->value);
	u->cost = cut(base, &at, states, sizeof *u->cost);
	u->least = cut(base, &at, uppers, sizeof *u->least);
	u->from = cut(base, &at, T * uppers, sizeof *u->from);
	return at;
}

size_t trellis_workspace(const struct format *f)
{
	struct run u;

	return lay_out(&u, f, NULL);
}

/* least[q] = min over h of cost[q + h n], n = uppers; from: its h. */
CLONES(static, void, minima, (size_t n, size_t h, float *restrict least, uint8_t *restrict from,
	const float *restrict cost), (n, h, least, from, cost))
{
	memcpy(least, cost, n * sizeof *least);
	memset(from, 0, n);
	for (size_t i = 1; i < h; i++)
		#pragma omp simd
		for (size_t q = 0; q < n; q++) {
			const float c = cost[i * n + q];

			from[q] = c < least[q] ? (uint8_t)i : from[q];
			least[q] = c < least[q] ? c : least[q];
		}
}

/* cost[t] = (x - value[t])² + least[t / 2ᵏ] */
CLONES(static, void, extend, (size_t n, int k, float x, float *restrict cost, const float *restrict value,
	const float *restrict least), (n, k, x, cost, value, least))
{
	if (k == 2) {
		for (size_t q = 0; q < n / 4; q++)
			for (size_t j = 0; j < 4; j++) {
				const float e = x - value[q * 4 + j];

				cost[q * 4 + j] = e * e + least[q];
			}
		return;
	}
	for (size_t t = 0; t < n; t++) {
		const float e = x - value[t];

		cost[t] = e * e + least[t >> k];
	}
}

/*
 * Runs over the weights x. upper: NULL, or the upper bits of the first state, which are the lower bits of the
 * last. Sets the states of least cost.
 */
static void viterbi(const struct run *u, const float x[T], const uint32_t *upper, uint32_t state[T])
{
	const int k = u->f->x;
	const size_t n = u->uppers;
	size_t last = upper ? *upper : 0;

	for (size_t q = 0; q < n; q++)
		u->least[q] = upper && q != *upper ? INFINITY : 0;
	for (size_t p = 0; p < T; p++) {
		if (p)
			minima(n, (size_t)1 << k, u->least, u->from + p * n, u->cost);
		extend(u->states, k, x[p], u->cost, u->value, u->least);
	}
	for (size_t t = last; t < u->states; t += upper ? n : 1)
		if (u->cost[t] < u->cost[last])
			last = t;
	for (size_t p = T; p-- > 0;) {
		state[p] = (uint32_t)last;
		if (p)
			last = (last >> k) + u->from[p * n + (last >> k)] * n;
	}
}

static void put_bits(const struct format *f, uint8_t code[], size_t first, size_t n, uint32_t bits)
{
	for (size_t j = 0; j < n; j++) {
		const size_t at = (first + j) % (size_t)f->bits;

		code[at / 8] = (uint8_t)(code[at / 8] | (bits >> (n - 1 - j) & 1) << (7 - at % 8));
	}
}

void trellis_nearest(const struct format *f, uint8_t code[], float y[T], const float x[T], void *workspace)
{
	const size_t k = (size_t)f->x, bits = (size_t)f->y;
	uint32_t state[T], upper;
	float turned[T];
	struct run u;

	lay_out(&u, f, workspace);
	if (!*u.made)
		all_values(f, u.value);
	*u.made = true;
	for (size_t p = 0; p < T; p++)
		turned[p] = x[(p + T / 2) % T];
	viterbi(&u, turned, NULL, state);
	upper = state[T / 2] >> k;
	viterbi(&u, x, &upper, state);
	memset(code, 0, (size_t)f->bits / 8);
	put_bits(f, code, 0, bits, state[0]);
	for (size_t p = 1; p < T; p++)
		put_bits(f, code, p * k + bits - k, k, state[p] & ((1u << k) - 1));
	for (size_t p = 0; p < T; p++)
		y[p] = u.value[state[p]];
}
