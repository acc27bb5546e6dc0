/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrated.c -- see calibrated.h */
#include "model/calibrated.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "model/tokens.h"

char *calibrated_line(const struct part *tokens, const struct calibrated_range *used)
{
	char *digest = tokens_digest(tokens), *y;

	y = used->windows ? xformat("%s %zu %zu random %zu %zu", digest, used->first, used->end, used->seed,
		used->windows) : xformat("%s %zu %zu", digest, used->first, used->end);
	free(digest);
	return y;
}

/* Whether the text has this line of n characters. */
static bool has_line(const char *text, const char *line, size_t n)
{
	for (; text && *text; text = strchr(text, '\n'), text += text != NULL)
		if (strcspn(text, "\n") == n && !strncmp(text, line, n))
			return true;
	return false;
}

/* Appends the lines that *to does not have yet. */
static void add_lines(char **to, const char *from)
{
	for (size_t n; from && *from; from += n + (from[n] != 0)) {
		char *before = *to;

		n = strcspn(from, "\n");
		if (!n || has_line(before, from, n))
			continue;
		*to = xformat("%s%s%.*s", before ? before : "", before ? "\n" : "", (int)n, from);
		free(before);
	}
}

bool calibrated_parse(const char *line, struct calibrated_range *r)
{
	*r = (struct calibrated_range){ .digest = line };
	if (strcspn(line, " \n") != DIGEST_DIGITS)
		return false;
	return sscanf(line + DIGEST_DIGITS, "%zu%zu random%zu%zu", &r->first, &r->end, &r->seed,
		&r->windows) >= 2 && r->first < r->end;
}

/* Parses the next valid line of a text (NULL: no lines), and moves *text after it. */
static bool next_range(const char **text, struct calibrated_range *r)
{
	for (const char *s = *text; s && *s; s = *text) {
		*text = s + strcspn(s, "\n");
		*text += **text != 0;

		char *line = xformat("%.*s", (int)(*text - s), s);
		const bool valid = calibrated_parse(line, r);

		r->digest = s;
		free(line);
		if (valid)
			return true;
	}
	return false;
}

void calibrated_each(const char *text, void (*visit)(void *arg, const struct calibrated_range *r), void *arg)
{
	struct calibrated_range r;

	while (next_range(&text, &r))
		visit(arg, &r);
}

void calibrated_write(struct output *out, size_t n, const struct part *const from[n], const char *line)
{
	char *all = NULL;

	for (size_t i = 0; i < n; i++) {
		char *text = from[i] ? part_text(from[i], "/", CALIBRATED) : NULL;

		add_lines(&all, text);
		free(text);
	}
	add_lines(&all, line);
	if (all)
		output_text(out, "/", CALIBRATED, all);
	free(all);
}

/* Whether two texts have ids in common; *both is the first common range. both->windows > 0: of random
 * windows, which need not use all its ids. */
static bool overlap(const char *a, const char *b, struct calibrated_range *both)
{
	struct calibrated_range x, y;

	while (next_range(&a, &x))
		for (const char *at = b; next_range(&at, &y);) {
			*both = (struct calibrated_range){ .digest = x.digest,
				.first = max(x.first, y.first), .end = min(x.end, y.end),
				.windows = max(x.windows, y.windows) };
			if (!strncmp(x.digest, y.digest, DIGEST_DIGITS) && both->first < both->end)
				return true;
		}
	return false;
}

void calibrated_warn(const struct part *model, const struct part *tokens, const char *line)
{
	char *text = part_text(model, "/", CALIBRATED);
	struct calibrated_range both;

	if (overlap(text, line, &both))
		warn("%s: was calibrated on %stokens %zu to %zu of %s: evaluate it on other text",
			part_name(model), both.windows ? "random windows of " : "", both.first, both.end - 1,
			part_name(tokens));
	free(text);
}

void calibrated_twice(size_t n, const struct part *const from[n])
{
	char **text = xalloc(n, sizeof *text);
	struct calibrated_range both;
	bool told = false;

	for (size_t i = 0; i < n; i++) {
		text[i] = part_text(from[i], "/", CALIBRATED);
		for (size_t j = 0; j < i && !told; j++) {
			told = overlap(text[j], text[i], &both);
			if (told)
				warn("%s: was calibrated on %stokens %zu to %zu of the same text as %s: "
					"the sum counts %s twice", part_name(from[i]),
					both.windows ? "random windows of " : "", both.first, both.end - 1,
					part_name(from[j]), both.windows ? "common ones" : "them");
		}
	}
	for (size_t i = 0; i < n; i++)
		free(text[i]);
	free(text);
}
