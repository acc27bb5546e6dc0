/* SPDX-License-Identifier: GPL-3.0-or-later */
/* correct -- corrections of weights against plain float64, and Qronos by GPTQ of the corrected weight */
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
#include "num/cholesky.h"
#include "num/linalg.h"
#include "solver/correct.h"

enum { N = 300, M = 70, TOKENS = 700, DEAD = 7 };	/* several tiles of each kind */

/* Σ x xᵀ and Σ z xᵀ of correlated inputs x, and z = x plus noise; column DEAD of x is 0. */
struct inputs { float h[N][N], g[N][N], w[M][N]; };

static struct inputs *draw(void)
{
	const struct random_stream stream = random_open(3, "correct");
	struct inputs *y = xalloc(1, sizeof *y);
	double (*h)[N] = xalloc(N, sizeof *h), (*g)[N] = xalloc(N, sizeof *g);
	double x[N], z[N];
	uint64_t drawn = 0;

	for (size_t t = 0; t < TOKENS; t++) {
		const double common = random_uniform(&stream, drawn++) - 0.5;

		for (size_t j = 0; j < N; j++) {
			const double own = random_uniform(&stream, drawn++) - 0.5;

			x[j] = j == DEAD ? 0 : own * (1 + (double)(j % 5)) + common;
		}
		for (size_t j = 0; j < N; j++) {
			const double own = random_uniform(&stream, drawn++) - 0.5;

			z[j] = x[j] + 0.2 * own + 0.1 * x[(j + 1) % N];
		}
		for (size_t i = 0; i < N; i++)
			for (size_t j = 0; j < N; j++)
				h[i][j] += x[i] * x[j], g[i][j] += z[i] * x[j];
	}
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++)
			y->h[i][j] = (float)h[i][j], y->g[i][j] = (float)g[i][j];
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++)
			y->w[i][j] = (float)(random_uniform(&stream, drawn++) - 0.5);
	free(h), free(g);
	return y;
}

/* x with x a = b for a row b, by elimination with the largest pivot; a and b are changed. */
static void solve(size_t n, double a[n][n], double b[n], double x[n])
{
	for (size_t k = 0; k < n; k++) {
		size_t p = k;

		for (size_t j = k + 1; j < n; j++)
			p = fabs(a[k][j]) > fabs(a[k][p]) ? j : p;
		for (size_t i = 0; i < n; i++) {	/* columns k and p change places */
			const double t = a[i][k];

			a[i][k] = a[i][p], a[i][p] = t;
		}
		const double t = b[k];

		b[k] = b[p], b[p] = t;
		for (size_t j = k + 1; j < n; j++) {
			const double f = a[k][j] / a[k][k];

			for (size_t i = k; i < n; i++)
				a[i][j] -= f * a[i][k];
			b[j] -= f * b[k];
		}
	}
	for (size_t k = n; k-- > 0;) {
		double sum = b[k];

		for (size_t i = k + 1; i < n; i++)
			sum -= x[i] * a[i][k];
		x[k] = sum / a[k][k];
	}
}

static double mean_live(const struct inputs *y)
{
	double sum = 0;

	for (size_t i = 0; i < N; i++)
		sum += (double)y->h[i][i];
	return sum / (N - 1);
}

/* Row o of the corrected weight, as the equations have it. alone = N: QEP. */
static void wanted(const struct inputs *y, double share, double damp, size_t alone, size_t o, double want[N])
{
	const double ridge = damp * mean_live(y);
	double (*a)[N] = xalloc(N, sizeof *a), right[N], x[N], first = 0;
	size_t n = 0, column[N];
	double w[N];

	for (size_t j = 0; j < N; j++) {
		w[j] = j == DEAD ? 0 : (double)y->w[o][j];
		want[j] = w[j];
		if (j != DEAD && j != alone)
			column[n++] = j;
	}
	if (alone < N) {	/* (W G_a - W_rest H_rest,a) / H_aa */
		for (size_t i = 0; i < N; i++)
			first += w[i] * ((double)y->g[i][alone] - (i == alone ? 0 : (double)y->h[i][alone]));
		want[alone] = first /= (double)y->h[alone][alone];
	}
	for (size_t j = 0; j < n; j++) {
		const size_t c = column[j];

		right[j] = 0;
		for (size_t i = 0; i < N; i++)	/* W C, or W (G + λ I) - first H_a */
			right[j] += w[i] * ((double)y->g[i][c] - (alone < N ? 0 : (double)y->h[i][c]));
		if (alone < N)
			right[j] += ridge * w[c] - first * (double)y->h[alone][c];
		for (size_t i = 0; i < n; i++)
			((double *)a)[i * n + j] = (double)y->h[column[i]][c] + (i == j ? ridge : 0);
	}
	solve(n, (double (*)[n])a, right, x);
	for (size_t j = 0; j < n; j++)
		want[column[j]] = alone < N ? x[j] : w[column[j]] + share * x[j];
	free(a);
}

