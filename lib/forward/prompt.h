/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * prompt.h -- contexts that are computed once for all that may follow each of them
 *
 * All tokens of a context but its last are one window without targets. Each continuation is a window that
 * sees them: it begins with the context's last token, which predicts its first, and ends before its own
 * last.
 */
#ifndef FORWARD_PROMPT_H
#define FORWARD_PROMPT_H
#include <stddef.h>
#include <stdint.h>
#include "forward/windows.h"

struct stretch {
	size_t n;			/* tokens, one at least */
	int32_t *id;			/* [n] */
	uint8_t *modality;		/* [n], or NULL: text */
};

struct prompt {
	struct stretch context;
	size_t continuations;		/* one at least */
	struct stretch *continuation;	/* [continuations] */
};

/* name: of the file that they are of, for messages. Windows of prompt after prompt; the targets are the
 * tokens of the continuations, in their order. */
struct windows prompt_windows(const char *name, size_t n, const struct prompt p[n]);
/* How many windows the context of a prompt is, before those of its continuations: 0 or 1. */
size_t prompt_context_windows(const struct prompt *p);
void prompts_free(size_t n, struct prompt *p);	/* and what they hold */
#endif
