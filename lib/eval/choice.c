/* SPDX-License-Identifier: GPL-3.0-or-later */
/* choice.c -- see choice.h */
#include "eval/choice.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/mark.h"

static const char *const marks[CHOICE_MARKS] = { [CHOICE_ACC] = "acc", [CHOICE_ACC_NORM] = "acc_norm",
	[CHOICE_ACC_BYTES] = "acc_bytes", [CHOICE_EXACT] = "exact", [CHOICE_KL] = "kl",
	[CHOICE_AGREEMENT] = "agreement" };
/* Log-likelihoods of a token under the same model differ by less than this, even if two kinds of processor
 * round sums differently. */
static const double SAME_TOKEN = 0.01;

_Static_assert((int)CHOICE_MARKS <= MARKS, "a table has room for all marks");

/* Index of the largest x[i] / by[i] (ties: the first). by NULL: of x. */
static size_t largest_at(size_t n, const double x[n], const double *by)
{
	size_t top = 0;

	for (size_t i = 1; i < n; i++)
		if (by ? x[i] / by[i] > x[top] / by[top] : x[i] > x[top])
			top = i;
	return top;
}

static size_t bytes_of(const char *s)
{
	return strlen(s);
}

static size_t characters_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* A size of a choice without its first blank; a blank alone counts. */
typedef size_t size_of(const char *s);
static size_t choice_size(const char *choice, size_of *size)
{
	return size(choice + (choice[0] == ' ' && choice[1]));
}

/* The choice with the largest log p per unit of size. */
static size_t largest_by(const struct question *q, const double log_p[q->choices], size_of *size)
{
	double *by = xalloc(q->choices, sizeof *by);
	size_t top;

	for (size_t i = 0; i < q->choices; i++)
		by[i] = (double)choice_size(q->choice[i], size);
	top = largest_at(q->choices, log_p, by);
	free(by);
	return top;
}

/* Targets of a continuation; first: number among the targets of all windows. */
struct targets { size_t first, n; };

static double sum_targets(const double *x, struct targets t)
{
	double sum = 0;

	for (size_t i = t.first; i < t.first + t.n; i++)
		sum += x[i];
	return sum;
}

/* Computes the marks of question i. choice: number of its first choice among all choices. t: targets of its
 * choices. */
static void take_question(struct choices *c, size_t i, size_t choice, const double nll[],
	const struct divergence *d, const struct targets t[])
{
	const struct question *q = &c->questions->item[i];
	double *log_p = c->log_p + choice, *reference = d ? c->reference + choice : NULL;
	double kl = 0;
	size_t tokens = 0;

	for (size_t k = 0; k < q->choices; k++) {
		log_p[k] = -sum_targets(nll, t[k]);
		c->tokens[choice + k] = (int32_t)t[k].n;
		if (d) {
			reference[k] = -sum_targets(d->reference, t[k]);
			kl += sum_targets(d->kl, t[k]);
		}
		tokens += t[k].n;
	}
	c->mark[CHOICE_ACC][i] = largest_at(q->choices, log_p, NULL) == q->gold;
	c->mark[CHOICE_ACC_NORM][i] = largest_by(q, log_p, characters_of) == q->gold;
	c->mark[CHOICE_ACC_BYTES][i] = largest_by(q, log_p, bytes_of) == q->gold;
	if (!d)
		return;
	c->mark[CHOICE_KL][i] = kl / (double)tokens;
	c->mark[CHOICE_AGREEMENT][i] = largest_at(q->choices, log_p, NULL) ==
		largest_at(q->choices, reference, NULL);
}

static bool all_likeliest(const uint8_t likeliest[], struct targets t)
{
	for (size_t i = t.first; i < t.first + t.n; i++)
		if (!likeliest[i])
			return false;
	return true;
}

/* Numbers the targets of windows in order. */
struct counter {
	const size_t *in_window;	/* targets of each window */
	size_t window, target;
};

/* Stores the targets of the choices of a question in t. p: its first prompt. Returns the targets of the
 * continuation after the choices or, without one, of the gold choice. */
