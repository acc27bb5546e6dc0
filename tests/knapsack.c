/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * knapsack -- choices within a budget, against enumeration, and the bound when partial sums are dropped
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "eval/knapsack.h"

enum { ITEMS = 6, CHOICES = 4, MANY = 210, FORMATS = 6 };

/* The next numbers of a stream: in [0, 1), and a whole number below n. */
struct source { struct random_stream stream; uint64_t k; };

static double uniform(struct source *r)
{
	return random_uniform(&r->stream, r->k++);
}

static size_t draw(struct source *r, size_t n)
{
	return (size_t)(uniform(r) * (double)n);
}

/* The least cost of all choices that fit; infinite if none does. Sums in the order of the items. */
static double enumerated(const struct knapsack *k)
{
	double best = INFINITY;

	for (size_t code = 0; code < (size_t)pow((double)k->choices, (double)k->items); code++) {
		uint64_t size = 0;
		double cost = 0;

		for (size_t i = 0, rest = code; i < k->items; i++, rest /= k->choices) {
			size += k->size[i * k->choices + rest % k->choices];
			cost += k->cost[i * k->choices + rest % k->choices];
		}
		if (size <= k->budget && cost < best)
			best = cost;
	}
	return best;
}

/* The cost of the choices, which must fit. */
static double cost_of(const struct knapsack *k, const size_t choice[])
{
	uint64_t size = 0;
	double cost = 0;

	for (size_t i = 0; i < k->items; i++) {
		assert_true(choice[i] < k->choices);
		size += k->size[i * k->choices + choice[i]];
		cost += k->cost[i * k->choices + choice[i]];
	}
	assert_true(size <= k->budget);
	return cost;
}

/* Few different sizes and costs, so that sums are often equal; also choices that are large and bad. */
static void small_cases(void **state)
{
	struct source r = { random_open(1, "small"), 0 };
	size_t none = 0;

	(void)state;
	for (int repeat = 0; repeat < 400; repeat++) {
		uint64_t size[ITEMS * CHOICES];
		double cost[ITEMS * CHOICES], got, bound;
		size_t choice[ITEMS];
		struct knapsack k = { 1 + draw(&r, ITEMS), 1 + draw(&r, CHOICES), size, cost, 0, 1 << 20 };

		for (size_t i = 0; i < ITEMS * CHOICES; i++) {
			size[i] = draw(&r, 12);
			cost[i] = repeat % 2 ? (double)draw(&r, 5) - 1 : uniform(&r);
		}
		k.budget = draw(&r, 10 * k.items);

		const double best = enumerated(&k);

		assert_int_equal(isinf(best), knapsack_least(&k) > k.budget);
		if (!knapsack_solve(&k, choice, &got, &bound)) {
			assert_true(isinf(best));
			none++;
			continue;
		}
		assert_true(got == best && bound == got && cost_of(&k, choice) == got);
		k.limit = 1 + draw(&r, 3);
		assert_true(knapsack_solve(&k, choice, &got, &bound));
		assert_true(cost_of(&k, choice) == got && bound <= best && best <= got);
	}
	assert_true(none > 10 && none < 200);
}

/*
 * Layers of seven shapes in six formats: the sizes of a model. A cost is about 4^-bits, times a number of the
 * layer. Whatever the budget, the result is exact, and a larger budget costs no more.
 */
static void layers(void **state)
{
	static const uint64_t shape[] = { 9, 3, 3, 9, 24, 24, 24 }, bits[FORMATS] = { 9, 13, 17, 21, 25, 33 };
	struct source r = { random_open(2, "layers"), 0 };
	uint64_t size[MANY * FORMATS], all = 0;
	double cost[MANY * FORMATS], before = INFINITY;
	size_t choice[MANY];

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		const double weight = exp(3 * uniform(&r));

		for (size_t c = 0; c < FORMATS; c++) {
			size[i * FORMATS + c] = shape[i % 7] * bits[c] * 1152;
			cost[i * FORMATS + c] = weight * pow(2, -(double)bits[c] / 2) *
				(0.8 + 0.4 * uniform(&r));
		}
		all += shape[i % 7] * 1152;
	}
	for (double target = 9; target <= 34; target += 1.7) {
		const struct knapsack k = { MANY, FORMATS, size, cost,
			(uint64_t)(target * (double)all), 1 << 20 };
		double got, bound;

		assert_true(knapsack_solve(&k, choice, &got, &bound));
		assert_true(bound == got && cost_of(&k, choice) == got && got <= before);
		before = got;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(small_cases), cmocka_unit_test(layers) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
