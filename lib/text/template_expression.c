/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_expression.c -- nodes of expressions, last the lowest precedence; see template_parse_private.h */
#include <stdlib.h>
#include <string.h>
#include "text/template_parse_private.h"

/* --- literals, names; attributes, calls, filters, tests --- */

/* Expressions, separated by commas, up to a bracket. */
static struct node *items(struct parser *p, const char *end)
{
	struct node *first = NULL, **last = &first;

	while (!parse_skip_op(p, end)) {
		if (first) {
			parse_need_op(p, ",");
			if (parse_skip_op(p, end))
				break;
		}
		*last = parse_expression(p);
		last = &(*last)->next;
	}
	return first;
}

static struct node *dict(struct parser *p)
{
	struct node *first = NULL, **last = &first;

	while (!parse_skip_op(p, "}")) {
		struct node *key, *value;

		if (first) {
			parse_need_op(p, ",");
			if (parse_skip_op(p, "}"))
				break;
		}
		key = parse_expression(p);
		parse_need_op(p, ":");
		value = parse_expression(p);
		*last = parse_node(p, NODE_ITEM, key, value);
		last = &(*last)->next;
	}
	return parse_node(p, NODE_DICT, first, NULL);
}

static struct node *constant(struct parser *p, struct value v)
{
	struct node *n = parse_node(p, NODE_CONSTANT, NULL, NULL);

	n->value = v;
	return n;
}

/* "(" was read: an expression in parentheses, or a tuple. */
static struct node *parentheses(struct parser *p)
{
	const struct token *open = p->k;
	struct node *first = items(p, ")");

	if (first && !first->next && !(p->k[-2].kind == TOKEN_OPERATOR && span_is(p->k[-2].text, ",")))
		return first;
	first = parse_node(p, NODE_TUPLE, first, NULL);
	first->line = open->line;
	return first;
}

static struct node *word(struct parser *p)
{
	static const struct { const char *name; struct value value; } constants[] = {
		{ "true", { VALUE_BOOL, { .yes = true } } }, { "True", { VALUE_BOOL, { .yes = true } } },
		{ "false", { .kind = VALUE_BOOL } }, { "False", { .kind = VALUE_BOOL } },
		{ "none", { .kind = VALUE_NONE } }, { "None", { .kind = VALUE_NONE } } };
	static const char *const refused[] = { "dict", "lipsum", "cycler", "joiner", "self", "super",
		"caller" };
	struct node *n;

	for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
		if (parse_skip_name(p, constants[i].name))
			return constant(p, constants[i].value);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (parse_at(p, TOKEN_NAME, refused[i]))
			template_refuse(p->t, p->k->line, "'%s' is not supported", refused[i]);
	n = parse_node(p, NODE_NAME, NULL, NULL);
	n->name = p->k++->text;
	return n;
}

static struct node *strings(struct parser *p)
{
	struct node *n = constant(p, p->k->value);

	while ((++p->k)->kind == TOKEN_STRING) {
		const struct span a = n->value.text, b = p->k->value.text;
		char *s = template_take(&p->t->arena, a.n + b.n + 1, 1);

		memcpy(s, a.s, a.n);
		memcpy(s + a.n, b.s, b.n);
		n->value = value_text(s, a.n + b.n);
	}
	return n;
}

static struct node *primary(struct parser *p)
{
	if (p->k->kind == TOKEN_NAME)
		return word(p);
	if (p->k->kind == TOKEN_STRING)
		return strings(p);
	if (p->k->kind == TOKEN_NUMBER)
		return constant(p, p->k++->value);
	if (parse_skip_op(p, "("))
		return parentheses(p);
	if (parse_skip_op(p, "["))
		return parse_node(p, NODE_LIST, items(p, "]"), NULL);
	if (parse_skip_op(p, "{"))
		return dict(p);
	parse_expected(p, "an expression");
}

/* "(" was read: arguments; one by name has a name. */
static struct node *arguments(struct parser *p)
{
	struct node *first = NULL, **last = &first;

	while (!parse_skip_op(p, ")")) {
		struct span name = { NULL, 0 };

		if (first) {
			parse_need_op(p, ",");
			if (parse_skip_op(p, ")"))
				break;
		}
		if (p->k->kind == TOKEN_NAME && p->k[1].kind == TOKEN_OPERATOR &&
		    span_is(p->k[1].text, "=")) {
			name = p->k->text;
			p->k += 2;
		}
		/* an argument has a node of its own, since an expression may have a name, too */
		*last = parse_node(p, NODE_ITEM, parse_expression(p), NULL);
		(*last)->name = name;
		last = &(*last)->next;
	}
	return first;
}

