/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * probe.h -- checks that the HDF5 library can read a part
 *
 * A damaged part can crash the library or make it loop without end. probe_apart() comes before a part is
 * opened, probe_contents() after. Both end with a fatal error if the part is damaged.
 */
#ifndef IO_PROBE_H
#define IO_PROBE_H
#include "io/tree.h"

/* Makes every call of the library that reading the part may need. A damaged part may crash it. */
void probe_part(const struct part *part);
/* Runs probe_part() in a child process. Fatal error if the child crashes or does not finish. */
void probe_apart(const struct part *part);
/* Fatal error if the open part has a string with a damaged reference, an unsupported type, or a link that is
 * not a hard link: its target has not been checked. */
void probe_contents(const struct part *part);
#endif
