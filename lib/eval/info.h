/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * info.h -- what a file is: kind, shapes, formats, attributes and history, without reading weights
 *
 *	struct input *in = input_open(path, model_layout, NULL);
 *	char *text = info_text(in, json);
 *
 * The facts are one JSON object, whose keys are in docs/man/tensor-info.1. The text is printed from it. Few
 * data are read: counts of Hessians, strings, and ids of tokens without a digest. A damaged file, or a layer
 * whose attributes or extents are not valid, is a fatal error.
 */
#ifndef EVAL_INFO_H
#define EVAL_INFO_H
#include <stdbool.h>
#include "io/part.h"

/* Reads all parts. Returns lines of text, or one line of JSON; the caller frees it. */
char *info_text(struct input *in, bool json);
#endif