static struct node *bound_part(struct parser *p)
{
	return parse_at(p, TOKEN_OPERATOR, ":") || parse_at(p, TOKEN_OPERATOR, "]") ? NULL :
		parse_expression(p);
}

/* "[" was read. */
static struct node *subscript(struct parser *p, struct node *of)
{
	struct node *part[3] = { bound_part(p) }, *n;
	size_t k = 0;

	while (k < 2 && parse_skip_op(p, ":"))
		part[++k] = bound_part(p);
	parse_need_op(p, "]");
	if (!k && !part[0])
		parse_expected(p, "an index");
	n = parse_node(p, k ? NODE_SLICE : NODE_ITEM, of, part[0]);
	n->c = part[1], n->body = part[2];
	return parse_finish(p, n);
}

/* "." was read. */
static struct node *attribute(struct parser *p, struct node *of)
{
	struct node *n;

	if (p->k->kind == TOKEN_NUMBER && p->k->value.kind == VALUE_INTEGER)
		return parse_node(p, NODE_ITEM, of, constant(p, p->k++->value));
	n = parse_node(p, NODE_ATTRIBUTE, of, NULL);
	n->name = parse_need_word(p, "a name");
	n->line = p->k[-1].line;
	if (n->name.n > 1 && !memcmp(n->name.s, "__", 2))
		template_refuse(p->t, n->line, "the attribute '%.*s' is not supported", SHOWN(n->name));
	return n;
}

static struct node *call(struct parser *p, struct node *of)
{
	if (of->kind == NODE_ATTRIBUTE && !template_method(of->name, 0))
		template_refuse(p->t, of->line, "the method '%.*s' is not supported", SHOWN(of->name));
	if (of->kind == NODE_NAME && !template_function(of->name))
		template_refuse(p->t, of->line, "the function '%.*s' is not supported", SHOWN(of->name));
	return parse_node(p, NODE_CALL, of, arguments(p));
}

static struct node *postfix(struct parser *p, struct node *n)
{
	for (;;) {
		if (parse_skip_op(p, "."))
			n = attribute(p, n);
		else if (parse_skip_op(p, "["))
			n = subscript(p, n);
		else if (parse_skip_op(p, "("))
			n = call(p, n);
		else
			return n;
	}
}

/* "|" was read. */
static struct node *filter(struct parser *p, struct node *of)
{
	const struct token *k = p->k;
	const struct span name = parse_need_word(p, "the name of a filter");
	const struct callee *f = template_filter(name);
	struct node *n;

	if (!f)
		template_refuse(p->t, k->line, "the filter '%.*s' is not supported", SHOWN(name));
	n = parse_node(p, NODE_FILTER, of, parse_skip_op(p, "(") ? arguments(p) : NULL);
	n->callee = f;
	n->line = k->line;
	/* A text that is marked safe would make later operations escape HTML. */
	if (span_is(name, "safe") && p->k->kind != TOKEN_OUTPUT_END)
		template_refuse(p->t, k->line, "the filter 'safe' is supported at the end of an output only");
	return n;
}

/* "is" was read. */
static struct node *test(struct parser *p, struct node *of)
{
	const bool negated = parse_skip_name(p, "not");
	const struct token *k = p->k;
	const struct span name = parse_need_word(p, "the name of a test");
	const struct callee *f = template_test(name);
	struct node *n;

	if (!f)
		template_refuse(p->t, k->line, "the test '%.*s' is not supported", SHOWN(name));
	n = parse_node(p, NODE_TEST, of, NULL);
	if (parse_skip_op(p, "("))
		n->b = arguments(p);
	else if (p->k->kind == TOKEN_STRING || p->k->kind == TOKEN_NUMBER ||
		 parse_at(p, TOKEN_OPERATOR, "[") || parse_at(p, TOKEN_OPERATOR, "{") ||
		 (p->k->kind == TOKEN_NAME && !parse_at(p, TOKEN_NAME, "else") &&
		 !parse_at(p, TOKEN_NAME, "or") && !parse_at(p, TOKEN_NAME, "and")))
		n->b = parse_node(p, NODE_ITEM, postfix(p, primary(p)), NULL);
	n->callee = f;
	n->line = k->line;
	parse_finish(p, n);
	return negated ? parse_node(p, NODE_NOT, n, NULL) : n;
}

static struct node *unary(struct parser *p, bool filters)
{
	const bool minus = parse_at(p, TOKEN_OPERATOR, "-");
	struct node *n;

