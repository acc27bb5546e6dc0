/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * normalize.h -- steps that rewrite a text before it is cut into tokens
 *
 * Internal to lib/text. Every byte carries how many bytes of the original text
 * it stands for, so that a token knows its length whatever a step did: inserted
 * bytes weigh 0, the first byte of a replacement weighs what it replaces.
 *
 * Source: https://github.com/huggingface/tokenizers (normalizers/prepend,
 * normalizers/replace, pre_tokenizers/metaspace).
 */
#ifndef TEXT_NORMALIZE_H
#define TEXT_NORMALIZE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text on its way: bytes, and for each how many bytes of the original it stands for. */
struct weighted {
	size_t n, room;
	char *text;
	uint16_t *weight;
};

struct step {
	void (*run)(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
	char *from, *to;
	size_t from_length, to_length;
	enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER } scheme;	/* of step_metaspace: when it prepends */
};

struct steps {
	size_t n;
	struct step *step;
};

void weighted_room(struct weighted *b, size_t n);	/* for n bytes more */
/* Appends n bytes that stand together for `weight` bytes of the text; the first byte carries them. */
void weighted_put(struct weighted *b, size_t n, const char *s, size_t weight);
void weighted_copy(struct weighted *b, const struct weighted *from, size_t begin, size_t n);	/* appends, weights too */
void weighted_free(struct weighted *b);

/*
 * Kinds of step, on b; spare is for their use. first: b starts the whole text.
 * prepend puts `to` before a text that is not empty. replace puts `to` for each
 * `from`. metaspace replaces, and prepends where the scheme says so and `to` is
 * not there yet.
 */
void step_prepend(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
void step_replace(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
void step_metaspace(const struct step *s, struct weighted *b, struct weighted *spare, bool first);
void step_strings(struct step *s, const char *from, const char *to);	/* copies them */

struct step *steps_add(struct steps *s);	/* an empty one at the end; valid until the next */
void steps_run(const struct steps *s, struct weighted *b, struct weighted *spare, bool first);
void steps_free(struct steps *s);
#endif
