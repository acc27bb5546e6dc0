/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * copy.c -- copies histories and objects from an input to an output; see part.h
 *
 * Objects are copied member by member, so that some can be left out or have been written before. An object
 * with several names in a part keeps them. Data that an earlier part has, too (a tied head), become a link
 * in a file, and a copy with the attribute tied_to on a stream.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/history.h"
#include "io/file.h"
#include "io/output.h"

static bool listed(const char *const list[], const char *word)
{
	for (; list && *list; list++)
		if (!strcmp(*list, word))
			return true;
	return false;
}

static void copy_attribute(struct output *out, const struct part *from, const char *path, hid_t a, hid_t to,
	const char *const skip[])
{
	hid_t t = hdf5_id(H5Aget_type(a), from->name, path), b;
	hid_t s = hdf5_id(H5Aget_space(a), from->name, path);
	ssize_t length = H5Aget_name(a, 0, NULL);
	char *name = xalloc(length < 0 ? 1 : (size_t)length + 1, 1);
	hssize_t n = H5Sget_simple_extent_npoints(s);
	size_t size = H5Tget_size(t);
	void *value;

	if (length < 0 || H5Aget_name(a, (size_t)length + 1, name) < 0 || n < 0 || !size ||
	    (size_t)n > from->length / size + 1)
		die("%s: %s: attribute %s is damaged", from->name, path, name);
	if (!listed(skip, name) && !hdf5_true(H5Aexists(to, name), out->name, path)) {
		value = xalloc((size_t)n, size);
		b = H5Aread(a, t, value) < 0 ? -1 : H5Acreate2(to, name, t, s, H5P_DEFAULT, H5P_DEFAULT);
		if (b < 0 || H5Awrite(b, t, value) < 0)
			die("%s: %s: attribute %s cannot be copied to %s", from->name, path, name, out->name);
		H5Dvlen_reclaim(t, s, H5P_DEFAULT, value);
		free(value);
		H5Aclose(b);
	}
	free(name);
	H5Sclose(s), H5Tclose(t);
}

/* Copies the attributes that the copy of an object does not have yet, except those in skip. */
static void copy_attributes(struct output *out, const struct part *from, const char *path,
	const char *const skip[])
{
	hid_t to = output_object(out, path), o = H5Oopen(from->file, path, H5P_DEFAULT), a;
	H5O_info_t info;

	if (o < 0 || H5Oget_info2(o, &info, H5O_INFO_NUM_ATTRS) < 0)
		die("%s: %s: its attributes cannot be read; the file is damaged", from->name, path);
	for (hsize_t i = 0; i < info.num_attrs; i++) {
		a = H5Aopen_by_idx(o, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
		if (a < 0)
			die("%s: %s: its attributes cannot be read; the file is damaged", from->name, path);
		copy_attribute(out, from, path, a, to, skip);
		H5Aclose(a);
	}
	H5Oclose(o), H5Oclose(to);
}

/* Whether the dataset `there` of the output, which has the shape of t, has the numbers of t. */
static bool same_rows(struct output *out, const char *there, hid_t d, hid_t type, hid_t space,
	const struct tensor *t)
{
	enum { COMPARED = 1 << 20 };	/* bytes per read */
	size_t row = t->dim[1] * tensor_size(t->type), rows = row ? COMPARED / row + 1 : 1;
	void *b = xalloc(rows, row);
	bool same = true;

	for (size_t i = 0; same && i < t->dim[0]; i += rows) {
		size_t m = t->dim[0] - i < rows ? t->dim[0] - i : rows;
		hsize_t start[2] = { i, 0 }, n[2] = { m, t->dim[1] };
		hid_t memory = hdf5_id(H5Screate_simple(2, n, NULL), out->name, there);

		hdf5_id(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, n, NULL), out->name, there);
		hdf5_id(H5Dread(d, type, memory, space, H5P_DEFAULT, b), out->name, there);
		same = !memcmp(b, (char *)t->data + i * row, m * row);
		H5Sclose(memory);
	}
	free(b);
	return same;
}

/* Whether the dataset `there` of the output is the same matrix as `path` of the input. */
static bool same_data(struct output *out, const char *there, const struct part *from, const char *path)
{
	struct tensor t = part_tensor(from, path, TENSOR_ANY, -1, NULL);
	hid_t d, space, type;
	hsize_t dim[2];
	bool same;

	if (t.rank != 2 || !output_has(out, there))
		return false;
	d = hdf5_id(H5Dopen2(out->file, there, H5P_DEFAULT), out->name, there);
	space = hdf5_id(H5Dget_space(d), out->name, there);
	type = hdf5_id(H5Dget_type(d), out->name, there);
	same = hdf5_true(H5Tequal(type, hdf5_type(t.type)), out->name, there) &&
		H5Sget_simple_extent_ndims(space) == 2 &&
		hdf5_id(H5Sget_simple_extent_dims(space, dim, NULL), out->name, there) == 2 &&
		dim[0] == t.dim[0] && dim[1] == t.dim[1] && same_rows(out, there, d, type, space, &t);
	H5Tclose(type), H5Sclose(space), H5Dclose(d);
	return same;
}

