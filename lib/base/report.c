/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.c -- see report.h */
#include "base/report.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/progress.h"

enum { JSON_DIGITS = 17, COLUMNS = 16 };	/* digits that say a double exactly */

void report_answer(size_t n, const struct answer a[n], bool json)
{
	if (json)
		putchar('{');
	for (size_t i = 0; i < n; i++) {
		if (json)
			printf("%s\"%s\": ", i ? ", " : "", a[i].name);
		else
			printf("%s\t", a[i].name);
		if (json && !isfinite(a[i].value))
			fputs("null", stdout);
		else if (a[i].digits)
			printf("%.*g", json ? JSON_DIGITS : a[i].digits, a[i].value);
		else
			printf("%.0f", a[i].value);
		if (!json)
			putchar('\n');
	}
	if (json)
		puts("}");
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
}

static bool keeping;
static char *kept;

void report_keep(void)
{
	keeping = true;
}

char *report_kept(void)
{
	char *y = kept ? kept : xformat("%s", "");

	kept = NULL;
	return y;
}

static void keep(const struct report *r, const char *name, const double value[])
{
	char *all = kept ? kept : xformat("%s", ""), *longer = xformat("%s%s", all, name);

	free(all);
	for (size_t i = 0; i < r->columns; i++) {
		all = longer;
		longer = xformat("%s\t%.*g", all, JSON_DIGITS, value[i]);
		free(all);
	}
	kept = xformat("%s\n", longer);
	free(longer);
}

bool report_again(struct report *r, const char *text, void (*each)(void *arg, const double value[]),
	void *arg)
{
	const bool before = keeping;
	double value[COLUMNS];

	keeping = false;
	while (*text) {
		const size_t length = strcspn(text, "\t\n");
		char *name = xformat("%.*s", (int)length, text), *end = (char *)(uintptr_t)text + length;
		size_t i = 0;

		for (; i < r->columns && i < COLUMNS && *end == '\t'; i++)
			value[i] = strtod(end + 1, &end);
		if (i < r->columns || *end != '\n')
			return false;
		report_row(r, name, value);
		each(arg, value);
		free(name);
		text = end + 1;
	}
	keeping = before;
	return true;
}

void report_row(struct report *r, const char *name, const double value[])
{
	bool wide = isatty(2);
	char *shown = plain_text(name);

	if (keeping)
		keep(r, shown, value);
	if (quiet) {
		free(shown);
		return;
	}
	progress_clear();
	if (!r->begun) {
		fprintf(stderr, wide ? "%-44s" : "%s", r->name ? r->name : "layer");
		for (size_t i = 0; i < r->columns; i++)
			fprintf(stderr, wide ? " %11s" : "\t%s", r->column[i]);
		fputc('\n', stderr);
		r->begun = true;
	}
	fprintf(stderr, wide ? "%-44s" : "%s", shown);
	free(shown);
	for (size_t i = 0; i < r->columns; i++)
		if (isnan(value[i]))
			fprintf(stderr, wide ? " %11s" : "\t%s", "-");
		else
			fprintf(stderr, wide ? " %11.5g" : "\t%.6g", value[i]);
	fputc('\n', stderr);
}
