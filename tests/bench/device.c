/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * device -- rates of a device: copies, products with packed codes, branches, Hadamard products
 *
 *	device [-r RUNS] [-s SHRINK] MODULE.so
 *
 * prints lines of `part shape format rows microseconds GB/s of_copy speedup`, with tabs. A time is the median
 * of RUNS rounds of CALLS calls. All calls of a round wait in the queue of the device before the first one
 * begins, so the time does not contain that of the host. Calls take weights in turn from a ring of RING
 * bytes, which no cache holds. GB/s is of all that has to be read and written once; of_copy is its part of
 * the rate of a copy. The speedup is that over the first line of the same part, shape and rows: for products
 * numbers of bf16 by the library of the vendor, for branches the layer without one, for Hadamard matrices the
 * product with the matrix.
 *
 * SHRINK divides the sizes, for a try on a slow device; then a round is one call.
 */
#include <math.h>
#include <unistd.h>
#include "bench.h"
#include "device/device_codes.h"
#include "device/device_open.h"
#include "quant/pack.h"

enum { CALLS = 50, ROUNDS = 21 };
static const size_t RING = (size_t)192 << 20;
static const double QUEUE = 3e-5;	/* seconds in which the host makes a call */

static const struct device *device;
static size_t shrink = 1;
static int calls = CALLS;
static double copy_rate;		/* bytes a second */

/* ---- measuring ---- */

/* Median of the seconds of call(data, k), for k of a ring of n. */
static double measure(void (*call)(void *data, size_t k), void *data, size_t n)
{
	double t[RUNS];

	for (int k = 0; k < (shrink > 1 ? 0 : CALLS); k++)
		call(data, (size_t)k % n);
	for (int r = 0, k = 0; r < runs; r++) {
		device->start(calls * QUEUE);
		for (int i = 0; i < calls; i++, k++)
			call(data, (size_t)k % n);
		t[r] = device->stop() / calls;
	}
	return bench_median((size_t)runs, t);
}

static void print(const char *part, const char *shape, const char *format, size_t m, double seconds,
	double bytes, double base)
{
	printf("%s\t%s\t%s\t%zu\t%.2f\t%.1f\t%.3f\t%.2f\n", part, shape, format, m, seconds * 1e6,
		bytes / seconds * 1e-9, bytes / seconds / copy_rate, base / seconds);
	fflush(stdout);
}

/* `bytes` of words on the device. plain: they are pairs of ordinary numbers of bf16, else any bits. */
static void *words(size_t bytes, bool plain)
{
	uint32_t *w = xalloc(bytes / 4 + 1, sizeof *w);
	void *x;

	for (size_t i = 0; i < bytes / 4; i++) {
		w[i] = (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 5) * 40503u;
		w[i] = plain ? (w[i] & 0x8fff8fffu) | 0x30003000u : w[i];
	}
	x = device_copy(device, w, bytes);
	free(w);
	return x;
}

static float *numbers(size_t n)
{
	float *x = xalloc(n, sizeof *x), *y;

	for (size_t i = 0; i < n; i++)
		x[i] = sinf((float)i * 0.37f) * 0.01f;
	y = device_copy(device, x, n * sizeof *x);
	free(x);
	return y;
}

static size_t ring_of(size_t bytes)
{
	const size_t n = RING / shrink / bytes + 1;

	return n < 2 ? 2 : n;
}

static void discard(const void *x)
{
	device_free(device, (void *)(uintptr_t)x);
}

/* ---- copies ---- */

struct copies { char *memory; size_t bytes; };

static void call_copy(void *data, size_t k)
{
	const struct copies *c = data;

	device->copy(c->memory + (2 * k + 1) * c->bytes, c->memory + 2 * k * c->bytes, c->bytes);
}

static void run_copy(void)
{
	struct copies c = { .bytes = ((size_t)256 << 20) / shrink / shrink & ~(size_t)15 };
	double seconds;

	c.memory = device_memory(device, 4, c.bytes);
	device->clear(c.memory, 4 * c.bytes);
	seconds = measure(call_copy, &c, 2);
	copy_rate = 2 * (double)c.bytes / seconds;
	print("copy", "-", "-", 1, seconds, 2 * (double)c.bytes, seconds);
	device->release(c.memory);
}

/* ---- products ---- */

struct shape { const char *text; size_t out, in; };
/* Layers of Llama-2-7B and of models of its size; a hidden layer of FBQuant figure 4 (d = 4096). */
static const struct shape shapes[] = {
	{ "4096x4096", 4096, 4096 }, { "11008x4096", 11008, 4096 }, { "4096x11008", 4096, 11008 },
};

/* A layer: numbers of bf16 if there is no format. b, ax, a: of a branch. */
struct layer {
	struct device_packed p;
	struct device_product product, down, up;
	size_t codes, scales;		/* bytes of a weight of the ring */
	size_t ring;
};

