/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * kernels -- the limits of this processor, and the rates of the library, in one process
 *
 *	kernels [-r RUNS] [-j THREADS] peak|sgemm|solver|hessian|layers|hadamard|work...
 *
 * Prints `row<TAB>column<TAB>value`, medians of RUNS measurements that alternate between limit and library.
 * Operations are counted as follows, a multiplication and an addition as two:
 *	solver of m rows and n columns	m n² + n³/3	(the updates and one Cholesky factor)
 *	Hessian of n inputs, k tokens	n² k		(its upper triangle)
 *	product of m rows, n × k weights	2 m n k
 *	±1 matrix of order k, m rows of n	m n k		(additions)
 * The floating-point peak is a loop over registers, on all threads at once.
 */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include "base/random.h"
#include "bench.h"
#include "calib/moments.h"
#include "device/device_open.h"
#include "num/hadamard.h"
#include "num/half.h"
#include "product/product.h"
#include "solver/solver.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "num/clones.h"

enum { SIDE = 4096, ACCUMULATORS = 12, ROUNDS = 1 << 22 };

/* ---- samples ---- */

struct samples { size_t n; double value[RUNS]; };

static void add(struct samples *s, double value)
{
	s->value[s->n++] = value;
}

static void print(const char *row, const char *column, struct samples *s)
{
	printf("%s\t%s\t%.5g\n", row, column, bench_median(s->n, s->value));
	fflush(stdout);
}

static void fill(size_t n, float x[n], const char *name, float scale)
{
	struct random_stream r = random_open(1, name);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++) {	/* the sum of two uniform numbers */
		uint64_t bits = random_bits(&r, i);

		x[i] = scale * ((float)(bits >> 32) + (float)(bits & UINT32_MAX) - 0x1p32f) * 0x1p-32f;
	}
}

/* ---- peaks ---- */

static volatile float half = 0.5f;	/* unknown to the compiler, which else might fold rounds */

/* Independent sums, enough of them to hide the latency. */
#define PEAK(name, isa, vector, set, step, lowest) \
	isa static float name(size_t rounds) \
	{ \
		vector b = set(half), a[ACCUMULATORS]; \
		float sum = 0; \
	\
		for (int j = 0; j < ACCUMULATORS; j++) \
			a[j] = set((float)j); \
		for (size_t i = 0; i < rounds; i++) \
			for (int j = 0; j < ACCUMULATORS; j++) \
				a[j] = step(a[j], b); \
		for (int j = 0; j < ACCUMULATORS; j++) \
			sum += lowest(a[j]); \
		return sum; \
	}

typedef float four __attribute__((vector_size(16)));
#define SET_PLAIN(x) ((four){ 0 } + (x))
#define STEP_PLAIN(a, b) ((a) * (b) + (b))
#define LOWEST_PLAIN(a) ((a)[0])
PEAK(peak_plain, , four, SET_PLAIN, STEP_PLAIN, LOWEST_PLAIN)
#ifdef __x86_64__
#define STEP_AVX2(a, b) _mm256_fmadd_ps(a, b, b)
#define STEP_AVX512(a, b) _mm512_fmadd_ps(a, b, b)
#define STEP_BF16(a, b) _mm512_dpbf16_ps(a, (__m512bh)(b), (__m512bh)(b))
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, STEP_AVX2, _mm256_cvtss_f32)
PEAK(peak_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, STEP_AVX512, _mm512_cvtss_f32)
PEAK(peak_bf16, __attribute__((target("avx512f,avx512bf16"))), __m512, _mm512_set1_ps,
	STEP_BF16, _mm512_cvtss_f32)
#endif

#ifdef __x86_64__
#define SET_BYTES(x) _mm512_set1_epi32((int)(x))
#define STEP_BYTES(a, b) _mm512_dpbusd_epi32(a, b, b)
#define LOWEST_INT(a) ((float)_mm512_cvtsi512_si32(a))
PEAK(peak_bytes, __attribute__((target("avx512f,avx512vnni"))), __m512i, SET_BYTES, STEP_BYTES, LOWEST_INT)
#endif

