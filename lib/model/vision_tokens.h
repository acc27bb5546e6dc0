/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vision_tokens.h -- how many tokens a picture is to a vision-language model, by its config.json
 *
 * LLaVA: of the encoder's rows, one for each patch and, of CLIP, one for a class before them, the strategy
 * `full` keeps all, and `default` drops the first, whatever it is: so a SigLIP tower, which has no class
 * row, loses a patch. Qwen2-VL: merge x merge patches become one token.
 */
#ifndef MODEL_VISION_TOKENS_H
#define MODEL_VISION_TOKENS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/processor.h"

struct vision_tokens {
	size_t patch;			/* pixels of a side */
	size_t side;			/* pixels of a side that the tower takes; 0: any */
	bool class_row, drops_first;	/* LLaVA */
	size_t merge;			/* patches of a token's side */
	int32_t placeholder;		/* the id of a picture in a text, then of each of its tokens */
	size_t vocab;			/* of the language model */
};

/* From the text of config.json; dies, naming `name` and /config, where it is not of such a model. */
struct vision_tokens vision_tokens_parse(const char *name, const char *text);
/* Tokens of a picture of rows x columns patches; 0: none is left. */
size_t vision_tokens_count(const struct vision_tokens *v, size_t rows, size_t columns);
/* Rows and columns of patches that the processor makes of a picture of h x w pixels. Dies where the model
 * does not take the size that this gives, or has other patches. */
void vision_tokens_grid(const struct vision_tokens *v, const struct processor *p, size_t h, size_t w,
	size_t *rows, size_t *columns);
#endif
