/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * relay.h -- the parts of a result read again as soon as each is written, one at a time
 *
 * They go through an unlinked file in $TMPDIR (default /var/tmp), of the size of the largest part.
 */
#ifndef IO_RELAY_H
#define IO_RELAY_H
#include "io/part.h"

struct relay;
/* name: of what is written, for messages. */
struct relay *relay_open(const char *name, const char *kind);
struct output *relay_output(struct relay *r);
/* The part that was just written to it, between output_end() and the next output_begin(); valid until the
 * next call. */
struct part *relay_next(struct relay *r);
/* Writes the part of the last relay_next() to another output, as it is. */
void relay_pass(const struct relay *r, struct output *to);
void relay_close(struct relay *r);
#endif
