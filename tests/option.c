/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * option -- values and defaults reach their variables, defaults and ranges reach --help, and values out of
 * range are a misuse; each command line runs in a separate process
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/history.h"
#include "base/number.h"
#include "base/option.h"
#include "base/selection.h"
#include "base/thread.h"
#include "case.h"

enum colour { RED, GREEN, BLUE };
static const char *const colours[] = { "red", "green", "blue", NULL };
static const char *const sides[] = { "left", "right", NULL };

static void parse_word(void *var, const char *option, const char *text)
{
	if (strlen(text) != 1)
		misuse("--%s: '%s' is not a letter", option, text);
	*(char *)var = *text;
}

/* Prints the variables after the command line, and the history. */
static void tool(int argc, char *argv[])
{
	static const struct tool self = { "self", "a tool", "[FILE]", .max_operands = 1 };
	bool flag = true, right = true;
	size_t size = 7;
	double real = 7;
	const char *text = "x", *file = "x";
	enum colour colour = BLUE;
	struct selection selection;
	char letter;
	const struct option_row rows[] = {
		{ 0, "flag", OPTION_BOOL(&flag), NULL, "a flag" },
		{ 0, "side", OPTION_EITHER(&right, sides), NULL, "a side", .default_value = "right" },
		{ 's', "size", OPTION_SIZE(&size), "N", "a size", .default_value = "2K",
			.min = 1, .max = 1 << 20 },
		{ 0, "real", OPTION_REAL(&real), "X", "a number", .default_value = "0.5",
			.min = -1, .max = 1, .alias = "old" },
		{ 0, "text", OPTION_TEXT(&text), "WORD", "a text" },
		{ 0, "file", OPTION_FILE(&file), "FILE", "a file" },
		{ 0, "colour", OPTION_CHOICE(&colour, colours), NULL, "a colour", .default_value = "green" },
		{ 0, "letter", OPTION_PARSED(char, &letter, parse_word), "C", "a letter",
			.default_value = "q" },
		{ 0, "path", OPTION_SELECTION(&selection), "GLOB", "paths" },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &self, rows);

	for (int i = 0; i < 2 && colour == RED; i++)	/* the second one prints no further warning */
		option_without_effect(1, &(struct option_without_effect){ true, "text side",
			"--colour red" });
	if (colour == RED)
		printf("%d%d%d%d ", option_given("text"), option_has_effect("text"), option_given("colour"),
			option_has_effect("colour"));
	printf("%d %d %zu %g %s %s %d %c ", flag, right, size, real, text ? text : "-", file ? file : "-",
		colour, letter);
	printf("%zu%d%d %s %s\n%s\n", selection.n, selection_has(&selection, "/a/b"),
		selection_has(&selection, "/a/c"), c.operand[0], c.output ? c.output : "-", history_line());
}

/* Status of the tool with these arguments, NULL-terminated; its output goes to out. */
static int run(size_t size, char out[size], const char *const argument[])
{
	char *argv[32] = { (char *)(uintptr_t)"self" };
	int argc = 1, ends[2], status;
	size_t n = 0;
	ssize_t got;

	for (; *argument; argument++)
		argv[argc++] = (char *)(uintptr_t)*argument;
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	if (!fork()) {
		dup2(ends[1], 1), dup2(ends[1], 2);
		close(ends[0]);
		tool(argc, argv);
		exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = 0;
	close(ends[0]);
	wait(&status);
	return WEXITSTATUS(status);
}
#define RUN(out, ...) run(sizeof (out), out, (const char *const[]){ __VA_ARGS__ __VA_OPT__(,) NULL })

static void values(void **state)
{
	char out[4096];

	(void)state;
	assert_int_equal(RUN(out), 0);
	assert_string_equal(out, "0 1 2048 0.5 - - 1 q 011 - -\nself " PTQ_VERSION "\n");
	assert_int_equal(RUN(out, "--flag", "--side=left", "-s", "4", "--old", "0.250", "--text=", "--file",
		"f", "--colour", "blue", "--letter=z", "--path", "!a/b", "-o", "there", "here"), 0);
	assert_string_equal(out, "1 0 4 0.25  f 2 z 101 here there\n"
		"self " PTQ_VERSION " --flag --side left --size 4 --real 0.25 --text '' "
		"--colour blue --letter z --path '!a/b'\n");
}

/* Options without effect are named once in a warning if they were given, and are not in the history; they
 * still count as given. */
static void idle(void **state)
{
	char out[4096];

	(void)state;
	assert_int_equal(RUN(out, "--text", "a", "--colour", "red"), 0);
	assert_string_equal(out, "self: warning: without effect here: --text (--colour red)\n"
		"1011 0 1 2048 0.5 a - 0 q 011 - -\nself " PTQ_VERSION " --colour red\n");
}

static void misuses(void **state)
{
	static const struct { const char *option, *message; } rows[] = {
		{ "--size=0", "--size: '0' is not a whole number from 1 to 1M\n" },
		{ "--size=2M", "--size: '2M' is not a whole number from 1 to 1M\n" },
		{ "--size=1k", "--size: '1k' is not a whole number from 1 to 1M; K, M or G may follow it\n" },
		{ "--real=-2", "--real: '-2' is not a number from -1 to 1\n" },
		{ "--colour=black", "--colour: 'black' is not one of red, green, blue\n" },
		{ "--side=up", "--side: 'up' is not one of left, right\n" },
		{ "--letter=ab", "--letter: 'ab' is not a letter\n" },
		{ "--file=", "--file: the name is empty, expected the name of a file\n" },
	};
	char out[4096];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CASE("rows[%zu] %s", i, rows[i].option);
		assert_int_equal(RUN(out, rows[i].option), 2);
		assert_non_null(strstr(out, rows[i].message));
	}
}

