/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hidden.h -- memory for the hidden states of all windows, zeroed
 *
 * It is allocated up to a limit of bytes. Beyond the limit it is an unlinked file in $TMPDIR (default
 * /var/tmp). Failure is a fatal error.
 */
#ifndef FORWARD_HIDDEN_H
#define FORWARD_HIDDEN_H
#include <stdbool.h>
#include <stddef.h>

struct hidden {
	size_t rows, width, bytes;
	float *x;			/* [rows][width] */
	bool mapped;			/* x is the file */
};
struct hidden hidden_make(size_t rows, size_t width, size_t limit);
void hidden_free(struct hidden *h);

#define OPTION_MEMORY(var) { 0, "memory", OPTION_SIZE(var), "BYTES", \
	"memory of hidden states; rest in $TMPDIR", .default_value = "512M", .neutral = true }
#endif
