/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * prompt.h -- contexts that are computed once for all that may follow each of them
 *
 * All tokens of a context but its last are one window without targets. Each continuation is a window that
 * sees them: it begins with the context's last token, which predicts its first, and ends before its own
 * last. Images are part of contexts.
 */
#ifndef FORWARD_PROMPT_H
#define FORWARD_PROMPT_H
#include <stddef.h>
#include <stdint.h>
#include "forward/windows.h"

struct stretch {
	size_t n;			/* tokens, one at least */
	int32_t *id;			/* [n] */
	int64_t *feature;		/* [n] of all images' features, -1: text; NULL: text */
	int32_t *position;		/* [n][axes of the model]; NULL: the place in the prompt */
};

struct prompt {
	struct stretch context;
	int32_t *index;			/* [context.n] places before reordering; NULL: as they stand */
	size_t continuations;		/* one at least */
	struct stretch *continuation;	/* [continuations] */
};

/* Images of prompts: files, decoded when they are needed. */
struct prompt_images {
	size_t n, features;
	struct token_image *image;	/* [n] */
};
void prompt_images_free(struct prompt_images *p);
/* Puts visual tokens of the context before those of text (AIFS), but for its last. */
void prompt_switch(struct prompt *p, size_t axes);

/* name: of the file that they are of, for messages; axes: of the positions that stretches have. Windows of
 * prompt after prompt; the targets are the tokens of the continuations, in their order. */
struct windows prompt_windows(const char *name, size_t n, const struct prompt p[n],
	const struct prompt_images *images, size_t axes);
/* How many windows the context of a prompt is, before those of its continuations: 0 or 1. */
size_t prompt_context_windows(const struct prompt *p);
void prompts_free(size_t n, struct prompt *p);	/* and what they hold */
#endif
