/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_parse.c -- nodes of a template: tokens, statements; see template_parse_private.h */
#include "text/template_parse_private.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/utf8.h"

static struct node *statements(struct parser *p, const char *const ends[]);

void template_refuse(const struct template *t, int line, const char *fmt, ...)
{
	char text[512], *plain;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	plain = plain_text(text);
	die("%s:%d: %s", t->name, line, plain);
}

/* --- tokens --- */

/* A token, as text for messages. */
struct span parse_shown(const struct token *k)
{
	static const char *const ends[] = { [TOKEN_TEXT] = "text", [TOKEN_OUTPUT] = "{{",
		[TOKEN_OUTPUT_END] = "}}", [TOKEN_BLOCK] = "{%", [TOKEN_BLOCK_END] = "%}",
		[TOKEN_END] = "the end of the template" };
	const char *name = k->kind <= TOKEN_BLOCK_END || k->kind == TOKEN_END ? ends[k->kind] : NULL;

	return name ? (struct span){ name, strlen(name) } :
		(struct span){ k->text.s, k->text.n < 40 ? k->text.n : 40 };
}

bool parse_at(const struct parser *p, enum token_kind kind, const char *text)
{
	return p->k->kind == kind && span_is(p->k->text, text);
}

bool parse_skip(struct parser *p, enum token_kind kind, const char *text)
{
	const bool is = parse_at(p, kind, text);

	p->k += is;
	return is;
}

bool parse_skip_op(struct parser *p, const char *text) { return parse_skip(p, TOKEN_OPERATOR, text); }
bool parse_skip_name(struct parser *p, const char *text) { return parse_skip(p, TOKEN_NAME, text); }

_Noreturn void parse_expected(const struct parser *p, const char *what)
{
	const struct span s = parse_shown(p->k);

	template_refuse(p->t, p->k->line, "'%.*s' is not supported here, expected %s", SHOWN(s), what);
}

void parse_need_op(struct parser *p, const char *text)
{
	if (!parse_skip_op(p, text))
		parse_expected(p, text);
}

static void need_end(struct parser *p, enum token_kind kind)
{
	if (p->k->kind != kind)
		parse_expected(p, kind == TOKEN_BLOCK_END ? "%}" : "}}");
	p->k++;
}

struct span parse_need_word(struct parser *p, const char *what)
{
	if (p->k->kind != TOKEN_NAME)
		parse_expected(p, what);
	return p->k++->text;
}

/* --- nodes --- */

static int deepest(const struct node *list)
{
	int y = 0;

	for (; list; list = list->next)
		y = list->depth > y ? list->depth : y;
	return y;
}

struct node *parse_finish(const struct parser *p, struct node *n)
{
	struct node *const parts[] = { n->a, n->b, n->c, n->body, n->other };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const int d = deepest(parts[i]) + 1;

		n->depth = d > n->depth ? d : n->depth;
	}
	if (n->depth > TEMPLATE_DEPTH)
		template_refuse(p->t, n->line, "is nested in more than %d levels", TEMPLATE_DEPTH);
	return n;
}

struct node *parse_node(struct parser *p, enum node_kind kind, struct node *a, struct node *b)
{
	struct node *n = template_take(&p->t->arena, 1, sizeof *n);

	n->kind = kind;
	n->line = a ? a->line : p->k->line;
	n->a = a, n->b = b;
	return parse_finish(p, n);
}

void parse_enter(struct parser *p)
{
	if (++p->depth > TEMPLATE_DEPTH)
		template_refuse(p->t, p->k->line, "is nested in more than %d levels", TEMPLATE_DEPTH);
}

/* --- statements --- */

static struct node *set(struct parser *p)
{
	struct node *n = parse_node(p, NODE_SET, NULL, NULL), *of = NULL;
	struct span name = parse_need_word(p, "the name of a variable");

	if (parse_skip_op(p, ".")) {
		n->kind = NODE_SET_ATTRIBUTE;
		of = parse_node(p, NODE_NAME, NULL, NULL);
		of->name = name;
		name = parse_need_word(p, "the name of an attribute");
	}
	n->name = name;
	if (!parse_skip_op(p, "="))
		parse_expected(p, "= (set with a body, and of several variables, is not supported)");
	n->a = parse_expression(p);
	n->b = of;
	need_end(p, TOKEN_BLOCK_END);
	return parse_finish(p, n);
}

