/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * images.h -- images on their way through an encoder and its projector to the language model
 *
 *	rows = [class token; patches wᵀ + bias] + positions, normed where the encoder begins with a norm
 *	features = projector(blocks(rows)), without the first rows that the config skips, or of squares
 *		of rows
 *
 * An image is a sequence of the encoder, all of whose rows see each other. Its features take the place of the
 * embeddings of its tokens.
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
	char *prepared_by;		/* its name for messages, once the model's settings of it were read */
	struct windows windows;		/* a sequence an image; no ids */
	struct hidden hidden;		/* [rows of the windows][hidden of the encoder] */
	struct hidden feature;		/* [features of all images][hidden of the language model] */
	size_t *first;			/* [windows.n] feature of each image */
	bool embedded;
};

/* memory: as in forward_open(), of each of both. w: with at least one image. */
struct images *images_open(const struct config *c, const struct execution *e, const struct windows *w,
	size_t memory);
void images_close(struct images *m);
/* How the model prepares its images, from the part that has /processor; dies where there is none. */
void images_prepare(struct images *m, const struct part *part);
/* The rows of all images, from the part with the encoder's embeddings. observer may be NULL. */
void images_embed(struct images *m, const struct part *part, const struct observer *observer);
/* The features of images first .. first + n - 1, by the projector or a stage of it. */
void images_project(struct images *m, const struct block *projector, struct work *w, size_t first, size_t n,
	struct stage stage, const struct observer *observer);
#endif
