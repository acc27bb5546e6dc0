/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * task.h -- questions of public sets, with the prompts of lm-evaluation-harness
 *
 * A row of the table `tasks` makes a question (eval/question.h) of an item (eval/item.h):
 *
 *	context		description, examples, prompt
 *	example		prompt " " answer "\n\n", of another item
 *	choices		" " choice
 *
 * Description and prompt are templates with texts of the item (eval/task_text.h). Choices are members of the
 * item, letters for the texts in the prompt, or fixed words. winogrande has two contexts and one choice,
 * lambada one choice, and gsm8k an answer that is generated; lambada_generated, which the harness does not
 * have, is lambada with such an answer.
 *
 * Source: lm-evaluation-harness 0.4.13, lm_eval/tasks, and fewshot_context() in lm_eval/api/task.py. Examples
 * are the first ones of a file, as with the harness's sampler first_n, which mmlu, ceval and gsm8k_cot use.
 *
 * Calling sequence: task_of(), items_read(), task_questions().
 */
#ifndef EVAL_TASK_H
#define EVAL_TASK_H
#include <stdbool.h>
#include <stddef.h>
#include "eval/item.h"

struct reading;
struct task {
	const char *name;
	const char *prompt;
	void (*read)(struct reading *r);	/* choices and the right one, or the answer */
	const char *texts, *gold;	/* members with choices, separated by blanks, and the right one */
	char *(*clean)(const char *);	/* of the prompt and of each choice; NULL: as they are */
	const char *description;	/* NULL: none */
	size_t examples;		/* before a question, by default; 0: the task has none */
	const char *const *columns;	/* of CSV; NULL: JSON lines only */
	const char *match, *const *until;	/* of questions whose answer is generated */
};

const struct task *task_of(const char *name);	/* NULL: no such row */
char *task_names(void);				/* "a, b, c"; free() it */

struct task_settings {
	const struct task *task;
	const char *subject;		/* of items without one; or NULL */
	const struct items *examples;	/* or NULL */
	size_t number;			/* of examples before a question */
	bool equal;			/* accept items with equal choices */
};
/*
 * The questions of the items as JSON lines, in order; free() it. With a description, examples are those of
 * the subject of the item. Fatal errors, with FILE:LINE: an item without an answer, with an empty choice, or
 * with an answer that is not one of its choices; unless `equal`, an item with equal choices; fewer examples
 * than `number`.
 */
char *task_questions(const struct task_settings *s, const struct items *items, size_t *n);
#endif
