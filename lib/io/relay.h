/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * relay.h -- reads each part of a result again directly after it was written
 *
 * Calling sequence: relay_open(); for each part, output_begin() ... output_end() on relay_output(), then
 * relay_next(); relay_close(). The parts pass through an unlinked file in $TMPDIR (default /var/tmp), which
 * is as large as the largest part.
 */
#ifndef IO_RELAY_H
#define IO_RELAY_H
#include "io/part.h"

struct relay;
/* name: the result's name, for messages. */
struct relay *relay_open(const char *name, const char *kind);
struct output *relay_output(struct relay *r);
/* The part that was just written. Called between output_end() and the next output_begin(); valid until the
 * next call. */
struct part *relay_next(struct relay *r);
/* Writes the part of the last relay_next() unchanged to another output. */
void relay_pass(const struct relay *r, struct output *to);
void relay_close(struct relay *r);
#endif
