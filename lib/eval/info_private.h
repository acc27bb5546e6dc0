/* SPDX-License-Identifier: GPL-3.0-or-later */
/* info_private.h -- the files of info.h: common facts, models and Hessians, printing */
#ifndef EVAL_INFO_PRIVATE_H
#define EVAL_INFO_PRIVATE_H
#include <jansson.h>
#include <stdio.h>
#include "eval/info.h"
#include "model/config.h"

/* What is known of the parts that were read. */
struct info {
	json_t *facts;
	json_t *attributes;		/* of the root, without those that are facts of their own */
	json_t *history;		/* a list of histories: those of the file and of its inputs */
	json_t *rows;			/* of tables, under table and keys; see info_row() */
	const struct info_kind *kind;
	const struct config *config;	/* of a model, or NULL */
	struct info_sums {		/* over all parts */
		double parameters, weights, bits;
		size_t layers, priors;
		double tokens_min, tokens_max;
	} sum;
};

/* What is printed for a kind of file beyond its root attributes. */
struct info_kind {
	const char *name;	/* ptq_kind; NULL: every other kind */
	void (*begin)(struct info *f, const struct part *root);		/* of the first part; or NULL */
	void (*part)(struct info *f, const struct part *part);		/* of every part; or NULL */
	void (*end)(struct info *f);					/* after all parts; or NULL */
	bool datasets;		/* whether datasets are listed */
};

/* Set a fact, and append to a list; they take the value. */
void info_set(json_t *object, const char *key, json_t *value);
void info_append(json_t *list, json_t *value);
/* A text. One that is not UTF-8 has ? for each byte that is not ASCII. */
json_t *info_string(const char *text);
/* Numbers. A size is exact up to INT64_MAX, then real. A count is exact below 2^53, then real, and null from
 * 2^63 on. A real number that is not finite is null. */
json_t *info_size(size_t n);
json_t *info_count(double n);
json_t *info_real(double x);
/* The list of this key, which is made if it is absent. */
json_t *info_list(json_t *facts, const char *key);
/* The row of a table with these keys and values. An absent row is made, with counts of 0 before the keys.
 * Takes `keys`. info_add() adds to a count. */
json_t *info_row(struct info *f, const char *table, json_t *keys, const char *const counts[]);
void info_add(json_t *row, const char *key, double n);

void info_model_begin(struct info *f, const struct part *root);
void info_model_part(struct info *f, const struct part *part);
void info_model_end(struct info *f);
void info_hessian_part(struct info *f, const struct part *part);
void info_hessian_end(struct info *f);

/* Prints facts as text: values in lines, lists of objects as tables, histories last. */
void info_print(FILE *to, json_t *facts);
#endif
