/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sliding.h -- sliding-window attention as config.json has it: how wide, and in which blocks
 */
#ifndef MODEL_SLIDING_H
#define MODEL_SLIDING_H

struct keys;				/* model/key.h */
struct stack;				/* model/stack.h */

/* The window of a stack whose blocks are known, and which of them have it; dies as config_parse(). */
void sliding_parse(struct stack *s, const struct keys *k);
#endif
