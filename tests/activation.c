/* SPDX-License-Identifier: GPL-3.0-or-later */
/* activation.c -- activations by the names of config.json, against transformers' in double
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
 * What float arithmetic may be off by: a few operations on numbers of the size of x or y, 16 units of 2^-24
 * of them; where x is large and y is small, e^-z magnifies the rounding of its argument, of which |z| is at
 * most 2 |x| + 0.08 |x|^3, and y itself says how much is left. 1 + erf of a number below 0 keeps a unit of 1,
 * which |x|/2 multiplies: less than 3 units, since from x = -5.6 on erff() is -1, and y is less than that.
 * Below 2^-126 there is nothing but 0.
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
		assert_true(gated == y * 3);	/* before up */
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

/* What is undefined stays so. */
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
