/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_float.h -- rows of a product in float; product.c includes it once for each vector width
 *
 * Wanted: LANES, TARGET, NAME(x), FLOATS, INTS, and of either: ZERO, SPLAT(f), LOAD(f), FMA, ADD, SUB, AND, OR, LEFT(v, n),
 * RIGHT(v, n), SHIFT_BY (left by n in 0 .. 31, right by -n), WORD(i), TO_FLOAT, HALVES(v, upper), LOOKUP(table, v, bits),
 * LOW_WORDS(w), TOP_WORDS(w), TOTAL.
 */

/* Step k's two vectors of values. low: the low four bits of LANES words' codes; top: fifth bits, code 2k's at bit 15 - k. */
TARGET static inline __attribute__((always_inline)) void NAME(step)(const struct product *p, enum product_way way, int bits,
	int k, FLOATS v[2], INTS low, INTS top, FLOATS zero)
{
	const int sign = bits == 5 ? k : 12 - 4 * k;

	if (way == PRODUCT_HALF) {
		INTS magnitude = AND(SHIFT_BY(low, p->shift - 4 * k), WORD((bits == 5 ? 0x000f000f : 0x00070007) << p->shift));
		INTS half = OR(magnitude, AND(LEFT(top, sign), WORD((int)0x80008000)));

		v[0] = HALVES(half, 0);
		v[1] = HALVES(half, 1);
		return;
	}
	for (int h = 0; h < 2; h++) {
		INTS code = AND(RIGHT(low, 4 * k + 16 * h), WORD(15));

		if (bits == 5)
			code = OR(code, AND(RIGHT(top, 11 - k + 16 * h), WORD(16)));
		v[h] = way == PRODUCT_INTEGER ? SUB(TO_FLOAT(code), zero) : LOOKUP(p->table, code, bits);
	}
}

/* Scales of the two vectors of a step, and zero points, where groups are narrower than a chunk. */
TARGET static inline void NAME(parameters)(const struct product *p, const float *scale, const uint8_t *zero, size_t chunk,
	FLOATS s[2], FLOATS *z)
{
	float value[3][LANES];

	for (size_t i = 0; i < LANES; i++) {
		size_t word[2] = { p->pairs ? i / 2 : i, p->pairs ? (LANES + i) / 2 : i };

		for (int h = 0; h < 2; h++) {
			size_t g = (chunk * LANES + word[h]) * 8 / (size_t)p->l->group;

			g = g < p->l->groups ? g : p->l->groups - 1;	/* padding: its inputs are 0 */
			value[h][i] = scale[g];
			value[2][i] = zero ? zero[g] : -p->table[0];
		}
	}
	s[0] = LOAD(value[0]), s[1] = LOAD(value[1]), *z = LOAD(value[2]);
}

TARGET static inline __attribute__((always_inline)) void NAME(row)(const struct product *p, enum product_way way, int bits,
	size_t m, float *y, const uint32_t *w, const float *scale, const uint8_t *zero, const float *input)
{
	const size_t in = p->l->in, chunks = (in + 8 * LANES - 1) / (8 * LANES), words = (size_t)bits * LANES / 4;
	const size_t whole = pack_words(bits, in) / words, column = input_column(in);
	const size_t each = p->l->group > 0 ? (size_t)p->l->group / (8 * LANES) : chunks;
	const bool narrow = p->l->group > 0 && p->l->group % (8 * LANES);
	size_t next = each, g = 0;
	uint32_t tail[20];
	FLOATS sum[PRODUCT_FEW], s[2] = { SPLAT(scale[0]), SPLAT(scale[0]) }, z = SPLAT(zero ? zero[0] : -p->table[0]);

	if (whole < chunks)
		tail_of(tail, w + whole * words, pack_words(bits, in) - whole * words);
	for (size_t t = 0; t < m; t++)
		sum[t] = ZERO;
	for (size_t c = 0; c < chunks; c++, w += words) {
		const uint32_t *from = c < whole ? w : tail;
		const float *x = input + c * 8 * LANES;
		FLOATS v[8];
		INTS low, top;

		__builtin_prefetch((const char *)w + AHEAD);
		if (bits * LANES > 64 && c % 2)
			__builtin_prefetch((const char *)w + AHEAD + 64);
		low = LOW_WORDS(from, bits), top = TOP_WORDS(from, bits);
		if (narrow)
			NAME(parameters)(p, scale, zero, c, s, &z);
		else if (c == next) {
			s[0] = s[1] = SPLAT(scale[++g]);
			z = SPLAT(zero ? zero[g] : -p->table[0]);
			next += each;
		}
		for (int k = 0; k < 4; k++)
			NAME(step)(p, way, bits, k, v + 2 * k, low, top, z);
		for (size_t t = 0; t < m; t++, x += column) {
			FLOATS a = ZERO, b = ZERO;

			for (int k = 0; k < 4; k++) {
				a = FMA(v[2 * k], LOAD(x + 2 * k * LANES), a);
				b = FMA(v[2 * k + 1], LOAD(x + (2 * k + 1) * LANES), b);
			}
			sum[t] = narrow ? FMA(s[1], b, FMA(s[0], a, sum[t])) : FMA(s[0], ADD(a, b), sum[t]);
		}
	}
	for (size_t t = 0; t < m; t++)
		y[t * PANEL] = TOTAL(sum[t]);
}

TARGET static inline __attribute__((always_inline)) void NAME(some)(const struct product *p, enum product_way way, int bits,
	size_t m, size_t n, float y[m][PANEL], const uint32_t *w, const float *scale, const uint8_t *zero, const float *input)
{
	const size_t words = pack_words(bits, p->l->in), step = p->l->group == -1 ? 0 : p->l->groups;

	for (size_t o = 0; o < n; o++)
		NAME(row)(p, way, bits, m, &y[0][o], w + o * words, scale + o * step, zero ? zero + o * step : NULL, input);
}

#define ROWS(way, bits) \
	if (m == 1) \
		NAME(some)(p, way, bits, 1, n, y, w, scale, zero, input); \
	else \
		NAME(some)(p, way, bits, m, n, y, w, scale, zero, input); \
	break
TARGET static void NAME(rows)(const struct product *p, size_t m, size_t n, float y[m][PANEL], const uint32_t *w,
	const float *scale, const uint8_t *zero, const float *input)
{
	switch ((int)p->way * 2 + (p->l->storage.bits == 5)) {
	case 2 * PRODUCT_HALF: ROWS(PRODUCT_HALF, 4);
	case 2 * PRODUCT_HALF + 1: ROWS(PRODUCT_HALF, 5);
	case 2 * PRODUCT_INTEGER: ROWS(PRODUCT_INTEGER, 4);
	case 2 * PRODUCT_INTEGER + 1: ROWS(PRODUCT_INTEGER, 5);
	case 2 * PRODUCT_TABLE: ROWS(PRODUCT_TABLE, 4);
	case 2 * PRODUCT_TABLE + 1: ROWS(PRODUCT_TABLE, 5);
	}
}
#undef ROWS
