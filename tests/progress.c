/* SPDX-License-Identifier: GPL-3.0-or-later */
/* progress.c -- the time that is left: by hand, and for work of a known rate */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/progress.h"

static int near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

static void steady(void **state)
{
	struct progress_rate r = { 0 };

	(void)state;
	assert_true(near(progress_left(&r, 100, 0), -1));
	assert_true(near(progress_left(&r, 101, 0.1), -1));	/* too early to tell */
	assert_true(near(progress_left(&r, 104, 0), -1));	/* nothing was done */
	for (int i = 1; i <= 10; i++)
		assert_true(near(progress_left(&r, 100 + 10 * i, 0.1 * i), 100 - 10 * i));
}

/* The first parts of a model take no time, and what was there already does not count. */
static void from_the_middle(void **state)
{
	struct progress_rate r = { 0 };

	(void)state;
	progress_left(&r, 5, 0.5);
	assert_true(near(progress_left(&r, 10, 0.6), 20));
	assert_true(near(progress_left(&r, 30, 1), 0));
}

/* Two models side by side: 10 blocks of 4 s each; at the end of each pair what is left is exact. */
static void side_by_side(void **state)
{
	struct progress_rate r = { 0 };
	double now = 1;

	(void)state;
	for (int block = 0; block < 10; block++)
		for (int model = 0; model < 2; model++)
			for (int window = 0; window < 4; window++, now += 1) {
				const double left = progress_left(&r, now, (block + window / 4.) / 10);

				if (block && !window && !model)
					assert_true(near(left, 80 - 8 * block));
				assert_true(block < 2 || (left > 0 && left < 81));
			}
}

static void other_work(void **state)
{
	struct progress_rate r = { 0 };

	(void)state;
	progress_left(&r, 1, 0);
	assert_true(progress_left(&r, 100, 0.98) > 0);
	assert_true(near(progress_left(&r, 101, 0), -1));
	assert_true(near(progress_left(&r, 105, 0.5), 4));
}

static void times(void **state)
{
	const struct { double seconds; const char *text; } row[] = {
		{ 0, "0:00" }, { 59.4, "0:59" }, { 59.6, "1:00" }, { 3599, "59:59" }, { 3600, "1:00:00" },
		{ 86399, "23:59:59" }, { 1e30, "99:59:59" },
	};
	char text[PROGRESS_TIME];

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		progress_time(row[i].seconds, text);
		assert_string_equal(text, row[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady), cmocka_unit_test(from_the_middle), cmocka_unit_test(side_by_side),
		cmocka_unit_test(other_work), cmocka_unit_test(times),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
