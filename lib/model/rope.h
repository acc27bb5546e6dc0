/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rope.h -- rotary positions of config.json
 *
 * The frequency of pair i is, by kind,
 *
 *	default		theta^(-2i/rotary)
 *	linear		that, divided by `factor`
 *	llama3		long waves divided by `factor`, short ones kept, a linear blend between (Llama 3.1)
 *	grid		theta^(-4j/rotary), j = i mod rotary/4, of rows, then of columns (Qwen2-VL's encoder)
 *	longrope	divided by a factor of each pair, short_factor or long_factor; cosines and sines times
 *			attention_factor, by default √(1 + ln f / ln original) of f = factor, by default
 *			positions / original (Ding et al. 2024)
 */
#ifndef MODEL_ROPE_H
#define MODEL_ROPE_H
#include <stddef.h>

enum rope_kind { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3, ROPE_LONG, ROPE_GRID };
enum { AXES = 3 };		/* most coordinates of a position */
/* The blocks that use a rotary setting: blocks with a window may have their own. */
enum rope_blocks { ROPE_FULL, ROPE_SLIDING, ROPES };

struct rope_setting {
	enum rope_kind kind;
	double theta, factor, low, high, original;	/* rope_theta, and numbers of rope_scaling */
	double *part[2];		/* [rotary / 2] of longrope, for short and for long contexts */
	double scale;			/* factor of cosines and sines */
};

struct stack;				/* model/stack.h, which includes this header */
struct keys;				/* model/key.h */

/* Parses the rotary settings of a stack whose heads and blocks are known. Fatal error as in config_parse().
 * positions: of the model. */
void rope_parse(struct stack *s, const struct keys *k, size_t positions);
void rope_settings_free(const struct stack *s);

/*
 * Stores the frequencies of the rotary pairs, in radians per position, for a run over this number of
 * positions: longrope has other frequencies beyond the original context. Returns the factor of cosines and
 * sines.
 */
double rope_frequencies(const struct rope_setting *r, size_t rotary, size_t positions,
	double frequency[rotary / 2]);
#endif
