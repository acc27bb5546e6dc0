/* SPDX-License-Identifier: GPL-3.0-or-later */
/* normalize.c -- see normalize.h */
#include "text/normalize.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/bytelevel.h"
#include "text/fields.h"

static void step_prepend(const struct step *s, struct weighted *to, struct piece from)
{
	if (from.n)
		weighted_put(to, s->to_length, s->to, 0);
	weighted_copy(to, from);
}

void step_replace(const struct step *s, struct weighted *to, struct piece from)
{
	size_t done = 0, begin, end;

	for (struct regex_place at = { 0 }; regex_next(s->from, from.n, from.text, &at, &begin, &end);) {
		weighted_copy(to, piece_part(from, done, begin));
		weighted_put(to, s->to_length, s->to, piece_weight(piece_part(from, begin, end)));
		done = end;
	}
	weighted_copy(to, piece_part(from, done, from.n));
}

static void step_form(const struct step *s, struct weighted *to, struct piece from)
{
	unicode_normalize(to, from, s->form);
}

static void step_lower(const struct step *s, struct weighted *to, struct piece from)
{
	(void)s;
	unicode_lower(to, from);
}

static void step_bytes(const struct step *s, struct weighted *to, struct piece from)
{
	(void)s;
	bytelevel_put(to, from);
}

struct regex *pattern_read(const char *name, const json_t *o)
{
	const json_t *pattern = field(name, o, "pattern", JSON_OBJECT);
	bool literal = json_object_get(pattern, "String");

	if (!literal && !json_object_get(pattern, "Regex"))
		die("%s: pattern: is neither {\"String\": ...} nor {\"Regex\": ...}", name);
	return literal ? regex_make(name, field_required(name, pattern, "String"), DIALECT_LITERAL) :
		regex_make(name, field_required(name, pattern, "Regex"), DIALECT_ONIGURUMA);
}

static void add_step(struct steps *s, struct step step)
{
	s->step = xgrow(s->step, s->n + 1, sizeof *s->step);
	s->step[s->n++] = step;
}

static void read_prepend(const char *name, const json_t *o, void *to)
{
	const char *s = field_required(name, o, "prepend");

	add_step(to, (struct step){ .run = step_prepend, .to = s, .to_length = strlen(s) });
}

static void read_replace(const char *name, const json_t *o, void *to)
{
	const char *s = field_required(name, o, "content");

	add_step(to, (struct step){ .run = step_replace, .from = pattern_read(name, o), .to = s,
		.to_length = strlen(s) });
}

static void read_form(const char *name, const json_t *o, void *to)
{
	const char *type = field_string(name, o, "type");
	static const char *const names[] = { [UNICODE_NFC] = "NFC", [UNICODE_NFD] = "NFD",
		[UNICODE_NFKC] = "NFKC", [UNICODE_NFKD] = "NFKD" };
	enum unicode_form form = UNICODE_NFC;

	while (strcmp(names[form], type))
		form++;
	add_step(to, (struct step){ .run = step_form, .form = form });
}

static void read_lower(const char *name, const json_t *o, void *to)
{
	(void)name, (void)o;
	add_step(to, (struct step){ .run = step_lower });
}

static void read_bytes(const char *name, const json_t *o, void *to)
{
	(void)name, (void)o;
	add_step(to, (struct step){ .run = step_bytes });
}

static const struct field_row rows[] = {
	{ "Prepend", read_prepend }, { "Replace", read_replace }, { "NFC", read_form }, { "NFD", read_form },
	{ "NFKC", read_form }, { "NFKD", read_form }, { "Lowercase", read_lower },
	{ "ByteLevel", read_bytes }, { NULL, NULL },
};

struct steps steps_read(const char *name, const json_t *root)
{
	struct steps s = { 0 };

	field_parts(name, root, "normalizer", "normalizers", rows, &s);
	return s;
}

void steps_run(const struct steps *s, struct weighted *b, struct weighted *spare)
{
	for (size_t i = 0; i < s->n; i++) {
		spare->n = 0;
		s->step[i].run(s->step + i, spare, weighted_piece(b, false));
		weighted_swap(b, spare);
	}
}

void steps_free(struct steps *s)
{
	for (size_t i = 0; i < s->n; i++)
		regex_free(s->step[i].from);
	free(s->step);
}
