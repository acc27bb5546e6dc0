/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection -- layers that share an input: the input that observers receive, and that each layer multiplies
 * its own rounding of it, for any subset of layers that are rounded and multiplied together
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "forward/online.h"
#include "forward/projection.h"
#include "num/linalg.h"
#include "quant/pack.h"

enum { LAYERS = 3, IN = 96, ROWS = 21, ALL = 40, STRIDE = ALL + 2, WORDS = IN / 32 * 4, BLOCK = 7 };
enum { SPLITS = 2 };
static const size_t outs[LAYERS] = { 16, 8, 16 };

static struct random_stream noise;
static uint64_t drawn;

static float uniform(void)
{
	return (float)random_uniform(&noise, drawn++) * 2 - 1;
}

/* The input of a projection, and the input after its online Hadamard, which is the same without one. */
static float given[ROWS][IN], x[ROWS][IN], y[ROWS][STRIDE];

/* Receives the rows of the projection's input in their order. */
struct seen { size_t rows; const struct batch *batch; };

static void see(void *arg, size_t block, enum projection_name name, const struct batch *batch, size_t first,
	size_t rows, size_t in, const float *input)
{
	struct seen *s = arg;

	assert_true(block == BLOCK && name == PROJECTION_QKV && batch == s->batch && in == IN);
	assert_true(first == s->rows % ROWS && first + rows <= ROWS);
	s->rows += rows;
	assert_memory_equal(input, x[first], rows * sizeof *x);
}

/* The layer's outputs in double, computed for it alone, minus y; relative to the magnitudes of the sums. */
static double apart(const struct linear *l, size_t at, size_t m, const uint8_t *modality, size_t first)
{
	float (*w)[IN] = xalloc(l->out, sizeof *w), v[ROWS][IN];
	double worst = 0;

	linear_weight(l, 0, l->out, w);
	linear_input(l, m, v, (const float (*)[IN])&x[first], modality ? modality + first : NULL);
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < l->out; o++) {
			double sum = l->bias ? (double)l->bias[o] : 0, size = fabs(sum);

			for (size_t i = 0; i < IN; i++) {
				sum += (double)w[o][i] * (double)v[t][i];
				size += fabs((double)w[o][i] * (double)v[t][i]);
			}
			for (size_t k = 0; k < l->splits; k++) {
				const double part = (double)x[first + t][l->split_index[k]] *
					(double)l->split_weight[o * l->splits + k] *
					(double)(l->split_scale ? l->split_scale[k] : 1);

				sum += part;
				size += fabs(part);
			}
			worst = fmax(worst, fabs(sum - (double)y[t][at + o]) / size);
		}
	free(w);
	return worst;
}

/* The rounding of inputs and weights by a type, besides that of sums. */
static const double errors[] = { [COMPUTE_F32] = 1e-5, [COMPUTE_BF16] = 0.008, [COMPUTE_INT16] = 1e-3 };

/* A projection of layers. Layer i is packed, has split columns, or rounds by mode and scale, if bit i of the
 * mask is set. */
static struct projection *make(enum compute_type type, size_t rows, unsigned packed, unsigned split,
	const int mode[LAYERS], const size_t scale_of[LAYERS])
{
	static const int32_t columns[SPLITS] = { 3, 50 };
	static float splits[LAYERS][16 * SPLITS];
	static const float scales[] = { 0.01f, 0.03f, 0.02f, 0.05f };
	static float weight[LAYERS][16 * IN], scale[16], bias[LAYERS][16];
	static uint32_t words[LAYERS][16 * WORDS];
	struct projection *s = xalloc(1, sizeof *s);

	s->name = PROJECTION_QKV, s->block = BLOCK, s->type = type, s->rows = rows, s->in = IN;
	for (; s->layers < LAYERS; s->out += outs[s->layers++]) {
		const size_t i = s->layers;
		struct linear *l = &s->layer[i].linear;
		uint8_t code[IN];

		*l = (struct linear){ .out = outs[i], .in = IN, .weight = weight[i] };
		l->bias = i == 1 ? NULL : bias[i];
		if (packed >> i & 1)
			l->weight = NULL, l->packed = words[i], l->scale = scale, l->groups = 1;
		assert_true(format_parse(&l->storage, i ? "e2m1" : "int4"));
		for (size_t o = 0; o < outs[i]; o++) {
			scale[o] = 0.1f, bias[i][o] = uniform();
			for (size_t k = 0; k < IN; k++)
				weight[i][o * IN + k] = uniform(), code[k] = (uint8_t)((o * k + 3 * k) % 15);
			pack_row(4, IN, words[i] + o * WORDS, code);
		}
		l->input.mode = (enum input_mode)mode[i];
		l->input.scale = scales + scale_of[i], l->input.modalities = 2;
		assert_true(format_parse(&l->input.format, "e4m3fn"));
		if (split >> i & 1) {	/* with scales or without */
			l->splits = SPLITS, l->split_index = columns, l->split_weight = splits[i];
			l->split_scale = i ? scales : NULL;
			for (size_t k = 0; k < SPLITS * outs[i]; k++)
				splits[i][k] = uniform();
		}
		s->at[i] = s->out;
		s->product[i] = product_choose(l, type, rows);
	}
	for (size_t i = 0; i < LAYERS; i++) {
		const struct linear l = s->layer[i].linear;

		projection_set(s, i, &l);
	}
	return s;
}

