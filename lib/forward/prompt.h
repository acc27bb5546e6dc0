/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * prompt.h -- windows of contexts with several continuations, which share the computed context
 *
 * All tokens of a context except the last are one window without targets. Each continuation is a window that
 * attends to these tokens. It begins with the last token of the context, which predicts the first token of
 * the continuation, and ends before the last token of the continuation. Images are in contexts only.
 */
#ifndef FORWARD_PROMPT_H
#define FORWARD_PROMPT_H
#include <stddef.h>
#include <stdint.h>
#include "forward/windows.h"

struct prompt_tokens {
	size_t n;			/* tokens, at least 1 */
	int32_t *id;			/* [n] */
	int64_t *feature;		/* [n] number among all features, -1: text; NULL: all text */
	int32_t *position;		/* [n][axes of the model]; NULL: the place in the prompt */
};

struct prompt {
	struct prompt_tokens context;
	int32_t *index;			/* [context.n] places before reordering; NULL: not reordered */
	size_t continuations;		/* at least 1 */
	struct prompt_tokens *continuation;	/* [continuations] */
};

/* Images of prompts. Their files are decoded when they are needed. */
struct prompt_images {
	size_t n, features;
	struct token_image *image;	/* [n] */
};
void prompt_images_free(struct prompt_images *p);
/* Moves the visual tokens of the context before its text tokens (AIFS). The last token stays last. */
void prompt_visual_first(struct prompt *p, size_t axes);

/*
 * Makes the windows of n prompts, in order. Targets are the tokens of the continuations, in order; windows of
 * contexts have none. name: file of the prompts, for messages. axes: numbers of a position.
 *
 * positions: of the model, 0: any number. A context without images loses its first tokens, as many as a
 * window with a continuation has beyond these positions, and is computed again where another number is lost.
 */
struct windows prompt_windows(const char *name, size_t n, const struct prompt p[n],
	const struct prompt_images *images, size_t axes, size_t positions);
/* The number of prompts whose contexts lose tokens. */
size_t prompts_cut(size_t n, const struct prompt p[n], size_t positions);
void prompts_free(size_t n, struct prompt *p);	/* and their members */
#endif
