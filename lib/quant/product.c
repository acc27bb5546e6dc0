/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product.c -- see product.h */
#include "quant/product.h"
#include "base/cpu.h"
#include "base/thread.h"
#include "num/half.h"
#include "quant/pack.h"
#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Constants, not options. Bytes of weights that are asked for ahead: the processor's own prefetching ends at each page. */
enum { CHUNK = PRODUCT_CHUNK, BLOCK = 32, AHEAD = 6144, PANEL = 128, FEW_PRODUCTS = 1 << 18, HALF_TOP = 32767, LARGEST = 2048 };

static size_t chunks_of(size_t in)
{
	return (in + CHUNK - 1) / CHUNK;
}

/* Floats that an input takes: its columns, filled up to whole chunks, and a scale of each chunk. */
static size_t input_column(size_t in)
{
	return chunks_of(in) * CHUNK + (chunks_of(in) + 15) / 16 * 16;
}

size_t product_input_size(size_t m, size_t in)
{
	return m * input_column(in) * sizeof(float);
}

/* ---- activations ---- */

static inline float largest(size_t n, const float x[n])
{
	float top = 0;

	for (size_t i = 0; i < n; i++)
		top = fabsf(x[i]) > top || x[i] != x[i] ? fabsf(x[i]) : top;	/* NaN stays */
	return top;
}

/* Nearest integers of x / scale, and the scale, which is not finite if x is not; ties to even. */
CLONES(static, float, narrow_chunk, (size_t n, float q[n], const float x[n]), (n, q, x))
{
	const float top = largest(n, x), scale = top > 0 ? top / HALF_TOP : top * 0;
	const bool zero = !(scale > 0) || isinf(scale);

	for (size_t i = 0; i < n; i++) {
		float v = zero ? 0 : x[i] / scale;

		v = v < -HALF_TOP ? -HALF_TOP : v > HALF_TOP ? HALF_TOP : v;
		q[i] = v + 0x1.8p23f - 0x1.8p23f;
	}
	return scale;
}

void product_narrow(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i += CHUNK) {
		size_t few = n - i < CHUNK ? n - i : CHUNK;
		float scale = narrow_chunk(few, y + i, x + i);

		for (size_t j = i; j < i + few; j++)
			y[j] *= scale;
	}
}

/* high + low·2⁻¹⁵ = x · 32767/max, rounded to 31 bits, which is exact enough for float. */
CLONES(static, float, fixed_chunk, (size_t n, int16_t high[n], int16_t low[n], const float x[n]), (n, high, low, x))
{
	const float top = largest(n, x);
	const double by = top > 0 && isfinite(top) ? (double)HALF_TOP * 32768 / (double)top : 0;

	for (size_t i = 0; i < n; i++) {
		double v = by > 0 ? (double)x[i] * by : 0;
		int32_t q = (int32_t)(v + (v < 0 ? -0.5 : 0.5)), h = (q + (1 << 14)) >> 15;

		high[i] = (int16_t)h;
		low[i] = (int16_t)(q - h * 32768);
	}
	return top / HALF_TOP;
}

/* Where column i of a chunk goes: code i of its word is in half h of step k. */
static size_t place(const struct product *p, size_t i)
{
	const size_t lanes = (size_t)p->lanes, word = i / 8, code = i % 8, chunk = word / lanes * lanes * 8;
	const size_t k = p->l->storage.bits == 5 ? code / 2 : code % 4, h = p->l->storage.bits == 5 ? code % 2 : code / 4;

	if (lanes == 1)
		return i;
	return chunk + 2 * k * lanes + (p->pairs ? word % lanes * 2 + h : h * lanes + word % lanes);
}

