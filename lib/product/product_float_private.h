/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_float_private.h -- products of packed words in float, for one vector width
 *
 * product_packed.c includes it once for each vector width. With one row of x, weights are multiplied as soon
 * as they are decoded. With more rows, the weights of a chunk of TILE rows of the layer are decoded once,
 * with their scales, into the first cache. Then two rows of x at a time are multiplied with them, with the
 * sums of the tile in registers.
 *
 * The includer defines these names, and they are undefined at the end: LANES, TILE, TARGET, NAME(x), the
 * intrinsic OP(x), vectors FLOATS and INTS, and on vectors MERGE(mask, a, b) (bits of a where the mask is 1,
 * else of b), SHIFT_BY (left by n in 0 .. 31, right by -n), LEFT_EACH(v, a, b) and RIGHT_EACH (even lanes by
 * a, odd lanes by b), HALVES(v, upper), SHUFFLE (of bytes in 128 bits), REPEAT(128 bits in memory),
 * LOAD_WORDS, AS_FLOATS, LOOKUP(table, v, bits), TOTAL; functions NAME(blocks), NAME(low) and NAME(high) of
 * words.
 */
#define INLINE TARGET static inline __attribute__((always_inline))

/*
 * Converts words of 3-bit codes to words of 4 bits per code. The two low bits and the third bit are planes.
 * A block has two words of even codes and two of odd codes, alternating.
 */
INLINE INTS NAME(nibbles)(const uint32_t *w)
{
	const INTS v = NAME(blocks)(w);
	INTS two = SHUFFLE(v, _mm_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7));
	INTS third = SHUFFLE(v,
		_mm_setr_epi8(8, -1, 9, -1, 8, -1, 9, -1, 10, -1, 11, -1, 10, -1, 11, -1));

	third = (third | LEFT(third, 4)) & WORD(0x0f0f0f0f);
	third = (third | LEFT(third, 2)) & WORD(0x33333333);
	third = LEFT_EACH(third, 2, 1) & WORD(0x44444444);
	return (RIGHT_EACH(two, 0, 2) & WORD(0x33333333)) | third;
}

/* Values of a chunk of 3 or 4 bits, looked up as the two bytes of a bfloat16, in the order of
 * place_in_chunk(). */
INLINE void NAME(bytes)(FLOATS v[8], INTS code, INTS low, INTS high)
{
	#pragma GCC unroll 2
	for (int p = 0; p < 2; p++) {
		const INTS nibble = RIGHT(code, 4 * p) & WORD(0x0f0f0f0f);
		const INTS l = OP(shuffle_epi8)(low, nibble), h = OP(shuffle_epi8)(high, nibble);
		const INTS first = OP(unpacklo_epi8)(l, h), last = OP(unpackhi_epi8)(l, h);

		v[4 * p] = AS_FLOATS(LEFT(first, 16));
		v[4 * p + 1] = AS_FLOATS(LEFT(last, 16));
		v[4 * p + 2] = AS_FLOATS(first & WORD((int)0xffff0000));
		v[4 * p + 3] = AS_FLOATS(last & WORD((int)0xffff0000));
	}
}

/* The two vectors of values of step k. low: the low four bits of the codes of LANES words; high: their fifth
 * bits, that of code 2k at bit 15-k. */
INLINE void NAME(step)(const struct packed *p, enum packed_variant variant, int bits, int k, FLOATS v[2],
	INTS low, INTS high, FLOATS zero)
{
	if (variant == PACKED_HALF) {
		const int shift = p->shift, mask = bits == 5 ? 0x000f000f : 0x00070007;
		INTS magnitude = SHIFT_BY(low, shift - 4 * k) & WORD(mask << shift);
		INTS half = MERGE(WORD((int)0x80008000), LEFT(high, bits == 5 ? k : 12 - 4 * k), magnitude);

		v[0] = HALVES(half, 0);
		v[1] = HALVES(half, 1);
		return;
	}
	for (int h = 0; h < 2; h++) {
		INTS code = RIGHT(low, 4 * k + 16 * h);

		if (bits == 5)
			code = MERGE(WORD(16), RIGHT(high, 11 - k + 16 * h), code);
		if (variant == PACKED_INTEGER)
			v[h] = TO_FLOAT(code & WORD(bits == 5 ? 31 : 15)) - zero;
		else
			v[h] = LOOKUP(p->table, code, bits);
	}
}

/* Scales of the two vectors of a step, and zero points, of a chunk that may be in several groups. */
TARGET __attribute__((noinline)) static void NAME(parameters)(const struct packed *p, size_t chunk,
	const float *scale, const uint8_t *zero, float s[2][LANES], float z[LANES])
{
	for (size_t i = 0; i < LANES; i++)
		for (size_t h = 0; h < 2; h++) {
			size_t word = p->variant == PACKED_HALF ? (h * LANES + i) / 2 : i;
			size_t g = group_of_word(p->l, chunk * LANES + word);

			s[h][i] = scale[g];
			z[i] = zero ? zero[g] : -p->table[0];
		}
}

