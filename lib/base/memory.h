/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * memory.h -- whether there is enough memory, asked before a library that ends the process where there is not
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H
#include <stddef.h>

/* Dies, naming `whose` they are, unless n stretches of so many bytes can be mapped at once (ulimit -v). */
void memory_check(size_t n, size_t bytes, const char *whose);
/* Grows the stack to what tiles on it need, or dies: later a signal would end the tool without a message. */
void memory_stack(void);
#endif
