/* SPDX-License-Identifier: GPL-3.0-or-later */
/* relay.c -- see relay.h */
#include "io/relay.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/error.h"
#include "base/scratch.h"
#include "io/output.h"
#include "io/tree.h"

struct relay {
	int fd;				/* input and output begin at its start for each part */
	struct output *out;
	struct input *in;
	struct part *part;		/* of the last relay_next() */
};

struct relay *relay_open(const char *name, const char *kind)
{
	struct relay *r = xalloc(1, sizeof *r);

	hdf5_init();
	r->fd = scratch_file();
	r->out = output_stream(name, r->fd, kind);
	r->in = input_of_stream(name, r->fd, kind);
	return r;
}

struct output *relay_output(struct relay *r)
{
	return r->out;
}

static void rewind_file(const struct relay *r)
{
	if (lseek(r->fd, 0, SEEK_SET) < 0)
		die("%s: cannot seek to its start:", scratch_folder());
}

struct part *relay_next(struct relay *r)
{
	rewind_file(r);
	r->part = input_next(r->in);	/* the part is now in memory, or in its own mapping */
	rewind_file(r);
	if (ftruncate(r->fd, 0))
		die("%s: cannot be emptied:", scratch_folder());
	return r->part;
}

void relay_pass(const struct relay *r, struct output *to)
{
	output_write_finished(to, r->part);
}

void relay_close(struct relay *r)
{
	output_free(r->out);
	input_close(r->in);
	close(r->fd);
	free(r);
}
