/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows_read.c -- from a tokens file to windows, by options; see windows.h */
#include "base/error.h"
#include "base/option.h"
#include "forward/windows.h"
#include "model/calibrated.h"

void windows_seed_parse(void *seed, const char *option, const char *text)
{
	struct windows_seed *s = seed;
	const struct option_row row = { 0, option, OPTION_SIZE(&s->value), "SEED", "" };

	option_set(&row, text);
	s->given = true;
}

char *windows_seed_form(const void *seed)
{
	return xformat("%zu", ((const struct windows_seed *)seed)->value);
}

struct windows windows_read(const struct part *file, const struct part *first, const struct config *c,
	const struct windows_options *o, bool force, char **line)
{
	const bool drawn = o->seed.given;	/* then --limit is the number of drawn ids, not their range */
	const struct tokens t = tokens_read(file, first, c->vocab, force, o->skip, drawn ? 0 : o->limit);
	const size_t ctx = windows_ctx(o->ctx, c->positions);
	struct windows w = drawn ?
		windows_draw(part_name(file), &t, o->convention, ctx, o->limit, o->seed.value) :
		windows_cut(part_name(file), &t, o->convention, ctx, o->stride);

	*line = calibrated_line(file, &(struct calibrated_range){ .first = t.first, .end = t.first + t.n,
		.seed = o->seed.value, .windows = drawn ? w.n : 0 });
	return w;
}
