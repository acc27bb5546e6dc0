/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * template_parse_private.h -- nodes of a template from its tokens, by recursive descent
 *
 * Internal to lib/text. template_expression.c has a function for each of jinja2's precedences, the lowest
 * last: attributes, items, calls, filters and tests; sign; * / // %; ~; + and -; comparison; not; and; or;
 * inline if. template_parse.c has the statements.
 */
#ifndef TEXT_TEMPLATE_PARSE_PRIVATE_H
#define TEXT_TEMPLATE_PARSE_PRIVATE_H
#include "text/template_private.h"

struct parser { struct template *t; const struct token *k; int depth; };	/* k: the current token */

/* Arguments of %.*s */
#define SHOWN(span) (int)(span).n, (span).s
struct span parse_shown(const struct token *k);		/* a token, as text for messages */
bool parse_at(const struct parser *p, enum token_kind kind, const char *text);
/* Skips the current token if it is this one. */
bool parse_skip(struct parser *p, enum token_kind kind, const char *text);
bool parse_skip_op(struct parser *p, const char *text), parse_skip_name(struct parser *p, const char *text);
_Noreturn void parse_expected(const struct parser *p, const char *what);
void parse_need_op(struct parser *p, const char *text);
struct span parse_need_word(struct parser *p, const char *what);

/* Sets the depth of a node from its parts; too deep a node is refused. */
struct node *parse_finish(const struct parser *p, struct node *n);
struct node *parse_node(struct parser *p, enum node_kind kind, struct node *a, struct node *b);
void parse_enter(struct parser *p);			/* one level more of recursion; p->depth-- ends it */

struct node *parse_expression(struct parser *p);
struct node *parse_disjunction(struct parser *p);	/* without an inline if */
#endif
