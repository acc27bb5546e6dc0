/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quadratic -- x H xᵀ in blocks, from either side and transposed, against loops over doubles */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "num/linalg.h"
#include "num/quadratic.h"

enum { ROWS = 5, LANES = 8, STRIDE = 11 };

/* The sum, and the sum of magnitudes, which bounds the rounding. */
struct sum { double value, size; };

static struct sum plain(size_t n, size_t stride, const float x[n], const float *h)
{
	struct sum y = { 0 };

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const double d = (double)x[i] * (double)h[i * stride + j] * (double)x[j];

			y.value += d, y.size += fabs(d);
		}
	return y;
}

/* A product of n terms in float has an error of at most n roundings of 2^-24, and one for its double
 * weight. */
static void check(double y, struct sum want, size_t n)
{
	assert_true(fabs(y - want.value) <= (double)(n + 1) * 0x1p-24 * want.size);
}

/* Numbers of X as rows and as lanes, and a symmetric H as the left part of wider rows of NaN. */
static void try(size_t n, size_t block, bool after)
{
	const struct random_stream stream = random_open(n, "quadratic");
	const size_t stride = n + 3;
	float *x = xalloc(ROWS * n, sizeof *x), *lanes = xalloc(n * STRIDE, sizeof *lanes);
	float *h = xalloc(n * stride, sizeof *h), *product = xalloc((n + block) * STRIDE, sizeof *product);
	const struct quadratic q = { n, stride, h, block, after };
	struct sum all = { 0 };
	double sum[ROWS];

	for (size_t i = 0; i < ROWS * n; i++)
		x[i] = (float)random_uniform(&stream, i) - 0.25f;
	for (size_t i = 0; i < n * stride; i++)
		h[i] = NAN;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			h[i * stride + j] = h[j * stride + i] = (float)random_normal(&stream, i * n + j);
	for (size_t i = 0; i < n; i++)
		for (size_t l = 0; l < STRIDE; l++)
			lanes[i * STRIDE + l] = l < ROWS ? x[l * n + i] : l < LANES ? 0 : NAN;
	quadratic_rows(&q, ROWS, x, product, sum);
	for (size_t i = 0; i < ROWS; i++) {
		const struct sum want = plain(n, stride, x + i * n, h);

		check(sum[i], want, n);
		all.value += want.value, all.size += want.size;
	}
	check(quadratic_trace(&q, ROWS, x, product), all, n);
	check(quadratic_lanes(&q, LANES, STRIDE, lanes, product), all, n);
	free(x), free(lanes), free(h), free(product);
}

static void blocks(void **state)
{
	(void)state;
	for (size_t n = 1; n < 40; n += 6)
		for (size_t block = 1; block < 48; block += 5) {
			CASE("block %zu", block);
			try(n, block, false), try(n, block, true);
		}
	try(300, 256, false), try(300, 256, true), try(300, 300, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(blocks) };

	linalg_init();

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
