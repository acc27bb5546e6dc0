/* SPDX-License-Identifier: GPL-3.0-or-later */
/* option.c -- option tables: parse, help, history; see option.h */
#include "base/option.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/thread.h"
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct option_list layers;
uint64_t seed;
const char *output_path;

enum { ROWS = 64, FIRST = 256 };
static size_t thread_count;
static char *history;

static const struct option_row common[] = {
	{ 0, "", OPTION_HEADING, NULL, NULL, "Common options", NULL, NULL, false },
	{ 'o', "output", OPTION_FILE, &output_path, "FILE", "write FILE, whole or not at all, instead of standard output", NULL, NULL, true },
	{ 'j', "threads", OPTION_SIZE, &thread_count, "N", "threads (default: what the machine grants); the result does not depend on it", NULL, NULL, true },
	{ 'q', "quiet", OPTION_BOOL, &quiet, NULL, "no progress, tables or warnings", NULL, NULL, true },
	{ 'v', "verbose", OPTION_BOOL, &verbose, NULL, "say more, and the peak memory at the end", NULL, NULL, true },
	{ 'h', "help", OPTION_BOOL, NULL, NULL, "show this", NULL, NULL, true },
	{ 'V', "version", OPTION_BOOL, NULL, NULL, "show the version", NULL, NULL, true },
	{ 0, NULL, OPTION_END, NULL, NULL, NULL, NULL, NULL, false },
};

static bool takes_argument(const struct option_row *o)
{
	return o->type != OPTION_BOOL;
}

static void show_default(const struct option_row *o)
{
	switch (o->type) {
	case OPTION_SIZE: if (*(size_t *)o->var) printf(" [%zu]", *(size_t *)o->var); break;
	case OPTION_REAL: if (!isnan(*(double *)o->var)) printf(" [%g]", *(double *)o->var); break;
	case OPTION_TEXT: if (*(const char **)o->var) printf(" [%s]", *(const char **)o->var); break;
	case OPTION_CHOICE: if (*(int *)o->var >= 0) printf(" [%s]", o->choices[*(int *)o->var]); break;
	default: break;
	}
}

static void help_rows(const struct option_row *rows)
{
	for (const struct option_row *o = rows; o->type != OPTION_END; o++) {
		char left[160];
		size_t n;

		if (o->type == OPTION_HEADING) {
			printf("\n%s:\n", o->help);
			continue;
		}
		n = (size_t)snprintf(left, sizeof left, "  %c%c%s --%s%s", o->key ? '-' : ' ', o->key ? o->key : ' ',
			o->key ? "," : " ", o->name, takes_argument(o) ? "=" : "");
		if (o->type == OPTION_CHOICE)
			for (const char *const *c = o->choices; *c && n < sizeof left; c++)
				n += (size_t)snprintf(left + n, sizeof left - n, "%s%s", c == o->choices ? "" : "|", *c);
		else if (takes_argument(o))
			snprintf(left + n, sizeof left - n, "%s", o->arg);
		if (strlen(left) > 29)
			printf("%s\n%30s", left, "");
		else
			printf("%-30s", left);
		printf("%s", o->help);
		if (o->var)
			show_default(o);
		putchar('\n');
	}
}

/* Words of a paragraph in lines of at most 80 columns. */
static void wrap(const char *text)
{
	size_t column = 0;

	for (const char *s = text; *s;) {
		size_t n = strcspn(s, " \n");

		if (column && column + 1 + n > 80) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%s%.*s", column ? " " : "", (int)n, s);
		s += n;
		s += strspn(s, " \n");
	}
	putchar('\n');
}

static void help(const struct tool *t, const struct option_row *rows)
{
	printf("usage: %s [OPTION]... %s\n%s\n", t->name, t->operands, t->brief);
	if (t->about) {
		putchar('\n');
		wrap(t->about);
	}
	if (rows->type != OPTION_END && rows->type != OPTION_HEADING)
		printf("\nOptions:\n");
	help_rows(rows);
	help_rows(common);
	if (t->examples)
		printf("\nExamples:\n%s\n", t->examples);
	exit(fflush(stdout) || ferror(stdout) ? 1 : 0);
}

static int choice(const struct option_row *o, const char *s)
{
	char all[256] = "";
	size_t n = 0;

	for (int i = 0; o->choices[i]; i++) {
		if (!strcmp(o->choices[i], s))
			return i;
		if (n < sizeof all)
			n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", o->choices[i]);
	}
	misuse("--%s: '%s' is not one of %s", o->name, s, all);
}

static size_t size_of(const struct option_row *o, const char *s)
{
	char *end;
	uintmax_t v;
	int shift = 0;

	errno = 0;
	v = strtoumax(s, &end, 10);
	if (*end && strchr("KMG", *end))
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	if (end == s || *end || errno || *s == '-' || v > SIZE_MAX >> shift)
		misuse("--%s: '%s' is not a whole number", o->name, s);
	return (size_t)v << shift;
}

static void set(const struct option_row *o, const char *s)
{
	char *end = NULL;

	errno = 0;
	if (o->given)
		*o->given = true;
	switch (o->type) {
	case OPTION_BOOL:
		*(bool *)o->var = true;
		break;
	case OPTION_TEXT: case OPTION_FILE:
		*(const char **)o->var = s;
		break;
	case OPTION_CHOICE:
		*(int *)o->var = choice(o, s);
		break;
	case OPTION_SIZE:
		*(size_t *)o->var = size_of(o, s);
		break;
	case OPTION_REAL:
		*(double *)o->var = strtod(s, &end);
		if (end == s || *end || errno || !isfinite(*(double *)o->var))
			misuse("--%s: '%s' is not a number", o->name, s);
		break;
	case OPTION_LIST: {
		struct option_list *l = o->var;

		l->text = realloc(l->text, (l->n + 1) * sizeof *l->text);
		if (!l->text)
			die("out of memory");
		l->text[l->n++] = s;
		break;
	}
	default:
		break;
	}
}

