/* SPDX-License-Identifier: GPL-3.0-or-later */
/* table.c -- see table.h */
#include "io/table.h"
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

void table_row(struct table *s, const union table_value value[])
{
	union table_value *row;

	s->value = xgrow(s->value, (s->rows + 1) * s->columns, sizeof *s->value);
	row = s->value + s->rows++ * s->columns;
	for (size_t c = 0; c < s->columns; c++) {
		row[c] = value[c];
		if (s->column[c].type == TABLE_TEXT)
			row[c].text = xformat("%s", value[c].text);
	}
}

void table_sum(struct table *s, const union table_value value[])
{
	table_row(s, value);
	s->summed = true;
}

/* What a cell shows; room: for its number. */
static const char *cell(const struct table *s, size_t row, size_t column, char room[CELL])
{
	union table_value v = s->value[row * s->columns + column];
	enum table_type type = s->column[column].type;

	if (type == TABLE_TEXT)
		return v.text;
	if (isnan(v.number))	/* whatever its sign */
		return "nan";
	if (type == TABLE_INTEGER)
		snprintf(room, CELL, "%.0f", v.number);
	else
		snprintf(room, CELL, "%.*g", DIGITS, v.number);
	return room;
}

/* Of the widest cell of a column, its name included. */
static int width_of(const struct table *s, size_t column)
{
	size_t width = strlen(s->column[column].name);
	char room[CELL];

	for (size_t r = 0; r < s->rows; r++) {
		size_t n = strlen(cell(s, r, column, room));

		width = n > width ? n : width;
	}
	return (int)width;
}

static void print_lines(const struct table *s)
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
static bool applies(const struct table *s, size_t row, size_t column)
{
	return !s->summed || row + 1 < s->rows ||
		(s->column[column].type != TABLE_TEXT && !isnan(s->value[row * s->columns + column].number));
}

static json_t *row_json(const struct table *s, size_t row)
{
	json_t *object = json_object();

	for (size_t c = 0; c < s->columns; c++) {
		union table_value v = s->value[row * s->columns + c];
		enum table_type type = s->column[c].type;
		json_t *j;

		if (!applies(s, row, c))
			continue;
		j = type == TABLE_TEXT ? json_string(v.text) : !isfinite(v.number) ? json_null()
			: type == TABLE_INTEGER ? json_integer((json_int_t)v.number) : json_real(v.number);
		if (json_object_set_new(object, s->column[c].name, j))
			die("<stdout>: row %zu, %s: cannot be written as JSON", row, s->column[c].name);
	}
	return object;
}

static void print_json(const struct table *s)
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

void table_print(const struct table *s, bool json)
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

static void write_column(const struct table *s, size_t column, struct output *out, const char *group)
{
	const size_t n = s->rows - s->summed;
	const union table_value *v = s->value + column;
	char *path = xformat("%s/%s", group, s->column[column].name);
	const char **text = xalloc(n, sizeof *text);
	int64_t *integer = xalloc(n, sizeof *integer);
	double *real = xalloc(n, sizeof *real);

	switch (s->column[column].type) {
	case TABLE_TEXT:
		for (size_t r = 0; r < n; r++)
			text[r] = v[r * s->columns].text;
		output_strings(out, path, n, text);
		break;
	case TABLE_INTEGER:
		for (size_t r = 0; r < n; r++)
			integer[r] = (int64_t)v[r * s->columns].number;
		output_write(out, path, tensor_1d(TENSOR_I64, integer, n));
		break;
	case TABLE_REAL:
		for (size_t r = 0; r < n; r++)
			real[r] = v[r * s->columns].number;
		output_write(out, path, tensor_1d(TENSOR_F64, real, n));
	}
	free(real), free(integer), free(text), free(path);
}

void table_write(const struct table *s, struct output *out)
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

void table_put(const struct table *s, struct output *out, const char *group)
{
	char *path = xformat("/%s", group);

	for (size_t c = 0; s->rows && c < s->columns; c++)
		write_column(s, c, out, path);
	free(path);
}

void table_free(struct table *s)
{
	for (size_t i = 0; i < s->rows * s->columns; i++)
		if (s->column[i % s->columns].type == TABLE_TEXT)
			free((char *)(uintptr_t)s->value[i].text);
	free(s->value);
	s->value = NULL;
	s->rows = 0;
}
