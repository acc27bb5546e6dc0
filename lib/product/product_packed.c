/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_packed.c -- products of packed words; see product_packed_private.h */
#include "product/product_packed_private.h"
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/bits.h"
#include "num/half.h"
#include "product/product_number_private.h"
#include "quant/pack.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"	/* its pragma: the loops of fixed_integers() */

/* Constants, not options. AHEAD and AHEAD_STREAM are bytes that are prefetched: the prefetching of the
 * processor ends at each page. */
enum {
	INPUT_CHUNK = PRODUCT_COLUMNS, CODE_BLOCK = 32, AHEAD = 6144, STREAMS = 4, AHEAD_STREAM = 2048,
	ROW_PANEL = 1024, FEW_PRODUCTS = 1 << 18, FEW_INPUTS = 1 << 14,
	ALIGN = 64, FIXED_MAX = 127 << 24, FIXED_LARGEST = 31, ZERO_MAX = 255,
};

/* A prepared weight: the values of its codes. */
struct packed {
	const struct linear *l;		/* set when it is multiplied */
	enum packed_variant variant;
	int lanes;			/* words that are decoded together */
	bool int16;			/* inputs are rounded to int16 */
	int shift;			/* half: 10 - y */
	float table[32];		/* value of each code */
	float unit;			/* fixed: unit of the integers; half: values / half numbers */
	int offset;			/* fixed: makes the integers nonnegative */
	uint8_t integer[2][64];		/* fixed: value/unit + offset, by bytes v[0] and v[1] of weights() */
	int no_zero;			/* integer: used as the zero point if the format has none */
	uint8_t byte[2][ZERO_MAX + 17];	/* integer: low and high byte of -ZERO_MAX .. 16 as bfloat16 */
};

static struct packed packed_of(const struct product *p)
{
	struct packed w;

	memcpy(&w, p->weight, sizeof w);
	w.l = p->l;
	return w;
}

/*
 * A chunk of columns in fixed point: x unit = scale·(d₀2¹⁶ + d₁2⁸ + d₂ + d₃2⁻⁸), or scale·(d₀2⁸ + d₁) for
 * int16. Weights are multiplied as w/unit + offset ≥ 0; base is -offset·Σ over the columns of each lane.
 */
struct fixed_input { int8_t digit[4][INPUT_CHUNK]; int32_t base[2][16]; float scale, unused[15]; };

/* Number of chunks of `chunk` columns in a group, if a group is whole chunks; else more than a row has. */
static size_t chunks_of_group(const struct linear *l, size_t chunk)
{
	return l->group > 0 && (size_t)l->group % chunk == 0 ? (size_t)l->group / chunk : l->in;
}

/* Number of scales from one row to the next. */
static size_t scales_of_row(const struct linear *l)
{
	return l->group == -1 ? 0 : l->groups;
}

/* The group of a word of 8 codes. Padding, whose inputs are 0, is in the last group. */
static size_t group_of_word(const struct linear *l, size_t word)
{
	return linear_group(l, 8 * word < l->in ? 8 * word : l->in - 1);
}

/*
 * Index of column i of a chunk in the prepared inputs. Floats are in steps of two vectors, in which code i
 * of its word is in half h of step k. Looked-up bytes are in vectors of even and of odd bytes. Bytes of
 * fixed point are in the order of nibbles, of three bits even columns, then odd ones. Other words of three
 * bits are as in product_float_private.h.
 */
static size_t place_in_chunk(const struct packed *p, size_t i)
{
	const size_t lanes = (size_t)p->lanes, chunk = i / 8 / lanes * lanes * 8;
	const bool three = p->l->storage.bits == 3, five = p->l->storage.bits == 5;
	const size_t word = three ? i / 32 * 4 + i / 16 % 2 * 2 + i % 2 : i / 8;
	const size_t code = three ? i / 2 % 8 : i % 8;
	const size_t k = five ? code / 2 : code % 4, h = five ? code % 2 : code / 4;

	switch (p->variant) {
	case PACKED_PLAIN: return i;
	case PACKED_FIXED:
		if (three)
			return i % 2 * INPUT_CHUNK / 2 + i / 2;
		return k % 2 * INPUT_CHUNK / 2 + 4 * word + 2 * h + k / 2;
	case PACKED_HALF: return chunk + 2 * k * lanes + word % lanes * 2 + h;
	case PACKED_INTEGER:
		if (!five)
			return chunk + (4 * (code % 2) + 2 * (code / 2 % 2) + word / 2 % 2) * lanes +
				word % lanes / 4 * 4 + word % 2 * 2 + code / 4;
		break;
	default: break;
	}
	return chunk + 2 * k * lanes + h * lanes + word % lanes;
}

