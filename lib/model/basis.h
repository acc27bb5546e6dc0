/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * basis.h -- the coordinates in which the layers of a model see their inputs: root attribute `basis`
 *
 * 64 hexadecimal digits (docs/format.md has the bytes that they digest). A model, what is quantized from it,
 * and Hessians of either have one basis; a rotated or smoothed model has another one. So files fit together
 * if their bases are equal, whatever their histories are. Files made by hand may have none.
 *
 *	model-import		basis_import()
 *	a filter that changes what layers see	basis_change(), in the first part of its result
 *	Hessians and orders	basis_copy()
 *	two inputs of a tool	basis_match()
 */
#ifndef MODEL_BASIS_H
#define MODEL_BASIS_H
#include <stdbool.h>
#include <stddef.h>
#include "base/option.h"
#include "io/image.h"
#include "model/checkpoint.h"

/* The basis of a file, by its first part, or NULL; free() it. Dies if it is no digest. */
char *basis_of(const struct image *image);
/* That of a checkpoint: its configuration, and the first and some other bytes of each tensor. free() it. */
char *basis_import(const struct checkpoint *k);
/* That of a model after a filter: settings: the tool and every option that decides what layers see, those
 * not given too; second: an input that decides it as well, or NULL. NULL if before is; free() it. */
char *basis_change(const char *before, const char *settings, const struct image *second);
/* Writes the basis of `from`, if it has one, between begin and end of part 0: where root attributes are not
 * taken over, since the result is of another kind. */
void basis_copy(struct output *out, const struct image *from);

#define OPTION_FORCE_BASIS(var) { 0, "force-basis", OPTION_BOOL(var), NULL, \
	"take files although their layers see other inputs" }
/* A row of option_idle(): the option had no effect unless bases differed. */
#define BASIS_IDLE(differ) { !(differ), "force-basis", "the layers of all files see the same inputs" }
/*
 * Dies, naming both and their histories, if two of n files (NULL: none) have different bases; with `force` it
 * warns and returns true. Warns in one line of files that have none. Call it when all inputs are open, before
 * an output is.
 */
bool basis_match(size_t n, const struct image *const file[n], bool force);
#endif