static void place_fixed(const struct product *p, size_t n, float *y, const float *x, const uint8_t to[CHUNK], float *scale)
{
	int16_t (*half)[CHUNK] = (int16_t (*)[CHUNK])y, high[CHUNK] = { 0 }, low[CHUNK] = { 0 };
	float q[CHUNK];

	if (p->narrow) {
		*scale = narrow_chunk(n, q, x);
		for (size_t i = 0; i < n; i++)
			high[i] = (int16_t)q[i];
	} else
		*scale = fixed_chunk(n, high, low, x);
	for (size_t i = 0; i < CHUNK; i++)
		half[0][to[i]] = high[i], half[1][to[i]] = low[i];
}

void product_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in])
{
	const size_t in = p->l->in, chunks = chunks_of(in), column = input_column(in);
	uint8_t to[CHUNK];

	for (size_t i = 0; i < CHUNK; i++)
		to[i] = (uint8_t)place(p, i);
	for (size_t t = 0; t < m; t++)
		for (size_t c = 0; c < chunks; c++) {
			float *chunk = (float *)y + t * column + c * CHUNK, *scale = (float *)y + t * column + chunks * CHUNK + c;
			size_t n = in - c * CHUNK < CHUNK ? in - c * CHUNK : CHUNK;
			float own[CHUNK] = { 0 };

			if (p->way == PRODUCT_FIXED) {
				place_fixed(p, n, chunk, x[t] + c * CHUNK, to, scale);
				continue;
			}
			if (p->narrow)
				product_narrow(n, own, x[t] + c * CHUNK);
			else
				memcpy(own, x[t] + c * CHUNK, n * sizeof *own);
			for (size_t i = 0; i < CHUNK; i++)
				chunk[to[i]] = own[i];
		}
}

/* ---- rows: y[m] of one row of words, without unit ---- */

/* The last words of a row, filled up to a whole chunk's. */
static inline void tail_of(uint32_t tail[20], const uint32_t *w, size_t n)
{
	memset(tail, 0, 20 * sizeof *tail);
	memcpy(tail, w, n * sizeof *w);
}

static void row_plain(const struct product *p, size_t m, float *y, const uint32_t *w, const float *scale, const uint8_t *zero,
	const float *input)
{
	const struct linear *l = p->l;
	const int bits = l->storage.bits;
	float sum[PRODUCT_FEW][8] = { 0 };

	for (size_t i = 0; i < l->in; i += BLOCK, w += bits) {
		size_t g = linear_group(l, i), n = l->in - i < BLOCK ? l->in - i : BLOCK;
		uint8_t code[BLOCK] = { 0 };
		float v[BLOCK];

		pack_unrow(bits, n, code, w);
		for (size_t j = 0; j < BLOCK; j++)
			v[j] = p->table[code[j]] - (zero ? zero[g] : 0);
		for (size_t t = 0; t < m; t++) {
			const float *x = input + t * input_column(l->in) + i;
			float part[8] = { 0 };

			for (size_t j = 0; j < BLOCK; j++)
				part[j % 8] += v[j] * x[j];
			for (size_t j = 0; j < 8; j++)
				sum[t][j] += scale[g] * part[j];
		}
	}
	for (size_t t = 0; t < m; t++)
		y[t * PANEL] = ((sum[t][0] + sum[t][1]) + (sum[t][2] + sum[t][3])) + ((sum[t][4] + sum[t][5]) + (sum[t][6] + sum[t][7]));
}

static void rows_plain(const struct product *p, size_t m, size_t n, float y[m][PANEL], const uint32_t *w, const float *scale,
	const uint8_t *zero, const float *input)
{
	const size_t words = pack_words(p->l->storage.bits, p->l->in), step = p->l->group == -1 ? 0 : p->l->groups;

	for (size_t o = 0; o < n; o++)
		row_plain(p, m, &y[0][o], w + o * words, scale + o * step, zero ? zero + o * step : NULL, input);
}

