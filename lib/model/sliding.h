/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sliding.h -- sliding-window attention of config.json: its width, and its blocks */
#ifndef MODEL_SLIDING_H
#define MODEL_SLIDING_H

struct keys;				/* model/key.h */
struct stack;				/* model/stack.h */

/* Parses the window of a stack whose blocks are known, and the blocks that have it. Fatal error as in
 * config_parse(). */
void sliding_parse(struct stack *s, const struct keys *k);
#endif
