/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * products -- products of a matrix beyond cache size with few columns: packed formats, floats, the memory
 * limit
 *
 *	products [-r RUNS] [-j THREADS] gemv|batch|pack...
 *
 * gemv prints `row<TAB>column<TAB>value` for one column, batch `format columns seconds bytes flops` for 1 to
 * 16. pack rounds a matrix of float to E2M2 by channels and packs it, and also measures a copy.
 *
 * Results are medians of RUNS rounds; each round runs all formats once. Matrices of 11008 × 4096, in groups
 * of 128, form a ring of twice the last cache, so that each comes from memory.
 */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <sys/mman.h>
#include "base/cpu.h"
#include "base/random.h"
#include "bench.h"
#include "num/half.h"
#include "product/product.h"
#include "quant/pack.h"
#include "quant/round.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { OUT = 11008, IN = 4096, GROUP = 128, PANEL = 128, MAX = PRODUCT_FEW, AHEAD = 2048 };

static void *huge(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, (size_t)2 << 20, (bytes + ((size_t)2 << 20)) & ~(((size_t)2 << 20) - 1)))
		die("out of memory");
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

/* ---- the ring ---- */

static struct { char *memory; size_t bytes, next; } ring;

/* Words that are ordinary numbers as float, as two halves and as two bfloat16, and codes of any width. */
static void ring_make(void)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);

	if (ring.memory)
		return;
	ring.bytes = 2 * (size_t)(cache > 0 ? cache : 64 << 20);
	if (ring.bytes < (size_t)OUT * IN * 4 * 2)
		ring.bytes = (size_t)OUT * IN * 4 * 2;
	ring.bytes &= ~(size_t)63;
	ring.memory = huge(ring.bytes + 2 * AHEAD);
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < ring.bytes / 4; i++) {
		uint32_t r = (uint32_t)(i * 2654435761u), word = 0x30003000 | (r >> 20) | (r & 0xfff) << 16;

		memcpy(ring.memory + 4 * i, &word, 4);
	}
}

static void *ring_take(size_t bytes)
{
	bytes = (bytes + 63) & ~(size_t)63;
	if (ring.next + bytes > ring.bytes)
		ring.next = 0;
	ring.next += bytes;
	return ring.memory + ring.next - bytes;
}

/* ---- not packed: reading, and rows of float, half and bfloat16 ---- */

struct plain {
	const char *name;
	size_t size;
	void (*rows)(size_t m, size_t n, float y[], const void *w, const float x[m][IN]);
};

#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#define AVX2 __attribute__((target("avx2,fma,f16c")))

AVX512 static void read_rows(size_t m, size_t n, float y[], const void *w, const float x[m][IN])
{
	const char *p = w;
	__m512i a = _mm512_setzero_si512(), b = a;

	(void)x;
	for (size_t i = 0; i < n * IN * 2; i += 128) {
		__builtin_prefetch(p + i + AHEAD);
		__builtin_prefetch(p + i + AHEAD + 64);
		a = _mm512_xor_si512(a, _mm512_loadu_si512(p + i));
		b = _mm512_xor_si512(b, _mm512_loadu_si512(p + i + 64));
	}
	y[0] = (float)_mm512_reduce_add_epi32(_mm512_xor_si512(a, b));
}

/*
 * As in product/product_packed.c: four rows from four places of memory. Their weights are converted to float
 * once for all columns, which are processed in pairs.
 */
