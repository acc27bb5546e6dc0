/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.c -- see report.h */
#include "base/report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/error.h"
#include "base/progress.h"

enum { JSON_DIGITS = 17 };	/* say a double exactly */

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

void report_row(struct report *r, const char *name, const double value[])
{
	bool wide = isatty(2);
	char *shown;

	if (quiet)
		return;
	progress_clear();
	if (!r->begun) {
		fprintf(stderr, wide ? "%-44s" : "%s", r->name ? r->name : "layer");
		for (size_t i = 0; i < r->columns; i++)
			fprintf(stderr, wide ? " %11s" : "\t%s", r->column[i]);
		fputc('\n', stderr);
		r->begun = true;
	}
	shown = plain_text(name);
	fprintf(stderr, wide ? "%-44s" : "%s", shown);
	free(shown);
	for (size_t i = 0; i < r->columns; i++)
		if (isnan(value[i]))
			fprintf(stderr, wide ? " %11s" : "\t%s", "-");
		else
			fprintf(stderr, wide ? " %11.5g" : "\t%.6g", value[i]);
	fputc('\n', stderr);
}
