/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * questions-import -- make questions of a public set
 *
 * The prompts are those of lm-evaluation-harness, character for character. A row of the table of tasks
 * (eval/task.h) has the template, the choices and the examples of each set.
 */
#include <stdbool.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "eval/item.h"
#include "eval/task.h"
#include "io/contents.h"

static const struct tool tool = {
	.name = "questions-import",
	.brief = "make questions of a public set",
	.operands = "[ITEMS]",
	.max_operands = 1,
	.about = "ITEMS is a file of a public set: JSON lines, or for mmlu and ceval also CSV. The result "
		"has a question per item, for eval-choice, or for eval-generate (lambada_generated, "
		"gsm8k, gsm8k_cot). Prompts are those of lm-evaluation-harness. Tasks: arc_easy, "
		"arc_challenge, hellaswag, piqa, winogrande, boolq, openbookqa, lambada, lambada_generated, "
		"mmlu, ceval, gsm8k, gsm8k_cot. The last four have --examples, or -n 0.",
	.examples = "  echo '{\"question\": \"Which one is hot?\", \"answerKey\": \"B\", \"choices\":' \\\n"
		"    '{\"label\": [\"A\", \"B\"], \"text\": [\"ice\", \"fire\"]}}' > items.jsonl\n"
		"  questions-import --task arc_easy items.jsonl -o questions.jsonl\n"
		"  eval-choice --questions questions.jsonl model.h5",
};

int main(int argc, char *argv[])
{
	const char *name, *examples;
	size_t limit, n;
	struct task_settings set = { 0 };
	const struct option_row rows[] = {
		{ 0, "task", OPTION_TEXT(&name), "NAME", "the set and its prompt (required)" },
		{ 0, "examples", OPTION_FILE(&examples), "FILE",
			"items that come before a prompt, with answers" },
		{ 'n', "number", OPTION_SIZE(&set.number), "N",
			"examples before a prompt (default: the task's)" },
		{ 0, "subject", OPTION_TEXT(&set.subject), "TEXT", "subject of items that have none" },
		{ 0, "limit", OPTION_SIZE(&limit), "N", "only the first N items (default: all)" },
		{ 0, "equal", OPTION_BOOL(&set.equal), NULL, "accept items with equal choices" },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct items items, shots;
	struct contents_output out;
	char *text;

	set.task = name ? task_of(name) : NULL;
	if (!name)
		misuse("--task NAME is expected");
	if (!set.task)
		misuse("--task is '%s', expected one of %s", name, task_names());
	if (!set.task->examples)
		option_refuse("examples number", name);
	if (!set.task->description)
		option_refuse("subject", name);
	if (!option_given("number"))
		set.number = set.task->examples;
	if (set.number && !examples)
		misuse("--task %s has %zu examples: --examples FILE is expected, or -n 0", name, set.number);
	option_without_effect(1, &(struct option_without_effect){ !set.number, "examples", "-n 0" });
	out = contents_create(c.output);
	items = items_read(c.operand[0], limit, set.task->columns);
	if (set.number)
		shots = items_read(examples, 0, set.task->columns);
	set.examples = set.number ? &shots : NULL;
	text = task_questions(&set, &items, &n);
	contents_write(&out, n, text);
	items_free(&items);
	if (set.examples)
		items_free(&shots);
	free(text);
	return 0;
}
