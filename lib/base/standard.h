/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * standard.h -- standard input, output and error that were closed before the tool started
 *
 * Before main(), a closed descriptor 0, 1 or 2 is opened on the root folder, which can be neither read nor
 * written. So no file that is opened later gets this descriptor, and writing to it fails.
 */
#ifndef BASE_STANDARD_H
#define BASE_STANDARD_H
#include <stdbool.h>

/* Whether descriptor 0, 1 or 2 was closed when the tool started. */
bool standard_closed(int fd);
#endif
