/* SPDX-License-Identifier: GPL-3.0-or-later */
/* probe.h -- whether the HDF5 library survives a part */
#ifndef IO_PROBE_H
#define IO_PROBE_H
#include "io/tree.h"

/* Makes every call on the part that reading it may make later; a damaged one may crash the library. */
void probe_part(const struct part *part);
/* The same in a child process; dies if the child crashes or does not end. */
void probe_apart(const struct part *part);
/* Dies if the part, which is open, has a string whose place in the file is damaged. */
void probe_strings(const struct part *part);
#endif
