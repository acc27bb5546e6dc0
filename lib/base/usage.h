/* SPDX-License-Identifier: GPL-3.0-or-later */
/* usage.h -- what a run of a tool took */
#ifndef BASE_USAGE_H
#define BASE_USAGE_H

/*
 * When the program ends well: with -v its peak memory and processor time on standard error; where PTQ_LOG
 * names a file, a line that is appended to it: the tool, its peak memory in MiB, its seconds from start to
 * end, and those of all processors together, separated by tabs.
 */
void usage_at_end(void);
#endif
