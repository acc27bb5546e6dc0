/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * normalize.h -- steps that rewrite a text before it is cut into tokens
 *
 * Internal to lib/text. The kinds of steps are rows of a table in normalize.c: Prepend (a string before a
 * text that is not empty), Replace (of a string or a pattern), NFC, NFD, NFKC, NFKD, Lowercase, ByteLevel.
 *
 * Source: https://github.com/huggingface/tokenizers (normalizers).
 */
#ifndef TEXT_NORMALIZE_H
#define TEXT_NORMALIZE_H
#include <jansson.h>
#include <stddef.h>
#include "text/regex.h"
#include "text/unicode.h"
#include "text/weighted.h"

struct step {
	void (*run)(const struct step *s, struct weighted *to, struct piece from);
	struct regex *from;
	const char *to;			/* borrowed from the JSON */
	size_t to_length;
	enum unicode_form form;
};

struct steps {
	size_t n;
	struct step *step;
};

/* Replaces each match of s->from by s->to. */
void step_replace(const struct step *s, struct weighted *to, struct piece from);

/* Reads the member "normalizer" of a tokenizer.json; name: a name for messages. */
struct steps steps_read(const char *name, const json_t *root);
/* Applies the steps to b; spare is workspace. */
void steps_run(const struct steps *s, struct weighted *b, struct weighted *spare);
void steps_free(struct steps *s);

/* Reads the member "pattern" of a part, {"String": ...} or {"Regex": ...}. */
struct regex *pattern_read(const char *name, const json_t *o);
#endif