/* format NULL: numbers of bf16; group 0: a scale for a row */
static struct layer layer_of(const struct shape *s, const char *format, size_t group, size_t m)
{
	const size_t out = s->out / shrink, in = s->in / shrink;
	struct layer l = { .p = { .m = m, .out = out, .in = in, .stride = out, .group = group } };
	const size_t groups = group ? (in + group - 1) / group : 1;
	struct format f = { .bits = 16 };

	if (format) {
		if (!format_parse(&f, format) || !device_codes_fit(&f, group))
			die("%s: not a format of packed products", format);
		device_codes(device, &f, &l.p);
		l.scales = out * groups * sizeof(float);
	}
	l.codes = format ? out * pack_words(f.bits, in) * sizeof(uint32_t) : out * in * sizeof(uint16_t);
	l.ring = ring_of(l.codes + l.scales);
	l.p.packed = words(l.ring * l.codes, !format);
	if (format)
		l.p.scale = numbers(l.ring * l.scales / sizeof(float));
	if (f.asymmetric)
		l.p.zero = words(l.ring * out * groups, false);
	l.p.x = numbers(m * in);
	l.p.y = device_memory(device, m * out, sizeof(float));
	l.product = (struct device_product){ m, out, in, out, DEVICE_BF16, l.p.y, l.p.x, NULL, false };
	return l;
}

static void layer_end(struct layer *l)
{
	discard(l->p.packed), discard(l->p.scale), discard(l->p.zero), discard(l->p.table);
	discard(l->p.x), discard(l->p.y), discard(l->p.b), discard(l->p.ax), discard(l->down.w);
}

static void call_packed(void *data, size_t k)
{
	const struct layer *l = data;
	struct device_packed p = l->p;

	p.packed += k * l->codes / sizeof *p.packed;
	if (p.scale)
		p.scale += k * l->scales / sizeof *p.scale;
	if (p.zero)
		p.zero += k * l->scales / sizeof *p.scale;
	device->packed(&p);
}

static void call_product(void *data, size_t k)
{
	const struct layer *l = data;
	struct device_product p = l->product;

	p.w = (const char *)l->p.packed + k * l->codes;
	device->product(&p);
}

static double layer_bytes(const struct layer *l)
{
	return (double)(l->codes + l->scales + (l->p.zero ? l->scales / 4 : 0) +
		l->p.m * (l->p.in + l->p.out) * sizeof(float));
}

static const struct { const char *text, *format; size_t group; } kinds[] = {
	{ "int8", "int8", 0 }, { "e2m2", "e2m2", 0 }, { "e2m2-g128", "e2m2", 128 },
	{ "int5", "int5", 0 }, { "nf5", "nf5", 0 }, { "int4", "int4", 0 }, { "int4-g128", "int4", 128 },
	{ "uint4-g128", "uint4", 128 }, { "int4-g32", "int4", 32 }, { "nf4-g128", "nf4", 128 },
	{ "int3-g128", "int3", 128 }, { "int2-g128", "int2", 128 },
};

static void run_shape(const struct shape *s, size_t m)
{
	struct layer l = layer_of(s, NULL, 0, m);
	const double base = measure(call_product, &l, l.ring);

	print("product", s->text, "bf16-library", m, base, layer_bytes(&l), base);
	layer_end(&l);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		l = layer_of(s, kinds[i].format, kinds[i].group, m);
		print("product", s->text, kinds[i].text, m, measure(call_packed, &l, l.ring), layer_bytes(&l),
			base);
		layer_end(&l);
	}
}

static void run_products(void)
{
	static const size_t rows[] = { 1, 2, 4, 16 };

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (size_t k = 0; k < (i == 1 ? sizeof rows / sizeof *rows : 1); k++)
			run_shape(&shapes[i], rows[k]);
}

/* ---- branches: A x, then the layer with B A x in one call, or in two ---- */

static void call_apart(void *data, size_t k)
{
	struct layer *l = data;
	const size_t rank = l->p.rank;

	l->p.rank = 0;
	call_packed(l, k);
	l->p.rank = rank;
	device->product(&l->down);
	device->product(&l->up);
}

static void call_fused(void *data, size_t k)
{
	const struct layer *l = data;

	device->product(&l->down);
	call_packed(data, k);
}

static void run_branch(void)
{
	static const size_t rank = 128;
	struct layer l = layer_of(&shapes[0], "int4", 128, 1);
	const double alone = measure(call_packed, &l, l.ring), bytes = layer_bytes(&l);
	const size_t m = l.p.m, out = l.p.out, in = l.p.in;
	const double more = bytes + (double)(rank * (in + out) * sizeof(uint16_t));
	float *ax = device_memory(device, m * rank, sizeof *ax);

	l.p.rank = rank;
	l.p.type = DEVICE_BF16;
	l.p.b = words(out * rank * sizeof(uint16_t), true);
	l.p.ax = ax;
	l.down = (struct device_product){ m, rank, in, rank, DEVICE_BF16, ax, l.p.x,
		words(rank * in * sizeof(uint16_t), true), false };
	l.up = (struct device_product){ m, out, rank, out, DEVICE_BF16, l.p.y, ax, l.p.b, true };
	print("branch", shapes[0].text, "none", m, alone, bytes, alone);
	print("branch", shapes[0].text, "apart", m, measure(call_apart, &l, l.ring), more, alone);
	print("branch", shapes[0].text, "fused", m, measure(call_fused, &l, l.ring), more, alone);
	layer_end(&l);
}

