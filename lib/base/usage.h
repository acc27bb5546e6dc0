/* SPDX-License-Identifier: GPL-3.0-or-later */
/* usage.h -- memory and time of a run */
#ifndef BASE_USAGE_H
#define BASE_USAGE_H

/*
 * Registers output for the end of a successful run, and starts the clock. With -v, peak memory and processor
 * time are printed to standard error. If PTQ_LOG names a file, a line is appended to it, separated by tabs:
 * the tool, its peak memory in MiB, its seconds from start to end, and its seconds on all processors
 * together.
 */
void usage_at_end(void);
#endif