#ifdef __x86_64__
#define LANES 8
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define NAME(x) avx2_##x
#define FLOATS __m256
#define INTS __m256i
#define ZERO _mm256_setzero_ps()
#define SPLAT _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define FMA _mm256_fmadd_ps
#define ADD _mm256_add_ps
#define SUB _mm256_sub_ps
#define AND _mm256_and_si256
#define OR _mm256_or_si256
#define LEFT _mm256_slli_epi32
#define RIGHT _mm256_srli_epi32
#define SHIFT_BY(v, n) _mm256_srlv_epi32(_mm256_sllv_epi32(v, WORD((n) > 0 ? (n) : 0)), WORD((n) < 0 ? -(n) : 0))
#define WORD(i) _mm256_set1_epi32(i)
#define TO_FLOAT _mm256_cvtepi32_ps
#define HALVES(v, upper) _mm256_cvtph_ps((upper) ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v))
#define LOOKUP(table, v, bits) _mm256_i32gather_ps(table, v, 4)
#define LOW_WORDS avx2_low
#define TOP_WORDS avx2_top
#define TOTAL avx2_total

TARGET static inline INTS avx2_low(const uint32_t *w, int bits)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)w)),
		_mm_loadu_si128((const void *)(w + bits)), 1);
}

TARGET static inline INTS avx2_top(const uint32_t *w, int bits)
{
	if (bits == 4)
		return avx2_low(w, bits);
	return _mm256_sllv_epi32(_mm256_setr_epi32((int)w[4], (int)w[4], (int)w[4], (int)w[4], (int)w[9], (int)w[9], (int)w[9], (int)w[9]),
		_mm256_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12));
}

TARGET static inline float avx2_total(FLOATS v)
{
	__m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	a = _mm_add_ps(a, _mm_movehl_ps(a, a));
	return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

#include "quant/product_float.h"

#undef LANES
#undef TARGET
#undef NAME
#undef FLOATS
#undef INTS
#undef ZERO
#undef SPLAT
#undef LOAD
#undef FMA
#undef ADD
#undef SUB
#undef AND
#undef OR
#undef LEFT
#undef RIGHT
#undef SHIFT_BY
#undef WORD
#undef TO_FLOAT
#undef HALVES
#undef LOOKUP
#undef LOW_WORDS
#undef TOP_WORDS
#undef TOTAL
#define LANES 16
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#define NAME(x) avx512_##x
#define FLOATS __m512
#define INTS __m512i
#define ZERO _mm512_setzero_ps()
#define SPLAT _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define FMA _mm512_fmadd_ps
#define ADD _mm512_add_ps
#define SUB _mm512_sub_ps
#define AND _mm512_and_si512
#define OR _mm512_or_si512
#define LEFT _mm512_slli_epi32
#define RIGHT _mm512_srli_epi32
#define SHIFT_BY(v, n) _mm512_rolv_epi32(v, WORD(n))
#define WORD(i) _mm512_set1_epi32(i)
#define TO_FLOAT _mm512_cvtepi32_ps
#define HALVES(v, upper) _mm512_cvtph_ps((upper) ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v))
#define LOOKUP(table, v, bits) avx512_lookup(table, v, bits)
#define LOW_WORDS avx512_low
#define TOP_WORDS avx512_top
#define TOTAL _mm512_reduce_add_ps

TARGET static inline INTS avx512_low(const uint32_t *w, int bits)
{
	const INTS at = _mm512_setr_epi32(0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 28, 29, 30);

	if (bits == 4)
		return _mm512_loadu_si512(w);
	return _mm512_permutex2var_epi32(_mm512_loadu_si512(w), at, _mm512_loadu_si512(w + 4));
}

TARGET static inline INTS avx512_top(const uint32_t *w, int bits)
{
	const INTS at = _mm512_setr_epi32(4, 4, 4, 4, 9, 9, 9, 9, 14, 14, 14, 14, 31, 31, 31, 31);
	const INTS by = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);

	if (bits == 4)
		return _mm512_loadu_si512(w);
	return _mm512_sllv_epi32(_mm512_permutex2var_epi32(_mm512_loadu_si512(w), at, _mm512_loadu_si512(w + 4)), by);
}

