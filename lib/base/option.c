/* SPDX-License-Identifier: GPL-3.0-or-later */
/* option.c -- see option.h */
#include "base/option.h"
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/help.h"
#include "base/history.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/replace.h"
#include "base/report.h"
#include "base/thread.h"
#include "base/usage.h"

enum { ROWS = 64, FIRST = 256, MAPPED = 1 << 20 };
static size_t thread_count;
static const char *output;
static const struct option_row *table;
static bool given[ROWS];		/* whether the option of the row was given */
static bool without_effect[ROWS];	/* whether option_without_effect() found it so */
static const char *value[ROWS];		/* in the history: the last given value, or a default for it */

static const struct option_row common[] = {
	{ .type = OPTION_HEADING, .help = "Common options" },
	{ 'o', "output", OPTION_FILE(&output), "FILE",
		"write to FILE, not to standard output", .neutral = true },
	{ 'j', "threads", OPTION_SIZE(&thread_count), "N",
		"number of threads (default: all processors)",
		.neutral = true },
	{ 'q', "quiet", OPTION_BOOL(&quiet), NULL,
		"no progress, no tables on standard error", .neutral = true },
	{ 'v', "verbose", OPTION_BOOL(&verbose), NULL, "more messages, and peak memory at the end",
		.neutral = true },
	{ 'h', "help", .type = OPTION_HELP, .help = "show the options", .neutral = true },
	{ 'V', "version", .type = OPTION_VERSION, .help = "show the version", .neutral = true },
	{ .type = OPTION_END },
};

/* -h, -V */
static _Noreturn void inform(enum option_type type, const struct tool *t, const struct option_row *rows)
{
	if (type == OPTION_HELP)
		help_print(t, rows, common);
	else
		printf("%s (ptqtools) %s\n", t->name, PTQ_VERSION);
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
	exit(0);
}

static unsigned word_of(const struct option_row *o, const char *s)
{
	char all[256] = "";
	size_t n = 0;

	for (unsigned i = 0; o->words[i]; i++) {
		if (!strcmp(o->words[i], s))
			return i;
		if (n < sizeof all)
			n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", o->words[i]);
	}
	misuse("--%s: '%s' is not one of %s", o->name, s, all);
}

/* Misuse: the text is not a number of this kind, or is out of range. */
static _Noreturn void no_number(const struct option_row *o, const char *s)
{
	const bool whole = o->type == OPTION_SIZE;
	const char *kind = whole ? "a whole number" : "a number";
	const char *hint = whole && strpbrk(s, "kmg") ? "; K, M or G may follow it" : "";
	char *range = option_range(o);

	misuse("--%s: '%s' is not %s%s%s%s", o->name, s, kind, range ? " from " : "",
		range ? range : "", hint);
}

static bool in_range(const struct option_row *o, double v)
{
	return !(o->max > 0) || (v >= o->min && v <= o->max);
}