#ifdef __x86_64__
/* Tiles, with four independent sums. */
#define PEAK_TILES(name, MULTIPLY) \
	__attribute__((target("amx-tile,amx-bf16,amx-int8"))) static float name(size_t rounds) \
	{ \
		static const struct { uint8_t palette, start, pad[14]; uint16_t n[16]; uint8_t m[16]; } \
			shapes = { 1, 0, { 0 }, { 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16 } }; \
	\
		_tile_loadconfig(&shapes); \
		for (size_t i = 0; i < rounds; i++) { \
			MULTIPLY(0, 4, 5); \
			MULTIPLY(1, 4, 5); \
			MULTIPLY(2, 4, 5); \
			MULTIPLY(3, 4, 5); \
		} \
		_tile_release(); \
		return 1; \
	}
PEAK_TILES(peak_tiles_bf16, _tile_dpbf16ps)
PEAK_TILES(peak_tiles_bytes, _tile_dpbssd)
#endif

struct peak { float (*run)(size_t rounds); double flops; };	/* flops: of one round */

static struct peak peak_f32(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		return (struct peak){ peak_avx512, 2 * 16 * ACCUMULATORS };
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return (struct peak){ peak_avx2, 2 * 8 * ACCUMULATORS };
#endif
	return (struct peak){ peak_plain, 2 * 4 * ACCUMULATORS };
}

static struct peak peak_dot(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512bf16"))
		return (struct peak){ peak_bf16, 2 * 32 * ACCUMULATORS };
#endif
	return (struct peak){ 0 };
}

static struct peak peak_tiles(bool bytes)
{
#ifdef __x86_64__
	if (cpu_amx)
		return (struct peak){ bytes ? peak_tiles_bytes : peak_tiles_bf16,
			4 * 2 * 16 * 16 * (bytes ? 64 : 32) };
#endif
	return (struct peak){ 0 };
}

static double peak(struct peak p)
{
	double start = omp_get_wtime();

	#pragma omp parallel num_threads(threads)
	half = p.run(ROUNDS) > 0 ? 0.5f : 0;
	return p.flops * ROUNDS * threads / (omp_get_wtime() - start) * 1e-9;
}

/* Products of bytes by tiles or by dot products of four; 0: not supported. */
static double peak_of_bytes(void)
{
	if (peak_tiles(true).run)
		return peak(peak_tiles(true));
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512vnni"))
		return peak((struct peak){ peak_bytes, 2 * 64 * ACCUMULATORS });
#endif
	return 0;
}

/* Products of bf16 by tiles, by the dot product of pairs, or widened: on some processors pairs are slower. */
static double peak_of_bf16(void)
{
	if (peak_tiles(false).run)
		return peak(peak_tiles(false));
	return fmax(peak(peak_f32()), peak_dot().run ? peak(peak_dot()) : 0);
}

/* ---- OpenBLAS on all threads ---- */

struct square { float *a, *b, *c; };

static struct square square_make(void)
{
	struct square s = { xalloc(SIDE * SIDE, sizeof(float)), xalloc(SIDE * SIDE, sizeof(float)),
		xalloc(SIDE * SIDE, sizeof(float)) };

	fill(SIDE * SIDE, s.a, "a", 1);
	fill(SIDE * SIDE, s.b, "b", 1);
	return s;
}

static void square_free(struct square *s)
{
	free(s->a);
	free(s->b);
	free(s->c);
}

static double sgemm(const struct square *s)
{
	double start;

	openblas_set_num_threads(threads);
	start = omp_get_wtime();
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SIDE, SIDE, SIDE, 1, s->a, SIDE, s->b, SIDE, 0,
		s->c, SIDE);
	start = omp_get_wtime() - start;
	openblas_set_num_threads(1);
	return 2.0 * SIDE * SIDE * SIDE / start * 1e-9;
}

