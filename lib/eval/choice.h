/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * choice.h -- accuracy on multiple-choice questions, and comparison with a reference or an earlier record
 *
 * With log p(c) = Σ log p(token) over the tokens of choice c after the context, each question has the marks
 *
 *	acc		argmax log p(c) is the gold choice
 *	acc_norm	argmax log p(c) / characters of c is the gold choice
 *	acc_bytes	argmax log p(c) / bytes of c is the gold choice
 *	exact		greedy decoding gives the tokens of the gold choice, and of the text that ends it
 *	kl		mean of KL(reference || model) over the tokens of all choices, nats
 *	agreement	argmax log p(c) is that of the reference
 *
 * A question with one choice (LAMBADA) has accuracies of 1 if greedy decoding gives the tokens of the choice.
 * Ties: the first choice. Greedy decoding gives a sequence of tokens if each of them is the most likely one
 * after those before it, so one forward pass suffices. Characters are code points of Unicode, and bytes those
 * of UTF-8. The blank that separates c from the context does not count, if c begins with one.
 *
 * Source: lm-evaluation-harness, api/task.py, process_results().
 *
 * Calling sequence: choices_of(); choices_open_earlier() if there is a record; choices_table();
 * choices_write(); marks_table_free(); choices_free().
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

enum choice_mark {
	CHOICE_ACC, CHOICE_ACC_NORM, CHOICE_ACC_BYTES, CHOICE_EXACT, CHOICE_KL, CHOICE_AGREEMENT, CHOICE_MARKS
};

struct choices {
	const struct questions *questions;
	double *mark[CHOICE_MARKS];	/* [questions] each; NULL: not measured */
	double *log_p;			/* [choices of all questions], nats */
	double *reference;		/* log_p of the reference model, or NULL */
	int32_t *tokens;		/* [choices of all questions] number of tokens */
};

/*
 * Computes the marks. p: of questions_encode(). w: prompt_windows() of the prompts. nll, likeliest: of
 * run_score(), or with a reference of divergence_measure(). d: NULL without a reference. exact: compute this
 * mark, of the gold choice, or of the continuation after the choices if prompts have one.
 */
struct choices choices_of(const struct questions *q, const struct prompt p[q->contexts],
	const struct windows *w, const double nll[w->targets], const uint8_t likeliest[w->targets],
	const struct divergence *d, bool exact);
void choices_free(struct choices *c);

/* The table of results (eval/mark.h). With an earlier record, paired_same is the share of questions with the
 * same answer as in the record. In a record without acc_bytes, acc_norm is by bytes; the accuracies are
 * then computed from its log-likelihoods. A record with another reference is a fatal error. */
struct table choices_table(const struct choices *c, const struct part *before);

/* Fatal error if both records have a reference, and not the same one. */
void choices_check_reference(const struct part *record, const struct part *first);

/* Opens an earlier record. A record of other questions is a fatal error. */
struct part *choices_open_earlier(const char *path, const struct questions *q);
/*
 * Writes and closes a record: /question/task, gold, answer, answer_norm, answer_bytes and every mark;
 * /choice/question, characters, bytes, tokens, log_likelihood and log_likelihood_of_reference; the columns of
 * the table and the numbers of its last row. out NULL: no effect.
 */
void choices_write(struct output *out, const struct choices *c, const struct table *t);
#endif