static void check(struct projection *s)
{
	uint8_t modality[ROWS];
	struct batch batch = { .rows = ROWS, .modality = modality };
	struct seen seen = { .batch = &batch };
	const struct observer observer = { .on_input = see, .arg = &seen };
	const double max = errors[s->type];
	struct workspace workspace = { 0 };

	for (size_t t = 0; t < ROWS; t++)
		modality[t] = t % 3 == 1;
	projection_apply(s, &batch, 0, ROWS, STRIDE, y, (const float (*)[IN])given, &workspace, &observer,
		false);
	assert_int_equal(seen.rows, ROWS);
	for (size_t i = 0; i < LAYERS; i++)
		assert_true(apart(&s->layer[i].linear, s->at[i], ROWS, modality, 0) < max);
	for (size_t first = 0, m; first < ROWS; first += m) {	/* in pieces */
		const float (*piece)[IN] = (const float (*)[IN])&given[first];

		m = ROWS - first < 8 ? ROWS - first : 8;
		memset(y, 0, sizeof y);
		projection_apply(s, &batch, first, m, STRIDE, y, piece, &workspace, &observer, true);
		for (size_t i = 0; i < LAYERS; i++)
			assert_true(apart(&s->layer[i].linear, s->at[i], m, modality, first) < max);
		assert_true(y[0][ALL] == 0 && y[0][ALL + 1] == 0);
	}
	assert_int_equal(seen.rows, 2 * ROWS);
	projection_free(s);
	free(s);
	free(workspace.memory);
}

static void layers(void **unused)
{
	enum { NONE, TENSOR, TOKEN, EACH };	/* of enum input_mode */
	static const struct { int mode[LAYERS]; size_t scale[LAYERS]; } cases[] = {
		{ { NONE, NONE, NONE }, { 0 } }, { { TENSOR, TENSOR, TENSOR }, { 0, 0, 0 } },
		{ { TENSOR, TENSOR, TENSOR }, { 0, 1, 0 } }, { { EACH, EACH, EACH }, { 0, 0, 2 } },
		{ { EACH, TENSOR, EACH }, { 1, 1, 1 } }, { { TOKEN, TOKEN, NONE }, { 0, 1, 0 } },
		{ { NONE, TOKEN, NONE }, { 0 } },
	};

	(void)unused;
	for (unsigned n = 0; n < 2 * 3 * 8 * sizeof cases / sizeof *cases; n++) {
		CASE("cases %u", n);
		enum compute_type type = (enum compute_type)(n / 2 % 3);
		size_t rows = n % 2 * 16;	/* more rows follow at the end */
		const size_t order = n % 5 ? 0 : 12;	/* of an online Hadamard that is not symmetric */
		struct projection *s = make(type, rows, n / 6 % 8, n % 7, cases[n / 48].mode,
			cases[n / 48].scale);

		online_set(&s->online, IN, order);
		for (size_t t = 0; t < ROWS; t++)
			for (size_t i = 0; i < IN; i++)
				x[t][i] = given[t][i] = uniform();
		if (order)
			hadamard_product(&s->online.h, false, ROWS, IN, x);
		assert_true(!order == !memcmp(x, given, sizeof x));
		check(s);
	}
}

/* For rows of n numbers, each x becomes (x ∘ signs) H/√order. */
static void rotate(const struct linear_rotation *r, size_t n, size_t m, double w[m][n])
{
	struct hadamard h;
	void *memory;

	for (size_t i = 0; r->signs && i < m; i++)
		for (size_t j = 0; j < n; j++)
			w[i][j] *= r->signs[j];
	if (!r->hadamard)
		return;
	assert_true(hadamard_choose(&h, n, r->hadamard));
	memory = xalloc(hadamard_bytes(&h), 1);
	hadamard_build(&h, memory);
	hadamard_product_double(&h, false, m, n, w);
	free(memory);
}

/* What an observer of two_sided() receives: x, or the rotation of `given`. */
struct observed { bool rotated; bool called; };

static void see_rotated(void *arg, size_t block, enum projection_name name, const struct batch *batch,
	size_t first, size_t rows, size_t in, const float *input)
{
	struct observed *o = arg;

	(void)block, (void)name, (void)batch;
	assert_true(rows == ROWS && in == IN && !first);
	assert_true(o->rotated == !!memcmp(input, given, sizeof given));
	o->called = true;
}

/* The weight between the rotations of l, for a layer with the weight w. */
static float *inner(const struct linear *l, double w[l->out][l->in])
{
	double (*t)[l->out] = xalloc(l->in, sizeof *t);
	float *values = xalloc(l->out * l->in, sizeof *values);

	rotate(&l->rotation_in, l->in, l->out, w);
	for (size_t i = 0; i < l->in; i++)
		for (size_t o = 0; o < l->out; o++)
			t[i][o] = w[o][i];
	rotate(&l->rotation_out, l->out, l->in, t);
	for (size_t i = 0; i < l->in; i++)
		for (size_t o = 0; o < l->out; o++)
			values[o * l->in + i] = (float)t[i][o];
	free(t);
	return values;
}

