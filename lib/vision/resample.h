/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * resample.h -- images of three 8-bit channels in another size, to the bit as Pillow's resize() makes them
 *
 * A line of n samples, sample i at i + ½, becomes one of m: place x of it lies at c = (x + ½) n/m, and is
 *
 *	y_x = Σ_i w_i u_i,	w_i = f((i + ½ - c)/s) / Σ_j f((j + ½ - c)/s),	s = max(1, n/m)
 *
 * over the samples that lie within s times the support of f around c: a line that shrinks is smoothed by a
 * wider filter (no aliases). Lines across first, then lines down, each rounded to 8 bits and clipped to
 * 0..255; weights are multiples of 2^-22, as Pillow's. f is the triangle (bilinear), the cubic of Keys
 * (1981) with a = -1/2, the sinc under a sinc three times as wide (Lanczos) or a raised cosine (Hamming), or
 * 1 in a box of one sample; nearest takes the sample that holds c.
 */
#ifndef VISION_RESAMPLE_H
#define VISION_RESAMPLE_H
#include <stddef.h>
#include <stdint.h>

/* The numbers by which Pillow, and preprocessor_config.json, name them. */
enum resample {
	RESAMPLE_NEAREST, RESAMPLE_LANCZOS, RESAMPLE_BILINEAR, RESAMPLE_BICUBIC, RESAMPLE_BOX,
	RESAMPLE_HAMMING, RESAMPLES
};

/* Bytes: about 3 h · width for what lies between the passes, and the weights. */
size_t resample_workspace(enum resample kind, size_t h, size_t w, size_t height, size_t width);
/* No size is 0; none is above 2^26. */
void resample(enum resample kind, size_t height, size_t width, uint8_t out[height][width][3], size_t h,
	size_t w, const uint8_t in[h][w][3], void *workspace);
#endif
