/* SPDX-License-Identifier: GPL-3.0-or-later */
/* parts.h -- how a whole file is cut into the parts of a stream */
#ifndef IO_PARTS_H
#define IO_PARTS_H
#include <stddef.h>
#include "io/tree.h"

/* The objects of each part, each with all that is below it. */
struct part_list {
	size_t parts;
	struct part { size_t n; char **path; } *part;
};

/* layout: see image.h; NULL: one part. */
struct part_list part_list_make(const struct image *image, image_layout *layout);
void part_list_free(struct part_list *list);
#endif
