/* SPDX-License-Identifier: GPL-3.0-or-later */
/* regex.c -- see regex.h */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/dialect.h"
#include "text/utf8.h"

enum {
	PATTERN_MAX = 1 << 16,		/* bytes of a pattern */
	STEPS_MAX = 10000000,		/* of one search */
	HEAP_MAX = 256 << 10,		/* KiB of a search */
	STACK_MAX = 1 << 20,		/* bytes of stack of machine code; beyond it the interpreter runs */
	/* Machine code pays off for texts of at least this many bytes, or after this many searches. */
	JIT_BYTES = 4096, JIT_SEARCHES = 1024,
};

struct regex {
	const char *name;
	char *pattern;			/* in PCRE2's syntax */
	pcre2_general_context *memory;
	pcre2_compile_context *compile;
	pcre2_match_context *limits;
	pcre2_match_data *match;
	pcre2_jit_stack *stack;
	pcre2_code *code;
	size_t searches;
	enum { JIT_NOT_YET, JIT_DONE, JIT_NONE } jit;
};

static void *give(size_t n, void *data)
{
	(void)data;
	return malloc(n);
}

static void take(void *p, void *data)
{
	(void)data;
	free(p);
}

static _Noreturn void no_memory(const struct regex *r)
{
	die("%s: pattern '%.100s': not enough memory", r->name, r->pattern);
}

static void compile(struct regex *r, enum dialect dialect)
{
	uint32_t options = dialect == DIALECT_LITERAL ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE |
		PCRE2_NEVER_BACKSLASH_C;
	size_t offset;
	int error;

	pcre2_set_newline(r->compile, PCRE2_NEWLINE_LF);
	r->code = pcre2_compile((PCRE2_SPTR)r->pattern, strlen(r->pattern), options | PCRE2_UTF, &error,
		&offset, r->compile);
	if (!r->code) {
		char text[160] = "";

		pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
		die("%s: PCRE2 refuses the pattern '%.100s': at byte %zu: %s", r->name, r->pattern, offset,
			text);
	}
}

struct regex *regex_make(const char *name, const char *pattern, enum dialect dialect)
{
	struct regex *r = xalloc(1, sizeof *r);

	if (strlen(pattern) > PATTERN_MAX)
		die("%s: a pattern has %zu bytes, expected at most %d", name, strlen(pattern), PATTERN_MAX);
	r->name = name;
	r->pattern = dialect == DIALECT_ONIGURUMA ? dialect_translate(name, pattern) : xformat("%s", pattern);
	r->memory = pcre2_general_context_create(give, take, NULL);
	r->compile = r->memory ? pcre2_compile_context_create(r->memory) : NULL;
	r->limits = r->memory ? pcre2_match_context_create(r->memory) : NULL;
	if (!r->compile || !r->limits)
		no_memory(r);
	compile(r, dialect);
	r->match = pcre2_match_data_create_from_pattern(r->code, r->memory);
	if (!r->match)
		no_memory(r);
	pcre2_set_match_limit(r->limits, STEPS_MAX);
	pcre2_set_heap_limit(r->limits, HEAP_MAX);
	return r;
}

/* Compiles to machine code, if the library supports it. */
static void compile_further(struct regex *r)
{
	r->jit = JIT_NONE;
	if (pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE))
		return;
	r->stack = pcre2_jit_stack_create(32 << 10, STACK_MAX, r->memory);
	if (!r->stack)
		no_memory(r);
	pcre2_jit_stack_assign(r->limits, NULL, r->stack);
	r->jit = JIT_DONE;
}

bool regex_find(const struct regex *regex, size_t n, const char *s, size_t from, size_t *begin, size_t *end)
{
	struct regex *r = (struct regex *)regex;	/* for match data and machine code */
	PCRE2_SPTR text = (PCRE2_SPTR)s;
	const size_t *found;
	int got = PCRE2_ERROR_JIT_STACKLIMIT;

	if (r->jit == JIT_NOT_YET && (n >= JIT_BYTES || r->searches++ >= JIT_SEARCHES))
		compile_further(r);
	if (r->jit == JIT_DONE)
		got = pcre2_jit_match(r->code, text, n, from, 0, r->match, r->limits);
	if (got == PCRE2_ERROR_JIT_STACKLIMIT)
		got = pcre2_match(r->code, text, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, r->match,
			r->limits);
	if (got == PCRE2_ERROR_NOMATCH)
		return false;
	if (got < 0) {
		char why[160] = "";

		pcre2_get_error_message(got, (PCRE2_UCHAR *)why, sizeof why);
		die("%s: pattern '%.100s': a search in the text is given up: %s", r->name, r->pattern, why);
	}
	found = pcre2_get_ovector_pointer(r->match);
	*begin = found[0];
	*end = found[1];
	return true;
}

bool regex_next(const struct regex *r, size_t n, const char *s, struct regex_place *at, size_t *begin,
	size_t *end)
{
	size_t from = at->from;
	bool valid;

	while (from <= n && regex_find(r, n, s, from, begin, end)) {
		if (*begin != *end || !at->again || *end != at->from) {
			*at = (struct regex_place){ *end, true };
			return true;
		}
		from = *end < n ? *end + utf8_character(s + *end, n - *end, &valid) : n + 1;
	}
	return false;
}

void regex_free(struct regex *r)
{
	if (!r)
		return;
	pcre2_jit_stack_free(r->stack);
	pcre2_match_data_free(r->match);
	pcre2_code_free(r->code);
	pcre2_match_context_free(r->limits);
	pcre2_compile_context_free(r->compile);
	pcre2_general_context_free(r->memory);
	free(r->pattern);
	free(r);
}
