/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * branches -- the cost of a low-rank branch next to a quantized weight: products, and a step of FBQuant
 *
 *	branches [-r RUNS] [-j THREADS] layer|model|step...
 *
 * layer prints `out in rank rows format what seconds macs` for a layer of 4096 x 4096. It measures the weight
 * in f16 and packed in 4 or 3 bits, the packed weight with its branch in f16 as three products one after the
 * other (`unfused`) and as one (`fused`), and reading the bytes of the branch.
 *
 * model prints the same for the shapes of the layers of Llama-2-7B, with one row of x. Each layer has so many
 * copies that all weights come from memory.
 *
 * step prints the seconds of one step of FBQuant's optimizer for 4096 x 4096, rank 128 and groups of 128, and
 * of its five thin products by sgemm alone.
 *
 * Results are medians of RUNS rounds; each round runs all variants once. With -j 1 the time is CPU time of
 * the thread.
 */
#include <cblas.h>
#include <math.h>
#include "base/random.h"
#include "bench.h"
#include "branch/feedback.h"
#include "product/product.h"
#include "quant/pack.h"

enum { GROUP = 128, COPIES = 64 };

enum kind { F16, MAIN, UNFUSED, FUSED, READ, WAYS };
static const char *const ways[WAYS] = { "f16", "packed", "unfused", "fused", "read" };

/* A layer in f16, packed, and packed with its branch; the products of these, and of A and B alone. */
struct copy { struct linear f16, main, whole, a, b; struct product product[READ], pa, pb; void *memory[5]; };

/* The number of copies of `bytes` bytes, so that each copy comes from memory. */
static size_t copies_of(size_t bytes)
{
	const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	const size_t copies = 2 + 2 * (cache > 0 ? (size_t)cache : (size_t)64 << 20) / bytes;

	return copies < COPIES ? copies : COPIES;
}

/* Words that are ordinary numbers as halves and as float, and codes of any width. */
static void *numbers(size_t bytes)
{
	uint32_t *y = xalloc(bytes / 4 + 16, sizeof *y);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < bytes / 4 + 16; i++) {
		const uint32_t r = (uint32_t)(i * 2654435761u);

		y[i] = 0x2c002c00 | (r >> 20) | (r & 0xfff) << 16;
	}
	return y;
}

static struct linear halves(size_t out, size_t in)
{
	return (struct linear){ .out = out, .in = in, .weight = numbers(out * in * 2),
		.weight_type = HALF_F16 };
}

static struct product ready(const struct linear *l, size_t rows, void **memory)
{
	struct product p = product_choose(l, COMPUTE_F32, rows);

	*memory = xalloc(product_size(&p, l->out), 1);
	product_make(&p, 0, l->out, *memory);
	return p;
}

static void make_f16(struct copy *c, size_t out, size_t in, size_t rows)
{
	c->f16 = halves(out, in);
	c->product[F16] = ready(&c->f16, rows, &c->memory[0]);
	free((void *)(uintptr_t)c->f16.weight);		/* it has separate memory */
	c->f16.weight = NULL;
}

static void make(struct copy *c, size_t out, size_t in, size_t rank, size_t rows, const char *format)
{
	c->main = (struct linear){ .out = out, .in = in, .group = GROUP, .groups = in / GROUP };
	if (!format_parse(&c->main.storage, format))
		die("%s: no format", format);
	c->main.packed = numbers(out * pack_words(c->main.storage.bits, in) * 4);
	c->main.scale = numbers(out * (in / GROUP) * sizeof(float));
	c->main.zero = c->main.storage.asymmetric ? numbers(out * (in / GROUP)) : NULL;
	c->a = halves(rank, in), c->b = halves(out, rank);
	c->whole = c->main;
	c->whole.rank = rank, c->whole.branch_a = &c->a, c->whole.branch_b = &c->b;
	c->product[MAIN] = c->product[UNFUSED] = ready(&c->main, rows, &c->memory[1]);
	c->product[FUSED] = ready(&c->whole, rows, &c->memory[2]);
	c->pa = ready(&c->a, rows, &c->memory[3]), c->pb = ready(&c->b, rows, &c->memory[4]);
}

