/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * room.h -- whether memory can be had, asked before a library that does not take no for an answer
 */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H
#include <stdbool.h>
#include <stddef.h>

/* Dies unless n stretches of that many bytes can be mapped at once (ulimit -v); keeps none. whose: for the message. */
void room_need(size_t n, size_t bytes, const char *whose);
/* Grows the stack to what tiles on it need, or dies: later, where memory is short, it would be a signal. */
void room_stack(void);
#endif