/* Copies a dataset by its values: H5Ocopy() refuses datasets of a later format (h5py's libver="latest"). */
static bool copy_values(struct output *out, const struct part *from, const char *path)
{
	hid_t d = hdf5_id(H5Dopen2(from->file, path, H5P_DEFAULT), from->name, path);
	hid_t stored = hdf5_id(H5Dget_type(d), from->name, path);
	hid_t s = hdf5_id(H5Dget_space(d), from->name, path);
	bool exact, done;
	enum tensor_type ours = hdf5_type_of(stored, &exact, from->name, path);
	hid_t t = hdf5_id(ours ? H5Tcopy(hdf5_type(ours)) : H5Tget_native_type(stored, H5T_DIR_DEFAULT),
		from->name, path);
	hid_t c = hdf5_id(H5Pcreate(H5P_DATASET_CREATE), out->name, path), to;
	hssize_t n = H5Sget_simple_extent_npoints(s);
	size_t size = H5Tget_size(t);
	void *value;

	if (n < 0 || !size || (size_t)n / 4096 > from->length / size)	/* no filter expands by more */
		die("%s: %s: has more data than its file can hold; it is damaged", from->name, path);
	value = xalloc((size_t)n, size);
	hdf5_id(H5Pset_obj_track_times(c, false), out->name, path);
	to = H5Dcreate2(out->file, path, t, s, H5P_DEFAULT, c, H5P_DEFAULT);
	done = to >= 0 && H5Dread(d, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0 &&
		H5Dwrite(to, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0 && H5Dclose(to) >= 0;
	if (done)
		H5Dvlen_reclaim(t, s, H5P_DEFAULT, value);
	free(value);
	H5Pclose(c), H5Tclose(t), H5Sclose(s), H5Tclose(stored), H5Dclose(d);
	return done;
}

static void copy_dataset(struct output *out, const struct part *from, const char *path)
{
	char *tie = part_tied(from, path);
	hid_t p = H5Dopen2(from->file, path, H5P_DEFAULT);

	if (H5Dclose(p) < 0)	/* H5Ocopy() crashes on a dataset without a type */
		die("%s: %s: cannot be opened; the file is damaged", from->name, path);
	if (tie && out->stream < 0 && same_data(out, tie, from, path))
		output_link(out, path, tie);
	else {
		p = hdf5_id(H5Pcreate(H5P_OBJECT_COPY), out->name, path);
		if (H5Ocopy(from->file, path, out->file, path, p, H5P_DEFAULT) < 0) {
			if (!copy_values(out, from, path))
				die("%s: %s: cannot be copied to %s; damaged, or of a later HDF5 library",
					from->name, path, out->name);
			copy_attributes(out, from, path, NULL);
		}
		H5Pclose(p);
		if (tie && out->stream >= 0)
			output_text(out, path, "tied_to", tie);
	}
	free(tie);
}

/* Links an object to its copy under another name in this part. If no copy exists, records this name and
 * returns false. */
static bool link_to_copy(struct output *out, const char *path, const H5O_info_t *info)
{
	const struct links *l = &out->links;

	for (const struct link *i = l->item; i < l->item + l->n; i++)
		if (i->address == info->addr && !output_has(out, path) && output_has(out, i->path)) {
			output_link(out, path, i->path);
			return true;
		}
	links_add(&out->links, info->addr, path, out->part);
	return false;
}

/* Copies an object with all objects below it. except NULL: copies paths of earlier output_copy() calls
 * again. */
static void copy(struct output *out, const struct part *from, const char *path, const char *const skip[],
	const char *const except[], int depth)
{
	H5O_info_t info = tree_info(from, path);
	char **child;
	size_t n;

	if (depth > TREE_DEPTH)
		die("%s: %s: is nested too deeply", from->name, path);
	if (listed(except, path) || (except && listed((const char *const *)out->copied, path)))
		return;
	if (info.rc > 1 && link_to_copy(out, path, &info))
		return;
	if (info.type == H5O_TYPE_DATASET) {
		output_parent(out, path);
		if (!output_has(out, path))
			copy_dataset(out, from, path);
		return;
	}
	if (info.type != H5O_TYPE_GROUP)
		die("%s: %s: is neither a group nor a dataset", from->name, path);
	output_group(out, path);
	copy_attributes(out, from, path, skip);
	child = tree_children(from, path, &n);
	for (size_t i = 0; i < n; i++)
		if (!listed(skip, strrchr(child[i], '/') + 1))
			copy(out, from, child[i], NULL, except, depth + 1);
	tree_free_paths(child, n);
}

void output_copy(struct output *out, const struct part *from, const char *path, const char *const skip[])
{
	copy(out, from, path, skip, NULL, 0);
	out->copied = xgrow(out->copied, out->copies + 2, sizeof *out->copied);
	out->copied[out->copies++] = xformat("%s", path);
	out->copied[out->copies] = NULL;
}

void output_rest(struct output *out, const struct part *from, const char *const except[])
{
	static const char *const none[] = { NULL };

	for (size_t i = 0; i < from->members; i++)
		copy(out, from, from->member[i], NULL, except ? except : none, 0);
}

void output_attributes(struct output *out, const struct part *from, const char *path)
{
	copy_attributes(out, from, path, NULL);
}

struct lineage { struct output *out; const struct part *from; const char *prefix; };

/* Copies history:X of an input as history:PREFIX:X and, if PREFIX is not empty, history as history:PREFIX. */
static herr_t copy_history(hid_t root, const char *name, const H5A_info_t *info, void *arg)
{
	static const char history[] = "history";
	const size_t n = sizeof history - 1;
	struct lineage *l = arg;
	char *text, *ours;

	(void)root, (void)info;
	if (strncmp(name, history, n) || (name[n] ? name[n] != ':' : !*l->prefix))
		return 0;
	text = part_text(l->from, "/", name);
	if (!text)
		return 0;
	ours = xformat("%s%s%s%s", history, *l->prefix ? ":" : "", l->prefix, name + n);
	output_text(l->out, "/", ours, text);
	free(ours), free(text);
	return 0;
}

static void copy_histories(struct output *out, const struct part *from, const char *prefix)
{
	hid_t root = hdf5_id(H5Gopen2(from->file, "/", H5P_DEFAULT), from->name, "/");
	struct lineage l = { out, from, prefix };

	if (H5Aiterate2(root, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_history, &l) < 0)
		die("%s: /: its attributes cannot be read; the file is damaged", from->name);
	H5Gclose(root);
}

/* An input without a history, made by hand: its digest, if it is a file. */
static void note_digest(struct output *out, const struct part *from, const char *input)
{
	char *digest = file_digest(part_name(from)), *name = xformat("history:%s", input);
	char *text = digest ? xformat("a file without a history, digest %s", digest) :
		xformat("a stream without a history");

	output_text(out, "/", name, text);
	free(text), free(name), free(digest);
}

void output_history(struct output *out, const char *input, const struct part *from)
{
	char *history;

	if (!out->open || out->part)
		die("%s: histories of inputs are written in part 0 only", out->name);
	copy_histories(out, from, input);
	history = part_text(from, "/", "history");
	if (!history)
		note_digest(out, from, input);
	free(history);
}

void output_begin(struct output *out, const struct part *from)
{
	static const char *const set[] = { "ptq_kind", "ptq_version", "history", "part", "parts", NULL };
	char *old;

	output_start(out, from->part, from->parts);
	if (from->part)
		return;
	if (!strcmp(part_kind(from), out->kind))
		copy_attributes(out, from, "/", set);
	else
		copy_histories(out, from, "");
	old = part_text(from, "/", "history");
	if (old) {
		char *both = xformat("%s\n%s", history_line(), old);

		output_text(out, "/", "history", both);
		free(both);
		free(old);
	}
}

void output_write_finished(struct output *out, const struct part *from)
{
	static const char *const set[] = { "ptq_kind", "ptq_version", "history", "part", "parts", "resume",
		"resume:processor", NULL };
	static const char *const report[] = { RESUME_REPORT, NULL };
	char *history;

	output_start(out, from->part, from->parts);
	if (!from->part) {
		history = part_text(from, "/", "history");
		if (history)
			output_text(out, "/", "history", history);
		free(history);
		copy_attributes(out, from, "/", set);
	}
	output_rest(out, from, report);
	output_end(out);
}

void output_pass(struct output *out, const struct part *part)
{
	if (out->stream >= 0 && !out->kept && part->framed && part->part) {
		output_image(out, part->part, part->parts, part->base, part->length);
		return;
	}
	output_begin(out, part);
	output_rest(out, part, NULL);
	output_end(out);
}
