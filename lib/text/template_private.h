/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * template_private.h -- tokens, nodes and values of a template
 *
 * Internal to lib/text. template_lex.c cuts the text into tokens, template_parse.c makes nodes of them,
 * template_eval.c runs the nodes, template_value.c has what all values share (truth, order, text, JSON),
 * template_call.c and template_text.c have the tables of functions, methods, filters and tests. Memory comes
 * from arenas: that of the template, and that of a run.
 */
#ifndef TEXT_TEMPLATE_PRIVATE_H
#define TEXT_TEMPLATE_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "text/casing.h"
#include "text/template.h"

struct chunk { struct chunk *before; size_t used, size; _Alignas(16) char data[]; };
struct arena { struct chunk *last; size_t total; };

struct span { const char *s; size_t n; };	/* a text, without a final NUL */

/* --- values --- */

enum kind {
	VALUE_ABSENT,		/* an argument that was not given */
	VALUE_UNDEFINED, VALUE_NONE, VALUE_BOOL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_LIST,
	VALUE_DICT, VALUE_NAMESPACE, VALUE_LOOP, VALUE_FUNCTION,
};

struct value {
	enum kind kind;
	union {
		bool yes;
		int64_t integer;
		double real;
		struct span text;		/* of VALUE_UNDEFINED: its name, for messages */
		struct list *list;
		struct dict *dict;		/* also of a namespace */
		struct loop *loop;
		const struct bound *function;
	};
};

/* What Python has as a list, a tuple, a view of a dict, a range or an iterator. */
enum form { FORM_LIST, FORM_TUPLE, FORM_VIEW, FORM_RANGE, FORM_ITERATOR };
struct list {
	enum form form;
	int depth;			/* of nesting */
	size_t n, next, room;		/* next: of an iterator, the first that was not taken */
	struct value *item;
};
struct pair { struct value key, value; };
struct dict { int depth; size_t n, room; struct pair *pair; };

/* --- tables --- */

enum { ARGUMENTS = 4 };

struct argument { struct span name; struct value value; };	/* name.s NULL: by position */
struct call {
	struct run *r;
	struct value self;			/* what the method, filter or test is applied to */
	struct value arg[ARGUMENTS];		/* by the parameters of the row; VALUE_ABSENT: not given */
	size_t given;
	const struct argument *all;		/* [given] in the order of the call */
};
struct callee {
	const char *name;
	const char *parameters;			/* "sep maxsplit"; '/' first: by position only; "*": any */
	size_t required;
	struct value (*run)(struct call *c);
	enum kind of;				/* of a method: kind of the value that has it */
};
struct bound { const struct callee *callee; struct value self; };
/* The row of this name, or NULL. of: the kind that has the method, 0: any. */
const struct callee *template_function(struct span name), *template_filter(struct span name),
	*template_test(struct span name), *template_method(struct span name, enum kind of);
extern const struct callee template_methods[], template_text_filters[];	/* end with a name NULL */
struct value template_call(struct run *r, const struct callee *f, struct value self, size_t n,
	const struct argument *all);

/* --- nodes --- */

enum node_kind {
	NODE_TEXT, NODE_OUTPUT, NODE_SET, NODE_SET_ATTRIBUTE, NODE_FOR, NODE_IF,
	NODE_CONSTANT, NODE_NAME, NODE_LIST, NODE_TUPLE, NODE_DICT, NODE_SIGN, NODE_NOT, NODE_AND, NODE_OR,
	NODE_ARITHMETIC, NODE_CONCAT, NODE_COMPARE, NODE_CONDITION, NODE_ATTRIBUTE, NODE_ITEM, NODE_SLICE,
	NODE_CALL, NODE_FILTER, NODE_TEST, NODE_KINDS
};
enum operator {
	OP_EQUAL, OP_UNEQUAL, OP_LESS, OP_AT_MOST, OP_GREATER, OP_AT_LEAST, OP_IN, OP_NOT_IN,
	OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_DIVIDE, OP_FLOOR, OP_MODULO,
};
struct node {
	enum node_kind kind;
	enum operator op;
	int line, depth;
	struct node *next;		/* in a list of statements, items, arguments, operands */
	struct node *a, *b, *c;		/* operands; of a loop: targets, iterable, condition */
	struct node *body, *other;	/* of a loop and an if */
	struct span name;		/* of a variable, an attribute, an argument by name */
	struct value value;
	const struct callee *callee;
};