static struct node *branch(struct parser *p)
{
	static const char *const ends[] = { "elif", "else", "endif", NULL };
	static const char *const end[] = { "endif", NULL };
	struct node *n = parse_node(p, NODE_IF, NULL, NULL);

	n->a = parse_disjunction(p);
	need_end(p, TOKEN_BLOCK_END);
	n->body = statements(p, ends);
	if (parse_skip_name(p, "elif")) {
		parse_enter(p);
		n->other = branch(p);
		p->depth--;
		return parse_finish(p, n);
	}
	if (parse_skip_name(p, "else")) {
		need_end(p, TOKEN_BLOCK_END);
		n->other = statements(p, end);
	}
	p->k++;		/* endif */
	need_end(p, TOKEN_BLOCK_END);
	return parse_finish(p, n);
}

static struct node *loop(struct parser *p)
{
	static const char *const ends[] = { "else", "endfor", NULL }, *const end[] = { "endfor", NULL };
	struct node *n = parse_node(p, NODE_FOR, NULL, NULL), **last = &n->a;
	const bool closed = parse_skip_op(p, "(");

	do {
		*last = parse_node(p, NODE_NAME, NULL, NULL);
		(*last)->name = parse_need_word(p, "the name of a variable");
		if (span_is((*last)->name, "loop"))
			template_refuse(p->t, n->line, "'loop' cannot be the variable of a loop");
		last = &(*last)->next;
	} while (parse_skip_op(p, ","));
	if (closed)
		parse_need_op(p, ")");
	if (!parse_skip_name(p, "in"))
		parse_expected(p, "in");
	n->b = parse_disjunction(p);
	n->c = parse_skip_name(p, "if") ? parse_expression(p) : NULL;
	need_end(p, TOKEN_BLOCK_END);
	n->body = statements(p, ends);
	if (parse_skip_name(p, "else")) {
		need_end(p, TOKEN_BLOCK_END);
		n->other = statements(p, end);
	}
	p->k++;		/* endfor */
	need_end(p, TOKEN_BLOCK_END);
	return parse_finish(p, n);
}

static struct node *statement(struct parser *p)
{
	static const struct { const char *name; struct node *(*read)(struct parser *p); } rows[] = {
		{ "set", set }, { "if", branch }, { "for", loop } };
	const struct span s = parse_shown(p->k);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (parse_skip_name(p, rows[i].name))
			return rows[i].read(p);
	template_refuse(p->t, p->k->line, "the statement '%.*s' is not supported", SHOWN(s));
}

static bool at_any(const struct parser *p, const char *const names[])
{
	for (; names && *names; names++)
		if (parse_at(p, TOKEN_NAME, *names))
			return true;
	return false;
}

/* Statements up to one of these names, which is the current token then; ends NULL: up to the end. */
static struct node *statements(struct parser *p, const char *const ends[])
{
	struct node *first = NULL, **last = &first;
	const int line = p->k->line;

	parse_enter(p);
	for (; p->k->kind != TOKEN_END; last = &(*last)->next) {
		const enum token_kind kind = p->k->kind;

		if (kind == TOKEN_BLOCK && (p->k++, at_any(p, ends))) {
			p->depth--;
			return first;
		}
		if (kind == TOKEN_BLOCK) {
			*last = statement(p);
			continue;
		}
		if (kind == TOKEN_TEXT) {
			*last = parse_node(p, NODE_TEXT, NULL, NULL);
			(*last)->name = p->k++->text;
			continue;
		}
		p->k++;
		*last = parse_node(p, NODE_OUTPUT, parse_expression(p), NULL);
		need_end(p, TOKEN_OUTPUT_END);
	}
	if (ends)
		template_refuse(p->t, line, "a block has no end, expected '%s'",
			ends[ends[1] ? 1 + !!ends[2] : 0]);
	p->depth--;
	return first;
}

struct template *template_read(const char *name, size_t n, const char *text)
{
	struct template *t = xalloc(1, sizeof *t);
	struct parser p = { .t = t };

	t->name = name;
	if (utf8_valid(text, n) != n)
		die("%s: is not valid UTF-8", name);
	p.k = template_lex(t, n, text);
	t->statements = statements(&p, NULL);
	return t;
}

void template_free(struct template *t)
{
	arena_free(&t->arena);
	free(t);
}
