/* SPDX-License-Identifier: GPL-3.0-or-later */
/* normalize.c -- normalizers and Metaspace; see normalize.h */
#include "text/normalize.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

void weighted_reserve(struct weighted *b, size_t n)
{
	if (b->n + n <= b->capacity)
		return;
	b->capacity = b->capacity + b->capacity / 2 + n;
	b->text = xgrow(b->text, b->capacity, 1);
	b->weight = xgrow(b->weight, b->capacity, sizeof *b->weight);
}

void weighted_put(struct weighted *b, size_t n, const char *s, size_t weight)
{
	if (weight > UINT16_MAX)
		die("the normalizer joins more than %d bytes of the text into one", UINT16_MAX);
	weighted_reserve(b, n);
	memcpy(b->text + b->n, s, n);
	memset(b->weight + b->n, 0, n * sizeof *b->weight);
	b->weight[b->n] = (uint16_t)weight;
	b->n += n;
}

void weighted_copy(struct weighted *b, const struct weighted *from, size_t begin, size_t n)
{
	if (!n)
		return;
	weighted_reserve(b, n);
	memcpy(b->text + b->n, from->text + begin, n);
	memcpy(b->weight + b->n, from->weight + begin, n * sizeof *b->weight);
	b->n += n;
}

static void weighted_swap(struct weighted *a, struct weighted *b)
{
	struct weighted c = *a;

	*a = *b;
	*b = c;
}

void weighted_free(struct weighted *b)
{
	free(b->text);
	free(b->weight);
}

void step_prepend(const struct step *s, struct weighted *b, struct weighted *spare, bool first)
{
	(void)first;
	if (!b->n)
		return;
	spare->n = 0;
	weighted_put(spare, s->to_length, s->to, 0);
	weighted_copy(spare, b, 0, b->n);
	weighted_swap(b, spare);
}

void step_replace(const struct step *s, struct weighted *b, struct weighted *spare, bool first)
{
	size_t done = 0;

	(void)first;
	spare->n = 0;
	for (;;) {
		const char *hit = memmem(b->text + done, b->n - done, s->from, s->from_length);
		size_t at = hit ? (size_t)(hit - b->text) : b->n, weight = 0;

		weighted_copy(spare, b, done, at - done);
		if (!hit)
			break;
		for (size_t i = 0; i < s->from_length; i++)
			weight += b->weight[at + i];
		weighted_put(spare, s->to_length, s->to, weight);
		done = at + s->from_length;
	}
	weighted_swap(b, spare);
}

void step_metaspace(const struct step *s, struct weighted *b, struct weighted *spare, bool first)
{
	step_replace(s, b, spare, first);
	if ((s->scheme == SCHEME_ALWAYS || (s->scheme == SCHEME_FIRST && first)) &&
	    (b->n < s->to_length || memcmp(b->text, s->to, s->to_length)))
		step_prepend(s, b, spare, first);
}

void steps_run(const struct steps *s, struct weighted *b, struct weighted *spare, bool first)
{
	for (size_t i = 0; i < s->n; i++)
		s->step[i].run(s->step + i, b, spare, first);
}

void step_strings(struct step *s, const char *from, const char *to)
{
	s->from_length = strlen(from);
	s->to_length = strlen(to);
	s->from = xformat("%s", from);
	s->to = xformat("%s", to);
}

struct step *steps_add(struct steps *s)
{
	s->step = xgrow(s->step, s->n + 1, sizeof *s->step);
	s->step[s->n] = (struct step){ 0 };
	return s->step + s->n++;
}

void steps_free(struct steps *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->step[i].from);
		free(s->step[i].to);
	}
	free(s->step);
}
