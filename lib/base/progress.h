/* SPDX-License-Identifier: GPL-3.0-or-later */
/* progress.h -- one line on a terminal for long work; silent elsewhere and under -q */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H
#include <stddef.h>
void progress(const char *what, size_t done, size_t total);	/* redrawn at most 10 times a second */
void progress_clear(void);	/* before any other output; die() and warn() call it */
#endif