static void help(void **state)
{
	static const char *const lines[] = {
		"      --side=left|right       a side [right]\n",
		"  -s, --size=N                a size [2K, 1 to 1M]\n",
		"      --real=X                a number [0.5, -1 to 1]\n",
		"      --text=WORD             a text\n",
		"      --colour=red|green|blue a colour [green]\n",
		"      --letter=C              a letter [q]\n",
	};
	char out[4096];

	(void)state;
	assert_int_equal(RUN(out, "--help"), 0);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		CASE("%s", lines[i]);
		assert_non_null(strstr(out, lines[i]));
	}
}

static void selections(void **state)
{
	struct selection s = { 0 };

	(void)state;
	assert_true(selection_has(&s, "/a/b") && !selection_names(&s, "/a/b"));
	assert_string_equal(selection_text(&s), "");
	selection_add(&s, "!*/b");
	assert_true(selection_has(&s, "/a/c") && !selection_has(&s, "/a/b"));
	assert_false(selection_names(&s, "/a/c"));
	selection_add(&s, "/a/*");
	assert_true(selection_has(&s, "/a/c") && selection_names(&s, "/a/c/d"));
	assert_false(selection_has(&s, "/b/c"));
	assert_true(selection_names(&s, "/a/b") && !selection_has(&s, "/a/b"));
	free(s.pattern);
}

/* Texts that convert back to their number; no shorter text would. */
static void numbers(void **unused)
{
	static const struct { double x; const char *text; } doubles[] = {
		{ 0, "0" }, { 1, "1" }, { -0.1, "-0.1" }, { 0.1 + 0.2, "0.30000000000000004" },
		{ 1e23, "1e+23" }, { 1.0 / 3, "0.3333333333333333" }, { 1e-5, "1e-05" },
		{ 0x1.fffffffffffffp1023, "1.7976931348623157e+308" },
		{ 0x1p-1074, "5e-324" }, { -0x1p-1073, "-1e-323" },
	};
	static const struct { float x; const char *text; } floats[] = {
		{ 0, "0" }, { 1e-5f, "1e-05" }, { 0.1f, "0.1" }, { 16777216, "16777216" },
		{ 1.0f / 3, "0.33333334" }, { 0x1p-149f, "1e-45" }, { 500000, "5e+05" },
		{ 0x1.fffffep127f, "3.4028235e+38" },
	};
	char text[NUMBER_CHARS];

	(void)unused;
	for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
		assert_string_equal(number_text(doubles[i].x, text), doubles[i].text);
	for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
		assert_string_equal(number_text_float(floats[i].x, text), floats[i].text);
}

/* Without -j, OMP_NUM_THREADS limits the threads; it grants no more than the processors. */
static void thread_numbers(void **unused)
{
	const char *const values[] = { "1", " 1 ", "1,4", "1000000", "0", "-2", "", "two", "1e3", "1x",
		"99999999999999999999" };
	int all;

	(void)unused;
	unsetenv("OMP_NUM_THREADS");
	threads_init(0), all = threads;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		CASE("values[%zu]", i);
		setenv("OMP_NUM_THREADS", values[i], 1);
		threads_init(0), assert_int_equal(threads, i < 3 ? 1 : all);
		threads_init(3), assert_int_equal(threads, 3);
	}
	unsetenv("OMP_NUM_THREADS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values), cmocka_unit_test(idle), cmocka_unit_test(misuses),
		cmocka_unit_test(help), cmocka_unit_test(selections), cmocka_unit_test(numbers),
		cmocka_unit_test(thread_numbers),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
