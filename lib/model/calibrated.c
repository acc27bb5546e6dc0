/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrated.c -- see calibrated.h */
#include "model/calibrated.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "model/tokens.h"

static const char NAME[] = "calibration";

char *calibrated_line(const struct image *tokens, size_t n)
{
	char *digest = tokens_digest(tokens), *y = xformat("%s 0 %zu", digest, n);

	free(digest);
	return y;
}

/* Whether the text has this line, of n characters. */
static bool has_line(const char *text, const char *line, size_t n)
{
	for (; text && *text; text = strchr(text, '\n'), text += text != NULL)
		if (strcspn(text, "\n") == n && !strncmp(text, line, n))
			return true;
	return false;
}

/* Adds the lines that *to does not have yet. */
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

void calibrated_write(struct output *out, size_t n, const struct image *const from[n], const char *line)
{
	char *all = NULL;

	for (size_t i = 0; i < n; i++) {
		char *text = from[i] ? image_text(from[i], "/", NAME) : NULL;

		add_lines(&all, text);
		free(text);
	}
	add_lines(&all, line);
	if (all)
		output_text(out, "/", NAME, all);
	free(all);
}

void calibrated_warn(const struct image *model, const struct image *tokens, size_t n)
{
	char *text = image_text(model, "/", NAME), *digest = text ? tokens_digest(tokens) : NULL;

	for (const char *s = text; s && *s; s = strchr(s, '\n'), s += s != NULL) {
		size_t first, end;

		if (strncmp(s, digest, DIGEST_DIGITS) ||
		    sscanf(s + DIGEST_DIGITS, "%zu%zu", &first, &end) != 2 || first >= n || first >= end)
			continue;
		warn("%s: was calibrated on tokens %zu to %zu of %s: evaluate it on other text",
			image_name(model), first, (end < n ? end : n) - 1, image_name(tokens));
		break;
	}
	free(text), free(digest);
}
