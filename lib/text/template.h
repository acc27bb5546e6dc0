/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * template.h -- chat templates: the part of Jinja that templates of models use
 *
 * A template is a text with statements {% %}, outputs {{ }} and comments {# #}. It is run with variables,
 * and gives a text, byte for byte the one of jinja2 with the settings of transformers: trim_blocks and
 * lstrip_blocks are on, and one newline at the end of the template is removed.
 *
 * Statements: set, for (with a condition), if. Operators, tests, filters, methods and functions are rows of
 * the table in template_call.c. Everything else (macros, blocks, tuples, fractions, ...) is refused by name
 * and line when the template is read. What depends on values, such as printing a range, is refused in a run.
 *
 * Limits, so that every template ends: TEMPLATE_STEPS evaluations (8 bytes of text count as one),
 * TEMPLATE_DEPTH levels of nesting of what is read, compared and printed, and numbers of 64 bits.
 *
 *	struct template *t = template_read(name, n, text);
 *
 *	text = template_run(t, variables, date, &n);	any number of times
 *	template_free(t);
 *
 * All errors are fatal. The message is "NAME:LINE: what is wrong", with the line of the template; of a
 * template that is not UTF-8 it has no line.
 *
 * Source: https://jinja.palletsprojects.com/en/stable/templates (version 3.1);
 * https://github.com/huggingface/transformers (utils/chat_template_utils.py).
 */
#ifndef TEXT_TEMPLATE_H
#define TEXT_TEMPLATE_H
#include <jansson.h>
#include <stddef.h>

enum { TEMPLATE_STEPS = 20000000, TEMPLATE_DEPTH = 200 };

struct template;

/* Reads a template of n bytes, which must be UTF-8. name: for messages, borrowed. */
struct template *template_read(const char *name, size_t n, const char *text);
void template_free(struct template *t);

/* The text that the template makes of the variables, members of an object; *n is its length. The caller
 * frees it. date: "YYYY-MM-DD", the day of strftime_now(), at midnight; NULL: a call is an error. */
char *template_run(const struct template *t, const json_t *variables, const char *date, size_t *n);
#endif