#define ROWS(name, isa, lanes, vector, zero, type, load, loadx, fma, total) \
	isa static inline __attribute__((always_inline)) void name##_columns(size_t m, vector sum[m][4], \
		const vector v[4][4], const float x[m][IN]) \
	{ \
		for (size_t k = 0; k < 4; k++) \
			for (size_t t = 0; t < m; t++) \
				for (size_t r = 0; r < 4; r++) \
					sum[t][r] = fma(v[k][r], loadx(x[t] + k * lanes), sum[t][r]); \
	} \
	isa static inline __attribute__((always_inline)) void name##_some(size_t m, size_t n, float y[], \
		const type *w, const float x[m][IN]) \
	{ \
		for (size_t o = 0; o < n / 4; o++, w += IN) { \
			vector sum[MAX][4]; \
	\
			for (size_t t = 0; t < m; t++) \
				for (size_t r = 0; r < 4; r++) \
					sum[t][r] = zero; \
			for (size_t j = 0; j < IN; j += 4 * lanes) { \
				vector v[4][4]; \
				size_t t = 0; \
	\
				for (size_t r = 0; r < 4; r++) { \
					const type *from = w + r * (n / 4) * IN + j; \
	\
					for (size_t b = 0; b < 4 * lanes * sizeof *w; b += 64) \
						__builtin_prefetch((const char *)from + AHEAD + b); \
					for (size_t k = 0; k < 4; k++) \
						v[k][r] = load(from + k * lanes); \
				} \
				for (; t + 2 <= m; t += 2) \
					name##_columns(2, sum + t, v, (const float (*)[IN])&x[t][j]); \
				if (m % 2) \
					name##_columns(1, sum + t, v, (const float (*)[IN])&x[t][j]); \
			} \
			for (size_t t = 0; t < m; t++) \
				for (size_t r = 0; r < 4; r++) \
					y[t * OUT + r * (n / 4) + o] = total(sum[t][r]); \
		} \
	} \
	isa static void name(size_t m, size_t n, float y[], const void *w, const float x[m][IN]) \
	{ \
		if (m == 1) \
			name##_some(1, n, y, w, x); \
		else \
			name##_some(m, n, y, w, x); \
	}
AVX2 static inline float total8(__m256 v)
{
	float t[8], sum = 0;

	_mm256_storeu_ps(t, v);
	for (int i = 0; i < 8; i++)
		sum += t[i];
	return sum;
}
#define BF16_512(p) _mm512_castsi512_ps(_mm512_slli_epi32( \
	_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p))), 16))
#define F16_512(p) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define BF16_256(p) _mm256_castsi256_ps(_mm256_slli_epi32( \
	_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p))), 16))
#define F16_256(p) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define WIDE(name, type, load) ROWS(name, AVX512, 16, __m512, _mm512_setzero_ps(), type, load, \
	_mm512_loadu_ps, _mm512_fmadd_ps, _mm512_reduce_add_ps)
#define MIDDLE(name, type, load) ROWS(name, AVX2, 8, __m256, _mm256_setzero_ps(), type, load, \
	_mm256_loadu_ps, _mm256_fmadd_ps, total8)
WIDE(f32_512, float, _mm512_loadu_ps)
WIDE(f16_512, uint16_t, F16_512)
WIDE(bf16_512, uint16_t, BF16_512)
MIDDLE(f32_256, float, _mm256_loadu_ps)
MIDDLE(f16_256, uint16_t, F16_256)
MIDDLE(bf16_256, uint16_t, BF16_256)
#endif

static double run_plain(const struct plain *p, size_t m, float *y, const float *x)
{
	const char *w = ring_take(OUT * IN * p->size);
	double start = omp_get_wtime();

	#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (size_t r = 0; r < OUT; r += PANEL)
		p->rows(m, PANEL, y + r, w + r * IN * p->size, (const float (*)[IN])x);
	return omp_get_wtime() - start;
}

/* ---- packed ---- */

/* row: prefix of the name, of the rows of products */
struct packed { const char *name, *format, *row; enum compute_type type; };
static const struct packed packed[] = {
	{ "e2m2", "e2m2", "packed", COMPUTE_F32 }, { "e2m2-int16", "e2m2", "packed", COMPUTE_INT16 },
	{ "e2m2-half", "e2m2", "packed-half", COMPUTE_F32 }, { "e2m1", "e2m1", "packed", COMPUTE_F32 },
	{ "e2m1-int16", "e2m1", "packed", COMPUTE_INT16 }, { "int4", "int4", "packed", COMPUTE_F32 },
	{ "int3", "int3", "packed", COMPUTE_F32 }, { "int5", "int5", "packed", COMPUTE_F32 },
	{ "nf5", "nf5", "packed-table", COMPUTE_F32 },
	{ "nf4", "nf4", "packed-table", COMPUTE_F32 },
};
enum { PACKED = sizeof packed / sizeof *packed, PLAIN = 4 };