/* The last words of a row, padded with zeros to a whole chunk. */
static inline void tail_of(uint32_t tail[20], const uint32_t *w, size_t n)
{
	memset(tail, 0, 20 * sizeof *tail);
	memcpy(tail, w, n * sizeof *w);
}

/* y[m] for one row of words. */
static void row_plain(const struct packed *p, size_t m, float *y, const uint32_t *w, const float *scale,
	const uint8_t *zero, const float *input)
{
	const struct linear *l = p->l;
	const int bits = l->storage.bits;
	float sum[PRODUCT_FEW][8] = { 0 };

	for (size_t i = 0; i < l->in; i += CODE_BLOCK, w += bits) {
		size_t g = linear_group(l, i), n = min(l->in - i, CODE_BLOCK);
		uint8_t code[CODE_BLOCK] = { 0 };
		float v[CODE_BLOCK];

		pack_unrow(bits, n, code, w);
		for (size_t j = 0; j < CODE_BLOCK; j++)
			v[j] = p->table[code[j]] - (zero ? zero[g] : 0);
		for (size_t t = 0; t < m; t++) {
			const float *x = input + (i / INPUT_CHUNK * m + t) * INPUT_CHUNK + i % INPUT_CHUNK;
			float part[8] = { 0 };

			for (size_t j = 0; j < CODE_BLOCK; j++)
				part[j % 8] += v[j] * x[j];
			for (size_t j = 0; j < 8; j++)
				sum[t][j] += scale[g] * part[j];
		}
	}
	for (size_t t = 0; t < m; t++)
		y[t * ROW_PANEL] = ((sum[t][0] + sum[t][1]) + (sum[t][2] + sum[t][3])) +
			((sum[t][4] + sum[t][5]) + (sum[t][6] + sum[t][7]));
}

static void rows_plain(const struct packed *p, size_t m, size_t n, float y[m][ROW_PANEL], const uint32_t *w,
	const float *scale, const uint8_t *zero, const float *input)
{
	const size_t words = pack_words(p->l->storage.bits, p->l->in), step = scales_of_row(p->l);

	for (size_t o = 0; o < n; o++)
		row_plain(p, m, &y[0][o], w + o * words, scale + o * step, zero ? zero + o * step : NULL,
			input);
}

#ifdef __x86_64__
#define SPLAT OP(set1_ps)
#define LOAD OP(loadu_ps)
#define STORE OP(storeu_ps)
#define FMA OP(fmadd_ps)
#define LEFT OP(slli_epi32)
#define RIGHT OP(srli_epi32)
#define WORD OP(set1_epi32)
#define TO_FLOAT OP(cvtepi32_ps)

#define LANES 8
#define TILE 4
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define NAME(x) avx2_##x
#define OP(x) _mm256_##x
#define FLOATS __m256
#define INTS __m256i
#define MERGE(mask, a, b) _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b))
#define SHIFT_BY(v, n) \
	_mm256_srlv_epi32(_mm256_sllv_epi32(v, WORD((n) > 0 ? (n) : 0)), WORD((n) < 0 ? -(n) : 0))
#define HALVES(v, upper) _mm256_cvtph_ps((upper) ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v))
#define LOOKUP(table, v, bits) _mm256_i32gather_ps(table, (v) & WORD((bits) == 5 ? 31 : 15), 4)
#define TOTAL avx2_total

#define SHUFFLE(v, bytes) _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(bytes))

