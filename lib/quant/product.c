/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product.c -- see product.h */
#include "quant/product.h"
#include "base/cpu.h"
#include "base/thread.h"
#include "num/bits.h"
#include "num/half.h"
#include "quant/pack.h"
#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

/* Constants, not options. Bytes of weights that are asked for ahead: the processor's own prefetching ends at each page. */
enum {
	CHUNK = PRODUCT_CHUNK, BLOCK = 32, AHEAD = 6144, STREAMS = 4, AHEAD_STREAM = 2048, PANEL = 1024,
	ROWS_OF_TILES = 32, FEW_PRODUCTS = 1 << 18, FEW_INPUTS = 1 << 14,
	NARROW_TOP = 127 * 256 + 127, FIXED_TOP = 127 << 24, FIXED_LARGEST = 31,
};

/* Values over the half-precision numbers that codes make. */
#define HALF_UNIT 0x1p15f

/*
 * Columns of a chunk in fixed point, by PRODUCT_FIXED: x unit = scale·(d₀2¹⁶ + d₁2⁸ + d₂ + d₃2⁻⁸), or scale·(d₀2⁸ + d₁)
 * of 16 bits. Weights are multiplied as w/unit + offset ≥ 0; base holds -offset·Σ of each lane's columns.
 */
struct fixed_input { int8_t digit[4][CHUNK]; int32_t base[2][16]; float scale, unused[15]; };

static size_t chunks_of(size_t in)
{
	return (in + CHUNK - 1) / CHUNK;
}

/* Chunks of so many columns of one group, where groups are whole chunks; or more than there are. */
static size_t chunks_of_group(const struct linear *l, size_t chunk)
{
	return l->group > 0 && (size_t)l->group % chunk == 0 ? (size_t)l->group / chunk : l->in;
}

/* Of a word of 8 codes; padding, whose inputs are 0, is in the last one. */
static size_t group_of(const struct linear *l, size_t word)
{
	return linear_group(l, 8 * word < l->in ? 8 * word : l->in - 1);
}

/* Inputs are [chunk][column] of either 128 floats or a struct fixed_input. */
size_t product_input_size(size_t m, size_t in)
{
	return m * chunks_of(in) * sizeof(struct fixed_input);
}

/* ---- activations ---- */

/* max|x|, in the order of bits, where infinity and NaN are last. */
static inline float largest(size_t n, const float x[n])
{
	uint32_t top = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t u = float_bits(x[i]) & 0x7fffffff;

		top = u > top ? u : top;
	}
	return bits_float(top);
}

/* Nearest integers of x / scale, and the scale, which is not finite if x is not; ties to even. */
CLONES(static, float, narrow_integers, (size_t n, int32_t q[n], const float x[n]), (n, q, x))
{
	const float top = largest(n, x), scale = top > 0 ? top / NARROW_TOP : top * 0;
	const bool zero = !(scale > 0) || isinf(scale);

	for (size_t i = 0; i < n; i++) {
		float v = zero ? 0 : x[i] / scale;

		v = v < -NARROW_TOP ? -NARROW_TOP : v > NARROW_TOP ? NARROW_TOP : v;
		q[i] = (int32_t)(v + 0x1.8p23f - 0x1.8p23f);
	}
	return scale;
}

void product_narrow(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i += CHUNK) {
		size_t few = n - i < CHUNK ? n - i : CHUNK;
		int32_t q[CHUNK];
		float scale = narrow_integers(few, q, x + i);

		for (size_t j = 0; j < few; j++)
			y[i + j] = (float)q[j] * scale;
	}
}

/* Where column i of a chunk goes: floats by steps of two vectors, in which code i of its word is in half h of step k; bytes by nibbles. */
static size_t place(const struct product *p, size_t i)
{
	const size_t lanes = (size_t)p->lanes, word = i / 8, code = i % 8, chunk = word / lanes * lanes * 8;
	const size_t k = p->l->storage.bits == 5 ? code / 2 : code % 4, h = p->l->storage.bits == 5 ? code % 2 : code / 4;

	switch (p->way) {
	case PRODUCT_PLAIN: return i;
	case PRODUCT_FIXED: return k % 2 * CHUNK / 2 + 4 * word + 2 * h + k / 2;
	case PRODUCT_HALF: return chunk + 2 * k * lanes + word % lanes * 2 + h;
	default: return chunk + 2 * k * lanes + h * lanes + word % lanes;
	}
}

