/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * windows.h -- tokens cut into windows
 *
 * A window is `ctx` token ids that a model sees at once; its targets are the
 * ids at positions first .. end - 1, each predicted from the position before.
 * Conventions (SPEC section 10) are rows of a table in windows.c.
 */
#ifndef FORWARD_WINDOWS_H
#define FORWARD_WINDOWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/tokens.h"

struct windows {
	size_t n, ctx;
	int32_t *id;			/* [n][ctx] */
	size_t *first, *end;		/* [n] targets of each window */
	int64_t *source;		/* [n] index in the tokens of position 0: -1 where that is the leading BOS, meaningless
					 * where the window has a BOS of its own */
	size_t targets;			/* of all windows */
	uint64_t bytes;			/* of the text of all targets; 0: not known */
};

/* Names of the conventions, NULL-terminated, for an OPTION_CHOICE; the index is what windows_cut() takes. */
extern const char *const windows_conventions[];

enum { WINDOWS_LONGEST = 1 << 24 };
/* ctx, or if it is 0 the model's, at most 2048; warns where it exceeds the model's. */
size_t windows_ctx(size_t ctx, size_t positions);
/* Dies when the tokens do not fill one window, or the convention needs a BOS that the file does not name. */
struct windows windows_cut(const char *name, const struct tokens *t, int convention, size_t ctx);
/* Id that position `row` of all windows (window · ctx + position) predicts, or -1 where that is no target. */
int64_t windows_target(const struct windows *w, size_t row);
/* Keeps windows i, i + n, i + 2n, ... counted from 1. */
void windows_shard(struct windows *w, size_t i, size_t n);
void windows_free(struct windows *w);

/* Rows of options that tools share. */
#define OPTION_CTX(var) { 'c', "ctx", OPTION_SIZE, var, "N", \
	.help = "ids per window (default: the model's positions, at most 2048)", .least = 2, .most = WINDOWS_LONGEST }
#define OPTION_CONVENTION(var) { 0, "convention", OPTION_CHOICE, var, "NAME", \
	.help = "how the text is cut into windows", .choices = windows_conventions }
#define OPTION_LIMIT(var) { 0, "limit", OPTION_SIZE, var, "N", .help = "only the first N ids (default: all)" }
#endif