static void put_quoted(FILE *f, const char *s)
{
	if (*s && !s[strcspn(s, " \t\n\"'\\$&|;<>()*?#~`[]{}!")]) {
		fputs(s, f);
		return;
	}
	fputc('\'', f);
	for (; *s; s++)
		*s == '\'' ? fputs("'\\''", f) : fputc(*s, f);
	fputc('\'', f);
}

/* One form for one meaning: rows in table order, values as they were given last. */
static void write_history(const struct tool *t, const struct option_row *rows, const char *const value[])
{
	size_t n;
	FILE *f = open_memstream(&history, &n);

	if (!f)
		die("out of memory");
	fprintf(f, "%s %s", t->name, PTQ_VERSION);
	for (size_t i = 0; rows[i].type != OPTION_END; i++) {
		const struct option_row *o = rows + i;

		if (!value[i] || o->neutral || o->type == OPTION_FILE)
			continue;
		if (o->type == OPTION_LIST) {
			const struct option_list *l = o->var;

			for (size_t k = 0; k < l->n; k++) {
				fprintf(f, " --%s ", o->name);
				put_quoted(f, l->text[k]);
			}
			continue;
		}
		fprintf(f, " --%s", o->name);
		if (takes_argument(o)) {
			fputc(' ', f);
			put_quoted(f, value[i]);
		}
	}
	if (ferror(f) || fclose(f) || !history)	/* NULL: it was to be shortened, and that failed */
		die("out of memory");
}

const char *option_history(void)
{
	return history ? history : program;
}

static void say_memory(void)
{
	struct rusage u;

	if (verbose && !getrusage(RUSAGE_SELF, &u))
		fprintf(stderr, "%s: peak memory %.1f MiB, %.2f s of processor time\n", program, (double)u.ru_maxrss / 1024,
			(double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec);
}

static size_t add_rows(struct option *lng, char *shrt, const struct option_row *rows, int first)
{
	size_t n = 0;

	for (; rows[n].type != OPTION_END; n++) {
		const struct option_row *o = rows + n;

		lng[n] = (struct option){ o->type == OPTION_HEADING ? "\1" : o->name, takes_argument(o), NULL, first + (int)n };
		if (o->key)
			sprintf(shrt + strlen(shrt), "%c%s", o->key, takes_argument(o) ? ":" : "");
	}
	return n;
}

/* The row a getopt code stands for: codes of long options count through both tables, short ones are letters. */
static const struct option_row *row_of(int c, const struct option_row *rows, size_t n)
{
	if (c >= FIRST)
		return (size_t)(c - FIRST) < n ? rows + (c - FIRST) : common + ((size_t)(c - FIRST) - n);
	for (const struct option_row *o = rows; o->type != OPTION_END; o++)
		if (o->key == c)
			return o;
	for (const struct option_row *o = common; o->type != OPTION_END; o++)
		if (o->key == c)
			return o;
	return NULL;
}

const char **option_parse(int argc, char *argv[], const struct tool *tool, const struct option_row *rows, size_t *n)
{
	static const char *standard_input[] = { "-", NULL };
	struct option lng[ROWS] = { 0 };
	char shrt[2 * ROWS + 2] = ":";
	const char *value[ROWS] = { 0 };
	size_t own;
	int c;

	setlocale(LC_ALL, "C");
	program = tool->name;
	own = add_rows(lng, shrt, rows, FIRST);
	add_rows(lng + own, shrt, common, FIRST + (int)own);

	while (optind <= argc && (c = getopt_long(argc, argv, shrt, lng, NULL)) != -1) {
		const struct option_row *o;

		if (c == ':')
			misuse("%s needs an argument", argv[optind - 1]);
		if (c == '?' && optopt && optopt < FIRST)
			misuse("there is no option -%c", optopt);
		if (c == '?')
			misuse(optopt ? "%s takes no argument" : "there is no option %s", argv[optind - 1]);
		o = row_of(c, rows, own);
		if (o->key == 'h' && !o->var)
			help(tool, rows);
		if (o->key == 'V' && !o->var) {
			printf("%s (ptqtools) %s\n", tool->name, PTQ_VERSION);
			exit(fflush(stdout) ? 1 : 0);
		}
		set(o, optarg);
		if (o >= rows && o < rows + own)
			value[o - rows] = optarg ? optarg : "";
	}
	*n = (size_t)(argc - optind);
	if (*n > tool->max_operands)
		misuse("there is one operand too many: %s", argv[optind + (int)tool->max_operands]);
	threads_init((int)thread_count);
	cpu_check();
	write_history(tool, rows, value);
	atexit(say_memory);
	if (!*n && tool->max_operands) {
		*n = 1;
		return standard_input;
	}
	return (const char **)argv + optind;
}

bool option_layers_given(void)
{
	return layers.n > 0;
}

bool option_layer(const char *path)
{
	bool any = false, match = false;

	for (size_t i = 0; i < layers.n; i++) {
		const char *glob = layers.text[i];
		bool exclude = *glob == '!';
		bool hit;

		glob += exclude;
		hit = !fnmatch(glob + (*glob == '/'), path + (*path == '/'), 0);
		if (exclude && hit)
			return false;
		any |= !exclude;
		match |= !exclude && hit;
	}
	return match || !any;
}