#define LEFT_EACH(v, a, b) _mm256_sllv_epi32(v, _mm256_setr_epi32(a, b, a, b, a, b, a, b))
#define RIGHT_EACH(v, a, b) _mm256_srlv_epi32(v, _mm256_setr_epi32(a, b, a, b, a, b, a, b))
#define REPEAT(p) _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p)))
#define LOAD_WORDS _mm256_loadu_si256
#define AS_FLOATS _mm256_castsi256_ps

/* The words of each block of 3-bit codes in 128 bits. */
TARGET static inline INTS avx2_blocks(const uint32_t *w)
{
	const __m128i second = _mm_srli_si128(_mm_loadu_si128((const void *)(w + 2)), 4);

	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)w)), second, 1);
}

TARGET static inline INTS avx2_low(const uint32_t *w, int bits)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)w)),
		_mm_loadu_si128((const void *)(w + bits)), 1);
}

TARGET static inline INTS avx2_high(const uint32_t *w, int bits)
{
	const INTS at = _mm256_setr_epi32(2, 2, 2, 2, 7, 7, 7, 7);
	const INTS by = _mm256_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12);

	if (bits < 5)
		return avx2_low(w, bits);
	return _mm256_sllv_epi32(_mm256_permutevar8x32_epi32(
		_mm256_loadu_si256((const void *)(w + 2)), at), by);
}

TARGET static inline float avx2_total(FLOATS v)
{
	__m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	a = _mm_add_ps(a, _mm_movehl_ps(a, a));
	return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

#include "product/product_float_private.h"

#define LANES 16
#define TILE 8
#define TARGET __attribute__((CPU_AVX512_TARGET))
#define NAME(x) avx512_##x
#define OP(x) _mm512_##x
#define FLOATS __m512
#define INTS __m512i
#define MERGE(mask, a, b) _mm512_ternarylogic_epi32(a, b, mask, 0xe4)
#define SHIFT_BY(v, n) _mm512_rolv_epi32(v, WORD(n))
#define HALVES(v, upper) \
	_mm512_cvtph_ps((upper) ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v))
#define LOOKUP avx512_lookup
#define TOTAL _mm512_reduce_add_ps

#define SHUFFLE(v, bytes) _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(bytes))

#define EACH(a, b) _mm512_setr_epi32(a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b)
#define LEFT_EACH(v, a, b) _mm512_sllv_epi32(v, EACH(a, b))
#define RIGHT_EACH(v, a, b) _mm512_srlv_epi32(v, EACH(a, b))
#define REPEAT(p) _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p)))
#define LOAD_WORDS _mm512_loadu_si512
#define AS_FLOATS _mm512_castsi512_ps

TARGET static inline INTS avx512_blocks(const uint32_t *w)
{
	const INTS at = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);

	return _mm512_permutexvar_epi32(at, _mm512_maskz_loadu_epi32(0xfff, w));
}

TARGET static inline INTS avx512_low(const uint32_t *w, int bits)
{
	const INTS at = _mm512_setr_epi32(0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 28, 29, 30);

	if (bits == 4)
		return _mm512_loadu_si512(w);
	return _mm512_permutex2var_epi32(_mm512_loadu_si512(w), at, _mm512_loadu_si512(w + 4));
}

TARGET static inline INTS avx512_high(const uint32_t *w, int bits)
{
	const INTS at = _mm512_setr_epi32(4, 4, 4, 4, 9, 9, 9, 9, 14, 14, 14, 14, 31, 31, 31, 31);
	const INTS by = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);

	if (bits < 5)
		return avx512_low(w, bits);
	return _mm512_sllv_epi32(_mm512_permutex2var_epi32(_mm512_loadu_si512(w), at,
		_mm512_loadu_si512(w + 4)), by);
}

TARGET static inline FLOATS avx512_lookup(const float table[32], INTS code, int bits)
{
	if (bits < 5)
		return _mm512_permutexvar_ps(code, LOAD(table));
	return _mm512_permutex2var_ps(LOAD(table), code, LOAD(table + 16));
}

#include "product/product_float_private.h"

#include "product/product_fixed_private.h"
#endif

/* Number of rows of x in the next part, at most PRODUCT_FEW, if m rows remain. */
static size_t rows_together(size_t m)
{
	return ceil_div(m, ceil_div(m, PRODUCT_FEW));
}