static void corrected(const struct inputs *y, double share, double damp, size_t alone, float got[M][N])
{
	struct correction c = { .n = N, .h = y->h[0], .cross = y->g[0], .damp = damp, .alone = alone };
	void *workspace = xalloc(correct_workspace(N), 1);
	double *buffer = xalloc(correct_buffer(N, CORRECT_ROWS), 1);
	size_t index;

	assert_int_equal(correct_make(&c, workspace, &index), STATUS_DONE);
	assert_int_equal(c.live, N - 1);
	assert_true(c.lambda == damp);
	memcpy(got, y->w, sizeof y->w);
	for (size_t i = 0; i < M; i += CORRECT_ROWS)
		correct_apply(&c, share, M - i < CORRECT_ROWS ? M - i : CORRECT_ROWS, got + i, buffer);
	free(workspace), free(buffer);
}

/* A result in double, of a matrix whose condition is below 1e5, rounded once to float. */
static void corrections_solve_their_equations(void **unused)
{
	static const struct { double share, damp; size_t alone; } cases[] = {
		{ 0.5, 1, N }, { 1, 0.01, N }, { 1, 0.01, 0 }, { 1, 1e-4, 123 }, { 1, 0.1, N - 1 },
		{ 1, 1, DEAD },
	};
	struct inputs *y = draw();
	float (*got)[N] = xalloc(M, sizeof *got), (*again)[N] = xalloc(M, sizeof *again);

	(void)unused;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const size_t alone = cases[k].alone == DEAD ? N : cases[k].alone;

		CASE("case %zu", k);
		threads = 1;
		corrected(y, cases[k].share, cases[k].damp, cases[k].alone, got);
		threads = 3;
		corrected(y, cases[k].share, cases[k].damp, cases[k].alone, again);
		assert_memory_equal(got, again, M * sizeof *got);
		for (size_t o = 0; o < M; o += 23) {
			double want[N];

			wanted(y, cases[k].share, cases[k].damp, alone, o, want);
			for (size_t j = 0; j < N; j++)
				assert_true(fabs((double)got[o][j] - want[j]) <=
					0x1p-24 * fabs(want[j]) + 1e-9);
		}
	}
	free(y), free(got), free(again);
}

/* Without a difference of the inputs nothing changes, not even a bit, except in dead columns. */
static void equal_inputs_change_nothing(void **unused)
{
	struct inputs *y = draw();
	float (*got)[N] = xalloc(M, sizeof *got);

	(void)unused;
	memcpy(y->g, y->h, sizeof y->g);
	for (size_t i = 0; i < M; i++)
		y->w[i][DEAD] = 0;
	for (size_t alone = 0; alone <= N; alone += N / 2) {
		corrected(y, 1, 0.01, alone, got);
		assert_memory_equal(got, y->w, sizeof y->w);
	}
	free(y), free(got);
}

static void bad_matrices_are_errors(void **unused)
{
	struct inputs *y = draw();
	struct correction c = { .n = N, .h = y->h[0], .cross = y->g[0], .damp = 0.01, .alone = N };
	void *workspace = xalloc(correct_workspace(N), 1);
	size_t index = N;

	(void)unused;
	y->h[5][9] = y->h[9][5] = 1e6f * y->h[5][5];
	assert_int_equal(correct_make(&c, workspace, &index), STATUS_NOT_POSITIVE);
	assert_int_equal(index, 9);
	memset(y->h, 0, sizeof y->h);	/* no live column */
	assert_int_equal(correct_make(&c, workspace, &index), STATUS_DONE);
	assert_int_equal(c.live, 0);
	free(y), free(workspace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(corrections_solve_their_equations),
		cmocka_unit_test(equal_inputs_change_nothing),
		cmocka_unit_test(bad_matrices_are_errors),
	};

	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
