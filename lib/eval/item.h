/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * item.h -- the items of a public set of questions: JSON lines, or CSV
 *
 * JSON lines have one object per item. CSV has one item per row: cells are separated by commas, and cells in
 * double quotes may hold commas, newlines and doubled quotes (RFC 4180). Its items are objects of texts.
 *
 * Calling sequence: items_read(); items_prefix() before messages on an item; items_free().
 */
#ifndef EVAL_ITEM_H
#define EVAL_ITEM_H
#include <jansson.h>
#include <stddef.h>

struct item {
	json_t *json;			/* an object */
	size_t line;			/* of the file, from 1 */
};

struct items {
	const char *name;		/* of the file, not owned */
	size_t n;
	struct item *item;		/* [n] */
};

/*
 * limit: number of items to read, 0: all. columns: names of the cells of CSV, NULL-terminated. If one of the
 * cells of the first row is the first of these names, that row has the names instead. columns NULL: no CSV.
 * Fatal errors, which name file and line: a broken line or row; no item.
 */
struct items items_read(const char *path, size_t limit, const char *const columns[]);
void items_prefix(const struct items *items, size_t i);	/* until error_prefix(NULL) */
void items_free(struct items *items);
#endif
