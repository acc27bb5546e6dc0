/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * eval-compare -- compare two methods over draws
 *
 * Reads records of eval-ppl, eval-choice or eval-generate. A draw is an evaluation of both methods with the
 * same calibration windows, signs of rotations and damping; other draws have others, and the same test
 * windows or questions. Prints the means over draws and windows, or questions, and those of the differences,
 * with one standard error of the two-way layout (eval/two_way.h).
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "eval/compare.h"
#include "eval/record.h"

static const struct tool tool = {
	.name = "eval-compare",
	.brief = "compare two methods over draws",
	.operands = "RECORD... BASE...",
	.max_operands = SIZE_MAX,
	.optional = true,
	.about = "Reads records of eval-ppl, eval-choice or eval-generate -o: first those of a method, one "
		"for each draw, then as many of its base, in the same order of draws. Draws differ in "
		"calibration windows, signs of rotations or damping, equal for both methods. All are of "
		"the same windows of one text, or of the same questions. Prints the mean of nll and kl, or "
		"of accuracies, and of their differences from the base, with its standard error, which "
		"counts draws and windows (questions) as random, its degrees of freedom and its two parts. "
		"separated: whether the mean differs from 0; - with one draw.",
	.examples = "  eval-compare gar-?.h5 none-?.h5",
};

int main(int argc, char *argv[])
{
	struct selection tasks = { 0 };
	double confidence;
	bool json;
	const struct option_row rows[] = {
		{ 0, "confidence", OPTION_REAL(&confidence), "P", "two-sided, of separated",
			.default_value = "0.95", .min = 0.5, .max = 0.999999 },
		{ 0, "tasks", OPTION_SELECTION(&tasks), "GLOB",
			"only tasks that match GLOB; !GLOB excludes" },
		{ 0, "json", OPTION_BOOL(&json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	const size_t n = c.operands;

	if (!n || n % 2)
		misuse("%zu records, expected those of a method, then as many of its base", n);

	struct part **record = xalloc(n, sizeof *record);

	for (size_t i = 0; i < n; i++)
		record[i] = part_open(c.operand[i], "result");

	struct output *out = record_open(c.output, NULL);
	struct table table = compare_table(n / 2, (const struct part *const *)record, &tasks,
		confidence);

	for (size_t i = 0; i < n; i++) {
		char *input = xformat("record%zu", i + 1);

		record_input(out, input, record[i]);
		free(input);
	}
	table_print(&table, json);
	table_write(&table, out);
	table_free(&table);
	selection_warn(&tasks, "tasks", c.operand[0]);
	selection_free(&tasks);
	for (size_t i = 0; i < n; i++)
		part_close(record[i]);
	free(record);
	return 0;
}
