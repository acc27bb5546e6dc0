/* SPDX-License-Identifier: GPL-3.0-or-later */
/* task_private.h -- what a row of `tasks` (task.c) finds in an item, for its question (task_question.c) */
#ifndef EVAL_TASK_PRIVATE_H
#define EVAL_TASK_PRIVATE_H
#include <jansson.h>
#include "eval/task.h"

/* An item, and the parts of its question. read() may add members to the item, for the template. */
struct reading {
	const struct task *task;
	bool example;			/* of a prompt: only its answer is used */
	json_t *item;
	json_t *choices;		/* texts */
	json_t *contexts;		/* texts, or NULL */
	json_t *options;		/* the choices in the prompt, or NULL */
	size_t gold;
	char *answer;			/* of a question whose answer is generated, or NULL */
};
#endif
