/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ldlq -- BlockLDLQ against GPTQ by blocks in plain double, with a search through the whole codebook
 *
 * The reference takes the codes of earlier blocks as they are, compensates their errors by U = chol(H⁻¹), and
 * asserts that the code of each block is the nearest to what it finds.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "num/code_form.h"
#include "num/e8p.h"
#include "num/linalg.h"
#include "num/trellis.h"
#include "solver/ldlq.h"

enum { M = 70, N = 300, B = E8P_COLUMNS, ALL = 1 << 16, TOKENS = 3 * N };
static const double damp = 0.05;
static float w[M][N], h[N][N], point[ALL][B];

static void make(void)
{
	const struct random_stream stream = random_open(1, "ldlq");
	const float one[B] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	const uint8_t zero[B] = { 0 };
	struct format f;
	uint64_t k = 0;

	for (size_t i = 0; i < M * N; i++)
		w[i / N][i % N] = (float)(random_normal(&stream, k++) * (i % 7 ? 0.1 : 0.2));
	for (size_t t = 0; t < TOKENS; t++) {
		const double common = random_normal(&stream, k++);
		double x[N];

		for (size_t i = 0; i < N; i++)
			x[i] = (random_normal(&stream, k++) + common) * (double)(1 + i % 3);
		for (size_t i = 0; i < N; i++)
			for (size_t j = 0; j < N; j++)
				h[i][j] += (float)(x[i] * x[j]);
	}
	assert_true(format_parse(&f, "e8p"));
	for (size_t c = 0; c < ALL; c++)
		code_form(&f)->decode(&f, 0, 0, B, point[c],
			(const uint8_t[]){ (uint8_t)c, (uint8_t)(c >> 8) }, one, zero);
}

/* u: upper, uᵀu = (H + damp · mean)⁻¹ */
static void upper_of_inverse(double u[N][N])
{
	double (*a)[2 * N] = xalloc(N, sizeof *a), mean = 0;

	for (size_t i = 0; i < N; i++)
		mean += (double)h[i][i] / N;
	for (size_t i = 0; i < N; i++) {
		for (size_t j = 0; j < N; j++)
			a[i][j] = (double)h[i][j];
		a[i][i] += damp * mean;
		a[i][N + i] = 1;
	}
	for (size_t k = 0; k < N; k++)		/* Gauss and Jordan; the matrix is positive definite */
		for (size_t i = 0; i < N; i++) {
			const double by = i == k ? 1 - 1 / a[k][k] : a[i][k] / a[k][k];

			if (i == k)
				continue;
			for (size_t j = 0; j < 2 * N; j++)
				a[i][j] -= by * a[k][j];
		}
	for (size_t i = 0; i < N; i++)
		for (size_t j = i; j < N; j++) {
			double sum = a[i][N + j] / a[i][i];

			for (size_t k = 0; k < i; k++)
				sum -= u[k][i] * u[k][j];
			u[i][j] = j == i ? sqrt(sum) : sum / u[i][i];
		}
	free(a);
}

/* v -= e (U_kk)⁻¹ U_k,>k for the block at column i, whose errors are e. */
static void compensate(const double u[N][N], double v[N], size_t i, size_t width, const double e[])
{
	double z[TRELLIS_SIDE];

	for (size_t k = 0; k < width; k++) {	/* z U_kk = e */
		z[k] = e[k];
		for (size_t j = 0; j < k; j++)
			z[k] -= z[j] * u[i + j][i + k];
		z[k] /= u[i + k][i + k];
	}
	for (size_t j = i + width; j < N; j++)
		for (size_t k = 0; k < width; k++)
			v[j] -= z[k] * u[i + k][j];
}

