/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * template_private.h -- nodes and values of a template
 *
 * Internal to lib/text. template_parse.c makes nodes of the text, template_run.c runs them,
 * template_value.c has what all values share (kinds, truth, equality, items, printing), template_call.c has
 * the table of operators, functions, methods, filters and tests.
 *
 * A value is a json_t. The array `made` of a run has all values that the run makes, so that no function
 * releases one. What JSON has not is an object with the member MARK, a key that no text has: its value is the
 * kind.
 */
#ifndef TEXT_TEMPLATE_PRIVATE_H
#define TEXT_TEMPLATE_PRIVATE_H
#include <stdbool.h>
#include "text/template.h"

#define MARK "\xff"

enum kind {
	KIND_UNDEFINED, KIND_NONE, KIND_BOOLEAN, KIND_INTEGER, KIND_REAL, KIND_TEXT, KIND_LIST, KIND_DICT,
	KIND_NAMESPACE, KIND_LOOP, KIND_FUNCTION,
	KIND_ITERATOR,			/* its member "items" is a list; who reads it takes them */
	KIND_VIEW,			/* its "items" stay: items() of a dict, its pairs, a range */
};

enum node_kind {
	NODE_OUTPUT, NODE_SET, NODE_FOR, NODE_IF, NODE_CONSTANT, NODE_NAME, NODE_LIST, NODE_DICT,
	NODE_NAMESPACE, NODE_PAIR, NODE_CALL,
};
enum { ARGUMENTS = 3, PARTS = 1 + ARGUMENTS };
struct node {
	enum node_kind kind;
	size_t at;			/* in the text */
	json_t *value;			/* a constant, a text, a name */
	const struct row *row;		/* of NODE_CALL: part[0] is what it is applied to, then arguments */
	/* output: expression; set: value, namespace or NULL; if: condition, then, else; for: variables,
	 * what it loops over, condition or NULL, body; pair: key, value; list, dict, namespace: items */
	struct node *part[PARTS];
	struct node *next;		/* in a list of statements, items, variables */
	struct node *before;		/* the node that was made before */
};
struct template {
	const char *name;
	char *s;			/* the text */
	struct node *statements, *last;	/* last: the node that was made last */
};
_Noreturn void template_fail(const struct template *t, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct scope { json_t *names; struct scope *outer; };
struct run {
	const struct template *t;
	size_t steps, at;		/* at: of the node that is evaluated */
	int depth;
	bool in_condition;		/* of a loop */
	const char *date;
	json_t *made;			/* values of this run */
	struct scope *scope;
};
#define fail(...) template_fail(r->t, r->at, __VA_ARGS__)
void run_spend(struct run *r, size_t steps);	/* fatal error beyond TEMPLATE_STEPS */
void run_deeper(struct run *r);			/* fatal error beyond TEMPLATE_DEPTH */

enum use { OPERATOR, FUNCTION, METHOD, FILTER, TEST };
struct row {
	enum use use;
	const char *name;
	int least;			/* arguments that must be given */
	/* A letter for each argument: s a text, i a whole number, t and n the same or none, . any value,
	 * ! refused. Then "=" and the name by which the last one may be given. */
	const char *types;
	unsigned self;			/* what it is applied to: a bit for each kind */
	json_t *(*run)(struct run *r, const struct row *row, json_t *self, json_t *const arg[ARGUMENTS]);
	int option;			/* for run() */
};
const struct row *template_row(enum use use, const char *name);	/* NULL: none */
json_t *template_call(struct run *r, const struct row *row, json_t *self, json_t *const arg[ARGUMENTS]);

/* --- values --- */

struct text {				/* one that grows */
	struct run *r;
	bool json, lines;		/* values as in JSON, or as repr() of Python; each item on a line */
	int indent, level;		/* blanks for a level of nesting */
	char *s;
	size_t n, room;
};
void text_put(struct text *b, const char *s, size_t n);
void text_put_value(struct text *b, json_t *v);
void text_put_str(struct text *b, json_t *v);			/* as str() of Python */
json_t *text_end(struct text *b);				/* as a value; frees b->s */

extern json_t template_undefined, template_function;
void value_checked(bool done);					/* fatal error unless done: out of memory */
json_t *value_text(struct run *r, const char *s, size_t n), *value_str(struct run *r, json_t *v);
json_t *value_integer(struct run *r, json_int_t i), *value_list(struct run *r), *value_dict(struct run *r);
json_t *value_marked(struct run *r, enum kind kind, json_t *items);
void value_add(struct run *r, json_t *list, json_t *v);
enum kind value_kind(const json_t *v);
const char *value_kind_name(const json_t *v);			/* "a text", for messages */
bool value_is_whole(const json_t *v);				/* truth values are numbers, too */
json_int_t value_whole(const json_t *v);
bool value_truth(const json_t *v);
bool value_same(struct run *r, json_t *a, json_t *b);
json_t *value_items(struct run *r, json_t *v);			/* a list; of a list, itself */
json_t *value_item(struct run *r, json_t *v, json_t *key, bool dot);	/* v[key], or v.key */
json_t *value_join(struct run *r, json_t *items, json_t *gap);	/* gap: NULL for none */
#endif
