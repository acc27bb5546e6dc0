/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * memory.h -- checks for enough memory, before a library is called that cannot report the lack of it
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H
#include <stddef.h>

/* Fatal error unless n blocks of `bytes` bytes can be mapped at the same time (ulimit -v). whose: the user of
 * the blocks, for the message. */
void memory_check(size_t n, size_t bytes, const char *whose);
/* Grows the stack to the size that tiles on it need. Fatal error if that is impossible; without this call, a
 * signal would end the tool later without a message. */
void memory_stack(void);
#endif