TARGET static inline FLOATS avx512_lookup(const float table[32], INTS code, int bits)
{
	return bits == 4 ? _mm512_permutexvar_ps(code, LOAD(table)) : _mm512_permutex2var_ps(LOAD(table), code, LOAD(table + 16));
}

#include "quant/product_float.h"

/* ---- fixed point ---- */

#define FIXED __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,prefer-vector-width=512")))

/* Values of 32 codes as integers: four of word lanes' codes in the low bits of each half, the fifth bit beside them. */
FIXED static inline __attribute__((always_inline)) __m512i integers(int bits, int k, __m512i low, __m512i top, __m512i table)
{
	__m512i code = _mm512_srli_epi32(low, 4 * k);

	if (bits == 5)			/* where the mask is 0 the low bits */
		code = _mm512_ternarylogic_epi32(_mm512_srli_epi32(top, 11 - k), code, _mm512_set1_epi32(0x00100010), 0xe4);
	return _mm512_permutexvar_epi16(code, table);
}

FIXED static inline __m512i dot(const __m512i v[4], const int16_t x[4][32])
{
	__m512i a = _mm512_dpwssd_epi32(_mm512_setzero_si512(), v[0], _mm512_loadu_si512(x[0]));
	__m512i b = _mm512_dpwssd_epi32(_mm512_setzero_si512(), v[1], _mm512_loadu_si512(x[1]));

	a = _mm512_dpwssd_epi32(a, v[2], _mm512_loadu_si512(x[2]));
	b = _mm512_dpwssd_epi32(b, v[3], _mm512_loadu_si512(x[3]));
	return _mm512_add_epi32(a, b);
}

FIXED static inline void fixed_parameters(const struct product *p, const float *scale, const uint8_t *zero, size_t chunk,
	__m512 *s, __m512i *z)
{
	float value[16];
	int32_t offset[16];

	for (size_t i = 0; i < 16; i++) {
		size_t g = (chunk * 16 + i) * 8 / (size_t)p->l->group;

		g = g < p->l->groups ? g : p->l->groups - 1;	/* padding: its inputs are 0 */
		value[i] = scale[g];
		offset[i] = zero ? zero[g] * 0x10001 : 0;
	}
	*s = _mm512_loadu_ps(value), *z = _mm512_loadu_si512(offset);
}

FIXED static inline __attribute__((always_inline)) void fixed_row(const struct product *p, int bits, bool narrow, bool offset, size_t m,
	float *y, const uint32_t *w, const float *scale, const uint8_t *zero, const float *input)
{
	const size_t in = p->l->in, chunks = chunks_of(in), words = (size_t)bits * 4, column = input_column(in);
	const size_t whole = pack_words(bits, in) / words, each = p->l->group > 0 ? (size_t)p->l->group / CHUNK : chunks;
	const bool uneven = p->l->group > 0 && p->l->group % CHUNK;
	const __m512i table = _mm512_loadu_si512(p->integer);
	__m512 sum[PRODUCT_FEW], s = _mm512_set1_ps(scale[0]);
	__m512i z = _mm512_set1_epi16(offset ? zero[0] : 0);
	size_t next = each, g = 0;
	uint32_t tail[20];

	if (whole < chunks)
		tail_of(tail, w + whole * words, pack_words(bits, in) - whole * words);
	for (size_t t = 0; t < m; t++)
		sum[t] = _mm512_setzero_ps();
	for (size_t c = 0; c < chunks; c++, w += words) {
		const uint32_t *from = c < whole ? w : tail;
		const float *x = input;
		__m512i low, top, v[4];

		__builtin_prefetch((const char *)w + AHEAD);
		if (bits == 5 && c % 2)
			__builtin_prefetch((const char *)w + AHEAD + 64);
		low = avx512_low(from, bits), top = avx512_top(from, bits);
		if (uneven)
			fixed_parameters(p, scale, zero, c, &s, &z);
		else if (c == next) {
			s = _mm512_set1_ps(scale[++g]);
			z = _mm512_set1_epi16(offset ? zero[g] : 0);
			next += each;
		}
		for (int k = 0; k < 4; k++)
			v[k] = integers(bits, k, low, top, table);
		for (int k = 0; offset && k < 4; k++)
			v[k] = _mm512_sub_epi16(v[k], z);
		for (size_t t = 0; t < m; t++, x += column) {
			const int16_t (*half)[4][32] = (const int16_t (*)[4][32])(x + c * CHUNK);
			__m512 a = _mm512_cvtepi32_ps(dot(v, half[0]));

			if (!narrow)
				a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot(v, half[1])), _mm512_set1_ps(0x1p-15f), a);
			sum[t] = _mm512_fmadd_ps(_mm512_mul_ps(s, _mm512_set1_ps(x[chunks * CHUNK + c])), a, sum[t]);
		}
	}
	for (size_t t = 0; t < m; t++)
		y[t * PANEL] = _mm512_reduce_add_ps(sum[t]);
}

