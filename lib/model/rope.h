/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rope.h -- rotary positions as config.json has them
 *
 *	default		theta^(-2i/rotary)
 *	linear		divided by `factor`
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
enum { AXES = 3 };		/* numbers of a position, at most */
/* Blocks that a rotary setting is of: those with a window may have their own. */
enum rope_blocks { ROPE_FULL, ROPE_SLIDING, ROPES };

struct rope_setting {
	enum rope_kind kind;
	double theta, factor, low, high, original;	/* rope_theta and rope_scaling's numbers */
	double *part[2];		/* [rotary / 2]: longrope's, in short and in long contexts */
	double scale;			/* of cosines and sines */
};

struct stack;				/* model/stack.h, which has settings of this header */
struct keys;				/* model/key.h */

/* The rotary settings of a stack whose heads and blocks are known; dies as config_parse(). positions: of the
 * model. */
void rope_parse(struct stack *s, const struct keys *k, size_t positions);
void rope_settings_free(const struct stack *s);

/*
 * Frequencies of the rotary pairs, radians a position, for a run of so many positions: longrope has other
 * ones beyond the original context. Returns what multiplies cosines and sines.
 */
double rope_frequencies(const struct rope_setting *r, size_t rotary, size_t positions,
	double frequency[rotary / 2]);
#endif