static struct targets find_targets(const struct question *q, const struct prompt *p, struct counter *at,
	struct targets t[q->choices])
{
	const size_t choices = q->choices / q->contexts;
	struct targets end = { 0 };

	for (size_t c = 0; c < q->contexts; c++) {
		at->window += prompt_context_windows(&p[c]);
		for (size_t k = 0; k < p[c].continuations; k++) {
			const struct targets here = { at->target, at->in_window[at->window++] };

			at->target += here.n;
			*(k < choices ? &t[c * choices + k] : &end) = here;
		}
	}
	return end.n ? end : t[q->gold];
}

struct choices choices_of(const struct questions *q, const struct prompt p[q->contexts],
	const struct windows *w, const double nll[w->targets], const uint8_t likeliest[w->targets],
	const struct divergence *d, bool exact)
{
	struct choices c = { .questions = q, .log_p = xalloc(q->choices, sizeof *c.log_p),
		.reference = d ? xalloc(q->choices, sizeof *c.reference) : NULL,
		.tokens = xalloc(q->choices, sizeof *c.tokens) };
	size_t *in_window = xalloc(w->n, sizeof *in_window), choice = 0;
	struct counter at = { .in_window = in_window };

	windows_targets(w, in_window);
	for (int m = 0; m < CHOICE_MARKS; m++)
		if (m < CHOICE_EXACT || (m == CHOICE_EXACT && exact) || (m > CHOICE_EXACT && d))
			c.mark[m] = xalloc(q->n, sizeof *c.mark[m]);
	for (size_t i = 0; i < q->n; p += q->item[i].contexts, choice += q->item[i++].choices) {
		struct targets *t = xalloc(q->item[i].choices, sizeof *t);
		const struct targets end = find_targets(&q->item[i], p, &at, t);

		take_question(&c, i, choice, nll, d, t);
		if (exact)
			c.mark[CHOICE_EXACT][i] = all_likeliest(likeliest, end);
		free(t);
	}
	free(in_window);
	return c;
}

void choices_free(struct choices *c)
{
	for (int m = 0; m < CHOICE_MARKS; m++)
		free(c->mark[m]);
	free(c->log_p), free(c->reference), free(c->tokens);
}

/* ---- the table ---- */

/* Fatal error if the record has another reference: differences of kl and agreement would be meaningless. */
static void check_reference(const struct part *before, const struct choices *c)
{
	static const char path[] = "/choice/log_likelihood_of_reference";
	const size_t n = c->questions->choices;
	struct tensor t;
	const double *theirs;

	if (!c->reference || !part_find(before, path, TENSOR_F64, 1, &n, &t))
		return;
	theirs = t.data;
	for (size_t i = 0; i < n; i++)
		if (!(fabs(theirs[i] - c->reference[i]) < SAME_TOKEN * (double)c->tokens[i]))
			die("%s: %s: is of another reference: choice %zu has %g, expected %g",
				part_name(before), path, i, theirs[i], c->reference[i]);
}

/* 1 for each question with the same answer as in the record, else 0; free() it. */
static double *same_answers(const struct choices *c, const struct part *before)
{
	const struct questions *q = c->questions;
	const int32_t *theirs = part_tensor(before, "/question/answer", TENSOR_I32, 1, &q->n).data;
	double *same = xalloc(q->n, sizeof *same);

	for (size_t i = 0, choice = 0; i < q->n; choice += q->item[i++].choices)
		same[i] = (int32_t)largest_at(q->item[i].choices, c->log_p + choice, NULL) == theirs[i];
	return same;
}

/* A mark per unit of size, from the log-likelihoods of a record; free() it. */
static double *earlier_by(const struct questions *q, const struct part *before, size_of *size)
{
	const double *log_p = part_tensor(before, "/choice/log_likelihood", TENSOR_F64, 1, &q->choices).data;
	double *x = xalloc(q->n, sizeof *x);

	for (size_t i = 0; i < q->n; log_p += q->item[i++].choices)
		x[i] = largest_by(&q->item[i], log_p, size) == q->item[i].gold;
	return x;
}

