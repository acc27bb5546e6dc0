/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * part.c -- any bytes as an HDF5 file or stream: as a file cut into parts, from a pipe, and as one tree
 *
 * All groups, attributes, datasets and layers are read, and all parts are copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/error.h"
#include "io/probe.h"
#include "model/config.h"
#include "model/layer.h"
#include "survive.h"

/* Under libFuzzer the part is read in this process: there are ten times as many runs, and faults of the
 * library are detected. */
void __wrap_probe_apart(const struct part *part);
void __wrap_probe_apart(const struct part *part)
{
	probe_part(part);
}

struct where { const struct part *part; const char *path; struct output *out; };

static void read_tensor(void *arg)
{
	struct where *w = arg;
	struct tensor t = part_tensor(w->part, w->path, TENSOR_ANY, -1, NULL);

	survive_use(t.data, tensor_count(&t) * tensor_size(t.type));
}

static void read_numbers(void *arg)
{
	struct where *w = arg;
	struct tensor t = part_tensor(w->part, w->path, TENSOR_I64, -1, NULL);

	survive_use(t.data, tensor_count(&t) * tensor_size(t.type));
}

static void read_string(void *arg)
{
	struct where *w = arg;
	char *s = part_string(w->part, w->path);

	if (s)
		survive_use(s, strlen(s));
	free(s);
}

static void read_layer(void *arg)
{
	struct where *w = arg;
	struct layer l = layer_read(w->part, w->path, 0, 0);

	survive_use(l.path, strlen(l.path));
	layer_free(&l);
}

static void read_attributes(void *arg)
{
	static const char *const names[] =
		{ "history", "ptq_version", "norm", "storage", "tied_to", "group", "bits", "tokens" };
	struct where *w = arg;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		free(part_text(w->part, w->path, names[i]));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		part_number(w->part, w->path, names[i], 0);
}

static void read_children(void *arg)
{
	struct where *w = arg;
	size_t n;
	char **child;

	for (const struct part *i = w->part; i; i = i->also) {
		if (H5Lexists(i->file, w->path, H5P_DEFAULT) <= 0 && strcmp(w->path, "/"))
			continue;
		child = tree_children(i, w->path, &n);
		for (size_t k = 0; k < n; k++) {
			struct where at = { w->part, child[k], NULL };

			attempt(read_tensor, &at);
			attempt(read_numbers, &at);
			attempt(read_string, &at);
			attempt(read_attributes, &at);
		}
		tree_free_paths(child, n);
	}
}

static void visit(void *arg, const char *group)
{
	struct where w = { arg, group, NULL };

	free(part_same(arg, group));
	attempt(read_children, &w);
	attempt(read_attributes, &w);
	attempt(read_layer, &w);
}

static void read_image(void *arg)
{
	struct where w = { arg, "/", NULL };

	attempt(read_children, &w);
	attempt(read_attributes, &w);
	part_kind(arg);
	free(part_config(arg));
	part_groups(arg, visit, arg);
}

static void copy_part(void *arg)
{
	struct where *w = arg;

	output_begin(w->out, w->part);
	output_rest(w->out, w->part, NULL);
	output_end(w->out);
}

static void read_parts(void *arg)
{
	struct input *in = input_open(arg, model_layout, NULL);
	struct output *out = output_open("/dev/null", "model");
	bool whole = true;
	struct part *part;

	while ((part = input_next(in))) {
		struct where w = { part, "/", out };

		attempt(read_image, part);
		whole = whole && attempt(copy_part, &w);
	}
	input_close(in);
}

static void read_whole(void *arg)
{
	struct part *part = part_open(arg, NULL);

	attempt(read_image, part);
	part_close(part);
}

/* Closes objects that a fatal error left open. Identifiers count up for each kind, so those lie between the
 * first and the last. */
static void close_ids(hid_t first[3])
{
	const hid_t last[3] = { H5Screate(H5S_SCALAR), H5Tcopy(H5T_C_S1), H5Pcreate(H5P_FILE_ACCESS) };
	hid_t open[256];
	ssize_t n;

	while ((n = H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_ALL & ~H5F_OBJ_FILE, 256, open)) > 0)
		for (ssize_t i = 0; i < n; i++)
			H5Idec_ref(open[i]);
	while ((n = H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_FILE, 256, open)) > 0)
		for (ssize_t i = 0; i < n; i++)
			H5Idec_ref(open[i]);
	for (int k = 0; k < 3; k++)
		for (hid_t id = first[k]; id <= last[k]; id++)
			H5Idec_ref(id);
}

static void close_all(void *arg)
{
	close_ids(arg);
}

static void run(void (*read)(void *), const char *path)
{
	hid_t first[3];

	hdf5_init();
	first[0] = H5Screate(H5S_SCALAR), first[1] = H5Tcopy(H5T_C_S1), first[2] = H5Pcreate(H5P_FILE_ACCESS);
	attempt(read, (void *)(uintptr_t)path);
	attempt(close_all, first);
	survive_forget();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	enum { PIPE = 60000 };
	int fd = memfd_create("fuzz", 0), end[2];
	unsigned way = 0;		/* of the three ways: if there are many runs, each uses one */
	char path[64];

	for (size_t i = 0; i < n; i++)
		way += data[i];
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (survive_thorough || way % 3 == 0)
		run(read_parts, path);
	if (survive_thorough || way % 3 == 1)
		run(read_whole, path);
	close(fd);
	if ((!survive_thorough && way % 3 != 2) || n > PIPE)
		return 0;
	if (pipe(end) || write(end[1], data, n) != (ssize_t)n)
		abort();
	close(end[1]);
	snprintf(path, sizeof path, "/proc/self/fd/%d", end[0]);
	run(read_parts, path);
	close(end[0]);
	return 0;
}