/* Prepared inputs are [part of the rows][chunk][row], each of 128 floats or a struct fixed_input. */
size_t packed_input_size(const struct linear *l, size_t m)
{
	return m * ceil_div(l->in, INPUT_CHUNK) * sizeof(struct fixed_input);
}

static void input_of_part(const struct packed *p, size_t m, void *y, const float x[m][p->l->in])
{
	const size_t in = p->l->in, chunks = ceil_div(in, INPUT_CHUNK);
	uint8_t from[INPUT_CHUNK];

	for (size_t i = 0; i < INPUT_CHUNK; i++)
		from[place_in_chunk(p, i)] = (uint8_t)i;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_INPUTS) schedule(static)
	for (size_t c = 0; c < chunks; c++)
		for (size_t t = 0; t < m; t++) {
			const size_t first = c * INPUT_CHUNK, n = min(in - first, INPUT_CHUNK);
			float value[INPUT_CHUNK] = { 0 }, *chunk = (float *)y + (c * m + t) * INPUT_CHUNK;

#ifdef __x86_64__
			if (p->variant == PACKED_FIXED) {
				fixed_place(p, n, (struct fixed_input *)y + c * m + t, x[t] + first, from);
				continue;
			}
#endif
			if (p->int16)
				product_narrow(n, value, x[t] + first);
			else
				memcpy(value, x[t] + first, n * sizeof *value);
			for (size_t i = 0; i < INPUT_CHUNK; i++)
				chunk[i] = value[from[i]];
		}
}

void packed_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const struct packed w = packed_of(p);

	(void)modality;
	for (size_t t = 0, n; t < m; t += n) {
		n = rows_together(m - t);
		input_of_part(&w, n, (char *)y + packed_input_size(p->l, t), &x[t]);
	}
}

bool packed_input_same(const struct product *a, const struct product *b)
{
	const struct packed v = packed_of(a), w = packed_of(b);

	return a->l->storage.bits == b->l->storage.bits && v.unit == w.unit && v.offset == w.offset;
}

static void rows_of_words(const struct packed *p, size_t m, size_t n, float y[m][ROW_PANEL],
	const uint32_t *w, const float *scale, const uint8_t *zero, const void *input)
{
#ifdef __x86_64__
	if (p->variant == PACKED_FIXED)
		rows_fixed(p, m, n, y, w, scale, zero, input);
	else if (p->variant != PACKED_PLAIN)
		(p->lanes == 16 ? avx512_rows : avx2_rows)(p, m, n, y, w, scale, zero, input);
	else
#endif
		rows_plain(p, m, n, y, w, scale, zero, input);
}

/* Rows that a thread takes at once: many, as the streams restart each time; equally many for each thread;
 * whole tiles. */
static size_t rows_at_once(size_t out)
{
	const size_t all = omp_in_parallel() ? 1 : (size_t)threads;
	const size_t parts = all * ceil_div(out, all * ROW_PANEL);

	return ceil_div(ceil_div(out, parts), PRODUCT_ROWS) * PRODUCT_ROWS;
}

static void run_part(const struct packed *p, size_t from, size_t out, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const struct linear *l = p->l;
	const size_t words = pack_words(l->storage.bits, l->in), step = rows_at_once(out);
	const float divisor = l->scale_tensor ? *l->scale_tensor : 1;

	#pragma omp parallel for num_threads(threads) if (out * l->in > FEW_PRODUCTS) schedule(dynamic)
	for (size_t first = 0; first < out; first += step) {
		const size_t n = min(out - first, step), row = from + first;
		const size_t g = row * scales_of_row(l);
		float sum[PRODUCT_FEW][ROW_PANEL];

		rows_of_words(p, m, n, sum, l->packed + row * words, l->scale + g,
			l->zero ? l->zero + g : NULL, input);
		for (size_t t = 0; t < m; t++)
			for (size_t i = 0, o = first; i < n; i++, o++)
				y[t][o] = sum[t][i] / divisor + (bias ? bias[o] : 0) + (add ? y[t][o] : 0);
	}
}

