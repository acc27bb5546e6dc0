/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hidden.h -- the hidden states of all windows, rows of floats, zeroed
 *
 * In memory up to a limit, beyond it in an unlinked file under $TMPDIR (default
 * /var/tmp).
 */
#ifndef FORWARD_HIDDEN_H
#define FORWARD_HIDDEN_H
#include <stdbool.h>
#include <stddef.h>

struct hidden {
	size_t rows, width, bytes;
	float *x;			/* [rows][width] */
	bool mapped;			/* in the file */
};
struct hidden hidden_make(size_t rows, size_t width, size_t limit);
void hidden_free(struct hidden *h);

#define OPTION_MEMORY(var) { 0, "memory", OPTION_SIZE(var), "BYTES", \
	"hidden states beyond this go to a file in $TMPDIR", .otherwise = "512M", .neutral = true }
#endif
