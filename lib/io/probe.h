/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * probe.h -- checks that the HDF5 library can read a part
 *
 * A damaged part can crash the library or make it loop without end. probe_apart() comes before a part is
 * opened, probe_strings() after. Both end with a fatal error if the part is damaged.
 */
#ifndef IO_PROBE_H
#define IO_PROBE_H
#include "io/tree.h"

/* Makes every call of the library that reading the part may need. A damaged part may crash it. */
void probe_part(const struct part *part);
/* Runs probe_part() in a child process. Fatal error if the child crashes or does not finish. */
void probe_apart(const struct part *part);
/* Fatal error if the open part has a string with a damaged reference, or an unsupported type. */
void probe_strings(const struct part *part);
#endif