static size_t packed_bytes(const struct format *f)
{
	return OUT * (pack_words(f->bits, IN) * 4 + IN / GROUP * sizeof(float));
}

static double run_packed(const struct packed *p, size_t m, float *y, const float *x, void *workspace)
{
	struct linear l = { .out = OUT, .in = IN, .group = GROUP, .groups = IN / GROUP };
	struct product product = { .row = product_rows, .l = &l, .type = p->type };
	_Alignas(64) char weight[1024];
	const void *input;
	double start;

	format_parse(&l.storage, p->format);
	l.packed = ring_take(OUT * pack_words(l.storage.bits, IN) * 4);
	l.scale = ring_take(OUT * IN / GROUP * sizeof(float));
	while (product.row->name && (strncmp(product.row->name, p->row, strlen(p->row)) ||
	       !product_fits(product.row, &l, p->type, m)))
		product.row++;
	if (!product.row->name)
		return NAN;
	if (product_size(&product, OUT) > sizeof weight)
		die("%s: prepared weights are larger than expected", product.row->name);
	product_make(&product, 0, OUT, weight);
	start = omp_get_wtime();
	input = product_input(&product, m, workspace, (const float (*)[IN])x, NULL);
	product_run(&product, 0, OUT, m, OUT, (float (*)[OUT])y, input, NULL, false);
	return omp_get_wtime() - start;
}

/* Seconds of each, with m columns. */
static void measure(size_t m, const struct plain plain[PLAIN], double seconds[PLAIN + PACKED])
{
	float *x = xalloc(m * IN, sizeof *x), *y = xalloc(m * OUT, sizeof *y);
	void *workspace = xalloc(m * IN, 2 * sizeof *x);
	double (*t)[RUNS] = xalloc(PLAIN + PACKED, sizeof *t);

	for (size_t i = 0; i < m * IN; i++)
		x[i] = sinf((float)i * 0.37f);
	for (int r = -1; r < runs; r++)		/* the first round does not count */
		for (int k = 0; k < PLAIN + PACKED; k++) {
			double s = k < PLAIN ? run_plain(&plain[k], m, y, x) :
				run_packed(&packed[k - PLAIN], m, y, x, workspace);

			if (r >= 0)
				t[k][r] = s;
		}
	for (int k = 0; k < PLAIN + PACKED; k++)
		seconds[k] = bench_median((size_t)runs, t[k]);
	free(x), free(y), free(workspace), free(t);
}

static const struct plain *plain_rows(void)
{
#ifdef __x86_64__
	static const struct plain wide[PLAIN] = { { "read", 2, read_rows }, { "f32", 4, f32_512 },
		{ "f16", 2, f16_512 }, { "bf16", 2, bf16_512 } };
	static const struct plain middle[PLAIN] = { { "read", 2, f16_256 }, { "f32", 4, f32_256 },
		{ "f16", 2, f16_256 }, { "bf16", 2, bf16_256 } };

	if (cpu_half && cpu > CPU_PLAIN)
		return cpu == CPU_AVX512 ? wide : middle;
#endif
	die("rows of half precision to compare with need AVX2 and F16C");
}

static size_t bytes_of(int k, const struct plain plain[PLAIN])
{
	struct format f;

	if (k < PLAIN)
		return OUT * IN * plain[k].size;
	format_parse(&f, packed[k - PLAIN].format);
	return packed_bytes(&f);
}

static void run_gemv(void)
{
	const struct plain *plain = plain_rows();
	double s[PLAIN + PACKED], rate;

	ring_make();
	measure(1, plain, s);
	rate = (double)bytes_of(0, plain) / s[0];
	printf("read\tours\t%.5g\n", rate * 1e-9);
	for (int k = 1; k < PLAIN + PACKED; k++) {
		const char *name = k < PLAIN ? plain[k].name : packed[k - PLAIN].name;

		if (isnan(s[k]))
			continue;
		printf("gemv-%s\tours\t%.5g\ngemv-%s\tlimit\t%.5g\n", name, 1e3 * s[k], name,
			1e3 * (double)bytes_of(k, plain) / rate);
		if (k != 2)
			printf("gemv-%s\tpeer\t%.5g\ngemv-%s\tpeer_is\tfp16, the same run\n", name,
				1e3 * s[2], name);
	}
}

