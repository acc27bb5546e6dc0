/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * resample.h -- resizes images of three 8-bit channels, bit for bit like Pillow's resize()
 *
 * A line of n samples, sample i at i + ½, becomes a line of m. Sample x of the result is at c = (x + ½)
 * n/m, with the value
 *
 *	y_x = Σ_i w_i u_i,	w_i = f((i + ½ - c)/s) / Σ_j f((j + ½ - c)/s),	s = max(1, n/m)
 *
 * over the samples at most s times the support of f from c. So a line that shrinks is smoothed by a wider
 * filter, which avoids aliasing. Rows are resized first, then columns. Each result is rounded to 8 bits and
 * clipped to 0..255. Weights are multiples of 2^-22, as in Pillow.
 *
 * f is the triangle (bilinear), the cubic of Keys (1981) with a = -1/2, the sinc with a window of a sinc
 * three times as wide (Lanczos), or of a raised cosine (Hamming), or 1 in a box of one sample. Nearest uses
 * the sample that contains c.
 */
#ifndef VISION_RESAMPLE_H
#define VISION_RESAMPLE_H
#include <stddef.h>
#include <stdint.h>

/* The numbers of Pillow and of preprocessor_config.json. */
enum resample {
	RESAMPLE_NEAREST, RESAMPLE_LANCZOS, RESAMPLE_BILINEAR, RESAMPLE_BICUBIC, RESAMPLE_BOX,
	RESAMPLE_HAMMING, RESAMPLES
};

/* Bytes of workspace: about 3 h · width for the result of the first pass, and the weights. */
size_t resample_workspace(enum resample kind, size_t h, size_t w, size_t height, size_t width);
/* Resizes `in` to `out`. Every size is from 1 to 2^26. */
void resample(enum resample kind, size_t height, size_t width, uint8_t out[height][width][3], size_t h,
	size_t w, const uint8_t in[h][w][3], void *workspace);
#endif
