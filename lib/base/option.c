/* SPDX-License-Identifier: GPL-3.0-or-later */
/* option.c -- option tables: parse, help, history; see option.h */
#include "base/option.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/number.h"
#include "base/selection.h"
#include "base/thread.h"
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

uint64_t seed;
const char *output_path;

enum { ROWS = 64, FIRST = 256 };
static size_t thread_count;
static const struct tool *tool;
static const struct option_row *table;
static const char *given[ROWS];		/* the value of each row, as it was given last, or NULL */
static char *history, *note;

static const struct option_row common[] = {
	{ 0, "", OPTION_HEADING, NULL, NULL, .help = "Common options" },
	{ 'o', "output", OPTION_FILE, &output_path, "FILE", .help = "write FILE, whole or not at all, instead of standard output", .neutral = true },
	{ 'j', "threads", OPTION_SIZE, &thread_count, "N",
		.help = "threads, at most 8 per processor (default: what the machine grants); changes no result", .neutral = true },
	{ 'q', "quiet", OPTION_BOOL, &quiet, NULL, .help = "no progress, tables or warnings", .neutral = true },
	{ 'v', "verbose", OPTION_BOOL, &verbose, NULL, .help = "say more, and the peak memory at the end", .neutral = true },
	{ 'h', "help", OPTION_BOOL, NULL, NULL, .help = "show the options", .neutral = true },
	{ 'V', "version", OPTION_BOOL, NULL, NULL, .help = "show the version", .neutral = true },
	{ .type = OPTION_END },
};

static bool takes_argument(const struct option_row *o)
{
	return o->type != OPTION_BOOL;
}

static char *size_text(size_t v)
{
	for (int shift = 30; v && shift >= 20; shift -= 10)
		if (v % ((size_t)1 << shift) == 0)
			return xformat("%zu%c", v >> shift, shift == 30 ? 'G' : 'M');
	return xformat("%zu", v);
}

/* "128", "512M", or nothing: what holds where the option is not given. */
static char *default_of(const struct option_row *o)
{
	switch (o->var ? o->type : OPTION_BOOL) {
	case OPTION_SIZE:	return *(size_t *)o->var ? size_text(*(size_t *)o->var) : xformat("%s", "");
	case OPTION_REAL:	return isnan(*(double *)o->var) ? xformat("%s", "") : xformat("%g", *(double *)o->var);
	case OPTION_TEXT:	return xformat("%s", *(const char **)o->var ? *(const char **)o->var : "");
	case OPTION_CHOICE:	return xformat("%s", *(int *)o->var >= 0 ? o->choices[*(int *)o->var] : "");
	default:		return xformat("%s", "");
	}
}

/* "0 to 1000000", "2 to 16M"; NULL: any */
static char *range_of(const struct option_row *o)
{
	char *most, *y;

	if (!(o->most > 0))
		return NULL;
	most = o->type == OPTION_SIZE ? size_text((size_t)o->most) : xformat("%.15g", o->most);
	y = xformat("%.15g to %s", o->least, most);
	free(most);
	return y;
}

/* " [128]", " [0.01, 0 to 1000000]", " [2 to 16M]" */
static void show_values(const struct option_row *o)
{
	char *value = default_of(o), *range = range_of(o);

	if (*value || range)
		printf(" [%s%s%s]", value, *value && range ? ", " : "", range ? range : "");
	free(value), free(range);
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
		show_values(o);
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

static _Noreturn void end_of_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
	exit(0);
}

static _Noreturn void help(const struct tool *t, const struct option_row *rows)
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
	printf("\nWhole numbers may end in K, M or G: times 2^10, 2^20, 2^30.\n");
	if (t->examples)
		printf("\nExamples:\n%s\n", t->examples);
	end_of_output();
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

/* Not a number of this kind, or outside the range. */
static _Noreturn void no_number(const struct option_row *o, const char *s)
{
	const bool whole = o->type == OPTION_SIZE;
	const char *kind = whole ? "a whole number" : "a number", *hint = whole && strpbrk(s, "kmg") ? "; K, M or G may follow it" : "";
	char *range = range_of(o);

	misuse("--%s: '%s' is not %s%s%s%s", o->name, s, kind, range ? " from " : "", range ? range : "", hint);
}

