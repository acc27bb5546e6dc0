/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.c -- see report.h */
#include "base/report.h"
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/number.h"
#include "base/progress.h"

enum { JSON_DIGITS = 17 };	/* digits that represent a double exactly */

void report_metrics(size_t n, const struct metric a[n], bool json)
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
		else if (isnan(a[i].value))
			putchar('-');
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

/* ---- the table, and the file of --report ---- */

void report_open(struct report *r)
{
	unsigned char first[4] = "";
	struct stat st;
	int fd;

	if (!r->path)
		return;
	if (!stat(r->path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		die("--report: %s: is not a regular file, expected the name of one", r->path);
	fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && read(fd, first, sizeof first) > 0 && !memcmp(first, "\211HDF", sizeof first))
		die("--report: %s: is an HDF5 file, expected a text or a new file", r->path);
	if (fd >= 0)
		close(fd);
	r->file = replace_open(r->path);
}

bool report_wanted(const struct report *r)
{
	return !quiet || r->path;
}

static const char *name_of(const struct report_table *t)
{
	return t && t->name ? t->name : "layer";
}

static void print_row(const struct report *r, const char *name, const double value[])
{
	const struct report_table *t = r->table;
	const bool wide = isatty(2);

	if (quiet)
		return;
	progress_clear();
	if (!r->rows) {
		fprintf(stderr, wide ? "%-44s" : "%s", name_of(t));
		for (size_t i = 0; i < t->columns; i++)
			fprintf(stderr, wide ? " %11s" : "\t%s", t->column[i].name);
		fputc('\n', stderr);
	}
	fprintf(stderr, wide ? "%-44s" : "%s", name);
	for (size_t i = 0; i < t->columns; i++)
		if (isnan(value[i]))
			fprintf(stderr, wide ? " %11s" : "\t%s", "-");
		else
			fprintf(stderr, wide ? " %11.5g" : "\t%.6g", value[i]);
	fputc('\n', stderr);
}

void report_row(struct report *r, const struct report_table *t, const char *name, const double value[])
{
	struct report_row row = { plain_text(name), xalloc(t->columns, sizeof *value) };

	r->table = t;
	memcpy(row.value, value, t->columns * sizeof *value);
	print_row(r, row.name, value);
	r->row = xgrow(r->row, r->rows + 1, sizeof *r->row);
	r->row[r->rows++] = row;
}

/* The value of the column in the last row; NaN: none. */
static double sum_up(const struct report *r, size_t column)
{
	const enum report_all how = r->table->column[column].all;
	double y = NAN, logs = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->rows; i++) {
		const double x = r->row[i].value[column];

		if (how == REPORT_SUM)
			y = n++ ? y + x : x;
		else if (how == REPORT_MAX)
			y = fmax(y, x);
		else if (how == REPORT_MIN)
			y = fmin(y, x);
		else if (how == REPORT_GEOMETRIC && x > 0 && isfinite(x))
			logs += log(x), n++;
	}
	return how == REPORT_GEOMETRIC && n ? exp(logs / (double)n) : y;
}

/* Writes a number in the fewest digits that reproduce it; `none` if it is not finite. */
static void put_number(FILE *f, double x, const char *none)
{
	char text[NUMBER_CHARS];

	fputs(isfinite(x) ? number_text(x, text) : none, f);
}

static void put_json(FILE *f, const char *text)
{
	json_t *string = json_string(text);

	if (!string) {		/* not UTF-8 */
		char *ascii = xformat("%s", text);

		for (char *s = ascii; *s; s++)
			*s = (unsigned char)*s > 127 ? '?' : *s;
		string = json_string(ascii);
		free(ascii);
	}
	if (!string || json_dumpf(string, f, JSON_ENCODE_ANY))
		die("out of memory");
	json_decref(string);
}

/* Writes the cells of a row; name NULL: of `all` in JSON, which has no name. */
static void put_cells(const struct report_table *t, FILE *f, bool json, const char *name,
	const double value[])
{
	if (json) {
		fputc('{', f);
		if (name) {
			put_json(f, name_of(t));
			fputs(": ", f);
			put_json(f, name);
		}
	} else if (name)
		fputs(name, f);
	for (size_t i = 0; t && i < t->columns; i++) {
		fputs(!json ? "\t" : i || name ? ", " : "", f);
		if (json) {
			put_json(f, t->column[i].name);
			fputs(": ", f);
		}
		put_number(f, value[i], json ? "null" : "");
	}
	fputs(json ? "}" : "\n", f);
}

static void put_table(const struct report *r, FILE *f, bool json, const double all[])
{
	const struct report_table *t = r->table;

	if (json)
		fputs("{\"rows\": [", f);
	else {
		fputs(name_of(t), f);
		for (size_t i = 0; t && i < t->columns; i++)
			fprintf(f, "\t%s", t->column[i].name);
		fputc('\n', f);
	}
	for (size_t i = 0; i < r->rows; i++) {
		fputs(!json ? "" : i ? ",\n" : "\n", f);
		put_cells(t, f, json, r->row[i].name, r->row[i].value);
	}
	fputs(json ? "\n], \"all\": " : "", f);
	put_cells(t, f, json, json ? NULL : "all", all);
	fputs(json ? "}\n" : "", f);
}

static void write_file(struct report *r, const double all[])
{
	const size_t n = strlen(r->path);
	FILE *f = fdopen(dup(r->file.fd), "w");

	if (!f)
		die("%s: cannot write:", r->path);
	put_table(r, f, n >= 5 && !strcmp(r->path + n - 5, ".json"), all);
	if (fflush(f) || ferror(f))
		die("%s: cannot write:", r->path);
	fclose(f);
	replace_sync(&r->file);
	replace_done(&r->file);
}

void report_close(struct report *r)
{
	double all[REPORT_COLUMNS];
	bool any = false;

	for (size_t i = 0; r->table && i < r->table->columns; i++) {
		all[i] = sum_up(r, i);
		any |= !isnan(all[i]);
	}
	if (any)
		print_row(r, "all", all);
	if (r->path)
		write_file(r, all);
	for (size_t i = 0; i < r->rows; i++)
		free(r->row[i].name), free(r->row[i].value);
	free(r->row);
	*r = (struct report){ 0 };
}