/* ---- rows: y[m] of one row of words ---- */

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
			const float *x = input + (i / CHUNK * m + t) * CHUNK + i % CHUNK;
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
#define TILE 4
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define NAME(x) avx2_##x
#define FLOATS __m256
#define INTS __m256i
#define ZERO _mm256_setzero_ps()
#define SPLAT _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define FMA _mm256_fmadd_ps
#define SUB _mm256_sub_ps
#define MUL _mm256_mul_ps
#define AND _mm256_and_si256
#define MERGE(mask, a, b) _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b))
#define LEFT _mm256_slli_epi32
#define RIGHT _mm256_srli_epi32
#define SHIFT_BY(v, n) _mm256_srlv_epi32(_mm256_sllv_epi32(v, WORD((n) > 0 ? (n) : 0)), WORD((n) < 0 ? -(n) : 0))
#define WORD(i) _mm256_set1_epi32(i)
#define TO_FLOAT _mm256_cvtepi32_ps
#define HALVES(v, upper) _mm256_cvtph_ps((upper) ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v))
#define LOOKUP(table, v, bits) _mm256_i32gather_ps(table, _mm256_and_si256(v, WORD((bits) == 5 ? 31 : 15)), 4)
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
	return _mm256_sllv_epi32(_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)(w + 2)), _mm256_setr_epi32(2, 2, 2, 2, 7, 7, 7, 7)),
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
#undef TILE
#undef TARGET
#undef NAME
#undef FLOATS
#undef INTS
#undef ZERO
#undef SPLAT
#undef LOAD
#undef STORE
#undef FMA
#undef SUB
#undef MUL
#undef AND
#undef MERGE
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
#define TILE 8
#define TARGET __attribute__((target(CPU_AVX512_TARGET)))
#define NAME(x) avx512_##x
#define FLOATS __m512
#define INTS __m512i
#define ZERO _mm512_setzero_ps()
#define SPLAT _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define FMA _mm512_fmadd_ps
#define SUB _mm512_sub_ps
#define MUL _mm512_mul_ps
#define AND _mm512_and_si512
#define MERGE(mask, a, b) _mm512_ternarylogic_epi32(a, b, mask, 0xe4)
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

#include "quant/product_fixed.h"
#endif

/* ---- all of it ---- */

void product_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in])
{
	const size_t in = p->l->in, chunks = chunks_of(in);
	uint8_t from[CHUNK];

	for (size_t i = 0; i < CHUNK; i++)
		from[place(p, i)] = (uint8_t)i;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_INPUTS) schedule(static)
	for (size_t c = 0; c < chunks; c++)
		for (size_t t = 0; t < m; t++) {
			size_t n = in - c * CHUNK < CHUNK ? in - c * CHUNK : CHUNK;
			float own[CHUNK] = { 0 }, *chunk = (float *)y + (c * m + t) * CHUNK;

#ifdef __x86_64__
			if (p->way == PRODUCT_FIXED) {
				fixed_place(p, n, (struct fixed_input *)y + c * m + t, x[t] + c * CHUNK, from);
				continue;
			}
#endif
			if (p->narrow)
				product_narrow(n, own, x[t] + c * CHUNK);
			else
				memcpy(own, x[t] + c * CHUNK, n * sizeof *own);
			for (size_t i = 0; i < CHUNK; i++)
				chunk[i] = own[from[i]];
		}
}

static void rows(const struct product *p, size_t m, size_t n, float y[m][PANEL], const uint32_t *w, const float *scale,
	const uint8_t *zero, const void *input)
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

/* Rows that a thread takes at once: many, as their streams start anew each time, and each thread as often; whole tiles. */
static size_t panel(size_t out)
{
	const size_t all = (size_t)threads, parts = all * ((out + all * PANEL - 1) / (all * PANEL)), n = (out + parts - 1) / parts;

	return (n + ROWS_OF_TILES - 1) / ROWS_OF_TILES * ROWS_OF_TILES;
}