	parse_enter(p);
	if (parse_skip_op(p, "-") || parse_skip_op(p, "+")) {
		n = parse_node(p, NODE_SIGN, unary(p, false), NULL);
		n->op = minus ? OP_SUBTRACT : OP_ADD;
	} else {
		n = primary(p);
	}
	n = postfix(p, n);
	while (filters) {
		if (parse_skip_op(p, "|"))
			n = filter(p, n);
		else if (parse_skip_name(p, "is"))
			n = test(p, n);
		else if (parse_skip_op(p, "("))
			n = call(p, n);
		else
			break;
	}
	p->depth--;
	return n;
}

/* --- operators --- */

struct operator_row { const char *text; enum operator op; };
static const struct operator_row products[] = { { "*", OP_MULTIPLY }, { "/", OP_DIVIDE }, { "//", OP_FLOOR },
	{ "%", OP_MODULO }, { NULL, 0 } };
static const struct operator_row sums[] = { { "+", OP_ADD }, { "-", OP_SUBTRACT }, { NULL, 0 } };
static const struct operator_row comparisons[] = { { "==", OP_EQUAL }, { "!=", OP_UNEQUAL },
	{ "<=", OP_AT_MOST }, { ">=", OP_AT_LEAST }, { "<", OP_LESS }, { ">", OP_GREATER }, { NULL, 0 } };

static const struct operator_row *operator_at(struct parser *p, const struct operator_row *rows)
{
	for (; rows->text; rows++)
		if (parse_skip_op(p, rows->text))
			return rows;
	return NULL;
}

static struct node *product(struct parser *p)
{
	struct node *n = unary(p, true);

	for (const struct operator_row *o; (o = operator_at(p, products)); ) {
		n = parse_node(p, NODE_ARITHMETIC, n, unary(p, true));
		n->op = o->op;
	}
	return n;
}

static struct node *concat(struct parser *p)
{
	struct node *n = product(p), **last = &n->next;

	if (!parse_at(p, TOKEN_OPERATOR, "~"))
		return n;
	for (; parse_skip_op(p, "~"); last = &(*last)->next)
		*last = product(p);
	return parse_node(p, NODE_CONCAT, n, NULL);
}

static struct node *sum(struct parser *p)
{
	struct node *n = concat(p);

	for (const struct operator_row *o; (o = operator_at(p, sums)); ) {
		n = parse_node(p, NODE_ARITHMETIC, n, concat(p));
		n->op = o->op;
	}
	return n;
}

/* The comparison at the current place; false: none. */
static bool comparison_at(struct parser *p, enum operator *op)
{
	const struct operator_row *o = operator_at(p, comparisons);

	*op = o ? o->op : OP_IN;
	if (o || parse_skip_name(p, "in"))
		return true;
	*op = OP_NOT_IN;
	if (!parse_at(p, TOKEN_NAME, "not") || p->k[1].kind != TOKEN_NAME || !span_is(p->k[1].text, "in"))
		return false;
	p->k += 2;
	return true;
}

static struct node *compare(struct parser *p)
{
	struct node *n = sum(p), *first = NULL, **last = &first;
	enum operator op;

	while (comparison_at(p, &op)) {
		*last = parse_node(p, NODE_ITEM, sum(p), NULL);
		(*last)->op = op;
		last = &(*last)->next;
	}
	return first ? parse_node(p, NODE_COMPARE, n, first) : n;
}

static struct node *negation(struct parser *p)
{
	struct node *n;

	if (!parse_skip_name(p, "not"))
		return compare(p);
	parse_enter(p);
	n = parse_node(p, NODE_NOT, negation(p), NULL);
	p->depth--;
	return n;
}

static struct node *conjunction(struct parser *p)
{
	struct node *n = negation(p);

	while (parse_skip_name(p, "and"))
		n = parse_node(p, NODE_AND, n, negation(p));
	return n;
}

struct node *parse_disjunction(struct parser *p)
{
	struct node *n = conjunction(p);

	while (parse_skip_name(p, "or"))
		n = parse_node(p, NODE_OR, n, conjunction(p));
	return n;
}

struct node *parse_expression(struct parser *p)
{
	struct node *n, *y;

	parse_enter(p);
	n = parse_disjunction(p);
	while (parse_skip_name(p, "if")) {
		y = parse_node(p, NODE_CONDITION, parse_disjunction(p), n);
		y->c = parse_skip_name(p, "else") ? parse_expression(p) : NULL;
		n = parse_finish(p, y);
	}
	p->depth--;
	return n;
}
