/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * part.c -- files, streams, parts, links: each test runs a small filter of input_next() and output_pass()
 * ("part pass") through the shell, as tools are run
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
#include "base/option.h"
#include "io/part.h"

static const char *self;

static const char **layout(const char *config)
{
	static const char *const parts[] = { "/model/embed", "/model/layers/#", "*", NULL };

	return config ? memcpy(xalloc(1, sizeof parts), parts, sizeof parts) : NULL;
}

static int pass(int argc, char *argv[])
{
	static const struct tool tool =
		{ .name = "pass", .brief = "copy a model", .operands = "[MODEL]", .max_operands = 1 };
	bool rebuild;
	const struct option_row rows[] = {
		{ 0, "rebuild", OPTION_BOOL(&rebuild), NULL, "write every part anew" },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct input *in = input_open(c.operand[0], layout, "model");
	struct output *out = output_open(c.output, "model");
	struct part *part;

	while ((part = input_next(in)))
		if (rebuild) {
			output_begin(out, part);
			output_rest(out, part, NULL);
			output_end(out);
		} else
			output_pass(out, part);
	output_close(out);
	input_close(in);
	return 0;
}

/* A model of 12 blocks: embedding, tied head, two layers that share a statistic. */
static void make(const char *path)
{
	struct output *out = output_open(path, "model");
	static float embed[7][5], w[3][5], norm[5];
	static uint16_t half[4];

	for (int i = 0; i < 35; i++)
		embed[i / 5][i % 5] = (float)i;
	output_start(out, 0, 1);
	output_string(out, "/config", "{\"a\": \"\xc3\xa4\"}");
	output_write(out, "/model/embed/weight", tensor_2d(TENSOR_F32, embed, 7, 5));
	for (int i = 0; i < 12; i++) {
		char *a = xformat("/model/layers/%d/a/weight", i), *b = xformat("/model/layers/%d/b", i);
		char *g = xformat("/model/layers/%d/a", i), *h = xformat("/model/layers/%d/h", i);

		w[0][0] = (float)i;
		half[0] = (uint16_t)(0x3f80 + i);
		output_write(out, a, tensor_2d(TENSOR_F32, w, 3, 5));
		output_text(out, g, "norm", "rms");
		output_write(out, h, tensor_1d(TENSOR_BF16, half, 4));
		output_link(out, b, g);
		free(a), free(b), free(g), free(h);
	}
	output_write(out, "/model/norm/weight", tensor_1d(TENSOR_F32, norm, 5));
	output_link(out, "/lm_head/weight", "/model/embed/weight");
	output_end(out);
	output_close(out);
}

static int sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int sh(const char *fmt, ...)
{
	va_list ap;
	char *s, *t;
	int r;

	va_start(ap, fmt);
	assert_true(vasprintf(&s, fmt, ap) >= 0);
	va_end(ap);
	t = xformat("P='%s pass'; %s", self, s);
	r = system(t);
	free(s), free(t);
	return WEXITSTATUS(r);
}

static void round_trip(void **state)
{
	(void)state;
	assert_int_equal(sh("$P m.h5 > f.h5 && $P < f.h5 | $P | $P --rebuild -o g.h5 && $P -o h.h5 m.h5"), 0);
	struct part *a = part_open("m.h5", "model"), *b = part_open("g.h5", "model");
	struct tensor x = part_tensor(a, "/model/layers/11/b/weight", TENSOR_F32, 2, (size_t[]){ 3, 5 });
	struct tensor y = part_tensor(b, "/model/layers/11/b/weight", TENSOR_ANY, 2, (size_t[]){ 0, 5 });
	char *config = part_config(b), *same = part_same(b, "/model/layers/3/b");
	char *norm = part_text(b, "/model/layers/3/b", "norm");

	assert_memory_equal(x.data, y.data, 60);
	assert_int_equal(part_tensor(b, "/model/layers/2/h", TENSOR_ANY, 1, NULL).type, TENSOR_BF16);
	assert_string_equal(config, "{\"a\": \"\xc3\xa4\"}");
	assert_string_equal(same, "/model/layers/3/a");
	assert_string_equal(norm, "rms");
	x = part_tensor(b, "/lm_head/weight", TENSOR_F32, 2, NULL);
	y = part_tensor(b, "/model/embed/weight", TENSOR_F32, 2, NULL);
	assert_ptr_equal(x.data, y.data);	/* again one hard link */
	free(config), free(same), free(norm);
	part_close(a);
	part_close(b);
}

static void same_bytes(void **state)
{
	(void)state;
	assert_int_equal(sh("$P m.h5 | cat > s1 && $P m.h5 | cat > s2 && cmp s1 s2"), 0);
	assert_int_equal(sh("$P m.h5 -o f1 && $P m.h5 > f2 && $P m.h5 | cat > t && cmp f1 f2"), 0);
	assert_int_equal(sh("$P t -o f3; $P m.h5 | $P -o f4; cmp f3 f4"), 0);
	/* a file and its stream give the same bytes, for parts that are copied and for parts that are written
	 * again */
	assert_int_equal(sh("$P f3 | cat > s3; cat f3 | $P | cat > s4; cmp s3 s4"), 0);
	assert_int_equal(sh("$P f3 -o f5 && $P f3 | cat > t5 && $P t5 -o f6 && $P f5 -o f7 && cmp f6 f7"), 0);
	assert_int_equal(sh("$P t --rebuild -o f8 && $P f1 --rebuild -o f9 && cmp f8 f9"), 0);
}

static void stream_in_a_file(void **state)
{
	(void)state;
	assert_int_equal(sh("$P m.h5 | cat > s.h5"), 0);
	struct part *s = part_open("s.h5", "model");

	assert_true(part_has(s, "/model/layers/7/a/weight"));
	assert_false(part_has(s, "/model/layers/12/a/weight"));
	assert_false(part_has(s, "/model/nothing/at/all"));
	part_close(s);
	assert_int_equal(sh("cat /dev/null > app; $P m.h5 >> app; cmp app s.h5"), 0);
}

static void fails(int status, const char *pattern, const char *command)
{
	assert_int_equal(sh("{ %s; } > out 2> err; s=$?; test $s = %d && test `wc -l < err` -le 2 && "
		"grep -Eq '%s' err || { echo \"# status $s: %s\"; sed 's/^/# /' err; false; }",
		command, status, pattern, command), 0);
}

static void bad_input(void **state)
{
	(void)state;
	assert_int_equal(sh("$P m.h5 | cat > s; size=`stat -c %%s s`; head -c $((size - 100)) s > cut; "
		"head -c 30 s > short; head -c $((`stat -c %%s m.h5` - 1)) m.h5 > cutfile; echo junk > junk; "
		": > empty; n=`$P m.h5 | head -c 100000 | od -A n -t u8 -j 28 -N 8`; head -c $n s > one; "
		"tail -c +$((n + 1)) s > tail; cat s s > twice; cat m.h5 m.h5 > double"), 0);
	fails(1, "cut short", "$P cut");
	fails(1, "cut short", "$P < short");
	fails(1, "cut short", "cat cut | $P");
	fails(1, "cut short", "$P cutfile");
	fails(1, "ends after 1 of 15 parts", "$P one");
	fails(1, "ends after 1 of 15 parts", "cat one | $P");
	fails(1, "has part 1 of 15, expected part 0 of 15", "$P tail");
	fails(1, "has data after", "$P twice");
	fails(1, "has data after", "cat double | $P");
	fails(1, "not an HDF5", "$P junk");
	fails(1, "is empty", "$P empty");
	fails(1, "is empty", "$P < /dev/null");
	fails(1, "is a folder", "$P .");
	fails(1, "No such file", "$P nothing");
	fails(1, "No space left", "$P m.h5 > /dev/full");
	fails(1, "No space left", "$P m.h5 -o /dev/full");
	fails(2, "too many", "$P m.h5 m.h5");
	fails(2, "no option --nothing", "$P --nothing");
	fails(1, "cannot create a file in its folder", "$P m.h5 -o no/such/folder");
	assert_int_equal(sh("echo old > keep; $P cut -o keep 2> err; test `cat keep` = old && "
		"test -z \"`ls -A | grep ptq`\""), 0);
	assert_int_equal(sh("ln -sf target link; : > target; $P m.h5 -o link && test -L link && "
		"h5ls target > out"), 0);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(same_bytes),
		cmocka_unit_test(stream_in_a_file),
		cmocka_unit_test(bad_input),
	};
	char folder[] = "/tmp/ptq-image.XXXXXX";
	char *clean;
	int failed;

	if (argc > 1 && !strcmp(argv[1], "pass"))
		return pass(argc - 1, argv + 1);
	self = realpath(argv[0], NULL);
	if (!mkdtemp(folder) || chdir(folder))
		return 1;
	make("m.h5");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	clean = xformat("rm -rf %s", folder);
	if (chdir("/") || system(clean))
		return 1;
	free(clean);
	free((void *)(uintptr_t)self);
	return failed;
}