void packed_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride, float y[m][stride],
	const void *input, const float *bias, bool add)
{
	const struct packed w = packed_of(p);

	for (size_t t = 0, some; t < m; t += some) {
		const char *part = (const char *)input + packed_input_size(p->l, t);

		some = rows_together(m - t);
		run_part(&w, first, n, some, stride, &y[t], part, bias, add);
	}
}

/* Whether the shifted bits of each code are a half-precision number 2⁻¹⁵ (FP4: 2⁻¹⁴) times the value. */
static bool is_half(struct packed *w, const struct format *f)
{
	const int magnitude = 1 << (f->bits - 1);

	w->shift = 10 - f->y;
	w->unit = ldexpf(1, 15 - f->bias);
	for (int c = 0; c < 1 << f->bits; c++) {
		uint16_t half = (uint16_t)((c & (magnitude - 1)) << w->shift);
		float v;

		half_widen(1, &v, &half, HALF_F16);
		if (v * w->unit != fabsf(f->grid[c]) || (c < magnitude ? v < 0 : f->grid[c] > 0))
			return false;
	}
	return true;
}

/* Whether codes are consecutive integers from the value of code 0. bfloat16 represents integers up to 256. */
static bool is_integer(struct packed *w, const struct format *f)
{
	const int codes = f->asymmetric ? (int)f->max + 1 : 2 * (int)f->max + 1;

	w->no_zero = -(int)f->grid[0];
	for (int i = 0; i < (int)sizeof *w->byte; i++) {
		const uint32_t u = float_bits((float)(i - ZERO_MAX));

		w->byte[0][i] = (uint8_t)(u >> 16), w->byte[1][i] = (uint8_t)(u >> 24);
	}
	for (int c = 0; c < codes && c < 1 << f->bits; c++)
		if (f->grid[c] != f->grid[0] + (float)c)
			return false;
	return codes <= 1 << f->bits;
}

/* Whether values are small integers times a power of two. */
static bool is_fixed(struct packed *w, const struct format *f)
{
	w->unit = format_unit(f, FIXED_LARGEST);
	w->offset = w->unit > 0 ? (int)(f->max / w->unit) : 0;
	for (int i = 0; w->unit > 0 && i < 128; i++) {
		const int v = i / 64, c = f->bits == 3 ? (i >> 2 * v & 3) | (i >> (4 + v) & 1) << 2 : i % 32;

		w->integer[v][i % 64] = (uint8_t)((int)(w->table[c] / w->unit) + w->offset);
	}
	return w->unit > 0;
}

/* False if the variant of the row does not support the values of the format. */
static bool prepare_table(struct packed *w, const struct product_row *row, const struct format *f)
{
	*w = (struct packed){ .variant = (enum packed_variant)row->variant,
		.lanes = row->cpu == CPU_AVX512 ? 16 : 8 };
	for (int c = 0; c < 32; c++)
		w->table[c] = f->grid[c & ((1 << f->bits) - 1)];
	switch (w->variant) {
	case PACKED_FIXED: return is_fixed(w, f);
	case PACKED_HALF: return is_half(w, f);
	case PACKED_INTEGER: return is_integer(w, f);
	case PACKED_TABLE: return !f->asymmetric;
	default: return true;
	}
}

bool packed_fits(const struct product_row *row, const struct linear *l)
{
	const bool is_supported = row->variant == PACKED_PLAIN ||
		(row->variant == PACKED_FIXED ? cpu_dot : cpu_half);
	const int bits = l->storage.bits;
	const int narrowest = row->variant == PACKED_HALF ? 4 : 3;
	const bool whole = !l->group_index && (l->group <= 0 || l->group % CODE_BLOCK == 0);
	struct packed w;

	return is_supported && whole && l->packed && linear_has_grid(l) && bits >= narrowest && bits <= 5 &&
		!l->compute.kind && prepare_table(&w, row, &l->storage);
}

size_t packed_size(const struct linear *l, size_t n)
{
	(void)l, (void)n;
	return ceil_div(sizeof(struct packed), ALIGN) * ALIGN;
}

void packed_weight(const struct product *p, size_t n, void *w)
{
	struct packed y;

	(void)n;
	prepare_table(&y, p->row, &p->l->storage);
	y.int16 = p->type == COMPUTE_INT16;
	memcpy(w, &y, sizeof y);
}