/* ---- products of many rows: numbers, and bytes with the rounding of their inputs ---- */

struct matrices {
	struct device_product product;
	struct device_bytes bytes;
	struct device_format format;
	float scale;			/* of inputs; 0: of each row */
};

static void call_matrices(void *data, size_t k)
{
	const struct matrices *c = data;

	(void)k;
	device->product(&c->product);
}

static void call_bytes(void *data, size_t k)
{
	const struct matrices *c = data;
	const struct device_rounding r = { &c->format, c->scale, 0 };
	const struct device_bytes *p = &c->bytes;

	(void)k;
	device->quantize(&r, p->m, p->k, (void *)(uintptr_t)p->x, p->type, (float *)(uintptr_t)p->row,
		c->product.x);
	device->bytes(p);
}

static void run_matrices(const struct shape *s, size_t m)
{
	static const struct { const char *text; enum device_type type; float scale; } types[] = {
		{ "bf16-library", DEVICE_BF16, 0 }, { "f32-library", DEVICE_F32, 0 },
		{ "int8-dynamic", DEVICE_INT8, 0 }, { "int8-static", DEVICE_INT8, 0.001f },
		{ "e4m3-dynamic", DEVICE_E4M3, 0 },
	};
	const size_t out = s->out / shrink, in = s->in / shrink;
	float *x = numbers(m * in), *y = device_memory(device, m * out, sizeof *y);
	float *row = numbers(m), *t = numbers(out);
	void *w = words(out * in * sizeof(float), true), *bytes = words(m * in, false);
	double base = 0;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct matrices c = { { m, out, in, out, types[i].type, y, x, w, false },
			{ m, out, in, out, types[i].type, y, bytes, w, row, t, false },
			.scale = types[i].scale };
		const bool numbers_of = types[i].type <= DEVICE_BF16;
		struct format f;
		double seconds;

		format_parse(&f, types[i].type == DEVICE_INT8 ? "int8" : "e4m3fn");
		c.format = device_format(&f);
		seconds = measure(numbers_of ? call_matrices : call_bytes, &c, 1);
		base = i ? base : seconds;
		print("matrices", s->text, types[i].text, m, seconds, (double)(m * (in + out)) * sizeof *x +
			(double)(out * in) * (types[i].type == DEVICE_F32 ? 4 : numbers_of ? 2 : 1), base);
	}
	discard(x), discard(y), discard(row), discard(t), discard(w), discard(bytes);
}

/* ---- Hadamard matrices ---- */

struct rotation { size_t m, n; float *y; const float *x, *h; };

static void call_rotation(void *data, size_t k)
{
	const struct rotation *r = data;

	(void)k;
	device->rotate(r->m, r->n, r->n, r->n, r->y, r->x, r->h);
}

static void run_rotations(void)
{
	static const size_t rows[] = { 1, 16, 2048 };

	for (size_t n = 4096 / shrink; n <= 16384 / shrink; n *= 4)
		for (size_t i = 0; i < sizeof rows / sizeof *rows && rows[i] <= 2048 / shrink; i++) {
			const size_t m = rows[i];
			float *y = device_memory(device, m * n, sizeof *y), *x = numbers(m * n);
			float *h = words(n * n * sizeof *h, true);
			struct rotation r = { m, n, y, x, h };
			const double base = measure(call_rotation, &r, 1);
			const double bytes = 2. * (double)(m * n) * sizeof *x;
			char text[32];

			snprintf(text, sizeof text, "%zu", n);
			print("hadamard", text, "matrix", m, base, bytes + (double)(n * n) * sizeof *h, base);
			r.h = NULL;
			print("hadamard", text, "fast", m, measure(call_rotation, &r, 1), bytes, base);
			discard(y), discard(x), discard(h);
		}
}

int main(int argc, char *argv[])
{
	int c;

	program = "device";
	runs = ROUNDS;
	while ((c = getopt(argc, argv, "r:s:")) != -1)
		if (c == 'r')
			runs = atoi(optarg);
		else if (c == 's')
			shrink = (size_t)atoi(optarg);
	if (runs < 1 || runs > RUNS || !shrink || optind + 1 != argc)
		misuse("device [-r RUNS] [-s SHRINK] MODULE.so");
	calls = shrink > 1 ? 1 : CALLS;
	device = device_open(argv[optind]);
	printf("part\tshape\tformat\trows\tmicroseconds\tGB/s\tof_copy\tspeedup\n");
	run_copy();
	run_products();
	run_branch();
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		run_matrices(&shapes[i], 2048 / shrink);
	run_rotations();
	fprintf(stderr, "%s\n", device->name);
	return 0;
}