enum token_kind {
	TOKEN_TEXT, TOKEN_OUTPUT, TOKEN_OUTPUT_END, TOKEN_BLOCK, TOKEN_BLOCK_END, TOKEN_NAME, TOKEN_STRING,
	TOKEN_NUMBER, TOKEN_OPERATOR, TOKEN_END
};
struct token { enum token_kind kind; int line; struct span text; struct value value; };

struct template {
	const char *name;
	struct arena arena;
	struct node *statements;
};
_Noreturn void template_refuse(const struct template *t, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
struct token *template_lex(struct template *t, size_t n, const char *text);	/* ends with TOKEN_END */
size_t template_space(const char *s, size_t n);	/* bytes of the white space at s, by Unicode; 0: none */

/* --- a run --- */

struct variable { struct span name; struct value value; struct variable *next; };
struct scope { struct scope *outer; struct variable *first; };
struct builder { struct run *r; char *s; size_t n, room; };

struct run {
	const struct template *t;
	struct arena arena;
	size_t steps;
	int line;			/* of the node that is evaluated, for messages */
	const char *date;
	struct scope *scope;
	struct variable *unused;	/* of scopes that ended */
	struct builder out;
};
_Noreturn void template_fail(const struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void need_defined(const struct run *r, struct value v);	/* fatal error if it is undefined */
void template_spend(struct run *r, size_t steps);		/* fatal error beyond TEMPLATE_STEPS */
void *template_take(struct arena *a, size_t n, size_t size);	/* zeroed memory */
void *template_memory(struct run *r, size_t n, size_t size);	/* fatal error beyond TEMPLATE_MEMORY */
void arena_free(struct arena *a);

void build(struct builder *b, size_t n, const char *s);	/* appends */
struct value built(const struct builder *b);			/* the text, as a value */

bool span_is(struct span a, const char *s);
bool span_equal(struct span a, struct span b);
struct value value_bool(bool yes), value_integer(int64_t i), value_real(double d);
struct value value_text(const char *s, size_t n), value_undefined(const char *name, size_t n);
struct value value_list(struct run *r, enum form form, size_t room);
void list_add(struct run *r, struct value list, struct value v);
struct value value_dict(struct run *r);
void dict_set(struct run *r, struct dict *d, struct value key, struct value v);
void namespace_set(struct run *r, struct value ns, struct span name, struct value v);
const struct value *dict_find(struct run *r, const struct dict *d, struct value key);	/* NULL: absent */
struct value value_of_json(struct run *r, const json_t *j);
const char *value_kind(struct value v);				/* "a text", for messages */
bool value_true(struct value v);
bool value_is_number(struct value v);				/* truth values are numbers, too */
bool value_equal(struct run *r, struct value a, struct value b);
bool value_holds(struct run *r, enum operator op, struct value a, struct value b);	/* a op b */
/* The items of what can be iterated; of an iterator, those that are left, which are taken. */
struct list *value_items(struct run *r, struct value v);
bool value_iterable(struct value v);
size_t value_length(struct run *r, struct value v);
void value_print(struct builder *b, struct value v);		/* as str() of Python */
struct span value_str(struct run *r, struct value v);
void value_json(struct builder *b, struct value v, const int64_t *indent, int level, bool ascii);
/* v[key] and v.name, undefined if it has no such item. */
struct value value_item(struct run *r, struct value v, struct value key);
struct value value_attribute(struct run *r, struct value v, struct span name);
struct value value_slice(struct run *r, struct value v, const struct value bound[3]);
size_t text_characters(struct run *r, struct span s);		/* code points */
#endif
