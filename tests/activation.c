/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activation.c -- activations by their names in config.json, against those of transformers in double
 * (tests/ref/activations.py) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "case.h"
#include "forward/activation.h"
#include "model/config.h"

static enum activation named(const char *name)
{
	char *text = xformat("{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 64, "
		"\"num_attention_heads\": 4, \"intermediate_size\": 100, \"num_hidden_layers\": 1, "
		"\"vocab_size\": 50, \"hidden_act\": \"%s\"}", name);
	struct config c = config_parse("x", text);
	const enum activation y = c.stack->activation;

	config_free(&c);
	free(text);
	return y;
}

/*
 * The error of float arithmetic. A few operations on numbers of the size of x or y have an error of 16 units
 * of 2^-24 of them. If x is large and y small, e^-z magnifies the rounding of its argument. |z| is at most 2
 * |x| + 0.08 |x|^3, and y gives the remaining size. 1 + erf of a number below 0 has an absolute error of one
 * unit, multiplied by |x|/2: less than 3 units, since erff() is -1 below x = -5.6, and y is smaller than
 * that. Below 2^-126 the result is 0.
 */
static double bound(double x, double y)
{
	const double unit = 0x1p-24, z = 2 * fabs(x) + 0.08 * fabs(x * x * x);

	return unit * (16 * fabs(y) + fabs(y) * fmin(z, 200) + fmin(fabs(x), 1) * 4) + 0x1p-126;
}

static void transformers(void **unused)
{
	const char *folder = getenv("PTQ_REF");
	char *path = xformat("%s/activations.tsv", folder ? folder : "tests/ref"), name[32];
	FILE *f = fopen(path, "r");
	bool seen[ACTIVATIONS] = { false };
	double x, want;
	size_t n = 0;

	(void)unused;
	assert_non_null(f);
	for (; fscanf(f, "%31s %lf %lf", name, &x, &want) == 3; n++) {
		const enum activation a = named(name);
		const float in[2] = { (float)x, 3 };
		float y, gated;

		mlp_activate(a, 1, 1, 1, &y, in);
		mlp_activate(a, 1, 1, 2, &gated, in);
		if (!(fabs((double)y - want) <= bound(x, want)))
			fail_msg("%s(%g) is %.9g, expected %.9g within %g", name, x, (double)y, want,
				bound(x, want));
		assert_true(gated == y * 3);	/* before up is multiplied */
		seen[a] = true;
	}
	fclose(f);
	free(path);
	assert_true(n > 1000);
	for (int a = 0; a < ACTIVATIONS; a++) {
		CASE("activation %d", a);
		assert_true(seen[a]);
	}
}

/* NaN stays NaN. */
static void undefined(void **unused)
{
	(void)unused;
	for (int a = 0; a < ACTIVATIONS; a++) {
		CASE("activation %d", a);
		const float in = NAN;
		float y = 0;

		mlp_activate((enum activation)a, 1, 1, 1, &y, &in);
		assert_true(isnan(y));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(transformers), cmocka_unit_test(undefined) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
