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

enum {
	LINE_DIGITS = 6,
	FLOAT_DIGITS = 9,	/* exact for a float */
	JSON_DIGITS = 17,	/* exact for a double */
	NUMBER_CHARS = 32
};

void table_row(struct table *t, const char *const text[], const double number[])
{
	union table_value *row;

	t->value = xgrow(t->value, (t->rows + 1) * t->columns, sizeof *t->value);
	row = t->value + t->rows++ * t->columns;
	for (size_t c = 0; c < t->columns; c++)
		if (t->column[c].type == TABLE_TEXT)
			row[c].text = xformat("%s", *text++);
		else
			row[c].number = *number++;
}

void table_sum(struct table *t, const char *const text[], const double number[])
{
	table_row(t, text, number);
	t->summed = true;
}

/* The text of a cell; a number is printed into `number`. */
static const char *cell(const struct table *t, size_t row, size_t column, char number[NUMBER_CHARS])
{
	union table_value v = t->value[row * t->columns + column];
	enum table_type type = t->column[column].type;

	if (type == TABLE_TEXT)
		return v.text;
	if (isnan(v.number))	/* whatever its sign */
		return "-";
	if (type == TABLE_INTEGER)
		snprintf(number, NUMBER_CHARS, "%.0f", v.number);
	else
		snprintf(number, NUMBER_CHARS, "%.*g", type == TABLE_FLOAT ? FLOAT_DIGITS : LINE_DIGITS,
			v.number);
	return number;
}

/* Characters of the widest cell of a column, including its name. */
static int width_of(const struct table *t, size_t column)
{
	size_t width = strlen(t->column[column].name);
	char number[NUMBER_CHARS];

	for (size_t r = 0; r < t->rows; r++) {
		size_t n = strlen(cell(t, r, column, number));

		width = n > width ? n : width;
	}
	return (int)width;
}

static void print_lines(const struct table *t)
{
	const bool align = isatty(1);
	const char *gap = align ? "  " : "\t";
	int *width = xalloc(t->columns, sizeof *width);
	char number[NUMBER_CHARS];

	for (size_t c = 0; align && c + 1 < t->columns; c++)
		width[c] = width_of(t, c);
	for (size_t c = 0; c < t->columns; c++)
		printf("%*s%s", -width[c], t->column[c].name, c + 1 == t->columns ? "\n" : gap);
	for (size_t r = 0; r < t->rows; r++)
		for (size_t c = 0; c < t->columns; c++) {
			char *shown = plain_text(cell(t, r, c, number));

			printf("%*s%s", -width[c], shown, c + 1 == t->columns ? "\n" : gap);
			free(shown);
		}
	free(width);
}

/* Whether the row has a value in the column. Every row except the summary has a value in every column. */
static bool applies(const struct table *t, size_t row, size_t column)
{
	return !t->summed || row + 1 < t->rows ||
		(t->column[column].type != TABLE_TEXT && !isnan(t->value[row * t->columns + column].number));
}

static json_t *row_json(const struct table *t, size_t row)
{
	json_t *object = json_object();

	for (size_t c = 0; c < t->columns; c++) {
		union table_value v = t->value[row * t->columns + c];
		enum table_type type = t->column[c].type;
		json_t *j;

		if (!applies(t, row, c))
			continue;
		j = type == TABLE_TEXT ? json_string(v.text) : !isfinite(v.number) ? json_null()
			: type == TABLE_INTEGER ? json_integer((json_int_t)v.number) : json_real(v.number);
		if (json_object_set_new(object, t->column[c].name, j))
			die("<stdout>: row %zu, %s: cannot be written as JSON", row, t->column[c].name);
	}
	return object;
}

static void print_json(const struct table *t)
{
	json_t *object = json_object(), *rows = json_array();
	size_t n = t->rows - t->summed;

	for (size_t r = 0; r < n; r++)
		json_array_append_new(rows, row_json(t, r));
	json_object_set_new(object, "rows", rows);
	if (t->summed)
		json_object_set_new(object, t->value[n * t->columns].text, row_json(t, n));
	json_dumpf(object, stdout, JSON_REAL_PRECISION(JSON_DIGITS));
	putchar('\n');
	json_decref(object);
}

void table_print(const struct table *t, bool json)
{
	file_check();
	progress_clear();
	if (json)
		print_json(t);
	else
		print_lines(t);
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
}

static void write_column(const struct table *t, size_t column, struct output *out, const char *group)
{
	const enum table_type type = t->column[column].type;
	const size_t n = t->rows - t->summed;
	char *path = xformat("%s/%s", group, t->column[column].name);
	union { const char *text; double real; int64_t integer; } *v = xalloc(n, sizeof *v);

	for (size_t r = 0; r < n; r++) {
		const union table_value *cell = &t->value[r * t->columns + column];

		if (type == TABLE_TEXT)
			v[r].text = cell->text;
		else if (type == TABLE_INTEGER)
			v[r].integer = (int64_t)cell->number;
		else
			v[r].real = cell->number;
	}
	if (type == TABLE_TEXT)
		output_strings(out, path, n, &v->text);
	else
		output_write(out, path, tensor_1d(type == TABLE_INTEGER ? TENSOR_I64 : TENSOR_F64, v, n));
	free(v), free(path);
}

void table_write(const struct table *t, struct output *out)
{
	const size_t n = t->rows - t->summed;

	if (!out)
		return;
	for (size_t c = 0; c < t->columns; c++)
		write_column(t, c, out, "");
	for (size_t c = 0; t->summed && c < t->columns; c++)
		if (applies(t, n, c))
			output_number(out, "/", t->column[c].name, t->value[n * t->columns + c].number);
	output_end(out);
	output_close(out);
}

void table_put(const struct table *t, struct output *out, const char *group)
{
	char *path = xformat("/%s", group);

	for (size_t c = 0; t->rows && c < t->columns; c++)
		write_column(t, c, out, path);
	free(path);
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->rows * t->columns; i++)
		if (t->column[i % t->columns].type == TABLE_TEXT)
			free((char *)(uintptr_t)t->value[i].text);
	free(t->value);
	t->value = NULL;
	t->rows = 0;
}