/* The computed marks; returns their number. */
static size_t marks_of(const struct choices *c, struct mark mark[CHOICE_MARKS])
{
	size_t n = 0;

	for (int m = 0; m < CHOICE_MARKS; m++)
		if (c->mark[m])
			mark[n++] = (struct mark){ marks[m], c->mark[m], NULL };
	return n;
}

struct table choices_table(const struct choices *c, const struct part *before)
{
	struct mark mark[CHOICE_MARKS];
	const size_t n = marks_of(c, mark);
	double *same = before ? same_answers(c, before) : NULL, *norm = NULL, *bytes = NULL;
	struct tensor found;
	struct table t;

	if (before)
		check_reference(before, c);
	if (before && !part_find(before, "/question/acc_bytes", TENSOR_F64, 1, &c->questions->n, &found)) {
		mark[CHOICE_ACC_NORM].before = norm = earlier_by(c->questions, before, characters_of);
		mark[CHOICE_ACC_BYTES].before = bytes = earlier_by(c->questions, before, bytes_of);
	}
	t = marks_table(c->questions, n, mark, before, same);
	free(same), free(norm), free(bytes);
	return t;
}

/* ---- the record ---- */

struct part *choices_open_earlier(const char *path, const struct questions *q)
{
	return marks_open_earlier(path, q, "eval-choice", "/question/gold");
}

static void write_questions(struct output *out, const struct choices *c)
{
	const struct questions *q = c->questions;
	struct mark mark[CHOICE_MARKS];
	int32_t *gold = xalloc(q->n, sizeof *gold), *answer = xalloc(q->n, sizeof *answer);
	int32_t *normed = xalloc(q->n, sizeof *normed), *by_bytes = xalloc(q->n, sizeof *by_bytes);

	for (size_t i = 0, choice = 0; i < q->n; choice += q->item[i++].choices) {
		const double *log_p = c->log_p + choice;

		gold[i] = (int32_t)q->item[i].gold;
		answer[i] = (int32_t)largest_at(q->item[i].choices, log_p, NULL);
		normed[i] = (int32_t)largest_by(&q->item[i], log_p, characters_of);
		by_bytes[i] = (int32_t)largest_by(&q->item[i], log_p, bytes_of);
	}
	marks_write(out, q, marks_of(c, mark), mark);
	output_write(out, "/question/gold", tensor_1d(TENSOR_I32, gold, q->n));
	output_write(out, "/question/answer", tensor_1d(TENSOR_I32, answer, q->n));
	output_write(out, "/question/answer_norm", tensor_1d(TENSOR_I32, normed, q->n));
	output_write(out, "/question/answer_bytes", tensor_1d(TENSOR_I32, by_bytes, q->n));
	free(gold), free(answer), free(normed), free(by_bytes);
}

static void write_choices(struct output *out, const struct choices *c)
{
	const struct questions *q = c->questions;
	int32_t *question = xalloc(q->choices, sizeof *question), *bytes = xalloc(q->choices, sizeof *bytes);
	int32_t *characters = xalloc(q->choices, sizeof *characters);
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++)
		for (size_t k = 0; k < q->item[i].choices; k++) {
			question[n] = (int32_t)i;
			characters[n] = (int32_t)choice_size(q->item[i].choice[k], characters_of);
			bytes[n++] = (int32_t)choice_size(q->item[i].choice[k], bytes_of);
		}
	output_write(out, "/choice/question", tensor_1d(TENSOR_I32, question, n));
	output_write(out, "/choice/characters", tensor_1d(TENSOR_I32, characters, n));
	output_write(out, "/choice/bytes", tensor_1d(TENSOR_I32, bytes, n));
	output_write(out, "/choice/tokens", tensor_1d(TENSOR_I32, c->tokens, n));
	output_write(out, "/choice/log_likelihood", tensor_1d(TENSOR_F64, c->log_p, n));
	if (c->reference)
		output_write(out, "/choice/log_likelihood_of_reference",
			tensor_1d(TENSOR_F64, c->reference, n));
	free(question), free(characters), free(bytes);
}

void choices_write(struct output *out, const struct choices *c, const struct table *t)
{
	if (!out)
		return;
	write_questions(out, c);
	write_choices(out, c);
	table_write(t, out);
}
