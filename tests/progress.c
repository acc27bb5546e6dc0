/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * progress.c -- the remaining time: by hand, and for work of a known rate; lines without a terminal
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/progress.h"
#include "case.h"

/* The test replaces the clock of the program. */
static time_t seconds;

int clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	*t = (struct timespec){ .tv_sec = seconds };
	return 0;
}

static int near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

static void steady(void **state)
{
	struct progress_rate r = { 0 };

	(void)state;
	assert_true(near(progress_remaining(&r, 100, 0), -1));
	assert_true(near(progress_remaining(&r, 101, 0.1), -1));	/* too early for an estimate */
	assert_true(near(progress_remaining(&r, 104, 0), -1));	/* nothing was done */
	for (int i = 1; i <= 10; i++)
		assert_true(near(progress_remaining(&r, 100 + 10 * i, 0.1 * i), 100 - 10 * i));
}

/* The first parts of a model take no time, and parts that were finished before do not count. */
static void from_the_middle(void **state)
{
	struct progress_rate r = { 0 };

	(void)state;
	progress_remaining(&r, 5, 0.5);
	assert_true(near(progress_remaining(&r, 10, 0.6), 20));
	assert_true(near(progress_remaining(&r, 30, 1), 0));
}

/* Two models in parallel: 10 blocks of 4 s each; at the end of each pair the remaining time is exact. */
static void side_by_side(void **state)
{
	struct progress_rate r = { 0 };
	double now = 1;

	(void)state;
	for (int block = 0; block < 10; block++)
		for (int model = 0; model < 2; model++)
			for (int window = 0; window < 4; window++, now += 1) {
				CASE("model %d, window %d", model, window);
				const double left = progress_remaining(&r, now, (block + window / 4.) / 10);

				if (block && !window && !model)
					assert_true(near(left, 80 - 8 * block));
				assert_true(block < 2 || (left > 0 && left < 81));
			}
}

static void other_work(void **state)
{
	struct progress_rate r = { 0 };

	(void)state;
	progress_remaining(&r, 1, 0);
	assert_true(progress_remaining(&r, 100, 0.98) > 0);
	assert_true(near(progress_remaining(&r, 101, 0), -1));
	assert_true(near(progress_remaining(&r, 105, 0.5), 4));
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
		CASE("row[%zu] %s", i, row[i].text);
		progress_time(row[i].seconds, text);
		assert_string_equal(text, row[i].text);
	}
}

/* Four parts of 100 chunks, 10 s each: the output on a standard error that is a file. */
enum { BYTES = 4096 };
static void run_hour(char said[BYTES + 1])
{
	const int error = dup(2);
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_true(dup2(fileno(f), 2) == 2);
	for (size_t part = 0; part < 4; part++)
		for (size_t i = 0; i < 100; i++, seconds += 10)
			progress_part("blocks", part, 4, i, 100);
	progress_clear();
	dup2(error, 2);
	close(error);
	rewind(f);
	said[fread(said, 1, BYTES, f)] = '\0';
	fclose(f);
}

static void line_a_minute(void **state)
{
	char said[BYTES + 1], *at = said;
	size_t lines = 0;

	(void)state;
	program = "tool";
	seconds = 1000;
	quiet = true;
	run_hour(said);
	assert_string_equal(said, "");
	quiet = false;
	seconds = 100000;
	run_hour(said);
	/* 6 of 400 chunks, from which the rest is estimated */
	assert_int_equal(strncmp(said, "tool: blocks 6/100, part 1/4, 1:05:40 left\n"
		"tool: blocks 12/100, part 1/4, 1:04:40 left\n", 87), 0);
	assert_null(strpbrk(said, "\r\033"));
	for (; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 3990 / 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady), cmocka_unit_test(from_the_middle), cmocka_unit_test(side_by_side),
		cmocka_unit_test(other_work), cmocka_unit_test(times),
		cmocka_unit_test(line_a_minute),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