static void copy_free(struct copy *c)
{
	for (size_t i = 0; i < 5; i++)
		free(c->memory[i]);
	free((void *)(uintptr_t)c->a.weight), free((void *)(uintptr_t)c->b.weight);
	free((void *)(uintptr_t)c->main.packed), free((void *)(uintptr_t)c->main.scale);
	free((void *)(uintptr_t)c->main.zero);
}

/* Sum of the words, by all threads; the first word of the workspace receives it. */
static void read_words(size_t bytes, const void *p, uint32_t *y)
{
	const uint32_t *w = p;
	uint32_t sum = 0;

	#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+:sum)
	for (size_t i = 0; i < bytes / 4; i++)
		sum += w[i];
	*y += sum;
}

static void product(const struct product *p, size_t m, float *y, const float *x, void *workspace, bool add)
{
	const size_t out = p->l->out, in = p->l->in;
	const void *input = product_input(p, m, workspace, (const float (*)[in])x, NULL);

	product_run(p, 0, out, m, out, (float (*)[out])y, input, NULL, add);
}

static double seconds_of(const struct copy *c, enum kind k, size_t m, float *y, const float *x, float *ax,
	void *workspace)
{
	const double start = bench_now();

	if (k == READ) {
		read_words(c->a.out * c->a.in * 2, c->memory[3], workspace);
		read_words(c->b.out * c->b.in * 2, c->memory[4], workspace);
	} else
		product(&c->product[k], m, y, x, workspace, false);
	if (k == UNFUSED) {
		product(&c->pa, m, ax, x, workspace, false);
		product(&c->pb, m, y, ax, workspace, true);
	}
	return bench_now() - start;
}

/* Seconds of each variant, medians over rounds. In each round every variant uses the next copy. */
static void measure(size_t out, size_t in, size_t rank, size_t m, const char *format, double seconds[WAYS])
{
	const size_t copies = copies_of(out * in * 3 / 8), wide = copies_of(out * in * 2);
	struct copy *c = xalloc(copies, sizeof *c);
	float *x = xalloc(m * in, sizeof *x), *y = xalloc(m * out, sizeof *y);
	float *ax = xalloc(m * rank, sizeof *ax);
	double (*t)[RUNS] = xalloc(WAYS, sizeof *t);
	void *workspace;
	size_t turn[WAYS] = { 0, 0, copies / 3, 2 * copies / 3, 0 };

	for (size_t i = 0; i < m * in; i++)
		x[i] = sinf((float)i * 0.37f);
	for (size_t i = 0; i < copies; i++)
		make(&c[i], out, in, rank, m, format);
	for (size_t i = 0; i < wide; i++)
		make_f16(&c[i], out, in, m);
	workspace = xalloc(product_workspace(&c->product[FUSED], m) +
		product_workspace(&c->product[F16], m), 1);
	for (int r = -1; r < runs; r++)		/* the first round does not count */
		for (enum kind k = 0; k < WAYS; k++) {
			const size_t i = turn[k]++ % (k == F16 ? wide : copies);
			const double s = seconds_of(&c[i], k, m, y, x, ax, workspace);

			if (r >= 0)
				t[k][r] = s;
		}
	for (enum kind k = 0; k < WAYS; k++)
		seconds[k] = bench_median((size_t)runs, t[k]);
	for (size_t i = 0; i < copies; i++)
		copy_free(&c[i]);
	free(c), free(x), free(y), free(ax), free(workspace), free(t);
}

static void print(const char *format, size_t out, size_t in, size_t rank, size_t m, const double s[WAYS])
{
	for (enum kind k = 0; k < WAYS; k++)
		printf("%zu\t%zu\t%zu\t%zu\t%s\t%s\t%.5g\t%zu\n", out, in, rank, m, format, ways[k], s[k],
			k == READ ? 0 : m * (out * in +
			(k == UNFUSED || k == FUSED ? rank * (out + in) : 0)));
	fflush(stdout);
}

static const char head[] = "out\tin\trank\trows\tformat\twhat\tseconds\tmacs\n";