/* The squared distance of the nearest point; that of residual codes, from the codebook's own search. */
static double least(const struct format *f, size_t width, const double x[B])
{
	double min = INFINITY;

	if (f->bits == 16 && width == B) {
		for (size_t c = 0; c < ALL; c++) {
			double sum = 0;

			for (size_t k = 0; k < B; k++)
				sum += (x[k] - (double)point[c][k]) * (x[k] - (double)point[c][k]);
			min = fmin(min, sum);
		}
	} else {
		static float in[B][E8P_LANES], y[B][E8P_LANES];
		static uint8_t code[E8P_LANES][E8P_BYTES];

		for (size_t k = 0; k < B; k++)
			in[k][0] = k < width ? (float)x[k] : 0;
		e8p_nearest(f, code, y, (const float (*)[E8P_LANES])in);
		min = 0;
		for (size_t k = 0; k < B; k++)
			min += pow((k < width ? x[k] : 0) - (double)y[k][0], 2);
	}
	return min;
}

/* Number of blocks of a row with a squared distance above the least by more than `bound`. */
static size_t wrong_blocks(const struct linear *l, const double (*u)[N], size_t row, double bound)
{
	float decoded[N + B] = { 0 };
	double v[N];
	size_t wrong = 0;

	linear_weight(l, row, 1, (float (*)[N])decoded);
	for (size_t i = 0; i < N; i++)
		v[i] = (double)w[row][i];
	for (size_t i = 0; i < N; i += B) {
		const size_t width = N - i < B ? N - i : B;
		const size_t g = l->group > 0 ? i / (size_t)l->group : 0;
		const double scale = (double)l->scale[l->group < 0 ? 0 : row * l->groups + g];
		double x[B] = { 0 }, e[B], distance = 0;

		for (size_t k = 0; k < width; k++) {
			x[k] = v[i + k] / scale;
			e[k] = v[i + k] - (double)decoded[i + k];
			distance += e[k] / scale * (e[k] / scale);
		}
		if (width == B)	/* in the last block, entries beyond the layer count, too */
			wrong += !(distance <= least(&l->storage, width, x) + bound);
		if (u)
			compensate(u, v, i, width, e);
	}
	return wrong;
}

static struct solver_report quantize(const char *format, long group, enum compensate compensate,
	const float *hessian, struct codes *c)
{
	static const struct linear plain = { .out = M, .in = N, .weight = w };
	struct solver s = { .group = group, .compensate = compensate, .damp = damp };
	struct solver_layer layer = { .weight = &plain, .settings = &s, .h = hessian, .codes = c };
	void *workspace;

	assert_true(format_parse(&s.storage, format));
	*c = codes_make(M, N, &s.storage, group);
	codes_lay_out(c, xalloc(codes_lay_out(c, NULL), 1));
	workspace = xalloc(ldlq_workspace(&layer), 1);
	ldlq_run(&layer, workspace);
	free(workspace);
	return layer.report;
}

static double energy(const double e[N])
{
	double sum = 0;

	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++)
			sum += e[i] * (double)h[i][j] * e[j];
	return sum;
}

/* tr(E H Eᵀ)/tr(W H Wᵀ) and the mean square of E. */
static void errors(const struct linear *l, double *error, double *mse)
{
	double sum[3] = { 0 };

	for (size_t o = 0; o < M; o++) {
		double e[N], plain[N];
		float y[N];

		linear_weight(l, o, 1, (float (*)[N])y);
		for (size_t i = 0; i < N; i++) {
			plain[i] = (double)w[o][i];
			e[i] = plain[i] - (double)y[i];
			sum[2] += e[i] * e[i];
		}
		sum[0] += energy(plain);
		sum[1] += energy(e);
	}
	*error = sum[1] / sum[0];
	*mse = sum[2] / (M * N);
}

static double rms_of(size_t row, size_t rows, size_t i, size_t columns)
{
	double sum = 0;

	for (size_t o = row; o < row + rows; o++)
		for (size_t k = i; k < i + columns; k++)
			sum += (double)w[o][k] * (double)w[o][k];
	return sqrt(sum / (double)(rows * columns));
}

