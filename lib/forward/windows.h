/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * windows.h -- tokens cut into windows
 *
 * A window is at most `ctx` token ids that a model sees at once, a sequence of its
 * own; a target is an id that is predicted from the token before it, and of no image:
 * nothing is trained to predict the ids that stand for one. Some windows
 * continue an earlier one, whose tokens they see (forward/prompt.h). Conventions
 * are rows of a table in windows.c. With `add`: the tokenizer puts a BOS before a text,
 *
 *	gptq		BOS before the text if `add`, windows side by side, ctx - 1 targets each
 *	bos		a BOS and the next ctx - 1 ids, all of them targets
 *	llama.cpp	BOS before the text and in the place of each window's first id, both if `add`;
 *			windows side by side, targets at places ctx / 2 + 1 .. ctx - 1 (from 0); one
 *			final newline of the text left out (llama.cpp, tools/perplexity and --file)
 *	sliding		BOS before the text if `add`, windows from places 0, stride, 2 stride, ...
 *			until one reaches the last id; targets are the ids that no window before has
 *			scored (transformers' guide to the perplexity of fixed-length models). With
 *			stride = ctx the first id of each window is no target: nothing predicts it.
 *
 * A file without /sequence is one text, whose last ids that fill no window are dropped, but by sliding,
 * whose last window may be shorter. Of a file with /sequence each
 * sequence is cut by itself, and its last window may be shorter, down to one target.
 */
#ifndef FORWARD_WINDOWS_H
#define FORWARD_WINDOWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/shard.h"
#include "forward/batch.h"
#include "model/tokens.h"

struct windows {
	const char *name;		/* of the tokens file, for messages */
	size_t n, rows, longest;	/* windows, their tokens, the most of one with those it continues */
	struct sequence *sequence;	/* [n], one after the other from row 0; with a past: continues the */
					/* last one without, whose first row is the prefix */
	int32_t *id;			/* [rows] */
	int32_t *target;		/* [rows] the id that the row predicts; -1: none */
	int32_t *position, *index;	/* [rows], NULL: the usual ones (forward/batch.h) */
	size_t axes;			/* numbers of a position; 0: 1 */
	uint8_t *modality;
	int32_t *feature;		/* [rows] which of all images' features it is; -1: none */
	size_t images;			/* of which the windows have a token at least */
	const struct token_image *image;
	struct token_image *own;	/* their memory, where not all of the tokens' images are left */
	size_t positions, modalities;	/* one more than the largest */
	size_t targets;			/* of all windows */
	uint64_t bytes;			/* of the text of all targets; 0: not known */
};

/* Names of the conventions, NULL-terminated. */
enum windows_convention { WINDOWS_GPTQ, WINDOWS_BOS, WINDOWS_LLAMA_CPP, WINDOWS_SLIDING };
extern const char *const windows_conventions[];

enum { WINDOWS_LONGEST = 1 << 24 };
/* ctx, or if it is 0 the model's, at most 2048; warns where it exceeds the model's. */
size_t windows_ctx(size_t ctx, size_t positions);
/*
 * stride: of sliding, 1 to ctx; 0: ctx / 2. Dies when the tokens do not fill one window, the convention needs
 * a BOS that the file does not name, or a sequence that was reordered (/index) does not fit into one window;
 * llama.cpp refuses /sequence, /position and /index, and a last id that it would have to split. A BOS that
 * the convention puts before a text is at position 0, is seen by all, has the modality of text, and moves the
 * others' positions by one.
 */
struct windows windows_cut(const char *name, const struct tokens *t, enum windows_convention convention,
	size_t ctx, size_t stride);
/* Leaves out windows without a target (all their ids are of images), with a warning. Dies if none is left. */
struct windows windows_scored(struct windows w);
/* How many targets each window has. */
void windows_targets(const struct windows *w, size_t targets[w->n]);
/* Windows first .. first + n - 1, and with one all that continue it, as a batch whose rows count from 0;
 * own: room for their sequences. */
struct batch windows_batch(const struct windows *w, size_t first, size_t n, struct sequence own[n]);
/* From window `first` on, how many together have at most so many tokens: one at least, with all that
 * continue it. */
size_t windows_within(const struct windows *w, size_t first, size_t tokens);
/* "position 3 of window 7", for messages, both counted from 1; free() it. */
char *windows_place(const struct windows *w, size_t row);
/* Keeps only windows i, i + n, i + 2n, ... counted from 1, of which none continues another, and their images.
 * Dies where an image is in windows of two shards, of which both would count it. */
void windows_shard(struct windows *w, struct shard s);
/* Fills in targets, positions and modalities of what else is filled in. */
void windows_count(struct windows *w);
void windows_free(struct windows *w);

/* Rows of options that tools share. */
#define OPTION_CTX(var) { 'c', "ctx", OPTION_SIZE(var), "N", \
	"ids per window (default: the model's positions, at most 2048)", .min = 2, .max = WINDOWS_LONGEST }
#define OPTION_CONVENTION(var) { 0, "convention", \
	OPTION_ENUM(enum windows_convention, var, windows_conventions), NULL, \
	"how the text is cut into windows", .otherwise = "gptq" }
#define OPTION_STRIDE(var) { 0, "stride", OPTION_SIZE(var), "N", \
	"ids from a sliding window to the next (default: half of --ctx)", \
	.min = 1, .max = WINDOWS_LONGEST }
#define STRIDE_IDLE(convention) \
	{ (convention) != WINDOWS_SLIDING, "stride", "--convention is not sliding" }
#define OPTION_SHARD(var) { 0, "shard", OPTION_OF_SHARD(var), \
	"only windows I, I + N, ..., counted from 1; auto: by the launcher", \
	.otherwise = "1/1", .form = shard_form }
#define OPTION_LIMIT(var) { 0, "limit", OPTION_SIZE(var), "N", "only the first N ids (default: all)" }
#endif