void product_run(const struct product *p, size_t m, size_t stride, float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const size_t words = pack_words(l->storage.bits, l->in), rows_at_once = panel(l->out);

	#pragma omp parallel for num_threads(threads) if (l->out * l->in > FEW_PRODUCTS) schedule(dynamic)
	for (size_t first = 0; first < l->out; first += rows_at_once) {
		size_t n = l->out - first < rows_at_once ? l->out - first : rows_at_once, g = l->group == -1 ? 0 : first * l->groups;
		float own[PRODUCT_FEW][PANEL];

		rows(p, m, n, own, l->packed + first * words, l->scale + g, l->zero ? l->zero + g : NULL, input);
		for (size_t t = 0; t < m; t++)
			for (size_t i = 0, o = first; i < n; i++, o++)
				y[t][o] = own[t][i] + (bias ? bias[o] : 0) + (add ? y[t][o] : 0);
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
	const bool plain = p->l->input.mode == INPUT_AS_IS;

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
	for (int c = 0; c < 1 << f->bits; c++) {
		uint16_t half = (uint16_t)((c & (magnitude - 1)) << p->shift);
		float v;

		half_widen(1, &v, &half, HALF_F16);
		if (v * HALF_UNIT != fabsf(f->grid[c]) || (c < magnitude ? v < 0 : f->grid[c] > 0))
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

/* Values that are small integers times a power of two; offset makes them, less any zero point, positive. */
static bool is_fixed(struct product *p)
{
	const struct format *f = &p->l->storage;

	for (p->unit = 0x1p8f; p->unit >= 0x1p-8f; p->unit /= 2) {
		bool fits = !f->asymmetric || p->unit == 1;

		p->offset = 0;
		for (int c = 0; c < 32; c++) {
			float v = p->table[c] / p->unit;

			fits &= fabsf(v) <= FIXED_LARGEST && v == rintf(v);
			p->offset = fits && fabsf(v) > (float)p->offset ? (int)fabsf(v) : p->offset;
		}
		for (int c = 0; fits && c < 64; c++)
			p->integer[c] = (uint8_t)((int)(p->table[c % 32] / p->unit) + p->offset);
		if (fits)
			return true;
	}
	return false;
}

static bool is_way(struct product *p, enum product_way way)
{
	const bool wide = cpu == CPU_AVX512, vectors = cpu >= CPU_AVX2 && cpu_half;

	switch (way) {
	case PRODUCT_FIXED: return wide && cpu_dot && is_fixed(p);
	case PRODUCT_HALF: return vectors && is_half(p);
	case PRODUCT_INTEGER: return vectors && is_integer(p);
	case PRODUCT_TABLE: return vectors && !p->l->storage.asymmetric;
	default: return way == PRODUCT_PLAIN;
	}
}

/* A table in memory is slower than arithmetic, one in a register quicker. */
static const enum product_way quickest[2][4] = {
	{ PRODUCT_HALF, PRODUCT_INTEGER, PRODUCT_TABLE, PRODUCT_PLAIN },
	{ PRODUCT_FIXED, PRODUCT_TABLE, PRODUCT_INTEGER, PRODUCT_PLAIN },
};

bool product_make(struct product *p, const struct linear *l, enum product_way way, bool narrow)
{
	*p = (struct product){ .l = l, .narrow = narrow, .lanes = cpu == CPU_AVX512 ? 16 : 8 };
	if (!l->packed || (l->storage.bits != 4 && l->storage.bits != 5) || l->compute.kind || l->group_index ||
	    (l->group > 0 && l->group % BLOCK))
		return false;
	for (int c = 0; c < 32; c++)
		p->table[c] = l->storage.grid[c & ((1 << l->storage.bits) - 1)];
	p->way = way;
	if (way != PRODUCT_BEST)
		return is_way(p, way);
	for (const enum product_way *best = quickest[cpu == CPU_AVX512]; !is_way(p, p->way = *best); best++)
		;
	return true;
}
