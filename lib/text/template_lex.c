/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_lex.c -- tokens of a template, without the white space that tags remove; see template_private.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "text/template_private.h"
#include "text/utf8.h"

struct lexer {
	struct template *t;
	const char *s;
	size_t n, at;
	int line, nested;		/* nested: open brackets */
	struct token *token;
	size_t tokens, room;
};

size_t template_space(const char *s, size_t n)
{
	static const char wide[] = "\xc2\x85\0\xc2\xa0\0\xe1\x9a\x80\0\xe2\x80\xa8\0\xe2\x80\xa9\0"
		"\xe2\x80\xaf\0\xe2\x81\x9f\0\xe3\x80\x80\0";

	if (!n)
		return 0;
	if (!(*s & 0x80))
		return (*s >= '\t' && *s <= '\r') || (*s >= 0x1c && *s <= ' ');
	if (n >= 3 && !memcmp(s, "\xe2\x80", 2) && (unsigned char)s[2] >= 0x80 && (unsigned char)s[2] <= 0x8a)
		return 3;
	for (const char *w = wide; *w; w += strlen(w) + 1)
		if (n >= strlen(w) && !memcmp(s, w, strlen(w)))
			return strlen(w);
	return 0;
}

static struct token *add(struct lexer *l, enum token_kind kind, size_t begin, size_t end)
{
	if (l->tokens == l->room) {
		struct token *more = template_take(&l->t->arena, l->room = 2 * l->room + 64, sizeof *more);

		if (l->tokens)
			memcpy(more, l->token, l->tokens * sizeof *more);
		l->token = more;
	}
	l->token[l->tokens] = (struct token){ kind, l->line, { l->s + begin, end - begin }, { 0 } };
	return l->token + l->tokens++;
}

static void advance(struct lexer *l, size_t to)
{
	for (; l->at < to; l->at++)
		l->line += l->s[l->at] == '\n';
}

static void skip_space(struct lexer *l)
{
	for (size_t n; (n = template_space(l->s + l->at, l->n - l->at)); )
		advance(l, l->at + n);
}

static bool starts(const struct lexer *l, size_t at, const char *with)
{
	return l->n - at >= strlen(with) && !memcmp(l->s + at, with, strlen(with));
}

static bool is_blank(const struct lexer *l, size_t begin, size_t end)
{
	for (size_t n; begin < end; begin += n)
		if (!(n = template_space(l->s + begin, end - begin)))
			return false;
	return true;
}

/* The text before a tag, which has a sign after its two characters; true: it is an output. */
static void add_text(struct lexer *l, size_t end, bool output, char sign)
{
	size_t begin = l->at, cut = end;

	if (sign == '-') {
		while (cut > begin) {
			size_t from = cut - 1;

			while (from > begin && (l->s[from] & 0xc0) == 0x80)
				from--;
			if (template_space(l->s + from, cut - from) != cut - from)
				break;
			cut = from;
		}
	} else if (sign != '+' && !output) {
		while (cut > begin && l->s[cut - 1] != '\n')
			cut--;
		if ((cut == begin && begin && l->s[begin - 1] != '\n') || !is_blank(l, cut, end))
			cut = end;
	}
	if (cut > begin)
		add(l, TOKEN_TEXT, begin, cut);
	advance(l, end);
}

static void skip_comment(struct lexer *l, int line)
{
	const char *end = memmem(l->s + l->at, l->n - l->at, "#}", 2);
	char sign;

	if (l->at == l->n)	/* as jinja2 */
		return;
	if (!end)
		template_refuse(l->t, line, "a comment has no end, expected '#}'");
	sign = end > l->s + l->at ? end[-1] : '\0';
	advance(l, (size_t)(end - l->s) + 2);
	if (sign == '-')
		skip_space(l);
	else if (sign != '+' && starts(l, l->at, "\n"))
		advance(l, l->at + 1);
}

