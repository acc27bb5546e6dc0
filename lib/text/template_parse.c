/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_parse.c -- nodes of a template from its text, by recursive descent; see template_private.h */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/template_private.h"
#include "text/utf8.h"

struct parser {
	struct template *t;
	const char *s;			/* its text, of n bytes */
	size_t n, at;
	int depth;
	const char *end;		/* the word that ended a block */
};
#define refuse(...) template_fail(p->t, p->at, __VA_ARGS__)

static struct node *expression(struct parser *p), *unary(struct parser *p, bool filters);

void template_fail(const struct template *t, size_t at, const char *fmt, ...)
{
	char text[1024];
	int line = 1;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		*c = iscntrl((unsigned char)*c) ? '?' : *c;
	for (size_t i = 0; i < at; i++)
		line += t->s[i] == '\n';
	die("%s:%d: %s", t->name, line, text);
}

/* --- characters --- */

static bool starts(const struct parser *p, const char *with)
{
	return !strncmp(p->s + p->at, with, strlen(with));
}

static void skip_space(struct parser *p)
{
	for (size_t n; (n = utf8_space(p->s + p->at)); p->at += n)
		;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static size_t word_at(struct parser *p)
{
	size_t n = 0;

	for (skip_space(p); p->at + n < p->n && is_word(p->s[p->at + n]); n++)
		;
	return n;
}

static _Noreturn void expected(struct parser *p, const char *what)
{
	const size_t n = word_at(p);

	if (p->at == p->n)
		refuse("the template ends within a tag, expected %s", what);
	refuse("'%.*s' is not supported here, expected %s", (int)(n > 40 ? 40 : n ? n :
		utf8_length(p->s + p->at)), p->s + p->at, what);
}

/* Skips this word, or operator, if it comes next. */
static bool take(struct parser *p, const char *is)
{
	const size_t from = p->at, n = strlen(is);
	bool y;

	skip_space(p);
	y = starts(p, is) && (!is_word(*is) || word_at(p) == n);
	p->at += n;
	if (y && strchr("-+%", *is))		/* may be the end of a tag */
		y = !starts(p, "}}") && !starts(p, "%}") && !(*is == '%' && starts(p, "}"));
	p->at = y ? p->at : from;
	return y;
}

static void need(struct parser *p, const char *is)
{
	if (!take(p, is))
		expected(p, is);
}

/* --- nodes --- */

static struct node *make(struct parser *p, enum node_kind kind, struct node *a, struct node *b)
{
	struct node *n = xalloc(1, sizeof *n);

	*n = (struct node){ .kind = kind, .at = p->at, .part = { a, b }, .before = p->t->last };
	return p->t->last = n;
}

static struct node *constant(struct parser *p, enum node_kind kind, json_t *v)
{
	struct node *n = make(p, kind, NULL, NULL);

	value_checked(v);
	n->value = v;
	return n;
}

/* An operator, a row of the table. */
static struct node *operation(struct parser *p, const char *op, struct node *a, struct node *b)
{
	struct node *n = make(p, NODE_CALL, a, b);

	n->row = template_row(OPERATOR, op);
	return n;
}

/* A node whose value is the name that comes next. */
static struct node *name(struct parser *p, enum node_kind kind, const char *what)
{
	const size_t n = word_at(p);

	if (!n || isdigit((unsigned char)p->s[p->at]))
		expected(p, what);
	p->at += n;
	return constant(p, kind, json_stringn_nocheck(p->s + p->at - n, n));
}

static const char *name_of(const struct node *n) { return json_string_value(n->value); }

static void enter(struct parser *p)
{
	if (++p->depth > TEMPLATE_DEPTH)
		refuse("is nested in more than %d levels", TEMPLATE_DEPTH);
}

/* --- literals, calls, filters, tests --- */

static struct node *string(struct parser *p)
{
	static const char from[] = "\\'\"ntr", to[] = "\\'\"\n\t\r";
	const char quote = p->s[p->at++], *at;
	struct node *y;
	char *s = NULL;
	size_t n = 0;

	for (; p->at < p->n && p->s[p->at] != quote; p->at++) {
		s = xgrow(s, n + 1, 1);
		s[n++] = p->s[p->at];
		if (s[n - 1] != '\\')
			continue;
		at = memchr(from, p->s[++p->at], sizeof from - 1);
		if (!at)
			refuse("this escape in a string is not supported, expected \\n \\t \\r \\\\ \\' "
				"\\\"");
		s[n - 1] = to[at - from];
	}
	if (p->at++ == p->n)
		refuse("a string has no end, expected %c", quote);
	y = constant(p, NODE_CONSTANT, json_stringn_nocheck(s ? s : "", n));
	free(s);
	return y;
}

static struct node *number(struct parser *p)
{
	const char *s = p->s + p->at;
	const size_t n = word_at(p);

	p->at += n;
	if (n > 18 || (n > 1 && *s == '0') || strspn(s, "0123456789") != n || starts(p, "."))
		refuse("a number is not in plain decimal digits, 18 at most, without a fraction");
	return constant(p, NODE_CONSTANT, json_integer(strtoll(s, NULL, 10)));
}

/* Expressions, separated by commas, up to `end`. pair: ":" or "=", which makes a pair of the expressions
 * before and after it; NULL: pairs are refused. all: each must be a pair. */
static struct node *items(struct parser *p, const char *end, const char *pair, bool all)
{
	struct node *first = NULL, **last = &first, *key;

	for (; !take(p, end); last = &(*last)->next) {
		*last = key = expression(p);
		if (pair && all && !starts(p, pair))
			expected(p, pair);
		if (pair && take(p, pair)) {
			if (*pair == '=' && key->kind != NODE_NAME)
				refuse("the name of an argument is an expression");
			key->kind = *pair == '=' ? NODE_CONSTANT : key->kind;
			*last = make(p, NODE_PAIR, key, expression(p));
		}
		if (!take(p, ",")) {
			need(p, end);
			break;
		}
	}
	return first;
}

/* Arguments, up to ")". The last of those that the row has may be given by name. */
static void arguments(struct parser *p, struct node *call)
{
	const struct row *row = call->row;
	const int most = (int)strcspn(row->types, "=");
	int i = 0;

	for (struct node *k = items(p, ")", "=", false), *next; k; k = next) {
		const char *named = k->kind == NODE_PAIR ? name_of(k->part[0]) : NULL;
		const int at = !named ? i++ : row->types[most] && !strcmp(named, row->types + most + 1) ?
			most - 1 : most;

		next = k->next;
		if (at >= most || call->part[1 + at])
			refuse("%s: the argument %s is not expected", row->name, named ? named :
				"after the last");
		call->part[1 + at] = named ? k->part[1] : k;
	}
}

/* The name was read, and of a function and a method "(". A test needs no parentheses: x is sameas y. */
static struct node *call(struct parser *p, enum use use, struct node *of, struct node *n)
{
	static const char *const uses[] = { "operator", "function", "method", "filter", "test" };

	n->kind = NODE_CALL;
	n->part[0] = of;
	n->row = template_row(use, name_of(n));
	if (!n->row)
		refuse("the %s '%s' is not supported", uses[use], name_of(n));
	if (use == TEST && n->row->least && !(skip_space(p), starts(p, "(")))
		n->part[1] = unary(p, false);
	else if (use < FILTER || (*n->row->types && take(p, "(")))
		arguments(p, n);
	return n;
}

static struct node *named(struct parser *p)
{
	struct node *n = name(p, NODE_NAME, "an expression");
	const char *is = name_of(n);

	if (!strcmp(is, "true") || !strcmp(is, "True") || !strcmp(is, "false") || !strcmp(is, "False"))
		return constant(p, NODE_CONSTANT, json_boolean(is[3] == 'e'));
	if (!strcmp(is, "none") || !strcmp(is, "None"))
		return constant(p, NODE_CONSTANT, json_null());
	if (!take(p, "("))
		return n;
	if (strcmp(is, "namespace"))
		return call(p, FUNCTION, NULL, n);
	return make(p, NODE_NAMESPACE, items(p, ")", "=", true), NULL);
}

static struct node *primary(struct parser *p)
{
	struct node *n;

	skip_space(p);
	if (starts(p, "'") || starts(p, "\""))
		return string(p);
	if (isdigit((unsigned char)p->s[p->at]))
		return number(p);
	if (take(p, "(")) {
		n = expression(p);
		need(p, ")");
		return n;
	}
	if (take(p, "["))
		return make(p, NODE_LIST, items(p, "]", NULL, false), NULL);
	return take(p, "{") ? make(p, NODE_DICT, items(p, "}", ":", true), NULL) : named(p);
}

/* "[" was read: an index, or begin, end and step of a slice. */
static struct node *subscript(struct parser *p, struct node *of)
{
	struct node *n = operation(p, "[", of, NULL);

	for (int k = 1; k == 1 || (k <= 3 && take(p, ":")); k++) {
		skip_space(p);
		if (starts(p, ":") || k > 1)
			n->row = template_row(OPERATOR, "[:");
		if (!starts(p, ":") && (k == 1 || !starts(p, "]")))
			n->part[k] = expression(p);
	}
	need(p, "]");
	return n;
}

static struct node *unary(struct parser *p, bool filters)
{
	struct node *n;
	bool no;

	enter(p);
	if (take(p, "-")) {
		n = constant(p, NODE_CONSTANT, json_integer(0));
		n = operation(p, "-", n, unary(p, false));
	} else {
		n = primary(p);
	}
	for (;;) {
		if (take(p, ".")) {
			struct node *by = name(p, NODE_CONSTANT, "a name");

			n = take(p, "(") ? call(p, METHOD, n, by) : operation(p, ".", n, by);
		} else if (take(p, "[")) {
			n = subscript(p, n);
		} else if (filters && take(p, "|")) {
			n = call(p, FILTER, n, name(p, NODE_CALL, "the name of a filter"));
			skip_space(p);
			if (!strcmp(n->row->name, "safe") && !starts(p, "}}") && !starts(p, "-}}"))
				refuse("the filter 'safe' is supported at the end of an output only");
		} else if (filters && take(p, "is")) {
			no = take(p, "not");
			n = call(p, TEST, n, name(p, NODE_CALL, "the name of a test"));
			n = no ? operation(p, "not", n, NULL) : n;
		} else {
			break;
		}
	}
	p->depth--;
	return n;
}

/* Operators of two operands, the lowest precedence first. A comparison of a comparison is refused. */
static struct node *binary(struct parser *p, int level)
{
	enum { COMPARE = 2, UNARY = 6 };
	static const char *const rows[][9] = { { "or" }, { "and" }, { "==", "!=", "<=", ">=", "<", ">", "in",
		"not" }, { "+", "-" }, { "~" }, { "//", "*", "%" } };
	struct node *n;
	bool no;

	if (level == UNARY)
		return unary(p, true);
	if (level == COMPARE && take(p, "not")) {
		enter(p);
		n = operation(p, "not", binary(p, COMPARE), NULL);
		p->depth--;
		return n;
	}
	n = binary(p, level + 1);
	for (int i = 0; rows[level][i]; i++)
		if (take(p, rows[level][i])) {
			no = rows[level][i][0] == 'n';
			if (no)
				need(p, "in");
			n = operation(p, no ? "in" : rows[level][i], n, binary(p, level + 1));
			n = no ? operation(p, "not", n, NULL) : n;
			if (level == COMPARE)
				break;
			i = -1;
		}
	return n;
}

static struct node *expression(struct parser *p)
{
	struct node *n;

	enter(p);
	n = binary(p, 0);
	while (take(p, "if")) {
		n = make(p, NODE_IF, binary(p, 0), n);
		n->part[2] = take(p, "else") ? expression(p) : NULL;
	}
	p->depth--;
	return n;
}

/* --- tags and statements --- */

/* The end of a tag, with the white space that it removes. */
static void close_tag(struct parser *p, const char *end)
{
	char sign;

	skip_space(p);
	sign = starts(p, "-") || (starts(p, "+") && *end != '}') ? p->s[p->at++] : '\0';
	if (!starts(p, end))
		expected(p, end);
	p->at += 2;
	if (sign == '-')
		skip_space(p);
	else if (!sign && *end != '}' && starts(p, "\n"))
		p->at++;
}

/* Where the text ends that begins at `begin`, before a tag at p->at that removes white space by its sign. */
static size_t trimmed(const struct parser *p, size_t begin, bool output, char sign)
{
	size_t end = p->at, from;

	if (sign == '+' || (output && sign != '-'))
		return end;
	while (end > begin && (sign == '-' || p->s[end - 1] != '\n')) {
		from = begin + utf8_last(p->s + begin, end - begin);
		if (!utf8_space(p->s + from))
			return sign == '-' ? end : p->at;
		end = from;
	}
	return sign != '-' && end == begin && begin && p->s[begin - 1] != '\n' ? p->at : end;
}

/* Adds the text before the next tag, opens the tag, and skips comments. '{' or '%'; 0: the end. */
static char open_tag(struct parser *p, struct node ***last)
{
	for (;;) {
		const size_t begin = p->at;
		char tag, sign;
		json_t *text;
		size_t cut;

		while (p->at < p->n && !(starts(p, "{{") || starts(p, "{%") || starts(p, "{#")))
			p->at++;
		tag = p->at < p->n ? p->s[p->at + 1] : '\0';
		sign = tag ? p->s[p->at + 2] : '\0';
		cut = tag ? trimmed(p, begin, tag == '{', sign) : p->n;
		if (cut > begin) {
			text = json_stringn_nocheck(p->s + begin, cut - begin);
			**last = make(p, NODE_OUTPUT, constant(p, NODE_CONSTANT, text), NULL);
			*last = &(**last)->next;
		}
		p->at += tag ? 2 + (sign == '-' || sign == '+') : 0;
		if (tag != '#')
			return tag;
		while (p->at < p->n && !(starts(p, "#}") || starts(p, "-#}") || starts(p, "+#}")))
			p->at++;
		if (p->at == p->n)
			refuse("a comment has no end, expected '#}'");
		close_tag(p, "#}");
	}
}

/* Statements up to one of the words of `ends`, which is returned in p->end; NULL: up to the end. */
static struct node *block(struct parser *p, const char *const *ends);

static struct node *set(struct parser *p)
{
	struct node *n = name(p, NODE_SET, "the name of a variable"), *of = take(p, ".") ? n : NULL;

	if (of) {
		of->kind = NODE_NAME;
		n = name(p, NODE_SET, "the name of an attribute");
		n->part[1] = of;
	}
	if (!take(p, "="))
		expected(p, "= (set with a body, and of several variables, is not supported)");
	n->part[0] = expression(p);
	return n;
}

static struct node *branch(struct parser *p)
{
	static const char *const ends[] = { "endif", "else", "elif", NULL }, *const end[] = { "endif", NULL };
	struct node *n = make(p, NODE_IF, binary(p, 0), NULL);

	enter(p);
	n->part[1] = block(p, ends);
	if (p->end != ends[0])
		n->part[2] = p->end == ends[1] ? block(p, end) : branch(p);
	p->depth--;
	return n;
}

static struct node *loop(struct parser *p)
{
	static const char *const end[] = { "endfor", NULL };
	struct node *n = make(p, NODE_FOR, NULL, NULL), **last = n->part;

	do {
		*last = name(p, NODE_NAME, "the name of a variable");
		if (!strcmp(name_of(*last), "loop"))
			refuse("'loop' cannot be the variable of a loop");
		last = &(*last)->next;
	} while (take(p, ","));
	need(p, "in");
	n->part[1] = binary(p, 0);
	n->part[2] = take(p, "if") ? expression(p) : NULL;
	n->part[3] = block(p, end);
	return n;
}

static struct node *statement(struct parser *p)
{
	if (take(p, "set"))
		return set(p);
	if (take(p, "if"))
		return branch(p);
	if (take(p, "for"))
		return loop(p);
	skip_space(p);
	refuse("the statement '%.*s' is not supported", (int)word_at(p), p->s + p->at);
}

static struct node *block(struct parser *p, const char *const *ends)
{
	struct node *first = NULL, **last = &first;
	const size_t begin = p->at;

	enter(p);
	if (ends)
		close_tag(p, "%}");
	for (char tag; (tag = open_tag(p, &last)); last = &(*last)->next) {
		for (const char *const *e = ends; e && *e && tag == '%'; e++)
			if (take(p, *e)) {
				p->end = *e;
				p->depth--;
				return first;
			}
		*last = tag == '%' ? statement(p) : make(p, NODE_OUTPUT, expression(p), NULL);
		close_tag(p, tag == '%' ? "%}" : "}}");
	}
	if (ends)
		template_fail(p->t, begin, "a block has no end, expected '%s'", *ends);
	p->depth--;
	return first;
}

struct template *template_read(const char *named_by, size_t n, const char *text)
{
	struct template *t = xalloc(1, sizeof *t);
	struct parser p = { .t = t };

	t->name = named_by;
	p.s = t->s = xalloc(n + 1, 1);
	if (utf8_valid(text, n) != n)
		die("%s: is not valid UTF-8", named_by);
	for (size_t i = 0; i < n; i++)		/* newlines become \n, and the last is removed */
		if (text[i] != '\r')
			t->s[p.n++] = text[i];
		else if (i + 1 == n || text[i + 1] != '\n')
			t->s[p.n++] = '\n';
	p.n -= p.n && t->s[p.n - 1] == '\n';
	t->s[p.n] = '\0';
	t->statements = block(&p, NULL);
	return t;
}

void template_free(struct template *t)
{
	for (struct node *n = t->last, *before; n; n = before) {
		before = n->before;
		json_decref(n->value);
		free(n);
	}
	free(t->s);
	free(t);
}