static double ssyrk(const struct square *s)
{
	double start;

	openblas_set_num_threads(threads);
	start = omp_get_wtime();
	cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, SIDE, SIDE, 1, s->a, SIDE, 0, s->c, SIDE);
	start = omp_get_wtime() - start;
	openblas_set_num_threads(1);
	return 1.0 * SIDE * SIDE * SIDE / start * 1e-9;
}

static double copy(const struct square *s)
{
	double start = omp_get_wtime();

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < SIDE; i++)
		memcpy(s->c + i * SIDE, s->a + i * SIDE, SIDE * sizeof *s->c);
	return 2.0 * SIDE * SIDE * sizeof *s->c / (omp_get_wtime() - start) * 1e-9;
}

/* ---- measurements ---- */

static void run_peak(void)
{
	struct square s = square_make();
	struct samples f32 = { 0 }, bf16 = { 0 }, tiles = { 0 }, bytes = { 0 };

	for (int i = 0; i < runs; i++) {
		add(&f32, peak(peak_f32()));
		if (peak_dot().run)
			add(&bf16, peak(peak_dot()));
		if (peak_tiles(false).run)
			add(&tiles, peak(peak_tiles(false)));
		add(&bytes, copy(&s));
	}
	print("peak-f32", "ours", &f32);
	if (bf16.n)
		print("peak-bf16", "ours", &bf16);
	if (tiles.n)
		print("peak-tiles", "ours", &tiles);
	print("copy", "ours", &bytes);
	square_free(&s);
}

static void run_sgemm(void)
{
	struct square s = square_make();
	struct samples f32 = { 0 }, gemm = { 0 }, syrk = { 0 };

	sgemm(&s);
	for (int i = 0; i < runs; i++) {
		add(&f32, peak(peak_f32()));
		add(&gemm, sgemm(&s));
		add(&syrk, ssyrk(&s));
	}
	print("sgemm", "limit", &f32);
	print("sgemm", "ours", &gemm);
	print("ssyrk", "limit", &f32);
	print("ssyrk", "ours", &syrk);
	square_free(&s);
}

/* Second moments of inputs that correlate and differ in size, as in a model. */
static float *moments(size_t n)
{
	float *x = xalloc(n * n, sizeof *x), *h = xalloc(n * n, sizeof *h);
	double *sum = xalloc(n * n, sizeof *sum);

	fill(n * n, x, "x", 1);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 1; j < n; j++)
			x[i * n + j] = 0.5f * x[i * n + j - 1] + x[i * n + j] * (j % 64 ? 1 : 8);
	linalg_gram(1, n, n, (double (*)[n])sum, (const float (*)[n][n])x);
	linalg_mirror(n, (float (*)[n])h, (const double (*)[n])sum);
	free(sum);
	free(x);
	return h;
}

