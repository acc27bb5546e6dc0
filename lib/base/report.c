/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.c -- see report.h */
#include "base/report.h"
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/replace.h"

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

/* ---- the table, and the file of it that --report names ---- */

const char *report_path;
static struct replace file;			/* where that is given */
static const struct report *shown;		/* the table that the run has, once it has a row */
static struct row { char *name; double *value; } *row;
static size_t rows;
static bool keeping;
static char *kept;

void report_begin(void)
{
	unsigned char first[4] = "";
	struct stat st;
	int fd;

	if (!report_path)
		return;
	if (!stat(report_path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		die("--report: %s: is no regular file, expected the name of one", report_path);
	fd = open(report_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && read(fd, first, sizeof first) > 0 && !memcmp(first, "\211HDF", sizeof first))
		die("--report: %s: is an HDF5 file, expected a text or a new file", report_path);
	if (fd >= 0)
		close(fd);
	file = replace_open(report_path);
}

bool report_wanted(void)
{
	return !quiet || report_path || keeping;
}

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

bool report_again(const struct report *r, const char *text)
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
		free(name);
		text = end + 1;
	}
	keeping = before;
	return true;
}

static void print_row(const struct report *r, const char *name, const double value[])
{
	const bool wide = isatty(2);

	if (quiet)
		return;
	progress_clear();
	if (!rows) {
		fprintf(stderr, wide ? "%-44s" : "%s", r->name ? r->name : "layer");
		for (size_t i = 0; i < r->columns; i++)
			fprintf(stderr, wide ? " %11s" : "\t%s", r->column[i].name);
		fputc('\n', stderr);
	}
	fprintf(stderr, wide ? "%-44s" : "%s", name);
	for (size_t i = 0; i < r->columns; i++)
		if (isnan(value[i]))
			fprintf(stderr, wide ? " %11s" : "\t%s", "-");
		else
			fprintf(stderr, wide ? " %11.5g" : "\t%.6g", value[i]);
	fputc('\n', stderr);
}

void report_row(const struct report *r, const char *name, const double value[])
{
	char *plain = plain_text(name);

	if (keeping)
		keep(r, plain, value);
	print_row(r, plain, value);
	shown = r;
	row = xgrow(row, rows + 1, sizeof *row);
	row[rows].name = plain;
	row[rows].value = xalloc(r->columns, sizeof *value);
	memcpy(row[rows++].value, value, r->columns * sizeof *value);
}

/* What the last row has of the column; NaN: nothing. */
static double sum_up(enum report_all how, size_t column)
{
	double y = NAN, logs = 0;
	size_t n = 0;

	for (size_t i = 0; i < rows; i++) {
		const double x = row[i].value[column];

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

/* A number in as few digits as give it back; what is not finite is none. */
static void put_number(FILE *f, double x, const char *none)
{
	char text[32];

	for (int digits = JSON_DIGITS - 2; digits <= JSON_DIGITS; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, x);
		if (!(strtod(text, NULL) < x) && !(strtod(text, NULL) > x))
			break;
	}
	fputs(isfinite(x) ? text : none, f);
}

static void put_json(FILE *f, const char *text)
{
	json_t *string = json_string(text);

	if (!string) {		/* no UTF-8 */
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

/* The row's cells; name NULL: of JSON's `all`, which has none. */
static void put_cells(FILE *f, bool json, const char *name, const double value[])
{
	const size_t columns = shown ? shown->columns : 0;

	if (json) {
		fputc('{', f);
		if (name) {
			put_json(f, shown->name ? shown->name : "layer");
			fputs(": ", f);
			put_json(f, name);
		}
	} else
		fputs(name, f);
	for (size_t i = 0; i < columns; i++) {
		fputs(!json ? "\t" : i || name ? ", " : "", f);
		if (json) {
			put_json(f, shown->column[i].name);
			fputs(": ", f);
		}
		put_number(f, value[i], json ? "null" : "");
	}
	fputs(json ? "}" : "\n", f);
}

static void put_table(FILE *f, bool json, const double all[])
{
	if (json)
		fputs("{\"rows\": [", f);
	else {
		fputs(shown && shown->name ? shown->name : "layer", f);
		for (size_t i = 0; shown && i < shown->columns; i++)
			fprintf(f, "\t%s", shown->column[i].name);
		fputc('\n', f);
	}
	for (size_t i = 0; i < rows; i++) {
		fputs(!json ? "" : i ? ",\n" : "\n", f);
		put_cells(f, json, row[i].name, row[i].value);
	}
	fputs(json ? "\n], \"all\": " : "", f);
	put_cells(f, json, json ? NULL : "all", all);
	fputs(json ? "}\n" : "", f);
}

static void write_file(const double all[])
{
	const size_t n = strlen(report_path);
	FILE *f = fdopen(dup(file.fd), "w");

	if (!f)
		die("%s: cannot write:", report_path);
	put_table(f, n >= 5 && !strcmp(report_path + n - 5, ".json"), all);
	if (fflush(f) || ferror(f))
		die("%s: cannot write:", report_path);
	fclose(f);
	replace_sync(&file);
	replace_done(&file);
}

void report_end(void)
{
	double all[COLUMNS];
	bool any = false;

	for (size_t i = 0; shown && i < shown->columns; i++) {
		all[i] = sum_up(shown->column[i].all, i);
		any |= !isnan(all[i]);
	}
	if (any)
		print_row(shown, "all", all);
	if (report_path)
		write_file(all);
	for (size_t i = 0; i < rows; i++)
		free(row[i].name), free(row[i].value);
	free(row);
	row = NULL;
	rows = 0;
	shown = NULL;
	report_path = NULL;
}