static size_t size_of(const struct option_row *o, const char *s)
{
	size_t v = 0;
	const char *end = number_suffixed(s, &v);

	if (!end || *end || !in_range(o, (double)v))
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

void option_set(const struct option_row *o, const char *text)
{
	switch (o->type) {
	case OPTION_BOOL:
		*o->var.flag = text;
		break;
	case OPTION_EITHER:
		*o->var.flag = text && word_of(o, text);
		break;
	case OPTION_FILE:
		if (text && !*text)
			misuse("--%s: the name is empty, expected the name of a file", o->name);
		/* fall through */
	case OPTION_TEXT:
		*o->var.text = text;
		break;
	case OPTION_CHOICE:
		*o->var.choice = text ? word_of(o, text) : 0;
		break;
	case OPTION_SIZE:
		*o->var.size = text ? size_of(o, text) : 0;
		break;
	case OPTION_REAL:
		*o->var.real = text ? real_of(o, text) : 0;
		break;
	case OPTION_SELECTION:
		if (text)
			selection_add(o->var.selection, text);
		else
			*o->var.selection = (struct selection){ 0 };
		break;
	case OPTION_PARSED:
		if (text)
			o->parse(o->var.parsed, o->name, text);
		break;
	default:
		break;
	}
}

/* The row whose name is the first word of `names`. */
static size_t row_of(const char *names)
{
	const size_t n = strcspn(names, " ");

	for (const struct option_row *o = table; o->type != OPTION_END; o++)
		if (o->type != OPTION_HEADING && strlen(o->name) == n && !strncmp(o->name, names, n))
			return (size_t)(o - table);
	die("no row for the first option of '%s'", names);
}

bool option_given(const char *name)
{
	return given[row_of(name)];
}

bool option_has_effect(const char *name)
{
	return option_given(name) && !without_effect[row_of(name)];
}

void option_without_effect(size_t n, const struct option_without_effect row[n])
{
	char *said = NULL;

	for (size_t i = 0; i < n; i++) {
		char *these = NULL;

		for (const char *s = row[i].names; s && *s; s += strcspn(s, " "), s += strspn(s, " ")) {
			const size_t at = row_of(s);
			const bool is_news = given[at] && !without_effect[at];
			char *before = these;

			if (!row[i].applies)
				continue;
			without_effect[at] = true;
			value[at] = NULL;
			if (!is_news)
				continue;
			these = xformat("%s%s--%.*s", before ? before : "", before ? ", " : "",
				(int)strcspn(s, " "), s);
			free(before);
		}
		if (these) {
			char *before = said;

			said = xformat("%s%s%s (%s)", before ? before : "", before ? "; " : "", these,
				row[i].why);
			free(before);
		}
		free(these);
	}
	if (said)
		warn("without effect here: %s", said);
	free(said);
}

void option_refuse(const char *names, const char *why)
{
	for (const char *s = names; *s; s += strcspn(s, " "), s += strspn(s, " "))
		if (option_given(s))
			misuse("--%.*s: %s does not use it", (int)strcspn(s, " "), s, why);
}

/* The tables of rows as getopt_long() needs them. */
struct grammar {
	size_t names, rows;
	struct option name[ROWS];		/* val: FIRST + the row */
	const struct option_row *row[ROWS];
	char letters[2 * ROWS + 2];
};

/* Adds the rows of a table with their aliases, and sets every variable to its default. */
static void add_rows(struct grammar *g, const struct option_row *rows)
{
	for (const struct option_row *o = rows; o->type != OPTION_END; o++) {
		const int code = FIRST + (int)g->rows, takes = option_has_argument(o);

		option_set(o, o->default_value);
		if (o->type == OPTION_HEADING)
			continue;
		g->row[g->rows++] = o;
		g->name[g->names++] = (struct option){ o->name, takes, NULL, code };
		if (o->alias)
			g->name[g->names++] = (struct option){ o->alias, takes, NULL, code };
		if (o->key)
			sprintf(g->letters + strlen(g->letters), "%c%s", o->key, takes ? ":" : "");
	}
}

/* The row that getopt_long() found; c: its result, a letter or `val`. */
static size_t place_of(const struct grammar *g, int c)
{
	size_t i = 0;

	while (c < FIRST && g->row[i]->key != c)
		i++;
	return c < FIRST ? i : (size_t)(c - FIRST);
}

/* Names of options in other toolkits, and the option here. */
static const char *const synonyms[][2] = {
	{ "act-order", "reorder" }, { "desc-act", "reorder" }, { "bits", "storage" }, { "wbits", "storage" },
	{ "format", "storage" }, { "group-size", "group" }, { "groupsize", "group" }, { "dampening", "damp" },
	{ "percdamp", "damp" }, { "method", "solver" }, { "calib", "tokens" }, { "seqlen", "ctx" },
};

/* The option that an unknown name may mean: that of another toolkit's name, or the nearest; NULL if none is
 * near. */
static const char *meant(char *name, const struct option all[])
{
	const char *near = NULL;
	int min = INT_MAX;

	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		for (const struct option *lng = all; lng->name; lng++)
			if (!strcasecmp(name, synonyms[i][0]) && !strcmp(lng->name, synonyms[i][1]))
				return lng->name;
	for (const struct option *lng = all; lng->name; lng++) {
		const int distance = nearest_distance(name, lng->name);

		if (distance < min) {
			min = distance;
			near = lng->name;
		}
	}
	return 3 * min <= (int)strlen(name) ? near : NULL;
}

/* The options whose arguments are inputs, for a message; an empty text without one. */
static const char *other_inputs(const struct option_row *rows)
{
	char *all = NULL;

	for (; rows->type != OPTION_END; rows++)
		if (rows->type == OPTION_FILE && !rows->neutral)
			all = xformat("%s%s--%s", all ? all : "; further inputs follow options: ",
				all ? ", " : "", rows->name);
	return all ? all : "";
}

/* Misuse: prints why getopt_long() refused a word. */
static _Noreturn void refuse_word(int c, const char *word, const struct option all[])
{
	const char *name = word + 2, *near;
	const struct option *lng;
	size_t n = strcspn(name, "="), found = 0;
	char *could = NULL;

	if (c == ':')
		misuse("%s needs an argument", word);
	if (optopt && optopt < FIRST)
		misuse("there is no option -%c", optopt);
	if (optopt)
		misuse("%.*s takes no argument", (int)n + 2, word);
	for (lng = all; lng->name; lng++)
		if (!strncmp(lng->name, name, n)) {
			char *before = could;

			could = xformat("%s%s--%s", before ? before : "", found++ ? ", " : "", lng->name);
			free(before);
		}
	if (found > 1)
		misuse("--%.*s is ambiguous: %s", (int)n, name, could);
	near = meant(xformat("%.*s", (int)n, name), all);
	if (near)
		misuse("there is no option %s; did you mean --%s?", word, near);
	misuse("there is no option %s", word);
}

static bool is_open_as(int fd, const char *path)
{
	struct stat ours, there;

	return !fstat(fd, &ours) && S_ISREG(ours.st_mode) && !stat(path, &there) &&
		ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static const struct option_row *report_row_of(const struct option_row *rows)
{
	while (rows->type != OPTION_END && (rows->type != OPTION_FILE || strcmp(rows->name, "report")))
		rows++;
	return rows->type == OPTION_FILE && *rows->var.text ? rows : NULL;
}

/* Misuse if the report is the same file as an input or another output. */
static void check_report(const struct option_row *rows, size_t n, char *const operand[n])
{
	static const char *const standard[] = { "input", "output", "error" };
	const struct option_row *report = report_row_of(rows);
	const char *path = report ? *report->var.text : NULL;

	if (!path)
		return;
	if (!strcmp(path, "-"))
		misuse("--report: expected the name of a file; the table is also on standard error");
	if (output && replace_same(output, path))
		misuse("--report: %s is also the file of -o", path);
	for (int i = 0; i < 3; i++)
		if (is_open_as(i, path))
			misuse("--report: %s is also standard %s", path, standard[i]);
	for (const struct option_row *o = rows; o->type != OPTION_END; o++)
		if (o->type == OPTION_FILE && o != report && *o->var.text && replace_same(*o->var.text, path))
			misuse("--report: %s is also the file of --%s", path, o->name);
	for (size_t i = 0; i < n; i++)
		if (replace_same(operand[i], path))
			misuse("--report: %s is also an input", path);
}

struct command option_parse(int argc, char *argv[], const struct tool *t, const struct option_row *rows)
{
	static const char *standard_input[] = { "-", NULL };
	struct grammar g = { .letters = ":" };
	size_t own, n, at;
	int c;

	setlocale(LC_ALL, "C");
	/* Memory of layers returns to the system when it is freed. By default malloc() keeps blocks of up to
	 * 32 MiB in a heap, which fragments more with each layer. */
	mallopt(M_MMAP_THRESHOLD, MAPPED);
	program = t->name;
	table = rows;
	history_begin(t, rows, value);
	catch_signals();
	add_rows(&g, rows);
	own = g.rows;
	add_rows(&g, common);

	while (optind <= argc && (c = getopt_long(argc, argv, g.letters, g.name, NULL)) != -1) {
		const struct option_row *o;

		if (c == ':' || c == '?')
			refuse_word(c, argv[optind - 1], g.name);
		at = place_of(&g, c);
		o = g.row[at];
		if (o->type == OPTION_HELP || o->type == OPTION_VERSION)
			inform(o->type, t, rows);
		option_set(o, optarg ? optarg : "");
		if (at < own) {
			given[o - rows] = true;
			value[o - rows] = optarg ? optarg : "";
		}
	}
	for (size_t i = 0; rows[i].type != OPTION_END; i++) {
		const char *set = rows[i].environment ? getenv(rows[i].environment) : NULL;

		if (given[i])
			continue;
		if (rows[i].default_in_history)
			value[i] = rows[i].default_value;
		if (set && *set) {
			option_set(&rows[i], set);
			value[i] = set;
		}
	}
	n = (size_t)(argc - optind);
	if (n > t->max_operands)
		misuse("there is one operand too many: %s%s", argv[optind + (int)t->max_operands],
			other_inputs(rows));
	threads_init(thread_count);
	cpu_check();
	check_report(rows, n, argv + optind);
	usage_at_end();
	if (!n && t->max_operands && !t->optional)
		return (struct command){ 1, standard_input, output };
	return (struct command){ n, (const char **)argv + optind, output };
}