struct variant { const char *name; enum search search; bool dpq, error; };
static const struct variant variants[] = {
	{ "gptq-%zux%zu", SEARCH_MINMAX, false, false }, { "dpq-%zux%zu", SEARCH_MINMAX, true, false },
	{ "gptq-mse-%zux%zu", SEARCH_MSE, false, false }, { "dpq-mse-%zux%zu", SEARCH_MSE, true, false },
	{ "gptq-error-%zux%zu", SEARCH_MINMAX, false, true },
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static const struct device *device;	/* of PTQ_DEVICE, for the solver */

/* Seconds of one layer, with 4 bits in groups of 128 columns. */
static double solve(const struct variant *v, size_t m, size_t n, const float *w, const float *h)
{
	struct solver s = { .group = 128, .damp = 0.01, .no_error = !v->error };
	const struct linear linear = { .out = m, .in = n, .weight = w };
	struct codes codes;
	struct solver_layer layer = { .weight = &linear, .settings = &s, .h = h, .device = device,
		.codes = &codes };
	double start = omp_get_wtime();
	void *work;

	format_parse(&s.storage, "uint4");
	if (v->dpq)
		format_parse(&s.compute, "e4m3fn");
	solver_recipe(&s, RECIPE_LATE);
	s.search = v->search;
	codes = solver_codes(&s, m, n);
	codes_lay_out(&codes, xalloc(codes_lay_out(&codes, NULL), 1));
	work = xalloc(solver_workspace(1, &layer), 1);
	solver_run(1, &layer, work);
	start = omp_get_wtime() - start;
	if (layer.report.status)
		die("%s", status_text(layer.report.status));
	free(work);
	free(codes.memory);
	return start;
}

static void solver_rows(size_t m, size_t n)
{
	float *w = xalloc(m * n, sizeof *w), *h = moments(n);
	struct samples time[VARIANTS] = { 0 }, limit = { 0 };
	double flops = (double)m * (double)n * (double)n + pow((double)n, 3) / 3;
	char row[64];

	fill(m * n, w, "w", 0.02f);
	for (int i = 0; i < runs; i++) {
		add(&limit, flops / peak(peak_f32()) * 1e-9);
		for (int v = 0; v < VARIANTS; v++)
			add(&time[v], solve(&variants[v], m, n, w, h));
	}
	for (int v = 0; v < VARIANTS; v++) {
		snprintf(row, sizeof row, variants[v].name, m, n);
		print(row, "limit", variants[v].dpq ? &time[v - 1] : &limit);
		print(row, "ours", &time[v]);
	}
	free(w);
	free(h);
}

static void run_solver(void)
{
	device = device_open(getenv("PTQ_DEVICE"));
	solver_rows(4096, 4096);
	solver_rows(11008, 4096);
}

/* As in calibration: windows that run through a block together, one after another up to 131072 tokens. */
static void run_hessian(void)
{
	enum { WINDOW = 2048, WINDOWS = 8, TOKENS = 131072 };
	size_t rows = WINDOW * WINDOWS;
	float *x = xalloc(rows * SIDE, sizeof *x);
	uint16_t *half_x = xalloc(rows * SIDE, sizeof *half_x);
	struct square s = square_make();
	struct moments h = moments_make(SIDE, true), h16 = moments_make(SIDE, true);
	struct samples rate = { 0 }, limit = { 0 }, rate16 = { 0 }, limit16 = { 0 };
	double start, work = (double)SIDE * SIDE * (double)rows * 1e-9;

	fill(rows * SIDE, x, "x", 1);
	half_narrow(rows * SIDE, half_x, x, HALF_BF16);
	ssyrk(&s);
	for (size_t i = 0; i < TOKENS; i += rows) {
		add(&limit, ssyrk(&s));
		start = omp_get_wtime();
		for (size_t k = 0; k < WINDOWS; k++)
			moments_add(&h, 1, WINDOW, (const float (*)[WINDOW][SIDE])(x + k * WINDOW * SIDE));
		add(&rate, work / (omp_get_wtime() - start));
		add(&limit16, peak_of_bf16());
		start = omp_get_wtime();
		for (size_t k = 0; k < WINDOWS; k++)
			moments_add_bf16(&h16, 1, WINDOW,
				(const uint16_t (*)[WINDOW][SIDE])(half_x + k * WINDOW * SIDE));
		add(&rate16, work / (omp_get_wtime() - start));
	}
	print("hessian-f32", "limit", &limit);
	print("hessian-f32", "ours", &rate);
	print("hessian-bf16", "limit", &limit16);
	print("hessian-bf16", "ours", &rate16);
	moments_free(&h);
	moments_free(&h16);
	square_free(&s);
	free(half_x);
	free(x);
}

/* Layers as they are multiplied; the time includes rounding and preparing inputs. compute: DPQ's FP8. */
static const struct layer_kind {
	const char *name, *storage, *compute, *input;
	long group;
	double (*limit)(void);
} layer_kinds[] = {
	{ "bf16", NULL, NULL, NULL, 0, peak_of_bf16 },
	{ "w8a8", "int8", NULL, "int8", 0, peak_of_bytes },
	{ "w4a8-g128", "int4", NULL, "int8", 128, peak_of_bytes },
	{ "w4a8-fp8", "int4", "e4m3fn", "e4m3fn", 128, peak_of_bf16 },
};

struct layer_data { float *x, *y, *w, *scale; uint8_t *codes; uint16_t *half; };

static struct linear layer_of(const struct layer_kind *kind, struct layer_data *d, size_t n, size_t k)
{
	static const float scale8 = 0.125f;
	struct linear l = { .out = n, .in = k, .weight = d->half, .weight_type = HALF_BF16 };

	if (!kind->storage)
		return l;
	l = (struct linear){ .out = n, .in = k, .codes = d->codes, .scale = d->scale, .group = kind->group,
		.groups = linear_groups(k, kind->group), .scale8 = &scale8, .scales8 = 1 };
	format_parse(&l.storage, kind->storage);
	if (kind->compute)
		format_parse(&l.compute, kind->compute);
	l.input.mode = INPUT_DYNAMIC_TOKEN;
	format_parse(&l.input.format, kind->input);
	return l;
}

static void layer_rows(const struct layer_kind *kind, struct layer_data *d, size_t m, size_t n, size_t k)
{
	const struct linear l = layer_of(kind, d, n, k);
	struct samples rate = { 0 }, limit = { 0 };
	struct product p = product_choose(&l, kind->storage ? COMPUTE_F32 : COMPUTE_BF16, 0);
	void *weight = xalloc(product_size(&p, n), 1), *workspace = xalloc(product_workspace(&p, m), 1);
	char *row = xformat("%s-%zux%zux%zu", kind->name, m, n, k);

	product_make(&p, 0, n, weight);
	for (int i = -1; i < runs; i++) {	/* the first run does not count */
		const double max = kind->limit(), start = omp_get_wtime();
		const void *input = product_input(&p, m, workspace, (const float (*)[k])d->x, NULL);

		product_run(&p, 0, n, m, n, (float (*)[n])d->y, input, NULL, false);
		if (i < 0)
			continue;
		add(&rate, 2e-9 * (double)(m * n * k) / (omp_get_wtime() - start));
		if (max > 0)
			add(&limit, max);
	}
	print(row, "ours", &rate);
	if (limit.n)
		print(row, "limit", &limit);
	free(weight), free(workspace), free(row);
}

static void run_layers(void)
{
	static const size_t sizes[][3] = { { 512, 2304, 768 }, { 512, 4096, 768 }, { 2048, 4096, 4096 } };
	struct layer_data d = { .x = xalloc(2048 * SIDE, 4), .y = xalloc(2048 * SIDE, 4),
		.w = xalloc(SIDE * SIDE, 4), .scale = xalloc(SIDE * SIDE / 128, 4),
		.codes = xalloc(SIDE * SIDE, 1), .half = xalloc(SIDE * SIDE, 2) };

	fill(2048 * SIDE, d.x, "x", 1);
	fill(SIDE * SIDE, d.w, "w", 0.02f);
	fill(SIDE * SIDE / 128, d.scale, "scale", 0.01f);
	half_narrow(SIDE * SIDE, d.half, d.w, HALF_BF16);
	for (size_t i = 0; i < SIDE * SIDE; i++)
		d.codes[i] = (uint8_t)(i * 7 % 15);
	for (size_t kind = 0; kind < sizeof layer_kinds / sizeof *layer_kinds; kind++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			layer_rows(&layer_kinds[kind], &d, sizes[i][0], sizes[i][1], sizes[i][2]);
	free(d.x), free(d.y), free(d.w), free(d.scale), free(d.codes), free(d.half);
}

CLONES(static, void, multiply, (size_t n, float x[n], float by), (n, x, by))
{
	for (size_t i = 0; i < n; i++)
		x[i] *= by;
}

/* In place. The limit is a pass that only scales, or the additions of K if they take longer. */
static void hadamard_rows(size_t n, size_t m)
{
	float (*x)[n] = xalloc(m, sizeof *x);
	struct samples time = { 0 }, pass = { 0 }, ratio = { 0 }, limit = { 0 };
	struct hadamard h;
	char row[64];
	void *memory;

	if (!hadamard_choose(&h, n, 0))
		die("there is no matrix of order %zu", n);
	memory = xalloc(hadamard_bytes(&h) + 1, 1);
	hadamard_build(&h, memory);
	fill(m * n, x[0], "x", 1);
	for (int i = -1; i < runs; i++) {	/* the first run does not count */
		double additions = h.small > 1 ? 1e-9 * (double)(m * n * h.small) / peak(peak_f32()) : 0;
		double start = omp_get_wtime(), scaled, done;

		#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
		for (size_t r = 0; r < m; r++)
			multiply(n, x[r], 1 - 0x1p-20f);
		scaled = omp_get_wtime();
		hadamard_product(&h, false, m, n, x);
		done = omp_get_wtime();
		if (i < 0)
			continue;
		add(&pass, 1e3 * (scaled - start));
		add(&limit, 1e3 * fmax(scaled - start, additions));
		add(&ratio, (done - scaled) / (scaled - start));
		add(&time, 1e3 * (done - scaled));
	}
	snprintf(row, sizeof row, "hadamard-%zux%zu", n, m);
	print(row, "ours", &time);
	print(row, "pass", &pass);
	print(row, "to_pass", &ratio);
	print(row, "limit", &limit);
	free(memory), free(x);
}

static void run_hadamard(void)
{
	hadamard_rows(4096, 11008);
	hadamard_rows(11008, 4096);
	hadamard_rows(14336, 4096);
	hadamard_rows(18944, 3584);
}

/* Shapes of the linear layers of a block. */
struct block { const char *name; size_t width, kv, intermediate; };

/* Adds the seconds of the layer's products with m rows, and separately those of preparing inputs. */
static void layer_seconds(const struct linear *l, const struct layer_data *d, size_t m, bool prepares,
	double *total, double *inputs)
{
	struct product p = product_choose(l, COMPUTE_F32, 0);
	void *weight = xalloc(product_size(&p, l->out), 1), *workspace = xalloc(product_workspace(&p, m), 1);
	const void *input = product_input(&p, m, workspace, (const float (*)[l->in])d->x, NULL);
	double start, ready;

	product_make(&p, 0, l->out, weight);
	start = omp_get_wtime();
	if (prepares)
		input = product_input(&p, m, workspace, (const float (*)[l->in])d->x, NULL);
	ready = omp_get_wtime();
	product_run(&p, 0, l->out, m, l->out, (float (*)[l->out])d->y, input, NULL, false);
	*total += omp_get_wtime() - start;
	*inputs += ready - start;
	free(weight), free(workspace);
}

/* W8A8 after an online Hadamard against float: milliseconds for 512 rows, and the fractions of rounding and
 * of the Hadamard in all products of the block. */
static void block_rows(const struct block *b, struct layer_data *d)
{
	enum { M = 512, LAYERS = 4 };
	const size_t size[LAYERS][2] = { { b->width + 2 * b->kv, b->width }, { b->width, b->width },
		{ 2 * b->intermediate, b->width }, { b->width, b->intermediate } };
	const struct layer_kind kind = { .storage = "int8", .input = "int8" };
	struct samples ours = { 0 }, wide = { 0 }, rounding = { 0 }, turning = { 0 };
	char *row = xformat("int8-block-%s", b->name), *rounds = xformat("rounding-share-%s", b->name);
	char *turns = xformat("hadamard-share-%s", b->name);
	struct hadamard h;
	void *memory;

	hadamard_choose(&h, b->intermediate, 0);
	memory = xalloc(hadamard_bytes(&h) + 1, 1);
	hadamard_build(&h, memory);
	for (int i = -1; i < runs; i++) {	/* the first run does not count */
		double total = 0, inputs = 0, floats = 0, none = 0, transposed = omp_get_wtime();

		hadamard_product(&h, false, M, b->intermediate, (float (*)[b->intermediate])d->x);
		transposed = omp_get_wtime() - transposed;
		for (size_t k = 0; k < LAYERS; k++) {
			const size_t out = size[k][0], in = size[k][1];
			const struct linear l = layer_of(&kind, d, out, in);

			layer_seconds(&l, d, M, true, &total, &inputs);
			layer_seconds(&(struct linear){ .out = out, .in = in, .weight = d->w }, d, M,
				false, &floats, &none);
		}
		total += transposed;
		if (i < 0)
			continue;
		add(&ours, 1e3 * total), add(&wide, 1e3 * floats);
		add(&rounding, inputs / total), add(&turning, transposed / total);
	}
	print(row, "ours", &ours), print(row, "limit", &wide);
	print(rounds, "ours", &rounding), print(turns, "ours", &turning);
	free(memory), free(row), free(rounds), free(turns);
}

static void run_blocks(void)
{
	static const struct block blocks[] = { { "smollm2-135m", 576, 192, 1536 },
		{ "llama-7b", 4096, 4096, 11008 } };
	const size_t max = 2 * 11008 * (size_t)SIDE;
	struct layer_data d = { .x = xalloc(512 * 11008, 4), .y = xalloc(512 * 2 * 11008, 4),
		.w = xalloc(max, 4), .scale = xalloc(2 * 11008, 4), .codes = xalloc(max, 1) };

	fill(512 * 11008, d.x, "x", 1);
	fill(max, d.w, "w", 0.02f);
	fill(2 * 11008, d.scale, "scale", 0.01f);
	for (size_t i = 0; i < max; i++)
		d.codes[i] = (uint8_t)(i * 7 % 255);
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		block_rows(&blocks[i], &d);
	free(d.x), free(d.y), free(d.w), free(d.scale), free(d.codes);
}

/* Bytes of the solver's workspace for a block of a Llama with 70 billion parameters, solved together. */
static void run_work(void)
{
	static const struct { size_t out, in; char input; } shape[] = {
		{ 8192, 8192, 1 }, { 1024, 8192, 1 }, { 1024, 8192, 1 }, { 8192, 8192, 2 },
		{ 28672, 8192, 3 }, { 28672, 8192, 3 }, { 8192, 28672, 4 },
	};
	enum { LAYERS = sizeof shape / sizeof *shape };
	static const float input[5];		/* in place of the Hessians: only the address is used */
	struct linear linear[LAYERS];
	struct solver_layer layer[LAYERS];
	struct solver s = { .group = 128, .damp = 0.01 };

	format_parse(&s.storage, "uint4");
	format_parse(&s.compute, "e4m3fn");
	solver_recipe(&s, RECIPE_LATE);
	for (size_t i = 0; i < LAYERS; i++) {
		linear[i] = (struct linear){ .out = shape[i].out, .in = shape[i].in };
		layer[i] = (struct solver_layer){ .weight = &linear[i], .settings = &s,
			.h = &input[(int)shape[i].input] };
	}
	printf("work-70b-block\tbytes\t%zu\n", solver_workspace(LAYERS, layer));
}

int main(int argc, char *argv[])
{
	static const struct section parts[] = {
		{ "peak", run_peak }, { "sgemm", run_sgemm }, { "solver", run_solver },
		{ "hessian", run_hessian }, { "layers", run_layers }, { "hadamard", run_hadamard },
		{ "blocks", run_blocks }, { "work", run_work },
	};

	runs = 5;
	return bench_main(argc, argv, "kernels", sizeof parts / sizeof *parts, parts);
}