/* Values of a chunk and their scales. whole: the chunk is in group g and has all its words. */
INLINE void NAME(chunk)(const struct packed *p, enum packed_variant variant, int bits, bool whole,
	size_t chunk, size_t g, const uint32_t *w, const float *scale, const uint8_t *zero, FLOATS v[8],
	FLOATS s[2])
{
	const size_t words = (size_t)bits * LANES / 4;
	FLOATS z = SPLAT(variant == PACKED_INTEGER && zero ? zero[g] : -p->table[0]);
	const uint8_t *first = p->byte[0] + (ZERO_MAX - (zero ? zero[g] : p->no_zero));
	const bool bytes = variant == PACKED_INTEGER && bits < 5;
	INTS low, high, low_byte = REPEAT(first), high_byte = REPEAT(first + sizeof *p->byte);
	uint32_t tail[20];

	s[0] = s[1] = SPLAT(scale[g]);
	w += chunk * words;
	if (__builtin_expect(!whole, false)) {
		const size_t all = pack_words(bits, p->l->in) - chunk * words;
		float parameter[3][LANES];
		uint8_t value[2][4 * LANES];

		NAME(parameters)(p, chunk, scale, zero, parameter, parameter[2]);
		s[0] = LOAD(parameter[0]), s[1] = LOAD(parameter[1]), z = LOAD(parameter[2]);
		for (size_t i = 0; bytes && i < 4 * LANES; i += 16)
			for (size_t h = 0; h < 2; h++)
				memcpy(value[h] + i, p->byte[h] + (ZERO_MAX - (int)parameter[2][i / 4]), 16);
		if (bytes)
			low_byte = LOAD_WORDS((const void *)value[0]),
				high_byte = LOAD_WORDS((const void *)value[1]);
		tail_of(tail, w, all < words ? all : words);
		w = tail;
	}
	low = bits == 3 ? NAME(nibbles)(w) : NAME(low)(w, bits);
	if (bytes) {
		NAME(bytes)(v, low, low_byte, high_byte);
		return;
	}
	high = bits == 3 ? low : NAME(high)(w, bits);
	#pragma GCC unroll 4
	for (int k = 0; k < 4; k++)
		NAME(step)(p, variant, bits, k, v + 2 * k, low, high, z);
}

/* Number of chunks, of whole chunks, and of chunks per group. */
struct NAME(walk) { size_t chunks, whole, each; };

static inline struct NAME(walk) NAME(walk)(const struct packed *p, int bits)
{
	const size_t chunk = 8 * LANES, whole = pack_words(bits, p->l->in) / ((size_t)bits * LANES / 4);

	return (struct NAME(walk)){
		.chunks = ceil_div(p->l->in, chunk),
		.whole = p->l->group > 0 && (size_t)p->l->group % chunk ? 0 : whole,
		.each = chunks_of_group(p->l, chunk),
	};
}

INLINE float NAME(vector)(const struct packed *p, enum packed_variant variant, int bits, const uint32_t *w,
	const float *scale, const uint8_t *zero, const float *x)
{
	const struct NAME(walk) walk = NAME(walk)(p, bits);
	FLOATS sum = SPLAT(0), v[8], s[2];

	for (size_t c = 0, g = 0, left = walk.each; c < walk.chunks; c++, x += 8 * LANES) {
		FLOATS a = SPLAT(0), b = SPLAT(0);

		for (int i = 0; i < bits * LANES / 4; i += 16)
			__builtin_prefetch((const char *)(w + c * (size_t)(bits * LANES / 4) + i) + AHEAD);
		NAME(chunk)(p, variant, bits, c < walk.whole, c, g, w, scale, zero, v, s);
		#pragma GCC unroll 4
		for (int k = 0; k < 4; k++) {
			a = FMA(v[2 * k], LOAD(x + 2 * k * LANES), a);
			b = FMA(v[2 * k + 1], LOAD(x + (2 * k + 1) * LANES), b);
		}
		sum = FMA(s[0], a, FMA(s[1], b, sum));
		if (!--left)
			left = walk.each, g++;
	}
	return TOTAL(sum);
}

/* Adds the products of a chunk to the sums of a tile, for n rows of x. */
INLINE void NAME(columns)(size_t n, float sum[n][TILE][LANES], const float v[8][TILE][LANES],
	const float x[n][INPUT_CHUNK])
{
	FLOATS a[2][TILE];

	for (size_t t = 0; t < n; t++)
		for (size_t r = 0; r < TILE; r++)
			a[t][r] = LOAD(sum[t][r]);
	#pragma GCC unroll 8
	for (size_t k = 0; k < 8; k++)
		#pragma GCC unroll 8
		for (size_t r = 0; r < TILE; r++)
			for (size_t t = 0; t < n; t++)
				a[t][r] = FMA(LOAD(v[k][r]), LOAD(x[t] + k * LANES), a[t][r]);
	for (size_t t = 0; t < n; t++)
		for (size_t r = 0; r < TILE; r++)
			STORE(sum[t][r], a[t][r]);
}

