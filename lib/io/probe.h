/* SPDX-License-Identifier: GPL-3.0-or-later */
/* probe.h -- whether the HDF5 library survives an image */
#ifndef IO_PROBE_H
#define IO_PROBE_H
#include "io/tree.h"

/* Makes every call on the image that reading it may make later; a damaged one may crash the library. */
void probe_image(const struct image *image);
/* The same in a child process; dies if the child crashes or does not end. */
void probe_apart(const struct image *image);
/* Dies if the image, which is open, has a string whose place in the file is damaged. */
void probe_strings(const struct image *image);
#endif
