/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sweep_plot.c -- see sweep_plot.h */
#include "eval/sweep_plot.h"
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"

static const struct { const char *end, *terminal; double unit; } types[] = {
	{ ".svg", "svg font 'sans,14' background 'white'", 1 }, { ".png", "pngcairo font 'sans,11'", 1 },
	{ ".pdf", "pdfcairo font 'sans,11'", 1 / 100.0 },
};
enum { TYPES = sizeof types / sizeof *types };

static size_t sweep_plot_type_of(const char *path)
{
	const size_t n = strlen(path);

	for (size_t i = 0; i < TYPES; i++)
		if (n > strlen(types[i].end) && !strcmp(path + n - strlen(types[i].end), types[i].end))
			return i;
	misuse("%s: a plot ends in .svg, .png or .pdf", path);
}

/* A string for gnuplot, with doubled quotes; free() it. */
static char *quoted(const char *text)
{
	char *y = xalloc(2 * strlen(text) + 3, 1), *to = y;

	*to++ = '\'';
	for (; *text; *to++ = *text++)
		if (*text == '\'')
			*to++ = '\'';
	*to = '\'';
	return y;
}

struct plot plot_open(const char *path)
{
	struct plot p = { .type = sweep_plot_type_of(path) };

	for (const char *s = path; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			misuse("%s: has a control character, which gnuplot would read as commands", path);
	if (system("command -v gnuplot >/dev/null 2>&1"))
		die("%s: cannot be drawn without gnuplot, which is not installed", path);
	p.file = replace_open(path);
	signal(SIGPIPE, SIG_IGN);	/* plot_close() reports an early end of gnuplot */
	p.pipe = popen("gnuplot 2>/dev/null", "w");
	if (!p.pipe)
		die("gnuplot: cannot start:");
	return p;
}

__attribute__((format(printf, 2, 3)))
static void plot_say(struct plot *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(p->pipe, format, args);
	va_end(args);
}

static void plot_begin(struct plot *p, int width, int height)
{
	const char *path = p->file.temporary;
	const double unit = types[p->type].unit;
	char *here = xformat("%s%s", *path == '/' ? "" : "./", path);	/* not "|command", nor "~user" */
	char *name = quoted(here);

	plot_say(p, "set terminal %s size %g, %g\nset output %s\n", types[p->type].terminal, width * unit,
		height * unit, name);
	free(name), free(here);
}

static void plot_close(struct plot *p)
{
	struct stat st;

	plot_say(p, "set output\n");
	if (pclose(p->pipe) || fstat(p->file.fd, &st) || !st.st_size)
		die("%s: gnuplot could not write it", p->file.path);
	replace_sync(&p->file);
	replace_done(&p->file);
}

/* Writes a data block for gnuplot: two columns of the table, from the rows of the format. */
static void say_data(struct plot *p, const char *kind, size_t f, const struct table *t, size_t name,
	size_t x, const struct format *format)
{
	plot_say(p, "$%s%zu << E\n", kind, f);
	for (size_t r = 0; r < t->rows; r++) {
		const union table_value *v = t->value + r * t->columns;

		if (!strcmp(v[name].text, format->name))
			plot_say(p, "%.9g %.9g\n", v[x].number, v[x + 1].number);
	}
	plot_say(p, "E\n");
}

/* Whether two formats have the same error at every sigma, such as int4 and e1m2. */
static bool same_curve(const struct sweep *s, size_t f, size_t g)
{
	const struct table *t = &s->table[SWEEP_CURVE];
	const size_t points = t->rows / s->formats;

	for (size_t i = 0; i < points; i++)
		if (t->value[(f * points + i) * t->columns + 3].number !=
		    t->value[(g * points + i) * t->columns + 3].number)
			return false;
	return true;
}

/* Whether an earlier format of as many bits has the curve of f. */
static bool has_twin(const struct sweep *s, size_t f)
{
	for (size_t g = 0; g < f; g++)
		if (s->format[g].bits == s->format[f].bits && same_curve(s, f, g))
			return true;
	return false;
}

/* Plots the formats with this number of bits. Equal curves are one line with all names. */
static void say_width(struct plot *p, const struct sweep *s, int bits, bool first)
{
	const bool points = s->table[SWEEP_ERROR].rows;
	int line = 0;

	plot_say(p, "set title '%d bits'\nset ylabel '%s'\nplot ", bits,
		first ? "mean squared error, largest weight = 1" : "");
	for (size_t f = 0; f < s->formats; f++) {
		if (s->format[f].bits != bits || has_twin(s, f))
			continue;
		plot_say(p, "%s$c%zu with lines linewidth 2 linecolor %d title '%s", line ? ", " : "", f,
			line + 1, s->format[f].name);
		for (size_t g = f + 1; g < s->formats; g++)
			if (s->format[g].bits == bits && same_curve(s, f, g))
				plot_say(p, " = %s", s->format[g].name);
		plot_say(p, "'");
		line++;
		if (points)
			plot_say(p, ", $e%zu with points pointtype 7 pointsize 0.4 linecolor %d notitle",
				f, line);
	}
	plot_say(p, "\n");
}

void sweep_plot(struct plot *p, const struct sweep *s)
{
	int lines[9] = { 0 }, panels = 0, most = 0;
	const bool points = s->table[SWEEP_ERROR].rows;
	bool first = true;

	for (size_t f = 0; f < s->formats; f++) {
		const int n = ++lines[s->format[f].bits];

		panels += n == 1;
		most = n > most ? n : most;
	}
	plot_begin(p, 120 + 360 * panels, 430 + 21 * most);	/* with a line of the legend for each */
	for (size_t f = 0; f < s->formats; f++) {
		if (has_twin(s, f))
			continue;
		say_data(p, "c", f, &s->table[SWEEP_CURVE], 0, 2, &s->format[f]);
		if (points)
			say_data(p, "e", f, &s->table[SWEEP_ERROR], 1, 2, &s->format[f]);
	}
	plot_say(p, "set multiplot layout 1,%d title \"Error of number formats on Gaussian weights", panels);
	plot_say(p, "\\n{/*0.8 %s", points ? "points: layers of the model" : "");
	if (s->high > s->low)
		plot_say(p, "%sshaded: sigma of typical models, %g to %g", points ? "; " : "", s->low,
			s->high);
	plot_say(p, "}\\n \"\nset logscale xy\nset format y '10^{%%T}'\n"
		"set xlabel 'sigma of the weights, largest = 1'\nset key above\nset grid\n");
	if (s->high > s->low)
		plot_say(p, "set object 1 rectangle from %g, graph 0 to %g, graph 1 "
			"behind fillcolor rgb '#e8e8e8' fillstyle solid noborder\n", s->low, s->high);
	for (int bits = 1; bits <= 8; bits++)
		if (lines[bits]) {
			say_width(p, s, bits, first);
			first = false;
		}
	plot_say(p, "unset multiplot\n");
	plot_close(p);
}
