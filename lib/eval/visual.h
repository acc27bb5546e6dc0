/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * visual.h -- visual tokens, parameters and operations of vision-language models (MQuant figure 1a, table 9)
 *
 * The shapes of five models are rows of a table, from their published configurations. An image is a square of
 * s pixels. It becomes v views of R encoder rows and t tokens each:
 *
 *	fixed	one view, resized to the size of the model (Qwen-VL, GLM-4V)
 *	tiles	the largest n of 1, 4 and 9 with n = 1 or s² > n/2 · 448²: n tiles of 448 pixels, and if
 *		n > 1 the whole image (InternVL2)
 *	slices	one view if m = min(⌈s²/448²⌉, 9) is 1. Else n = a b slices and the whole image, for n among
 *		m - 1, m, m + 1 (above 1, at most 9) and a/b closest to 1 (MiniCPM-V)
 *	pixels	one view, of s rounded to a multiple of 28, from 56 to 3584; t = R/4 (Qwen2-VL)
 *
 * With W weights in the encoder's linear layers, P in those of the projector that each encoder row passes,
 * T in those that each token passes (a query of a resampler), and L weights of the language model's blocks
 * and head:
 *
 *	visual operations	2 v (R (W + P) + t T)
 *	language operations	2 v t L, for the visual tokens alone
 *
 * A product and a sum are two operations. Products of attention without weights are left out, and those of
 * the embedding of patches, less than 0.3 %. Parameters are those of matrices: weights, embeddings of
 * patches, positions and words. Biases and norms are left out, less than 0.2 %.
 */
#ifndef EVAL_VISUAL_H
#define EVAL_VISUAL_H
#include "io/table.h"

/* A row for each model and image: model, norm, image, views, rows, tokens (of all views),
 * visual_parameters, language_parameters, visual_operations, language_operations. models: names, or NULL for
 * all, images: sides in pixels; both separated by commas. Unknown values are a misuse(). */
struct table visual_table(const char *models, const char *images);
#endif
