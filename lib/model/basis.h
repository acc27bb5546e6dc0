/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * basis.h -- the basis of a file: an identifier of the space of the layers' inputs (root attribute `basis`)
 *
 * A basis is 64 hexadecimal digits (docs/format.md defines the digested bytes). A model, its quantized
 * forms, and Hessians of any of them have the same basis; a rotated or smoothed model has another one.
 * Files fit together if their bases are equal, for any history. Files made by hand may have none.
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

/*
 * The basis of a file from its first part, or NULL; the caller frees it. Fatal error if it is not a digest.
 */
char *basis_of(const struct part *part);
/*
 * The basis of the result of a filter; the caller frees it. before: the basis of the input; if it is NULL,
 * the result is NULL. settings: the tool and every option that changes the inputs of layers, given or not.
 * second: another input that changes them, or NULL.
 */
char *basis_change(const char *before, const char *settings, const struct part *second);
/* Writes the basis; NULL: writes nothing. */
void basis_write(struct output *out, const char *basis);
/* Copies the basis of `from`, if it has one, into a result of another kind, which does not inherit root
 * attributes. */
void basis_copy(struct output *out, const struct part *from);

#define OPTION_FORCE_BASIS(var) { 0, "force-basis", OPTION_BOOL(var), NULL, \
	"accept inputs of different basis, and warn" }
/* A row of option_without_effect(): the option has no effect unless bases differ. */
#define BASIS_WITHOUT_EFFECT(differ) { !(differ), "force-basis", \
	"the layers of all files have the same inputs" }
/*
 * Compares the bases of n files (NULL: skipped); called when all inputs are open, before an output is
 * opened. If two bases differ: fatal error with the names and histories of both files, or, with `force`, a
 * warning and true. One warning is printed if a file has no basis.
 */
bool basis_match(size_t n, const struct part *const file[n], bool force);
#endif
