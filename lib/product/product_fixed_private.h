/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product_fixed_private.h -- products in fixed point with AVX-512 of bytes (VNNI and VBMI); part of
 * product_packed.c
 */
#define FIXED __attribute__((CPU_AVX512_AND(",avx512vbmi,avx512vnni")))
#define FIXED_INLINE FIXED static inline __attribute__((always_inline))

/* q = nearest integers to x·FIXED_MAX/max|x|. Returns the scale of their steps. */
FIXED_INLINE float fixed_integers(size_t n, int32_t q[n], const float x[n])
{
	const float max = bits_max(n, x);
	const double by = max > 0 && isfinite(max) ? FIXED_MAX / (double)max : 0;

	for (size_t i = 0; i < n; i++) {
		double v = by > 0 ? (double)x[i] * by : 0;

		q[i] = (int32_t)(v + (v < 0 ? -0.5 : 0.5));
	}
	return max / (FIXED_MAX >> 8);
}

/* base = -offset·Σ q over the columns of each word. */
FIXED_INLINE void fixed_base(int32_t base[16], int32_t offset, const int32_t q[INPUT_CHUNK])
{
	for (size_t word = 0; word < 16; word++) {
		uint32_t sum = 0;

		for (size_t i = 0; i < 8; i++)
			sum += (uint32_t)q[8 * word + i];
		base[word] = (int32_t)(-(uint32_t)offset * sum);
	}
}

/* Prepares a chunk of n columns of x. from[i]: the column that is stored at index i. */
FIXED static void fixed_place(const struct packed *p, size_t n, struct fixed_input *y, const float *x,
	const uint8_t from[INPUT_CHUNK])
{
	int32_t q[INPUT_CHUNK] = { 0 };

	y->scale = p->unit * (p->int16 ? number_int16_integers(n, q, x) : fixed_integers(n, q, x));
	for (int d = p->int16 ? 1 : 3; d >= 0; d--) {
		int8_t digit[INPUT_CHUNK];
		int32_t last[INPUT_CHUNK];

		if (d == (p->int16 ? 1 : 2))
			fixed_base(y->base[0], p->offset, q);
		for (size_t i = 0; i < INPUT_CHUNK; i++) {
			last[i] = digit[i] = (int8_t)q[i];
			q[i] = (q[i] - last[i]) / 256;
		}
		if (d == 3)
			fixed_base(y->base[1], p->offset, last);
		for (size_t i = 0; i < INPUT_CHUNK; i += 64)
			_mm512_storeu_si512(y->digit[d] + i, _mm512_permutex2var_epi8(
				_mm512_loadu_si512(digit), _mm512_loadu_si512(from + i),
				_mm512_loadu_si512(digit + 64)));
	}
}

/* The 3-bit codes of a chunk, two to a byte: the low bits of an even and of an odd column, then their third
 * bits in bits 4 and 5. Each 64 bits of `both` have the low bits of 16 codes, and the third bits of their
 * block. */
FIXED_INLINE __m512i pairs_of_three(const uint32_t *w)
{
	const __m512i at = _mm512_setr_epi32(0, 2, 1, 2, 3, 5, 4, 5, 6, 8, 7, 8, 9, 11, 10, 11);
	const __m512i both = _mm512_permutexvar_epi32(at, _mm512_maskz_loadu_epi32(0xfff, w));
	const __m512i low = _mm512_broadcast_i64x2(_mm_set1_epi64x(0x1c1814100c080400));
	/* 32 + column - 4, for the second 16 codes of a block 16 more */
	const __m512i third = _mm512_broadcast_i64x2(_mm_set_epi64x(0x3a38363432302e2c, 0x2a28262422201e1c));

	return _mm512_ternarylogic_epi32(_mm512_multishift_epi64_epi8(third, both),
		_mm512_multishift_epi64_epi8(low, both), _mm512_set1_epi8(0x30), 0xe4);
}

/* Weights of a chunk as bytes: v[0] of even nibbles of the words, v[1] of odd ones; of 3 bits, of even and of
 * odd columns. Fifth bits are moved to bit 4. */