static bool in_range(const struct option_row *o, double v)
{
	return !(o->most > 0) || (v >= o->least && v <= o->most);
}

static size_t size_of(const struct option_row *o, const char *s)
{
	size_t v = 0;
	const char *end = number_size(s, &v);
	int shift = 0;

	if (end && *end && strchr("KMG", *end))
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	if (!end || *end || v > SIZE_MAX >> shift)
		no_number(o, s);
	v <<= shift;
	if (!in_range(o, (double)v))
		no_number(o, s);
	return v;
}

static double real_of(const struct option_row *o, const char *s)
{
	double v = 0;
	const char *end = number_real(s, &v);

	if (!end || *end || !in_range(o, v))
		no_number(o, s);
	return v;
}

static void set(const struct option_row *o, const char *s)
{
	switch (o->type) {
	case OPTION_BOOL:
		*(bool *)o->var = true;
		break;
	case OPTION_FILE:
		if (!*s)
			misuse("--%s: the name of a file was wanted, not an empty word", o->name);
		*(const char **)o->var = s;
		break;
	case OPTION_TEXT:
		*(const char **)o->var = s;
		break;
	case OPTION_CHOICE:
		*(int *)o->var = choice(o, s);
		break;
	case OPTION_SIZE:
		*(size_t *)o->var = size_of(o, s);
		break;
	case OPTION_REAL:
		*(double *)o->var = real_of(o, s);
		break;
	case OPTION_SELECTION:
		selection_add(o->var, s);
		break;
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

/* The row of the table that has this name, or NULL. */
static const struct option_row *named(const char *name, size_t n)
{
	for (const struct option_row *o = table; o->type != OPTION_END; o++)
		if (o->type != OPTION_HEADING && strlen(o->name) == n && !strncmp(o->name, name, n))
			return o;
	return NULL;
}

bool option_given(const char *name)
{
	const struct option_row *o = named(name, strlen(name));

	return o && given[o - table];
}

void option_idle(size_t n, const struct option_idle row[n])
{
	char *said = NULL;

	for (size_t i = 0; i < n; i++) {
		char *these = NULL;

		for (const char *s = row[i].names; *s; s += strcspn(s, " "), s += strspn(s, " ")) {
			const struct option_row *o = named(s, strcspn(s, " "));
			char *before = these;

			if (!o)
				die("option_idle(): no row is named as the first word of '%s'", s);
			if (!row[i].idle || !given[o - table])
				continue;
			given[o - table] = NULL;
			these = xformat("%s%s--%s", before ? before : "", before ? ", " : "", o->name);
			free(before);
		}
		if (these) {
			char *before = said;

			said = xformat("%s%s%s (%s)", before ? before : "", before ? "; " : "", these, row[i].why);
			free(before);
		}
		free(these);
	}
	if (said)
		warn("without effect here: %s", said);
	free(said);
}

/* 2K and 2048, 0.10 and 0.1 are one number; words stand as they were given. */
static void put_value(FILE *f, const struct option_row *o, const char *s)
{
	char number[32];
	double v;

	if (o->type == OPTION_SIZE) {
		fprintf(f, "%zu", *(size_t *)o->var);
		return;
	}
	if (o->type != OPTION_REAL) {
		put_quoted(f, s);
		return;
	}
	v = *(double *)o->var;
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(number, sizeof number, "%.*g", digits, v);
		if (!(strtod(number, NULL) < v) && !(strtod(number, NULL) > v))
			break;
	}
	fputs(number, f);
}

/* Rows in table order, values as they were given last. */
static void write_history(void)
{
	size_t n;
	FILE *f = open_memstream(&history, &n);

	if (!f)
		die("out of memory");
	fprintf(f, "%s %s", tool->name, PTQ_VERSION);
	for (size_t i = 0; table[i].type != OPTION_END; i++) {
		const struct option_row *o = table + i;

		if (!given[i] || o->neutral || o->type == OPTION_FILE)
			continue;
		if (o->type == OPTION_SELECTION) {
			const struct selection *l = o->var;

			for (size_t k = 0; k < l->n; k++) {
				fprintf(f, " --%s ", o->name);
				put_quoted(f, l->pattern[k].text);
			}
			continue;
		}
		fprintf(f, " --%s", o->name);
		if (takes_argument(o)) {
			fputc(' ', f);
			put_value(f, o, given[i]);
		}
	}
	if (note)
		fputs(note, f);
	if (ferror(f) || fclose(f) || !history)	/* NULL: it was to be shortened, and that failed */
		die("out of memory");
}

const char *option_history(void)
{
	if (!history && tool)
		write_history();
	return history ? history : program;
}

void option_history_note(const char *name, const char *value)
{
	char *before = note;

	note = xformat("%s %s:%s", before ? before : "", name, value);
	free(before);
}

static void say_memory(void)
{
	struct rusage u;

	if (verbose && !getrusage(RUSAGE_SELF, &u))
		fprintf(stderr, "%s: peak memory %.1f MiB, %.2f s of processor time\n", program, (double)u.ru_maxrss / 1024,
			(double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec);
}

/* The rows of a table for getopt_long(), and their earlier names; *at: how many there are so far. */
static void add_rows(struct option lng[], size_t *at, char *shrt, const struct option_row *rows, int first)
{
	for (int n = 0; rows[n].type != OPTION_END; n++) {
		const struct option_row *o = rows + n;

		if (o->type == OPTION_HEADING)
			continue;
		lng[(*at)++] = (struct option){ o->name, takes_argument(o), NULL, first + n };
		if (o->alias)
			lng[(*at)++] = (struct option){ o->alias, takes_argument(o), NULL, first + n };
		if (o->key)
			sprintf(shrt + strlen(shrt), "%c%s", o->key, takes_argument(o) ? ":" : "");
	}
}

static size_t rows_of(const struct option_row *rows)
{
	size_t n = 0;

	while (rows[n].type != OPTION_END)
		n++;
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

/* getopt_long() has refused a word: why. */
static _Noreturn void refuse(int c, const char *word, const struct option lng[])
{
	const char *name = word + 2;
	size_t n = strcspn(name, "="), found = 0;
	char *could = NULL;

	if (c == ':')
		misuse("%s needs an argument", word);
	if (optopt && optopt < FIRST)
		misuse("there is no option -%c", optopt);
	if (optopt)
		misuse("%.*s takes no argument", (int)n + 2, word);
	for (; lng->name; lng++)
		if (!strncmp(lng->name, name, n)) {
			char *before = could;

			could = xformat("%s%s--%s", before ? before : "", found++ ? ", " : "", lng->name);
			free(before);
		}
	if (found > 1)
		misuse("--%.*s is ambiguous: %s", (int)n, name, could);
	misuse("there is no option %s", word);
}

const char **option_parse(int argc, char *argv[], const struct tool *t, const struct option_row *rows, size_t *n)
{
	static const char *standard_input[] = { "-", NULL };
	struct option lng[ROWS] = { 0 };
	char shrt[2 * ROWS + 2] = ":";
	size_t own = rows_of(rows), all = 0;
	int c;

	setlocale(LC_ALL, "C");
	program = t->name;
	tool = t;
	table = rows;
	catch_signals();
	add_rows(lng, &all, shrt, rows, FIRST);
	add_rows(lng, &all, shrt, common, FIRST + (int)own);

	while (optind <= argc && (c = getopt_long(argc, argv, shrt, lng, NULL)) != -1) {
		const struct option_row *o;

		if (c == ':' || c == '?')
			refuse(c, argv[optind - 1], lng);
		o = row_of(c, rows, own);
		if (o->key == 'h' && !o->var)
			help(t, rows);
		if (o->key == 'V' && !o->var) {
			printf("%s (ptqtools) %s\n", t->name, PTQ_VERSION);
			end_of_output();
		}
		set(o, optarg);
		if (o >= rows && o < rows + own)
			given[o - rows] = optarg ? optarg : "";
	}
	*n = (size_t)(argc - optind);
	if (*n > t->max_operands)
		misuse("there is one operand too many: %s", argv[optind + (int)t->max_operands]);
	threads_init(thread_count);
	cpu_check();
	atexit(say_memory);
	if (!*n && t->max_operands && !t->optional) {
		*n = 1;
		return standard_input;
	}
	return (const char **)argv + optind;
}
