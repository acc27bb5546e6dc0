/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sheet.c -- see sheet.h */
#include "io/sheet.h"
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/progress.h"
#include "io/file.h"

enum { DIGITS = 6, ALL = 17, CELL = 32 };	/* digits of a line; of JSON: a double exactly */

void sheet_row(struct sheet *s, const union sheet_value value[])
{
	union sheet_value *row;

	s->value = realloc(s->value, (s->rows + 1) * s->columns * sizeof *s->value);
	if (!s->value)
		die("out of memory");
	row = s->value + s->rows++ * s->columns;
	for (size_t c = 0; c < s->columns; c++) {
		row[c] = value[c];
		if (s->column[c].type == SHEET_TEXT)
			row[c].text = xformat("%s", value[c].text);
	}
}

void sheet_sum(struct sheet *s, const union sheet_value value[])
{
	sheet_row(s, value);
	s->summed = true;
}

/* What a cell shows; room: for its number. */
static const char *cell(const struct sheet *s, size_t row, size_t column, char room[CELL])
{
	union sheet_value v = s->value[row * s->columns + column];
	enum sheet_type type = s->column[column].type;

	if (type == SHEET_TEXT)
		return v.text;
	if (isnan(v.number))	/* whatever its sign */
		return "nan";
	if (type == SHEET_INTEGER)
		snprintf(room, CELL, "%.0f", v.number);
	else
		snprintf(room, CELL, "%.*g", DIGITS, v.number);
	return room;
}

/* Of the widest cell of a column, its name included. */
static int width_of(const struct sheet *s, size_t column)
{
	size_t width = strlen(s->column[column].name);
	char room[CELL];

	for (size_t r = 0; r < s->rows; r++) {
		size_t n = strlen(cell(s, r, column, room));

		width = n > width ? n : width;
	}
	return (int)width;
}

static void print_lines(const struct sheet *s)
{
	const bool align = isatty(1);
	int *width = xalloc(s->columns, sizeof *width);
	char room[CELL];

	for (size_t c = 0; align && c + 1 < s->columns; c++)
		width[c] = width_of(s, c);
	for (size_t c = 0; c < s->columns; c++)
		printf("%*s%s", -width[c], s->column[c].name, c + 1 == s->columns ? "\n" : align ? "  " : "\t");
	for (size_t r = 0; r < s->rows; r++)
		for (size_t c = 0; c < s->columns; c++) {
			char *shown = plain_text(cell(s, r, c, room));

			printf("%*s%s", -width[c], shown, c + 1 == s->columns ? "\n" : align ? "  " : "\t");
			free(shown);
		}
	free(width);
}

/* Whether a column means something in the row: all do but in the one that sums up. */
static bool applies(const struct sheet *s, size_t row, size_t column)
{
	return !s->summed || row + 1 < s->rows ||
		(s->column[column].type != SHEET_TEXT && !isnan(s->value[row * s->columns + column].number));
}

static json_t *row_json(const struct sheet *s, size_t row)
{
	json_t *object = json_object();

	for (size_t c = 0; c < s->columns; c++) {
		union sheet_value v = s->value[row * s->columns + c];
		enum sheet_type type = s->column[c].type;
		json_t *j;

		if (!applies(s, row, c))
			continue;
		j = type == SHEET_TEXT ? json_string(v.text) : !isfinite(v.number) ? json_null()
			: type == SHEET_INTEGER ? json_integer((json_int_t)v.number) : json_real(v.number);
		if (json_object_set_new(object, s->column[c].name, j))
			die("<stdout>: row %zu, %s: cannot be written as JSON", row, s->column[c].name);
	}
	return object;
}

static void print_json(const struct sheet *s)
{
	json_t *object = json_object(), *rows = json_array();
	size_t n = s->rows - s->summed;

	for (size_t r = 0; r < n; r++)
		json_array_append_new(rows, row_json(s, r));
	json_object_set_new(object, "rows", rows);
	if (s->summed)
		json_object_set_new(object, s->value[n * s->columns].text, row_json(s, n));
	json_dumpf(object, stdout, JSON_REAL_PRECISION(ALL));
	putchar('\n');
	json_decref(object);
}

void sheet_print(const struct sheet *s, bool json)
{
	file_check();
	progress_clear();
	if (json)
		print_json(s);
	else
		print_lines(s);
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
}

static void write_column(const struct sheet *s, size_t column, struct output *out, const char *group)
{
	const size_t n = s->rows - s->summed;
	const union sheet_value *v = s->value + column;
	char *path = xformat("%s/%s", group, s->column[column].name);
	const char **text = xalloc(n, sizeof *text);
	int64_t *integer = xalloc(n, sizeof *integer);
	double *real = xalloc(n, sizeof *real);

	switch (s->column[column].type) {
	case SHEET_TEXT:
		for (size_t r = 0; r < n; r++)
			text[r] = v[r * s->columns].text;
		output_strings(out, path, n, text);
		break;
	case SHEET_INTEGER:
		for (size_t r = 0; r < n; r++)
			integer[r] = (int64_t)v[r * s->columns].number;
		output_write(out, path, tensor_1d(TENSOR_I64, integer, n));
		break;
	case SHEET_REAL:
		for (size_t r = 0; r < n; r++)
			real[r] = v[r * s->columns].number;
		output_write(out, path, tensor_1d(TENSOR_F64, real, n));
	}
	free(real), free(integer), free(text), free(path);
}

void sheet_write(const struct sheet *s, struct output *out)
{
	const size_t n = s->rows - s->summed;

	if (!out)
		return;
	for (size_t c = 0; c < s->columns; c++)
		write_column(s, c, out, "");
	for (size_t c = 0; s->summed && c < s->columns; c++)
		if (applies(s, n, c))
			output_number(out, "/", s->column[c].name, s->value[n * s->columns + c].number);
	output_end(out);
	output_close(out);
}

void sheet_put(const struct sheet *s, struct output *out, const char *group)
{
	char *path = xformat("/%s", group);

	for (size_t c = 0; s->rows && c < s->columns; c++)
		write_column(s, c, out, path);
	free(path);
}

void sheet_free(struct sheet *s)
{
	for (size_t i = 0; i < s->rows * s->columns; i++)
		if (s->column[i % s->columns].type == SHEET_TEXT)
			free((char *)(uintptr_t)s->value[i].text);
	free(s->value);
	s->value = NULL;
	s->rows = 0;
}