FIXED_INLINE void weights(__m512i v[2], int bits, const uint32_t *w, const __m512i table[2])
{
	v[0] = bits == 3 ? pairs_of_three(w) : avx512_low(w, bits);
	v[1] = bits == 3 ? v[0] : _mm512_srli_epi16(v[0], 4);
	if (bits == 5) {
		const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 5, 5, 5, 5, 10, 10, 10, 10, 15, 15, 15, 15);
		const __m128i bit = _mm_set_epi64x(0x0d0f1d1f11130103, 0x15170507191b090b);
		const __m512i even = _mm512_broadcast_i64x2(bit);
		const __m512i odd = _mm512_sub_epi8(even, _mm512_set1_epi8(1)), fifth = _mm512_set1_epi8(16);
		const __m512i max = _mm512_permutexvar_epi32(at, _mm512_loadu_si512(w + 4));

		/* Bits of the first operand where the mask is 1. */
		v[0] = _mm512_ternarylogic_epi32(_mm512_multishift_epi64_epi8(even, max), v[0], fifth, 0xe4);
		v[1] = _mm512_ternarylogic_epi32(_mm512_multishift_epi64_epi8(odd, max), v[1], fifth, 0xe4);
	}
	v[0] = _mm512_permutexvar_epi8(v[0], table[0]);
	v[1] = _mm512_permutexvar_epi8(v[1], table[1]);
}

FIXED_INLINE __m512i dot(__m512i sum, const __m512i v[2], const int8_t x[INPUT_CHUNK])
{
	sum = _mm512_dpbusd_epi32(sum, v[0], _mm512_loadu_si512(x));
	return _mm512_dpbusd_epi32(sum, v[1], _mm512_loadu_si512(x + INPUT_CHUNK / 2));
}

/* Σ v x of each lane, minus the part of the offset of the weights. */
FIXED_INLINE __m512 chunk_sum(bool narrow, const __m512i v[2], const struct fixed_input *x)
{
	const __m512i zero = _mm512_setzero_si512();
	__m512i a = dot(zero, v, x->digit[0]);
	__m512i b = dot(narrow ? _mm512_load_si512(x->base[0]) : zero, v, x->digit[1]);

	a = _mm512_add_epi32(_mm512_slli_epi32(a, 8), b);
	if (narrow)
		return _mm512_cvtepi32_ps(a);
	b = dot(_mm512_load_si512(x->base[0]), v, x->digit[2]);
	a = _mm512_add_epi32(_mm512_slli_epi32(a, 8), b);
	b = dot(_mm512_load_si512(x->base[1]), v, x->digit[3]);
	return _mm512_fmadd_ps(_mm512_cvtepi32_ps(b), _mm512_set1_ps(0x1p-8f), _mm512_cvtepi32_ps(a));
}

/* Scales and zero points of the words of a chunk, which may be in several groups. */
FIXED __attribute__((noinline)) static void fixed_parameters(const struct linear *l, const float *scale,
	const uint8_t *zero, size_t chunk, float s[16], int32_t z[16])
{
	for (size_t i = 0; i < 16; i++) {
		size_t g = group_of_word(l, chunk * 16 + i);

		s[i] = scale[g];
		z[i] = zero ? (int32_t)(zero[g] * 0x1010101u) : 0;
	}
}

