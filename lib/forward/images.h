/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * images.h -- runs images through an encoder and its projector
 *
 *	rows = [class token; patches wᵀ + bias] + positions, normed if the encoder begins with a norm
 *	features = projector(blocks(rows)); the first rows are left out if the config skips them, and a
 *		feature may be of a square of rows
 *
 * An image is a sequence of the encoder, whose rows all attend to each other. In blocks with attention
 * windows each window is a sequence. The features of an image replace the embeddings of its tokens in the
 * language model.
 *
 * Calling sequence (forward/forward.h does it): images_open(); images_prepare(); images_embed(); the blocks
 * of the encoder on `hidden`; images_project(); images_close().
 */
#ifndef FORWARD_IMAGES_H
#define FORWARD_IMAGES_H
#include <stdbool.h>
#include <stddef.h>
#include "forward/block.h"
#include "forward/hidden.h"
#include "forward/windows.h"
#include "vision/processor.h"

struct images {
	const struct config *config;
	const struct execution *execution;
	const struct token_image *image;	/* [windows.n] */
	struct processor processor;
	char *prepared_by;		/* name of `processor` for messages; NULL: not read yet */
	struct windows windows;		/* one sequence per image, without ids */
	struct windows local;		/* the same rows, one sequence per attention window; n 0: none */
	struct hidden hidden;		/* [rows of the windows][hidden of the encoder] */
	struct hidden feature;		/* [features of all images][hidden of the language model] */
	size_t *first;			/* [windows.n] first feature of each image */
	bool embedded;
};

/* memory: as in forward_open(), for `hidden` and for `feature`. w must have at least one image. */
struct images *images_open(const struct config *c, const struct execution *e, const struct windows *w,
	size_t memory);
void images_close(struct images *m);
/* Reads the settings of the image processor from /processor of the part. A missing /processor is a fatal
 * error. */
void images_prepare(struct images *m, const struct part *part);
/* Computes the rows of all images. part: the one with the encoder's embeddings. observer may be NULL. */
void images_embed(struct images *m, const struct part *part, const struct observer *observer);
/* Computes the features of images first .. first + n - 1 by the projector, or runs a stage of it. */
void images_project(struct images *m, const struct block *projector, struct work *w, size_t first, size_t n,
	struct stage stage, const struct observer *observer);
#endif