/* Computes rows 0, d .. (n - 1)d for m rows of x. */
INLINE void NAME(tile)(const struct packed *p, enum packed_variant variant, int bits, size_t m, size_t n,
	size_t d, float y[m][ROW_PANEL], const uint32_t *w, const float *scale, const uint8_t *zero,
	const float x[][INPUT_CHUNK])
{
	const struct NAME(walk) walk = NAME(walk)(p, bits);
	const size_t words = d * pack_words(bits, p->l->in), step = d * scales_of_row(p->l);
	_Alignas(64) float sum[PRODUCT_FEW][TILE][LANES] = { { { 0 } } };
	_Alignas(64) float value[8][TILE][LANES] = { { { 0 } } };

	for (size_t c = 0, g = 0, left = walk.each; c < walk.chunks; c++) {
		const float *column = x[c * 8 * LANES / INPUT_CHUNK * m] + c * 8 * LANES % INPUT_CHUNK;
		const float (*part)[INPUT_CHUNK] = (const float (*)[INPUT_CHUNK])column;
		size_t t = 0;

		for (size_t r = 0; r < n; r++) {
			FLOATS v[8], s[2];

			for (int i = 0; i < bits * LANES / 4; i += 16) {
				const uint32_t *from = w + r * words + c * (size_t)(bits * LANES / 4) + i;

				__builtin_prefetch((const char *)from + AHEAD_STREAM);
			}
			NAME(chunk)(p, variant, bits, c < walk.whole, c, g, w + r * words, scale + r * step,
				zero ? zero + r * step : NULL, v, s);
			#pragma GCC unroll 8
			for (size_t k = 0; k < 8; k++)
				STORE(value[k][r], v[k] * s[k % 2]);
		}
		for (; t + 2 <= m; t += 2)
			NAME(columns)(2, sum + t, value, part + t);
		if (t < m)
			NAME(columns)(1, sum + t, value, part + t);
		if (!--left)
			left = walk.each, g++;
	}
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < n; r++)
			y[t][r * d] = TOTAL(LOAD(sum[t][r]));
}

INLINE void NAME(some)(const struct packed *p, enum packed_variant variant, int bits, size_t m, size_t n,
	float y[m][ROW_PANEL], const uint32_t *w, const float *scale, const uint8_t *zero, const float *x)
{
	const size_t words = pack_words(bits, p->l->in), step = scales_of_row(p->l), d = n / TILE;

	for (size_t o = 0; m == 1 && o < n; o++)
		y[0][o] = NAME(vector)(p, variant, bits, w + o * words, scale + o * step,
			zero ? zero + o * step : NULL, x);
	for (size_t o = 0, next; m > 1 && o < n; o = next) {
		const bool whole = o < d;

		NAME(tile)(p, variant, bits, m, whole ? TILE : n - o, whole ? d : 1,
			(float (*)[ROW_PANEL])&y[0][o], w + o * words, scale + o * step,
			zero ? zero + o * step : NULL, (const float (*)[INPUT_CHUNK])x);
		next = !whole ? n : o + 1 == d ? TILE * d : o + 1;
	}
	for (size_t t = 0; variant == PACKED_HALF && t < m; t++)
		for (size_t o = 0; o < n; o++)
			y[t][o] *= p->unit;
}

TARGET static void NAME(rows)(const struct packed *p, size_t m, size_t n, float y[m][ROW_PANEL],
	const uint32_t *w, const float *scale, const uint8_t *zero, const float *x)
{
	switch ((int)p->variant * 8 + p->l->storage.bits) {
	case 8 * PACKED_HALF + 4: NAME(some)(p, PACKED_HALF, 4, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_HALF + 5: NAME(some)(p, PACKED_HALF, 5, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_INTEGER + 3: NAME(some)(p, PACKED_INTEGER, 3, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_INTEGER + 4: NAME(some)(p, PACKED_INTEGER, 4, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_INTEGER + 5: NAME(some)(p, PACKED_INTEGER, 5, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_TABLE + 3: NAME(some)(p, PACKED_TABLE, 3, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_TABLE + 4: NAME(some)(p, PACKED_TABLE, 4, m, n, y, w, scale, zero, x); break;
	case 8 * PACKED_TABLE + 5: NAME(some)(p, PACKED_TABLE, 5, m, n, y, w, scale, zero, x); break;
	}
}
#undef INLINE
#undef LANES
#undef TILE
#undef TARGET
#undef NAME
#undef OP
#undef FLOATS
#undef INTS
#undef MERGE
#undef SHIFT_BY
#undef HALVES
#undef SHUFFLE
#undef LEFT_EACH
#undef RIGHT_EACH
#undef REPEAT
#undef LOAD_WORDS
#undef AS_FLOATS
#undef LOOKUP
#undef TOTAL
