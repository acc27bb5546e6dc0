/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * survive.h -- readers that die(), run again and again in one process
 *
 * survive.c takes the place of lib/base/error.c: die() and misuse() come back
 * to attempt(). What the run has allocated, mapped and opened by then is given
 * back by survive_forget(), so that millions of runs stay small. Linked with
 * -Wl,--wrap for malloc and its like: only what our own objects and Jansson ask
 * for is looked after, so that a block that is freed twice still shows.
 */
#ifndef FUZZ_SURVIVE_H
#define FUZZ_SURVIVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool attempt(void (*run)(void *arg), void *arg);	/* false: it died */
void survive_forget(void);
void survive_use(const void *data, size_t n);		/* reads every byte */

extern bool survive_thorough;				/* set while files are run as they are */

/* What libFuzzer calls, and main.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#endif
