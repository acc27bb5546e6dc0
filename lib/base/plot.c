/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plot.c -- see plot.h */
#include "base/plot.h"
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

static size_t type_of(const char *path)
{
	const size_t n = strlen(path);

	for (size_t i = 0; i < TYPES; i++)
		if (n > strlen(types[i].end) && !strcmp(path + n - strlen(types[i].end), types[i].end))
			return i;
	misuse("%s: a plot ends in .svg, .png or .pdf", path);
}

/* A string of gnuplot, in which quotes are doubled; free() it. */
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
	struct plot p = { .type = type_of(path) };

	for (const char *s = path; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			misuse("%s: has a control character, which gnuplot would read as commands", path);
	if (system("command -v gnuplot >/dev/null 2>&1"))
		die("%s: cannot be drawn without gnuplot, which is not installed", path);
	p.file = replace_open(path);
	signal(SIGPIPE, SIG_IGN);	/* plot_close() reports a gnuplot that has ended */
	p.pipe = popen("gnuplot 2>/dev/null", "w");
	if (!p.pipe)
		die("gnuplot: cannot start:");
	return p;
}

void plot_begin(struct plot *p, int width, int height)
{
	const char *path = p->file.temporary;
	const double unit = types[p->type].unit;
	char *here = xformat("%s%s", *path == '/' ? "" : "./", path);	/* not "|command", nor "~user" */
	char *name = quoted(here);

	plot_say(p, "set terminal %s size %g, %g\nset output %s\n", types[p->type].terminal, width * unit,
		height * unit, name);
	free(name), free(here);
}

void plot_say(struct plot *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(p->pipe, format, args);
	va_end(args);
}

void plot_close(struct plot *p)
{
	struct stat st;

	plot_say(p, "set output\n");
	if (pclose(p->pipe) || fstat(p->file.fd, &st) || !st.st_size)
		die("%s: gnuplot could not make it", p->file.path);
	replace_sync(&p->file);
	replace_done(&p->file);
}