FIXED static inline __attribute__((always_inline)) void fixed_some(const struct product *p, int bits, bool narrow, bool offset, size_t m,
	size_t n, float y[m][PANEL], const uint32_t *w, const float *scale, const uint8_t *zero, const float *input)
{
	const size_t words = pack_words(bits, p->l->in), step = p->l->group == -1 ? 0 : p->l->groups;

	for (size_t o = 0; o < n; o++)
		fixed_row(p, bits, narrow, offset, m, &y[0][o], w + o * words, scale + o * step, offset ? zero + o * step : NULL, input);
}

#define ROWS(bits, narrow, offset) \
	if (m == 1) \
		fixed_some(p, bits, narrow, offset, 1, n, y, w, scale, zero, input); \
	else \
		fixed_some(p, bits, narrow, offset, m, n, y, w, scale, zero, input); \
	break
FIXED static void rows_fixed(const struct product *p, size_t m, size_t n, float y[m][PANEL], const uint32_t *w, const float *scale,
	const uint8_t *zero, const float *input)
{
	switch ((p->l->storage.bits == 5) + 2 * p->narrow + 4 * (zero != NULL)) {
	case 0: ROWS(4, false, false);
	case 1: ROWS(5, false, false);
	case 2: ROWS(4, true, false);
	case 3: ROWS(5, true, false);
	case 4: ROWS(4, false, true);
	case 5: ROWS(5, false, true);
	case 6: ROWS(4, true, true);
	case 7: ROWS(5, true, true);
	}
}
#undef ROWS
#endif

static void rows(const struct product *p, size_t m, size_t n, float y[m][PANEL], const uint32_t *w, const float *scale,
	const uint8_t *zero, const float *input)
{
#ifdef __x86_64__
	if (p->way == PRODUCT_FIXED)
		rows_fixed(p, m, n, y, w, scale, zero, input);
	else if (p->way != PRODUCT_PLAIN)
		(cpu == CPU_AVX512 ? avx512_rows : avx2_rows)(p, m, n, y, w, scale, zero, input);
	else
#endif
		rows_plain(p, m, n, y, w, scale, zero, input);
}

void product_run(const struct product *p, size_t m, size_t stride, float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const size_t words = pack_words(l->storage.bits, l->in);

	#pragma omp parallel for num_threads(threads) if (l->out * l->in > FEW_PRODUCTS) schedule(dynamic)
	for (size_t first = 0; first < l->out; first += PANEL) {
		size_t n = l->out - first < PANEL ? l->out - first : PANEL, g = l->group == -1 ? 0 : first * l->groups;
		float own[PRODUCT_FEW][PANEL];

		rows(p, m, n, own, l->packed + first * words, l->scale + g, l->zero ? l->zero + g : NULL, input);
		for (size_t t = 0; t < m; t++)
			for (size_t i = 0, o = first; i < n; i++, o++)
				y[t][o] = own[t][i] * p->unit + (bias ? bias[o] : 0) + (add ? y[t][o] : 0);
	}
}

size_t product_room(size_t m, size_t in)
{
	return product_input_size(m, in) + m * in * sizeof(float);
}