/*
 * y = x wᵀ + b with the weight before the rotations, in double. Relative to the norm of a row, each rotation
 * and the rounding of the inner weight err by at most (log₂ order + 6) 2⁻²⁴, a product by IN 2⁻²⁴ of ‖x‖‖w‖.
 * The rest is the error of the bias.
 */
static void two_sided(void **unused)
{
	enum { OUT = 24, MOST = 4 };
	static const size_t orders[] = { 0, 12, 24, 8 };	/* H of 12 and 24 is not symmetric */
	struct workspace workspace = { 0 };

	(void)unused;
	for (unsigned n = 0; n < 4 * 4 * 8; n++) {
		CASE("n %u", n);
		const size_t layers = 1 + n % 3;
		struct projection s = { .name = PROJECTION_QKV, .type = COMPUTE_F32, .in = IN,
			.layers = layers, .out = layers * OUT };
		static double dense[LAYERS][OUT][IN];
		static int8_t signs[2][IN];
		static float bias[OUT], out[ROWS][LAYERS * OUT];
		const struct linear_rotation in = { n & 1 ? signs[0] : NULL, n & 2 ? 12 : 0 };
		const struct linear_rotation other = { signs[0], 12 };
		struct observed seen = { .rotated = in.hadamard && !in.signs };
		const struct observer observer = { .on_input = see_rotated, .arg = &seen };

		for (size_t i = 0; i < IN; i++)
			signs[0][i] = uniform() < 0 ? -1 : 1, signs[1][i] = uniform() < 0 ? -1 : 1;
		for (size_t o = 0; o < OUT; o++)
			bias[o] = uniform();
		for (size_t i = 0; i < layers; i++) {
			/* one of three is not rotated, so that rotated and other layers are mixed */
			const struct linear_rotation after = { i == 1 || n & 4 ? NULL : signs[1],
				i == 1 ? 0 : orders[n / 8 % 4] };
			struct linear *l = &s.layer[i].linear;
			double (*w)[IN] = xalloc(OUT, sizeof *w);

			for (size_t o = 0; o < OUT; o++)
				for (size_t j = 0; j < IN; j++)
					w[o][j] = dense[i][o][j] = (double)uniform();
			*l = (struct linear){ .out = OUT, .in = IN, .bias = n & 16 ? bias : NULL,
				.weight_type = HALF_NONE, .rotation_in = in, .rotation_out = after };
			l->weight = inner(l, w);
			free(w);
			s.at[i] = i * OUT;
			s.product[i] = product_choose(l, s.type, 0);
			online_rotation(&s.online, IN, &l->rotation_in);
			online_rotation(&s.after[i], OUT, n & 64 ? &other : &l->rotation_out);
		}
		projection_prepare(&s);
		for (size_t i = 0; n & 64 && i < layers; i++) {	/* after a layer with another rotation */
			const struct linear l = s.layer[i].linear;

			projection_set(&s, i, &l);
		}
		for (size_t t = 0; t < ROWS; t++) {
			for (size_t i = 0; i < IN; i++)
				given[t][i] = uniform();
			for (size_t o = 0; o < layers * OUT; o++)
				out[t][o] = n & 32 ? 1 : NAN;
		}
		projection_apply(&s, &(struct batch){ .rows = ROWS }, 0, ROWS, LAYERS * OUT, out,
			(const float (*)[IN])given, &workspace, &observer, n & 32);
		assert_true(seen.called);
		for (size_t t = 0; t < ROWS; t++)
			for (size_t i = 0; i < layers; i++) {
				double error = 0, weights = 0, inputs = 0;

				for (size_t j = 0; j < IN; j++)
					inputs += (double)given[t][j] * (double)given[t][j];
				for (size_t o = 0; o < OUT; o++) {
					double sum = (n & 16 ? (double)bias[o] : 0) + (n & 32 ? 1 : 0);

					for (size_t j = 0; j < IN; j++) {
						sum += (double)given[t][j] * dense[i][o][j];
						weights += dense[i][o][j] * dense[i][o][j];
					}
					error += (sum - (double)out[t][i * OUT + o]) *
						(sum - (double)out[t][i * OUT + o]);
				}
				assert_true(sqrt(error) < 0x1p-24 * ((IN + 3 * (MOST + 6)) *
					sqrt(inputs * weights) + 4 * sqrt(OUT)));
			}
		for (size_t i = 0; i < layers; i++) {
			free((void *)(uintptr_t)s.layer[i].linear.weight);
			s.layer[i].path = NULL;
		}
		projection_free(&s);
	}
	free(workspace.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers), cmocka_unit_test(two_sided),
	};

	threads_init(0);
	linalg_init();
	noise = random_open(1, "projection");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