static void run_layer(void)
{
	static const size_t ranks[] = { 32, 64, 128, 256 }, rows[] = { 1, 2, 4, 8, 16, 64, 256 };
	double s[WAYS];

	printf("%s", head);
	for (size_t f = 0; f < 2; f++)
		for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
			for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
				if (rows[k] > 1 && (ranks[i] != 128 || (f && rows[k] > PRODUCT_FEW)))
					continue;
				measure(4096, 4096, ranks[i], rows[k], f ? "uint3" : "uint4", s);
				print(f ? "uint3" : "uint4", 4096, 4096, ranks[i], rows[k], s);
			}
}

static void run_model(void)
{
	static const size_t shape[][2] = { { 4096, 4096 }, { 11008, 4096 }, { 4096, 11008 } };
	double s[WAYS];

	printf("%s", head);
	for (size_t f = 0; f < 2; f++)
		for (size_t i = 0; i < 3; i++) {
			measure(shape[i][0], shape[i][1], 128, 1, f ? "uint3" : "uint4", s);
			print(f ? "uint3" : "uint4", shape[i][0], shape[i][1], 128, 1, s);
		}
}

/* ---- a step of FBQuant ---- */

enum { N = 4096, RANK = 128, STEPS = 4 };

static double seconds_of_run(struct feedback_layer *l, void *workspace)
{
	const double start = bench_now();

	feedback_run(l, workspace);
	return bench_now() - start;
}

/* A H, Δ (A H)ᵀ, B A, Bᵀ Δ and that times H. */
static double seconds_of_products(const float *w, const float *h, float *a, float *b, float *y)
{
	const double start = bench_now();

	openblas_set_num_threads(threads);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, RANK, N, N, 1, a, N, h, N, 0, y, N);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, RANK, N, 1, w, N, a, N, 0, b, RANK);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, RANK, 1, b, RANK, a, N, 0, y, N);
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RANK, N, N, 1, b, RANK, w, N, 0, y, N);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, RANK, N, N, 1, a, N, h, N, 0, y, N);
	openblas_set_num_threads(1);
	return bench_now() - start;
}

static void run_step(void)
{
	const struct random_stream random = random_open(1, "step");
	struct feedback few = { .group = GROUP, .rank = RANK, .steps = 1, .rate = 1e-3, .every = 1000 }, many;
	float *w = xalloc((size_t)N * N, sizeof *w), *h = xalloc((size_t)N * N, sizeof *h);
	float *y = xalloc((size_t)N * N, sizeof *y);
	struct linear linear = { .out = N, .in = N, .weight = w };
	struct feedback_layer l = { .weight = &linear, .name = "step", .h = h, .whole = 1,
		.a = xalloc((size_t)RANK * N, sizeof(float)), .b = xalloc((size_t)N * RANK, sizeof(float)) };
	double ours[RUNS], limit[RUNS];
	void *workspace;

	format_parse(&few.storage, "uint4");
	many = few, many.steps = 1 + STEPS;
	l.settings = &few;
	workspace = xalloc(feedback_workspace(&l), 1);
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < (size_t)N * N; i++) {
		w[i] = 0.05f * (float)(random_uniform(&random, 2 * i) +
			random_uniform(&random, 2 * i + 1) - 1);
		h[i] = i / N == i % N ? 1 : 0;
	}
	for (int r = 0; r < runs; r++) {	/* a step is the difference of two runs */
		l.settings = &few;
		ours[r] = -seconds_of_run(&l, workspace);
		l.settings = &many;
		ours[r] = (ours[r] + seconds_of_run(&l, workspace)) / STEPS;
		limit[r] = seconds_of_products(w, h, l.a, l.b, y);
	}
	printf("fbquant-step\tours\t%.5g\nfbquant-step\tlimit\t%.5g\n", bench_median((size_t)runs, ours),
		bench_median((size_t)runs, limit));
	free(w), free(h), free(y), free(l.a), free(l.b), free(workspace);
}

int main(int argc, char *argv[])
{
	static const struct section parts[] = {
		{ "layer", run_layer }, { "model", run_model }, { "step", run_step },
	};

	return bench_main(argc, argv, "branches", sizeof parts / sizeof *parts, parts);
}
