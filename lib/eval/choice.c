/* SPDX-License-Identifier: GPL-3.0-or-later */
/* choice.c -- see choice.h */
#include "eval/choice.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/mark.h"
#include "eval/record.h"

static const char *const marks[CHOICE_MARKS] = { [CHOICE_ACC] = "acc", [CHOICE_ACC_NORM] = "acc_norm",
	[CHOICE_ACC_BYTES] = "acc_bytes", [CHOICE_EXACT] = "exact", [CHOICE_KL] = "kl",
	[CHOICE_AGREEMENT] = "agreement" };

_Static_assert((int)CHOICE_MARKS <= MARKS, "a table has room for all marks");

/* ---- accuracies: the answer is the choice with the largest log p per unit of size ---- */

static size_t one(const char *s)
{
	(void)s;
	return 1;
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

/* answer, size: datasets of the record; size NULL: none. */
static const struct accuracy {
	enum choice_mark mark;
	size_t (*size_of)(const char *s);
	const char *answer, *size;
} accuracies[] = {
	{ CHOICE_ACC, one, "/question/answer", NULL },
	{ CHOICE_ACC_NORM, characters_of, "/question/answer_norm", "/choice/characters" },
	{ CHOICE_ACC_BYTES, bytes_of, "/question/answer_bytes", "/choice/bytes" },
};
enum { ACCURACIES = sizeof accuracies / sizeof *accuracies };

/* The size of a choice without its first blank; a blank alone counts. */
static size_t size_of(const struct accuracy *a, const char *choice)
{
	return a->size_of(choice + (choice[0] == ' ' && choice[1]));
}

/* Ties: the first choice. */
static size_t answer_of(const struct accuracy *a, const struct question *q, const double log_p[q->choices])
{
	double top = -INFINITY;
	size_t answer = 0;

	for (size_t i = 0; i < q->choices; i++) {
		const double y = log_p[i] / (double)size_of(a, q->choice[i]);

		if (y > top)
			answer = i, top = y;
	}
	return answer;
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

/* The first of the choices that equal choice k, with its context. Likelihoods of equal choices would differ
 * by rounding, which depends on the place of their tokens in a batch. */
static size_t first_equal(const struct question *q, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (!strcmp(q->choice[i], q->choice[k]) &&
		    (q->contexts == 1 || !strcmp(q->context[i], q->context[k])))
			return i;
	return k;
}

/* Computes the marks of question i. choice: number of its first choice among all choices. of: targets of its
 * choices. */
static void take_question(struct choices *c, size_t i, size_t choice, const double nll[],
	const struct divergence *d, const struct targets of[])
{
	const struct question *q = &c->questions->item[i];
	double *log_p = c->log_p + choice, *reference = d ? c->reference + choice : NULL;
	double kl = 0;
	size_t tokens = 0;

	for (size_t k = 0; k < q->choices; k++) {
		const struct targets t = of[first_equal(q, k)];

		log_p[k] = -sum_targets(nll, t);
		c->tokens[choice + k] = (int32_t)t.n;
		if (d) {
			reference[k] = -sum_targets(d->reference, t);
			kl += sum_targets(d->kl, t);
		}
		tokens += t.n;
	}
	for (const struct accuracy *a = accuracies; a < accuracies + ACCURACIES; a++)
		c->mark[a->mark][i] = answer_of(a, q, log_p) == q->gold;
	if (!d)
		return;
	c->mark[CHOICE_KL][i] = kl / (double)tokens;
	c->mark[CHOICE_AGREEMENT][i] = answer_of(accuracies, q, log_p) == answer_of(accuracies, q, reference);
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

	for (size_t c = 0; c < q->contexts; c++)
		for (size_t k = 0; k < p[c].continuations; k++) {
			struct targets here = { .first = at->target };

			while (!(here.n = at->in_window[at->window++]))
				;		/* a window of a context */
			at->target += here.n;
			*(k < choices ? &t[c * choices + k] : &end) = here;
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
		for (size_t k = 0; q->item[i].choices == 1 && k < ACCURACIES; k++)
			c.mark[accuracies[k].mark][i] = all_likeliest(likeliest, t[0]);
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

static const char REFERENCE[] = "/choice/log_likelihood_of_reference";

/* ours: of a reference model; tokens: of each choice. */
static void check_reference(const struct part *record, size_t n, const double ours[n],
	const int32_t tokens[n])
{
	struct tensor t;
	const double *theirs;

	if (!part_find(record, REFERENCE, TENSOR_F64, 1, &n, &t))
		return;
	theirs = t.data;
	for (size_t i = 0; i < n; i++)
		if (!(fabs(theirs[i] - ours[i]) < same_nll * (double)tokens[i]))
			die("%s: %s: is of another reference: choice %zu has %g, expected %g",
				part_name(record), REFERENCE, i, theirs[i], ours[i]);
}

void choices_check_reference(const struct part *record, const struct part *first)
{
	struct tensor ours;
	size_t n;

	if (!part_find(first, REFERENCE, TENSOR_F64, 1, NULL, &ours))
		return;
	n = ours.dim[0];
	check_reference(record, n, ours.data, part_tensor(first, "/choice/tokens", TENSOR_I32, 1, &n).data);
}

/* 1 for each question with the same answer as in the record, else 0; free() it. */
static double *same_answers(const struct choices *c, const struct part *before)
{
	const struct questions *q = c->questions;
	const int32_t *theirs = part_tensor(before, "/question/answer", TENSOR_I32, 1, &q->n).data;
	double *same = xalloc(q->n, sizeof *same);

	for (size_t i = 0, choice = 0; i < q->n; choice += q->item[i++].choices)
		same[i] = (int32_t)answer_of(accuracies, &q->item[i], c->log_p + choice) == theirs[i];
	return same;
}

/* An accuracy from the log-likelihoods of a record; free() it. */
static double *earlier(const struct accuracy *a, const struct questions *q, const struct part *before)
{
	const double *log_p = record_numbers(before, "/choice/log_likelihood", q->choices);
	double *x = xalloc(q->n, sizeof *x);

	for (size_t i = 0; i < q->n; log_p += q->item[i++].choices)
		x[i] = answer_of(a, &q->item[i], log_p) == q->item[i].gold;
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
	double *same = before ? same_answers(c, before) : NULL, *theirs[ACCURACIES] = { NULL };
	struct tensor found;
	struct table t;

	if (before && c->reference)
		check_reference(before, c->questions->choices, c->reference, c->tokens);
	if (before && !part_find(before, "/question/acc_bytes", TENSOR_F64, 1, &c->questions->n, &found))
		for (size_t k = 0; k < ACCURACIES; k++) {
			theirs[k] = earlier(&accuracies[k], c->questions, before);
			for (size_t i = 0; i < n; i++)
				if (mark[i].x == c->mark[accuracies[k].mark])
					mark[i].before = theirs[k];
		}
	t = marks_table(c->questions, n, mark, before, same);
	free(same);
	for (size_t k = 0; k < ACCURACIES; k++)
		free(theirs[k]);
	return t;
}

/* ---- the record ---- */

struct part *choices_open_earlier(const char *path, const struct questions *q)
{
	struct part *record = marks_open_earlier(path, q, "eval-choice", "/question/gold");

	for (size_t i = 0; i < q->n && !part_has(record, "/question/acc_bytes"); i++)
		if (q->item[i].choices == 1)
			die("%s: is of version 1.0, in which answers to questions with one choice are right: "
				"make it again", path);
	return record;
}

/* Writes a number of each question or choice. */
static void write_numbers(struct output *out, const char *path, size_t n, int32_t number[n])
{
	output_write(out, path, tensor_1d(TENSOR_I32, number, n));
}

static void write_questions(struct output *out, const struct choices *c)
{
	const struct questions *q = c->questions;
	struct mark mark[CHOICE_MARKS];
	int32_t *number = xalloc(q->n, sizeof *number);

	marks_write(out, q, marks_of(c, mark), mark);
	for (size_t i = 0; i < q->n; i++)
		number[i] = (int32_t)q->item[i].gold;
	write_numbers(out, "/question/gold", q->n, number);
	for (const struct accuracy *a = accuracies; a < accuracies + ACCURACIES; a++) {
		const double *log_p = c->log_p;

		for (size_t i = 0; i < q->n; log_p += q->item[i++].choices)
			number[i] = (int32_t)answer_of(a, &q->item[i], log_p);
		write_numbers(out, a->answer, q->n, number);
	}
	free(number);
}

static void write_choices(struct output *out, const struct choices *c)
{
	const struct questions *q = c->questions;
	int32_t *number = xalloc(q->choices, sizeof *number);
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++)
		for (size_t k = 0; k < q->item[i].choices; k++)
			number[n++] = (int32_t)i;
	write_numbers(out, "/choice/question", n, number);
	for (const struct accuracy *a = accuracies; a < accuracies + ACCURACIES; a++) {
		if (!a->size)
			continue;
		n = 0;
		for (size_t i = 0; i < q->n; i++)
			for (size_t k = 0; k < q->item[i].choices; k++)
				number[n++] = (int32_t)size_of(a, q->item[i].choice[k]);
		write_numbers(out, a->size, n, number);
	}
	write_numbers(out, "/choice/tokens", n, c->tokens);
	output_write(out, "/choice/log_likelihood", tensor_1d(TENSOR_F64, c->log_p, n));
	if (c->reference)
		output_write(out, REFERENCE, tensor_1d(TENSOR_F64, c->reference, n));
	free(number);
}

void choices_write(struct output *out, const struct choices *c, const struct table *t)
{
	if (!out)
		return;
	write_questions(out, c);
	write_choices(out, c);
	table_write(t, out);
}
