/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * windows.h -- cuts tokens into windows
 *
 * A window is a sequence of at most `ctx` token ids, which the model reads at once. A target is an id that is
 * predicted from the token before it. Placeholders of images are no targets, since models are not trained to
 * predict them. Some windows continue an earlier one and attend to its tokens (forward/prompt.h).
 *
 * A convention determines windows and targets; it is a row of a table in windows.c. `add` means that the
 * tokenizer puts a BOS before a text.
 *
 *	gptq		if `add`, a BOS before the text; adjacent windows, ctx - 1 targets each
 *	bos		each window is a BOS and the next ctx - 1 ids, which are all targets
 *	llama.cpp	if `add`, a BOS before the text and in place of each window's first id;
 *			adjacent windows, targets at places ctx / 2 + 1 .. ctx - 1 (from 0); one
 *			final newline of the text is left out (llama.cpp, tools/perplexity and --file)
 *	sliding		if `add`, a BOS before the text; windows from places 0, stride, 2 stride, ...
 *			until one reaches the last id; targets are the ids that no earlier window has
 *			scored (transformers' guide to the perplexity of fixed-length models). With
 *			stride = ctx the first id of each window is no target: nothing predicts it.
 *
 * A file without /sequence is one text. If its last ids fill no window, they are dropped; with sliding the
 * last window may be shorter instead. In a file with /sequence, each sequence is cut by itself, and its last
 * window may be shorter, down to one target.
 *
 * Random windows (windows_draw()) are at random places, in place of adjacent ones. They may overlap.
 *
 * Calling sequence: windows_read(), or windows_cut() or windows_draw() of tokens; windows_scored() and
 * windows_shard() if needed; windows_free().
 */
#ifndef FORWARD_WINDOWS_H
#define FORWARD_WINDOWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/shard.h"
#include "forward/batch.h"
#include "model/config.h"
#include "model/tokens.h"

struct windows {
	const char *name;		/* tokens file, for messages */
	size_t n, rows, longest;	/* windows; tokens; most tokens of a window with its past */
	struct sequence *sequence;	/* [n], consecutive from row 0; one with a past continues the */
					/* last one without a past, whose first row is its prefix */
	int32_t *id;			/* [rows] */
	int32_t *target;		/* [rows] the id that the row predicts; -1: none */
	int32_t *position, *index;	/* [rows], NULL: the default (forward/batch.h) */
	size_t axes;			/* numbers of a position; 0 stands for 1 */
	uint8_t *modality;
	int32_t *feature;		/* [rows] number in the features of all images; -1: text */
	size_t images;			/* images with at least one token in the windows */
	const struct token_image *image;
	struct token_image *own;	/* memory of `image`, if some images were left out */
	size_t positions, modalities;	/* largest number + 1 */
	size_t targets;			/* of all windows */
	uint64_t bytes;			/* of the text of all targets; 0: unknown */
};

enum windows_convention { WINDOWS_GPTQ, WINDOWS_BOS, WINDOWS_LLAMA_CPP, WINDOWS_SLIDING };
extern const char *const windows_conventions[];	/* names, NULL-terminated */

enum { WINDOWS_LONGEST = 1 << 24 };	/* largest --ctx and --stride */
/* ctx, or for 0 the default: the positions of the model, at most 2048. A ctx beyond the positions is a
 * warning, a default below 2 a fatal error. positions: 0: without bound. */
size_t windows_ctx(size_t ctx, size_t positions);
/*
 * Cuts tokens by a convention. stride: of sliding, 1 to ctx; 0: ctx / 2.
 *
 * Fatal errors: the tokens do not fill one window; the convention needs a BOS and the file specifies none; a
 * sequence that was reordered (/index) does not fit into one window. llama.cpp also refuses /sequence,
 * /position and /index, and a last id that would have to be split.
 *
 * A BOS that the convention puts before a text has position 0 and the modality of text, and all tokens attend
 * to it. The positions of the other tokens rise by one.
 */
struct windows windows_cut(const char *name, const struct tokens *t, enum windows_convention convention,
	size_t ctx, size_t stride);
/*
 * Draws windows of ctx rows, from all tokens. Their number is that of adjacent windows in one text of `ids`
 * ids (0: all): ⌊(ids + b)/ctx⌋ in gptq, where b is 1 if a BOS is before the text, else 0, and
 * ⌊ids/(ctx - 1)⌋ in bos. The places at which a whole window fits are numbered, in a file with /sequence
 * through all sequences; a BOS before a text is its first place. Window k starts at place ⌊u · places⌋, where
 * u is the uniform number k of the stream "windows" of the seed (base/random.h).
 *
 * Misuse: llama.cpp and sliding, which read a text from end to end. Fatal errors: no window fits; the tokens
 * have /index or images; those of windows_cut().
 */
struct windows windows_draw(const char *name, const struct tokens *t, enum windows_convention convention,
	size_t ctx, size_t ids, size_t seed);
/* Leaves out windows without a target (all their ids are visual), with a warning. No window left is a fatal
 * error. */
struct windows windows_scored(struct windows w);
/* Counts the targets of each window. */
void windows_targets(const struct windows *w, size_t targets[w->n]);
/* Windows first .. first + n - 1 as a batch with rows from 0. If one of them has a past, the window that it
 * continues must be among them. own: memory for the sequences. */
struct batch windows_batch(const struct windows *w, size_t first, size_t n, struct sequence own[n]);
/* Number of windows from `first` on that have at most `tokens` tokens together. At least one; a window counts
 * together with all that continue it. */
size_t windows_within(const struct windows *w, size_t first, size_t tokens);
/* "position 3 of window 7", for messages, both counted from 1; free() it. */
char *windows_place(const struct windows *w, size_t row);
/* Keeps only windows i, i + n, i + 2n, ..., counted from 1, and their images. No window may continue another.
 * An image in windows of two shards is a fatal error, since both would count it. */
void windows_shard(struct windows *w, struct shard s);
/* Computes the members targets, positions and modalities from the others. */
void windows_count(struct windows *w);
void windows_free(struct windows *w);

/* Whether windows are drawn, and the seed. */
struct windows_seed { bool given; size_t value; };
void windows_seed_parse(void *seed, const char *option, const char *text);
char *windows_seed_form(const void *seed);

/* The options by which a text becomes windows. */
struct windows_options {
	size_t ctx, stride, skip, limit;	/* 0: the default of each */
	enum windows_convention convention;
	struct windows_seed seed;
};
/*
 * Reads a tokens file for a model, and cuts or draws its windows. first: the first part of the model. c: its
 * configuration. force: see tokens_read(). *line: the line of the used ids (model/calibrated.h); the caller
 * frees it. Errors are those of tokens_read(), windows_ctx(), windows_cut() and windows_draw().
 */
struct windows windows_read(const struct part *file, const struct part *first, const struct config *c,
	const struct windows_options *o, bool force, char **line);

/* Rows of options that tools share: those of a struct windows_options *o, and their names. */
#define WINDOWS_NAMES "ctx convention stride skip limit random-windows"
#define WINDOWS_OPTIONS(o) \
	OPTION_CTX(&(o)->ctx), OPTION_CONVENTION(&(o)->convention), OPTION_STRIDE(&(o)->stride), \
	OPTION_SKIP(&(o)->skip), OPTION_LIMIT(&(o)->limit), OPTION_RANDOM_WINDOWS(&(o)->seed)
#define OPTION_CTX(var) { 'c', "ctx", OPTION_SIZE(var), "N", \
	"ids per window (default: at most 2048)", .min = 2, .max = WINDOWS_LONGEST }
