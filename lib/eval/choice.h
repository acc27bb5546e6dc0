/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * choice.h -- which choice a model takes for the answer of a question, and how often it is the right one
 *
 * With log p(c) = Σ log p(token) over the tokens of choice c behind the context, of each question
 *
 *	acc		argmax log p(c) is the gold choice
 *	acc_norm	argmax log p(c) / bytes of c is
 *	exact		greedy decoding gives the tokens of the gold choice, and of the text that ends it
 *	kl		mean of KL(reference || model) over the tokens of all choices, nats
 *	agreement	argmax log p(c) is that of the reference
 *
 * The first of equal ones is taken. Greedy decoding gives some tokens where each of them is the likeliest
 * behind those before it, so that one pass tells. Over n questions a mean has the standard error
 * √((mean x² - mean² x) / (n - 1)).
 *
 * Source: lm-evaluation-harness, api/task.py, for acc; its acc_bytes is acc_norm here, its acc_norm divides
 * by characters.
 */
#ifndef EVAL_CHOICE_H
#define EVAL_CHOICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "eval/divergence.h"
#include "eval/question.h"
#include "forward/prompt.h"
#include "forward/windows.h"
#include "io/part.h"
#include "io/table.h"

enum choice_mark { CHOICE_ACC, CHOICE_ACC_NORM, CHOICE_EXACT, CHOICE_KL, CHOICE_AGREEMENT, CHOICE_MARKS };

struct choices {
	const struct questions *questions;
	double *mark[CHOICE_MARKS];	/* [questions] each; NULL: not measured */
	double *log_p;			/* [choices of all questions] */
	double *reference;		/* the same of the reference, or NULL */
	int32_t *tokens;		/* [choices of all questions] of each */
};

/*
 * Of the targets of prompt_windows() of these prompts: nll and likeliest, as run_score() gives them. d: NULL
 * without a reference. exact: whether it is asked for; of the gold choice, or of the continuation behind the
 * choices where prompts have one more.
 */
struct choices choices_of(const struct questions *q, const struct prompt p[q->n], const struct windows *w,
	const double nll[w->targets], const uint8_t likeliest[w->targets], const struct divergence *d,
	bool exact);
void choices_free(struct choices *c);

/*
 * task, questions, and mean and standard error of every mark that there is, as NAME and NAME_se; with an
 * earlier record also of the differences from it, question by question, paired_NAME_delta and
 * paired_NAME_delta_se of marks that both have, and paired_same, the share of questions whose answer is the
 * record's. A row for each task, in the order that they first come in, and one for all questions. Dies where
 * the record's reference was another.
 */
struct table choices_table(const struct choices *c, const struct part *before);
/* Frees its columns too. */
void choices_table_free(struct table *t);

/* An earlier record. Dies unless it is over the same questions. */
struct part *choices_earlier(const char *path, const struct questions *q);
/*
 * /question/task, gold, answer, answer_norm and every mark, /choice/question, bytes, tokens, log_likelihood
 * and log_likelihood_of_reference, the table's columns and the numbers of its last row; closes. Nothing
 * with NULL.
 */
void choices_write(struct output *out, const struct choices *c, const struct table *t);
#endif
