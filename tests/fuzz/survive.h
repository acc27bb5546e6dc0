/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * survive.h -- runs readers that call die(), repeatedly in one process
 *
 * survive.c replaces lib/base/error.c: die() and misuse() return to attempt(). survive_forget() frees memory,
 * maps and files that the run has left, so that millions of runs need little memory. Linked with -Wl,--wrap
 * for malloc and its variants: only requests of our objects and of Jansson are recorded, so a block that is
 * freed twice is still detected.
 */
#ifndef FUZZ_SURVIVE_H
#define FUZZ_SURVIVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool attempt(void (*run)(void *arg), void *arg);	/* false: it called die() or misuse() */
void survive_forget(void);
void survive_use(const void *data, size_t n);		/* reads every byte */

extern bool survive_thorough;				/* set while files are run unchanged */

/* The function that libFuzzer and main.c call. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#endif