#define OPTION_CONVENTION(var) { 0, "convention", \
	OPTION_ENUM(enum windows_convention, var, windows_conventions), NULL, \
	"how the text is cut into windows", .default_value = "gptq" }
#define OPTION_STRIDE(var) { 0, "stride", OPTION_SIZE(var), "N", \
	"ids per sliding step (default: ctx/2)", \
	.min = 1, .max = WINDOWS_LONGEST }
#define STRIDE_WITHOUT_EFFECT(convention) \
	{ (convention) != WINDOWS_SLIDING, "stride", "--convention is not sliding" }
#define OPTION_SHARD(var) { 0, "shard", OPTION_OF_SHARD(var), \
	"windows I, I + N, ...; auto: from launcher", \
	.default_value = "1/1", .form = shard_form }
#define OPTION_SKIP(var) { 0, "skip", OPTION_SIZE(var), "N", "leave out the first N ids" }
#define OPTION_LIMIT(var) { 0, "limit", OPTION_SIZE(var), "N", \
	"use N ids after --skip (default: all)" }
#define OPTION_RANDOM_WINDOWS(var) { 0, "random-windows", \
	OPTION_PARSED(struct windows_seed, var, windows_seed_parse), "SEED", \
	"windows at random places; --limit sets the number", .form = windows_seed_form }
#endif