void product_apply(const struct product *p, size_t m, size_t stride, float y[m][stride], const float x[m][p->l->in], void *room,
	const float *bias, bool add)
{
	const size_t in = p->l->in;
	float (*rounded)[in] = (float (*)[in])((char *)room + product_input_size(m, in));
	const bool plain = p->l->act_mode == ACT_NONE;

	if (!plain)
		linear_input(p->l, m, rounded, x, NULL);
	product_input(p, m, room, plain ? x : (const float (*)[in])rounded);
	product_run(p, m, stride, y, room, bias, add);
}

/* ---- which way ---- */

/* Codes whose bits, shifted, are a half-precision number 2⁻¹⁵ times the value. */
static bool is_half(struct product *p)
{
	const struct format *f = &p->l->storage;
	const int magnitude = 1 << (f->bits - 1);

	p->shift = 10 - f->y;
	p->unit = 0x1p15f;
	for (int c = 0; c < 1 << f->bits; c++) {
		uint16_t half = (uint16_t)((c & (magnitude - 1)) << p->shift);
		float v;

		half_widen(1, &v, &half, HALF_F16);
		if (v * p->unit != fabsf(f->grid[c]) || (c < magnitude ? v < 0 : f->grid[c] > 0))
			return false;
	}
	return true;
}

/* Codes that count from the value of code 0. */
static bool is_integer(const struct product *p)
{
	const struct format *f = &p->l->storage;
	const int codes = f->asymmetric ? (int)f->top + 1 : 2 * (int)f->top + 1;

	for (int c = 0; c < codes && c < 1 << f->bits; c++)
		if (f->grid[c] != f->grid[0] + (float)c)
			return false;
	return codes <= 1 << f->bits;
}

/* Values that are integers of at most LARGEST times a power of two. */
static bool is_fixed(struct product *p)
{
	const struct format *f = &p->l->storage;

	for (p->unit = 0x1p8f; p->unit >= 0x1p-8f; p->unit /= 2) {
		bool fits = !f->asymmetric || p->unit == 1;

		for (int c = 0; c < 32; c++) {
			float v = p->table[c] / p->unit;

			fits &= fabsf(v) <= LARGEST && v == rintf(v);
			p->integer[c] = (int16_t)(fits ? v : 0);
		}
		if (fits)
			return true;
	}
	return false;
}

static bool has_way(struct product *p, enum product_way way)
{
	const bool wide = cpu == CPU_AVX512, vectors = cpu >= CPU_AVX2 && cpu_half;

	p->way = way;
	p->pairs = way == PRODUCT_HALF || way == PRODUCT_FIXED;
	p->lanes = way == PRODUCT_PLAIN ? 1 : wide ? 16 : 8;
	switch (way) {
	case PRODUCT_FIXED: return wide && cpu_dot && is_fixed(p);
	case PRODUCT_HALF: return vectors && is_half(p);
	case PRODUCT_INTEGER: p->unit = 1; return vectors && is_integer(p);
	case PRODUCT_TABLE: p->unit = 1; return vectors && !p->l->storage.asymmetric;
	default: p->unit = 1; return way == PRODUCT_PLAIN;
	}
}

bool product_make(struct product *p, const struct linear *l, enum product_way way, bool narrow)
{
	*p = (struct product){ .l = l, .narrow = narrow };
	if (!l->packed || (l->storage.bits != 4 && l->storage.bits != 5) || l->compute.kind || l->group_index ||
	    (l->group > 0 && l->group % BLOCK))
		return false;
	for (int c = 0; c < 32; c++)
		p->table[c] = l->storage.grid[c & ((1 << l->storage.bits) - 1)];
	if (way != PRODUCT_BEST)
		return has_way(p, way);
	return has_way(p, PRODUCT_FIXED) || has_way(p, PRODUCT_HALF) || has_way(p, PRODUCT_INTEGER) || has_way(p, PRODUCT_TABLE) ||
		has_way(p, PRODUCT_PLAIN);
}
