/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * normalize.h -- steps that rewrite a text before it is cut into tokens
 *
 * Internal to lib/text. Every byte has a weight, the number of bytes of the original text that it stands
 * for, so that the length of a token is known whatever the steps have done: inserted bytes weigh 0, and the
 * first byte of a replacement weighs as much as all that it replaces.
 *
 * Source: https://github.com/huggingface/tokenizers (normalizers/prepend,
 * normalizers/replace, pre_tokenizers/metaspace).
 */
#ifndef TEXT_NORMALIZE_H
#define TEXT_NORMALIZE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text between steps: its bytes and their weights. */
struct weighted {
	size_t n, capacity;
	char *text;
	uint16_t *weight;
};

struct step {
	void (*run)(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
	char *from, *to;
	size_t from_length, to_length;
	enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER } scheme;	/* when metaspace prepends */
};

struct steps {
	size_t n;
	struct step *step;
};

void weighted_reserve(struct weighted *b, size_t n);	/* memory for n more bytes */
/* Appends n bytes that together stand for `weight` bytes of the text; the first byte gets that weight. */
void weighted_put(struct weighted *b, size_t n, const char *s, size_t weight);
/* Appends n bytes of another text with their weights. */
void weighted_copy(struct weighted *b, const struct weighted *from, size_t begin, size_t n);
void weighted_free(struct weighted *b);

/*
 * Kinds of step. They change b and use spare as workspace. first: b is the start of the whole text. prepend
 * puts `to` before a text that is not empty. replace puts `to` in place of each `from`. metaspace replaces,
 * and then prepends if the scheme says so and the text does not start with `to`.
 */
void step_prepend(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
void step_replace(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
void step_metaspace(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
void step_strings(struct step *s, const char *from, const char *to);	/* copies them */

struct step *steps_add(struct steps *s);	/* appends an empty one; valid until the next call */
void steps_run(const struct steps *s, struct weighted *b, struct weighted *spare, bool first);
void steps_free(struct steps *s);
#endif