static void check_scales(const struct codes *c)
{
	const double by = e8p_rms(&c->storage);

	for (size_t o = 0; o < (c->group < 0 ? 1 : M); o++)
		for (size_t g = 0; g < c->groups; g++) {
			const size_t from = g * (c->group > 0 ? (size_t)c->group : 0);
			const size_t next = from + (size_t)c->group;
			const size_t end = c->group > 0 && next < N ? next : N;
			const double s = rms_of(o, c->group < 0 ? M : 1, from, end - from) / by;

			assert_true(fabs((double)c->scale[o * c->groups + g] - s) <= 0x1p-24 * s);
		}
}

/*
 * Rounding changes a compensated weight, in units of its scale, by at most about N κ 2⁻²⁴ times the errors of
 * earlier weights: κ < 200 is the condition of the damped H, and these errors are below 1. So x differs by
 * less than 4e-3, and a squared distance by less than 2·‖difference of points‖ times that, in practice below
 * 1e-3 (one of 2¹⁶ points is typically 0.05 nearer than the next).
 */
static void as_defined(void **unused)
{
	static const char *const formats[] = { "e8p", "e8p3", "e8p4" };
	static const long groups[] = { -1, 0, 16 };
	static double u[N][N];

	(void)unused;
	upper_of_inverse(u);
	for (size_t f = 0; f < 3; f++)
		for (size_t g = 0; g < 3; g++)
			for (int fed = 0; fed < 2; fed++) {
				struct linear l = { .out = M, .in = N };
				struct solver_report r;
				struct codes c;
				double error, mse;
				size_t wrong = 0;

				CASE("%s, group %ld, compensation %d", formats[f], groups[g], fed);
				r = quantize(formats[f], groups[g], fed ? COMPENSATE_BOTH :
					COMPENSATE_NONE, h[0], &c);
				assert_int_equal(r.status, STATUS_DONE);
				codes_view(&c, &l);
				check_scales(&c);
				for (size_t o = 0; o < M; o += f ? 1 : 23)
					wrong += wrong_blocks(&l, fed ? (const double (*)[N])u : NULL, o,
						fed ? 1e-3 : 1e-5);
				assert_int_equal(wrong, 0);
				errors(&l, &error, &mse);
				assert_true(fabs(r.error / error - 1) < 1e-4);
				assert_true(fabs(r.mse / mse - 1) < 1e-5);
				assert_true(fed ? fabs(r.lambda - damp) < 1e-12 : r.lambda == 0);
				free(c.memory);
			}
}

/* The squared error of the best code for a tile of the columns x, and that of the weights w. */
static void tile_errors(const struct format *f, void *memory, const double x[TRELLIS_SIDE][TRELLIS_SIDE],
	const double y[TRELLIS_SIDE][TRELLIS_SIDE], double *best, double *ours)
{
	enum { T = TRELLIS_WEIGHTS, SIDE = TRELLIS_SIDE };
	uint8_t code[TRELLIS_BYTES];
	float in[T], found[T];

	for (size_t p = 0; p < T; p++)
		in[p] = (float)x[p / SIDE][p % SIDE];
	trellis_nearest(f, code, found, in, memory);
	*best = *ours = 0;
	for (size_t p = 0; p < T; p++) {
		*best += pow(x[p / SIDE][p % SIDE] - (double)found[p], 2);
		*ours += pow(x[p / SIDE][p % SIDE] - y[p / SIDE][p % SIDE], 2);
	}
}

/*
 * What a tile is rounded from, by GPTQ by blocks of 16 columns in double, costs as much with the code of the
 * layer as with the one that is found for it, up to the rounding of as_defined(). Where the ring is closed
 * may differ if two paths cost nearly the same: few tiles.
 */
