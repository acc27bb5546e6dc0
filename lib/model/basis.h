/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * basis.h -- the coordinates in which the layers of a model see their inputs: root attribute `basis`
 *
 * 64 hexadecimal digits (docs/format.md has the bytes that they digest). A model, what is quantized from it,
 * and Hessians of either have the same basis; a rotated or smoothed model has another one. Files fit together
 * if their bases are equal, whatever their histories are. Files made by hand may have none.
 *
 *	model-import				basis_write() of a digest of the checkpoint
 *	a filter that changes inputs of layers	basis_write() of basis_change()
 *	Hessians and orders			basis_copy()
 *	a tool of several inputs		basis_match()
 *
 * The attribute is written between begin and end of part 0.
 */
#ifndef MODEL_BASIS_H
#define MODEL_BASIS_H
#include <stdbool.h>
#include <stddef.h>
#include "base/option.h"
#include "io/part.h"

/* The basis of a file, by its first part, or NULL; free() it. Dies if it is no digest. */
char *basis_of(const struct part *part);
/* That of a filter's result. before: of its input, or NULL: then NULL. settings: the tool and every option
 * that decides what layers see, given or not. second: another input that decides it, or NULL. free() it. */
char *basis_change(const char *before, const char *settings, const struct part *second);
/* NULL: writes nothing. */
void basis_write(struct output *out, const char *basis);
/* Writes the basis of `from`, if it has one, into a result of another kind, which does not inherit root
 * attributes. */
void basis_copy(struct output *out, const struct part *from);

#define OPTION_FORCE_BASIS(var) { 0, "force-basis", OPTION_BOOL(var), NULL, \
	"accept files whose layers see different inputs (attribute basis), with a warning" }
/* A row of option_idle(): the option has no effect unless bases differ. */
#define BASIS_IDLE(differ) { !(differ), "force-basis", "the layers of all files see the same inputs" }
/*
 * If two of n files (NULL: none) have different bases, it dies with their names and histories, or, with
 * `force`, warns and returns true. One warning for files that have none. Call it when all inputs are open,
 * before an output is.
 */
bool basis_match(size_t n, const struct part *const file[n], bool force);
#endif