static uint32_t hex(struct lexer *l, const char *s, size_t n)
{
	char digits[9] = "", *end;

	memcpy(digits, s, n);
	if (strspn(digits, "0123456789abcdefABCDEF") != n)
		template_refuse(l->t, l->line, "an escape in a string needs %zu hexadecimal digits", n);
	return (uint32_t)strtoul(digits, &end, 16);
}

/* One escape of a string, at its backslash; `end`: of the string. Returns the bytes after the backslash. */
static size_t unescape(struct lexer *l, const char *s, const char *end, char **to)
{
	static const char plain[] = "\\\\''\"\"n\nt\tr\rb\bf\fa\av\v";
	const size_t digits = s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
	uint32_t c = 0;
	size_t n = 1;

	if (s[1] == '\n')
		return 1;
	for (const char *p = plain; *p; p += 2)
		if (s[1] == *p) {
			*(*to)++ = p[1];
			return 1;
		}
	if ((s[1] & 0x80) || s[1] == 'N')
		template_refuse(l->t, l->line, "the escape '\\%s' in a string is not supported",
			s[1] == 'N' ? "N" : "' of a character beyond ASCII '");
	if (digits) {
		if ((size_t)(end - s) < 2 + digits)
			template_refuse(l->t, l->line, "an escape in a string is cut short");
		c = hex(l, s + 2, digits);
		n = 1 + digits;
	} else if (s[1] >= '0' && s[1] <= '7') {
		for (n = 0; n < 3 && s[1 + n] >= '0' && s[1 + n] <= '7'; n++)
			c = 8 * c + (uint32_t)(s[1 + n] - '0');
	} else {
		*(*to)++ = '\\', *(*to)++ = s[1];	/* as Python keeps an unknown escape */
		return 1;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		template_refuse(l->t, l->line, "an escape in a string is no character");
	*to += utf8_put(*to, c);
	return n;
}

static void add_string(struct lexer *l)
{
	const char quote = l->s[l->at];
	size_t end = l->at + 1;
	struct token *k;
	char *text, *to;

	while (end < l->n && l->s[end] != quote)
		end += l->s[end] == '\\' ? 2 : 1;
	if (end >= l->n)
		template_refuse(l->t, l->line, "a string has no end, expected %c", quote);
	to = text = template_take(&l->t->arena, 2 * (end - l->at), 1);
	for (size_t i = l->at + 1; i < end; i++)
		if (l->s[i] == '\\')
			i += unescape(l, l->s + i, l->s + end, &to);
		else
			*to++ = l->s[i];
	k = add(l, TOKEN_STRING, l->at, end + 1);
	k->value = value_text(text, (size_t)(to - text));
	advance(l, end + 1);
}

static size_t digits_at(const struct lexer *l, size_t at)
{
	size_t n = 0;

	while (at + n < l->n && l->s[at + n] >= '0' && l->s[at + n] <= '9')
		n++;
	return n;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void add_number(struct lexer *l)
{
	const size_t whole = digits_at(l, l->at);
	size_t n = whole, fraction = 0, power = 0, sign;
	const bool after_dot = l->at && l->s[l->at - 1] == '.';	/* a.0.1 has two items, not 0.1 */
	char text[64];
	struct token *k;

	if (!after_dot && starts(l, l->at + n, ".") && (fraction = digits_at(l, l->at + n + 1)))
		n += 1 + fraction;
	if (!after_dot && l->at + n < l->n && (l->s[l->at + n] | 32) == 'e') {
		sign = starts(l, l->at + n + 1, "+") || starts(l, l->at + n + 1, "-");
		if ((power = digits_at(l, l->at + n + 1 + sign)))
			n += 1 + sign + power;
	}
	if ((l->at + n < l->n && is_word(l->s[l->at + n])) || n >= sizeof text ||
	    (n == whole && whole > 1 && l->s[l->at] == '0'))
		template_refuse(l->t, l->line, "a number is not in plain decimal digits");
	memcpy(text, l->s + l->at, n);
	text[n] = '\0';
	k = add(l, TOKEN_NUMBER, l->at, l->at + n);
	errno = 0;
	k->value = fraction || power ? value_real(strtod(text, NULL)) :
		value_integer(strtoll(text, NULL, 10));
	if (errno == ERANGE)
		template_refuse(l->t, l->line, "the number %s is too large", text);
	advance(l, l->at + n);
}

static void add_operator(struct lexer *l)
{
	static const char *const operators[] = { "**", "//", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%",
		"~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";" };
	const char c = l->s[l->at];

	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		if (starts(l, l->at, operators[i])) {
			l->nested += c == '(' || c == '[' || c == '{';
			l->nested -= c == ')' || c == ']' || c == '}';
			if (l->nested < 0)
				template_refuse(l->t, l->line, "'%c' closes nothing", c);
			add(l, TOKEN_OPERATOR, l->at, l->at + strlen(operators[i]));
			advance(l, l->at + strlen(operators[i]));
			return;
		}
	template_refuse(l->t, l->line, c & 0x80 ? "a name has a character that is not ASCII" :
		"'%c' has no meaning in an expression", c);
}

/* The end of a tag at the current place, with what it removes after it. */
static bool add_end(struct lexer *l, bool output)
{
	const char *end = output ? "}}" : "%}";
	const char sign = l->s[l->at];
	const bool signed_end = (sign == '-' || (sign == '+' && !output)) && starts(l, l->at + 1, end);

	if (l->nested || !(signed_end || starts(l, l->at, end)))
		return false;
	add(l, output ? TOKEN_OUTPUT_END : TOKEN_BLOCK_END, l->at, l->at);
	advance(l, l->at + signed_end + 2);
	if (signed_end && sign == '-')
		skip_space(l);
	else if (!signed_end && !output && starts(l, l->at, "\n"))
		advance(l, l->at + 1);
	return true;
}

/* The tokens of a tag, after its begin. */
static void add_tag(struct lexer *l, bool output)
{
	const int line = l->line;

	add(l, output ? TOKEN_OUTPUT : TOKEN_BLOCK, l->at, l->at);
	for (size_t end; l->at < l->n; ) {
		const char c = l->s[l->at];

		if (add_end(l, output))
			return;
		if (template_space(l->s + l->at, l->n - l->at)) {
			skip_space(l);
		} else if (c >= '0' && c <= '9') {
			add_number(l);
		} else if (is_word(c)) {
			for (end = l->at; end < l->n && is_word(l->s[end]); end++)
				;
			add(l, TOKEN_NAME, l->at, end);
			advance(l, end);
		} else if (c == '\'' || c == '"') {
			add_string(l);
		} else {
			add_operator(l);
		}
	}
	template_refuse(l->t, line, "a tag has no end, expected '%s'", output ? "}}" : "%}");
}

/* Newlines become \n, and one at the end is removed. */
static char *normal(struct template *t, size_t *n, const char *text)
{
	char *s = template_take(&t->arena, *n + 1, 1);
	size_t k = 0;

	for (size_t i = 0; i < *n; i++)
		if (text[i] != '\r')
			s[k++] = text[i];
		else if (i + 1 == *n || text[i + 1] != '\n')
			s[k++] = '\n';
	*n = k && s[k - 1] == '\n' ? k - 1 : k;
	return s;
}

struct token *template_lex(struct template *t, size_t n, const char *text)
{
	struct lexer l = { .t = t, .n = n, .line = 1 };

	l.s = normal(t, &l.n, text);
	for (size_t i = l.at; i < l.n; ) {
		const char tag = i + 1 < l.n && l.s[i] == '{' ? l.s[i + 1] : '\0';
		const char sign = i + 2 < l.n ? l.s[i + 2] : '\0';

		if (tag != '{' && tag != '%' && tag != '#') {
			i++;
			continue;
		}
		add_text(&l, i, tag == '{', sign);
		advance(&l, i + 2 + (sign == '-' || sign == '+'));
		if (tag == '#')
			skip_comment(&l, l.line);
		else
			add_tag(&l, tag == '{');
		i = l.at;
	}
	if (l.at < l.n)
		add(&l, TOKEN_TEXT, l.at, l.n);
	add(&l, TOKEN_END, l.n, l.n);
	return l.token;
}