static void trellis(void **unused)
{
	enum { SIDE = TRELLIS_SIDE };
	static double u[N][N], v[SIDE][N];
	struct linear l = { .out = M, .in = N };
	size_t off = 0, tiles = 0;
	struct solver_report r;
	struct codes c;
	double error, mse;
	void *memory;

	(void)unused;
	upper_of_inverse(u);
	r = quantize("1mad2-10", 0, COMPENSATE_BOTH, h[0], &c);
	assert_int_equal(r.status, STATUS_DONE);
	memory = xalloc(trellis_workspace(&c.storage), 1);
	codes_view(&c, &l);
	for (size_t o = 0; o + SIDE <= M; o += SIDE) {
		float decoded[SIDE][N];

		linear_weight(&l, o, SIDE, decoded);
		for (size_t i = 0; i < SIDE * N; i++)
			v[i / N][i % N] = (double)w[o + i / N][i % N];
		for (size_t i = 0; i + SIDE <= N; i += SIDE, tiles++) {
			double x[SIDE][SIDE], y[SIDE][SIDE], best, ours;

			for (size_t k = 0; k < SIDE; k++) {
				const double scale = (double)c.scale[o + k];
				double e[SIDE];

				for (size_t j = 0; j < SIDE; j++) {
					x[k][j] = v[k][i + j] / scale;
					y[k][j] = (double)decoded[k][i + j] / scale;
					e[j] = v[k][i + j] - (double)decoded[k][i + j];
				}
				compensate(u, v[k], i, SIDE, e);
			}
			tile_errors(&c.storage, memory, (const double (*)[SIDE])x,
				(const double (*)[SIDE])y, &best, &ours);
			off += fabs(ours / best - 1) > 1e-3;
		}
	}
	assert_true(tiles == 4 * 18 && off <= 3);
	errors(&l, &error, &mse);
	assert_true(fabs(r.error / error - 1) < 1e-4 && fabs(r.mse / mse - 1) < 1e-5);
	free(memory), free(c.memory);
}

static void compensation_helps(void **unused)
{
	struct codes a, b;
	const double with = quantize("e8p", -1, COMPENSATE_BOTH, h[0], &a).error;
	const double without = quantize("e8p", -1, COMPENSATE_NONE, h[0], &b).error;

	(void)unused;
	assert_true(with > 0 && with < 0.8 * without);
	free(a.memory), free(b.memory);
}

static void same_for_all_threads(void **unused)
{
	const int before = threads;
	struct codes a, b;

	(void)unused;
	quantize("e8p4", 16, COMPENSATE_BOTH, h[0], &a);
	threads = 1;
	quantize("e8p4", 16, COMPENSATE_BOTH, h[0], &b);
	threads = before;
	assert_memory_equal(a.codes, b.codes, M * code_columns(&a.storage, N));
	assert_memory_equal(a.scale, b.scale, a.scales * sizeof *a.scale);
	free(a.memory), free(b.memory);
}

static void unusual_inputs(void **unused)
{
	float (*other)[N] = xalloc(N, sizeof *other);
	struct solver_report r;
	struct codes c;

	(void)unused;
	r = quantize("e8p", -1, COMPENSATE_NONE, NULL, &c);
	assert_true(r.status == STATUS_DONE && isnan(r.error) && r.mse > 0);
	free(c.memory);
	r = quantize("e8p", -1, COMPENSATE_BOTH, other[0], &c);	/* no channel is live */
	assert_true(r.status == STATUS_DONE && r.dead == N && isnan(r.error) && r.mse > 0);
	free(c.memory);
	memcpy(other, h, sizeof h);
	other[5][7] = NAN;
	r = quantize("e8p", -1, COMPENSATE_BOTH, other[0], &c);
	assert_true(r.status == STATUS_BAD_HESSIAN && r.index == 5);
	free(c.memory);
	w[66][3] = INFINITY;
	r = quantize("e8p", 0, COMPENSATE_BOTH, h[0], &c);
	assert_true(r.status == STATUS_BAD_WEIGHT && r.index == 66);
	free(c.memory), free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_defined), cmocka_unit_test(trellis), cmocka_unit_test(compensation_helps),
		cmocka_unit_test(same_for_all_threads), cmocka_unit_test(unusual_inputs),
	};

	threads_init(0);
	linalg_init();
	make();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