/* Float weights, unpacked before, by sgemm: the usual way for many columns. */
static double run_sgemm(size_t m, float *y, const float *x)
{
	double t[RUNS];

	openblas_set_num_threads(threads);
	for (int r = 0; r < runs; r++) {
		const float *w = ring_take(OUT * IN * sizeof *w);

		t[r] = omp_get_wtime();
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, OUT, IN, 1, x, IN, w, IN, 0,
			y, OUT);
		t[r] = omp_get_wtime() - t[r];
	}
	openblas_set_num_threads(1);
	return bench_median((size_t)runs, t);
}

static void run_batch(void)
{
	const struct plain *plain = plain_rows();
	float *x = xalloc(MAX * IN, sizeof *x), *y = xalloc(MAX * OUT, sizeof *y);

	ring_make();
	printf("format\tcolumns\tseconds\tbytes\tflops\n");
	for (size_t m = 1; m <= MAX; m += m < 4 ? 1 : m < 8 ? 2 : 4) {
		double s[PLAIN + PACKED];

		measure(m, plain, s);
		for (int k = 0; k < PLAIN + PACKED; k++)
			if (!isnan(s[k]))
				printf("%s\t%zu\t%.5g\t%zu\t%zu\n",
					k < PLAIN ? plain[k].name : packed[k - PLAIN].name, m, s[k],
					bytes_of(k, plain), k ? 2 * m * OUT * IN : 0);
		printf("sgemm\t%zu\t%.5g\t%zu\t%zu\n", m, run_sgemm(m, y, x), (size_t)OUT * IN * 4,
			2 * m * OUT * IN);
		fflush(stdout);
	}
	free(x), free(y);
}

/* ---- rounding and packing ---- */

static double run_copy(float *to, const float *from)
{
	double start = omp_get_wtime();

	#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (size_t r = 0; r < OUT; r += PANEL)
		memcpy(to + r * IN, from + r * IN, PANEL * IN * sizeof *to);
	return omp_get_wtime() - start;
}

static double run_round(const struct format *f, uint32_t *to, float *scale, const float *from)
{
	const size_t words = pack_words(f->bits, IN);
	double start = omp_get_wtime();

	#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (size_t r = 0; r < OUT; r += PANEL)
		for (size_t o = r; o < r + PANEL; o++) {
			uint8_t code[IN];

			round_row(f, IN, IN, code, &scale[o], NULL, from + o * IN);
			pack_row(f->bits, IN, to + o * words, code);
		}
	return omp_get_wtime() - start;
}

static void run_pack(void)
{
	float *from = huge(OUT * IN * sizeof *from), *to = huge(OUT * IN * sizeof *to);
	float *scale = xalloc(OUT, sizeof *scale);
	struct random_stream random = random_open(1, "pack");
	double copy[RUNS], ours[RUNS];
	struct format f;

	format_parse(&f, "e2m2");
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < (size_t)OUT * IN; i++)
		from[i] = (float)(random_uniform(&random, 2 * i) + random_uniform(&random, 2 * i + 1) - 1);
	for (int r = -1; r < runs; r++) {
		double c = run_copy(to, from), t = run_round(&f, (uint32_t *)to, scale, from);

		if (r >= 0)
			copy[r] = c, ours[r] = t;
	}
	printf("pack-e2m2\tours\t%.5g\npack-e2m2\tlimit\t%.5g\n",
		1e-9 * OUT * IN / bench_median((size_t)runs, ours),
		1e-9 * OUT * IN / bench_median((size_t)runs, copy));
	free(from), free(to), free(scale);
}

int main(int argc, char *argv[])
{
	static const struct section parts[] = {
		{ "gemv", run_gemv }, { "batch", run_batch }, { "pack", run_pack },
	};

	return bench_main(argc, argv, "products", sizeof parts / sizeof *parts, parts);
}