/* Computes rows 0, d, 2d and 3d. Four reads at distant addresses are faster than four at adjacent ones. */
FIXED_INLINE void fixed_streams(const struct packed *p, int bits, bool narrow, bool offset, size_t m,
	size_t d, float y[m][ROW_PANEL], const uint32_t *w, const float *scale, const uint8_t *zero,
	const struct fixed_input *x)
{
	const size_t chunks = ceil_div(p->l->in, INPUT_CHUNK), words = (size_t)bits * 4;
	const size_t all = pack_words(bits, p->l->in), whole = all / words;
	const size_t each = chunks_of_group(p->l, INPUT_CHUNK), step = scales_of_row(p->l);
	const bool uneven = p->l->group > 0 && p->l->group % INPUT_CHUNK;
	const __m512i table[2] = { _mm512_loadu_si512(p->integer[0]), _mm512_loadu_si512(p->integer[1]) };
	__m512 sum[PRODUCT_FEW][STREAMS];

	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < STREAMS; r++)
			sum[t][r] = _mm512_setzero_ps();
	for (size_t c = 0, g = 0, left = each; c < chunks; c++, x += m) {
		__m512i v[STREAMS][2];
		__m512 s[STREAMS];

		#pragma GCC unroll 4
		for (size_t r = 0; r < STREAMS; r++) {
			const uint32_t *from = w + r * d * all + c * words;
			const size_t at = r * d * step;
			uint32_t tail[20];
			__m512i z;

			__builtin_prefetch((const char *)from + AHEAD_STREAM);
			if (bits == 5 && c % 2)
				__builtin_prefetch((const char *)from + AHEAD_STREAM + 64);
			s[r] = _mm512_set1_ps(scale[at + g]);
			z = _mm512_set1_epi8((char)(offset ? zero[at + g] : 0));
			if (__builtin_expect(uneven || c == whole, false)) {
				float scales[16];
				int32_t zeros[16];

				fixed_parameters(p->l, scale + at, offset ? zero + at : NULL, c,
					scales, zeros);
				s[r] = _mm512_loadu_ps(scales), z = _mm512_loadu_si512(zeros);
				if (c == whole)
					tail_of(tail, from, all - whole * words), from = tail;
			}
			weights(v[r], bits, from, table);
			for (int k = 0; offset && k < 2; k++)
				v[r][k] = _mm512_sub_epi8(v[r][k], z);
		}
		for (size_t t = 0; t < m; t++) {
			const __m512 by = _mm512_set1_ps(x[t].scale);

			#pragma GCC unroll 4
			for (size_t r = 0; r < STREAMS; r++)
				sum[t][r] = _mm512_fmadd_ps(_mm512_mul_ps(s[r], by),
					chunk_sum(narrow, v[r], x + t), sum[t][r]);
		}
		if (!--left)
			left = each, g++;
	}
	for (size_t t = 0; t < m; t++)
		for (size_t r = 0; r < STREAMS; r++)
			y[t][r * d] = _mm512_reduce_add_ps(sum[t][r]);
}

FIXED_INLINE void fixed_some(const struct packed *p, int bits, bool narrow, bool offset, size_t m, size_t n,
	float y[m][ROW_PANEL], const uint32_t *w, const float *scale, const uint8_t *zero,
	const struct fixed_input *x)
{
	const size_t words = pack_words(bits, p->l->in), step = scales_of_row(p->l), d = n / STREAMS;

	/* Each of the remaining rows is computed four times. */
	for (size_t o = 0; o < n; o += o + 1 == d ? (STREAMS - 1) * d + 1 : 1)
		fixed_streams(p, bits, narrow, offset, m, o < d ? d : 0, (float (*)[ROW_PANEL])&y[0][o],
			w + o * words, scale + o * step, offset ? zero + o * step : NULL, x);
}

#define ROWS(bits, narrow, offset) \
	if (m == 1) \
		fixed_some(p, bits, narrow, offset, 1, n, y, w, scale, zero, x); \
	else \
		fixed_some(p, bits, narrow, offset, m, n, y, w, scale, zero, x); \
	break
FIXED static void rows_fixed(const struct packed *p, size_t m, size_t n, float y[m][ROW_PANEL],
	const uint32_t *w, const float *scale, const uint8_t *zero, const struct fixed_input *x)
{
	switch (4 * p->l->storage.bits + 2 * p->int16 + (zero != NULL)) {
	case 12: ROWS(3, false, false);
	case 13: ROWS(3, false, true);
	case 14: ROWS(3, true, false);
	case 15: ROWS(3, true, true);
	case 16: ROWS(4, false, false);
	case 17: ROWS(4, false, true);
	case 18: ROWS(4, true, false);
	case 19: ROWS(4, true, true);
	case 20: ROWS(5, false, false);
	case 21: ROWS(5, false, true);
	case 22: ROWS(5, true, false);
	case 23: ROWS(5, true, true);
	}
}
#undef ROWS
