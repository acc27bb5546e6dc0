/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * copy.c -- objects of an input that a tool does not own, into its output; see image.h
 *
 * Member by member, so that some can be left out or have been written already.
 * What has several names within a part keeps them; what an earlier part has
 * too (a tied head) is a link in a file and a marked copy on a stream.
 */
#include "io/hdf5.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

static bool listed(const char *const list[], const char *word)
{
	for (; list && *list; list++)
		if (!strcmp(*list, word))
			return true;
	return false;
}

static void copy_attribute(struct output *out, const struct image *from, const char *path, hid_t a, hid_t to,
	const char *const skip[])
{
	hid_t t = hdf5_id(H5Aget_type(a), from->name, path), s = hdf5_id(H5Aget_space(a), from->name, path), b;
	ssize_t length = H5Aget_name(a, 0, NULL);
	char *name = xalloc(length < 0 ? 1 : (size_t)length + 1, 1);
	hssize_t n = H5Sget_simple_extent_npoints(s);
	size_t size = H5Tget_size(t);
	void *value;

	if (length < 0 || H5Aget_name(a, (size_t)length + 1, name) < 0 || n < 0 || !size || (size_t)n > from->length / size + 1)
		die("%s: %s: attribute %s is damaged", from->name, path, name);
	if (!listed(skip, name) && !hdf5_yes(H5Aexists(to, name), out->name, path)) {
		value = xalloc((size_t)n, size);
		if (H5Aread(a, t, value) < 0 || (b = H5Acreate2(to, name, t, s, H5P_DEFAULT, H5P_DEFAULT)) < 0 || H5Awrite(b, t, value) < 0)
			die("%s: %s: attribute %s cannot be copied to %s", from->name, path, name, out->name);
		H5Dvlen_reclaim(t, s, H5P_DEFAULT, value);
		free(value);
		H5Aclose(b);
	}
	free(name);
	H5Sclose(s), H5Tclose(t);
}

void output_attributes(struct output *out, const struct image *from, const char *path, const char *const skip[])
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

/* Whether the dataset at `there` of the output file holds what `path` of the input does. */
static bool same_data(struct output *out, const char *there, const struct image *from, const char *path)
{
	enum { CHUNK = 1 << 20 };
	struct tensor t = image_tensor(from, path, TENSOR_ANY, -1, NULL);
	hid_t d, s, ty;
	hsize_t dim[H5S_MAX_RANK];
	bool same;

	if (!output_has(out, there))
		return false;
	d = hdf5_id(H5Dopen2(out->file, there, H5P_DEFAULT), out->name, there);
	s = hdf5_id(H5Dget_space(d), out->name, there);
	ty = hdf5_id(H5Dget_type(d), out->name, there);
	same = hdf5_yes(H5Tequal(ty, hdf5_type(t.type)), out->name, there) && H5Sget_simple_extent_ndims(s) == t.rank;
	if (same) {
		hdf5_id(H5Sget_simple_extent_dims(s, dim, NULL), out->name, there);
		for (int i = 0; i < t.rank; i++)
			same &= dim[i] == t.dim[i];
	}
	if (same && t.rank == 2) {
		size_t row = t.dim[1] * tensor_size(t.type), rows = row ? CHUNK / row + 1 : 1;
		void *b = xalloc(rows, row);

		for (size_t i = 0; same && i < t.dim[0]; i += rows) {
			size_t m = t.dim[0] - i < rows ? t.dim[0] - i : rows;
			hsize_t start[2] = { i, 0 }, count[2] = { m, t.dim[1] };
			hid_t mem = hdf5_id(H5Screate_simple(2, count, NULL), out->name, there);

			hdf5_id(H5Sselect_hyperslab(s, H5S_SELECT_SET, start, NULL, count, NULL), out->name, there);
			hdf5_id(H5Dread(d, ty, mem, s, H5P_DEFAULT, b), out->name, there);
			same = !memcmp(b, (char *)t.data + i * row, m * row);
			H5Sclose(mem);
		}
		free(b);
	} else
		same = false;
	H5Tclose(ty), H5Sclose(s), H5Dclose(d);
	return same;
}

/*
 * A dataset that an earlier part has too (a tied head): on a stream it travels
 * as a copy that says whose, in a file it is a hard link again, if it is still the same.
 */
static char *tied_to(const struct image *from, const char *path, const H5O_info_t *info)
{
	if (info->rc > 1 && from->shared)
		for (size_t i = 0; i < from->shared->n; i++)
			if (from->shared->item[i].address == info->addr && from->shared->item[i].part < from->part)
				return xformat("%s", from->shared->item[i].path);
	return image_text(from, path, "tied_to");
}

/* H5Ocopy() refuses datasets in a later format (h5py's libver="latest"): their values are read and written. */
static bool copy_values(struct output *out, const struct image *from, const char *path)
{
	hid_t d = hdf5_id(H5Dopen2(from->file, path, H5P_DEFAULT), from->name, path);
	hid_t stored = hdf5_id(H5Dget_type(d), from->name, path), s = hdf5_id(H5Dget_space(d), from->name, path);
	bool exact, done;
	enum tensor_type ours = hdf5_type_of(stored, &exact, from->name, path);
	hid_t t = hdf5_id(ours ? H5Tcopy(hdf5_type(ours)) : H5Tget_native_type(stored, H5T_DIR_DEFAULT), from->name, path);
	hid_t c = hdf5_id(H5Pcreate(H5P_DATASET_CREATE), out->name, path), to;
	hssize_t n = H5Sget_simple_extent_npoints(s);
	size_t size = H5Tget_size(t);
	void *value;

	if (n < 0 || !size || (size_t)n / 4096 > from->length / size)	/* more than any filter makes of so few bytes */
		die("%s: %s: is larger than its file can hold; the file is damaged", from->name, path);
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

static void copy_dataset(struct output *out, const struct image *from, const char *path, const H5O_info_t *info)
{
	char *tie = tied_to(from, path, info);
	hid_t p = H5Dopen2(from->file, path, H5P_DEFAULT);

	if (H5Dclose(p) < 0)	/* H5Ocopy() does not survive one without a type */
		die("%s: %s: cannot be opened; the file is damaged", from->name, path);
	if (tie && out->fd < 0 && same_data(out, tie, from, path))
		output_link(out, path, tie);
	else {
		p = hdf5_id(H5Pcreate(H5P_OBJECT_COPY), out->name, path);
		if (H5Ocopy(from->file, path, out->file, path, p, H5P_DEFAULT) < 0) {
			if (!copy_values(out, from, path))
				die("%s: %s: cannot be copied to %s, nor its values; the file is damaged or of a later HDF5 library", from->name, path, out->name);
			output_attributes(out, from, path, NULL);
		}
		H5Pclose(p);
		if (tie && out->fd >= 0)
			output_text(out, path, "tied_to", tie);
	}
	free(tie);
}

static bool is_done(const struct output *out, const char *path)
{
	for (size_t i = 0; i < out->dones; i++)
		if (!strcmp(out->done[i], path))
			return true;
	return false;
}

static void copy(struct output *out, const struct image *from, const char *path, const char *const skip[],
	const char *const except[], int depth)
{
	H5O_info_t info = hdf5_info(from, path);
	char **name;
	size_t n;

	if (depth > IMAGE_DEPTH)
		die("%s: %s: is nested too deeply", from->name, path);
	if (listed(except, path) || (except && is_done(out, path)))
		return;
	if (info.rc > 1) {	/* a hard link to what this part has already */
		struct shared_list *l = &out->links;

		for (size_t i = 0; i < l->n; i++)
			if (l->item[i].address == info.addr && !output_has(out, path) && output_has(out, l->item[i].path)) {
				output_link(out, path, l->item[i].path);
				return;
			}
		l->item = realloc(l->item, (l->n + 1) * sizeof *l->item);
		if (!l->item)
			die("out of memory");
		l->item[l->n++] = (struct shared){ info.addr, xformat("%s", path), from->part };
	}
	if (info.type == H5O_TYPE_DATASET) {
		output_parent(out, path);
		if (!output_has(out, path))
			copy_dataset(out, from, path, &info);
		return;
	}
	if (info.type != H5O_TYPE_GROUP)
		die("%s: %s: is neither a group nor a dataset", from->name, path);
	output_group(out, path);
	output_attributes(out, from, path, skip);
	name = hdf5_children(from, path, &n);
	for (size_t i = 0; i < n; i++) {
		char *child = hdf5_join(path, name[i]);

		if (!listed(skip, name[i]))
			copy(out, from, child, NULL, except, depth + 1);
		free(child);
	}
	hdf5_free_names(name, n);
}

void output_copy(struct output *out, const struct image *from, const char *path, const char *const skip[])
{
	copy(out, from, path, skip, NULL, 0);
	out->done = realloc(out->done, (out->dones + 1) * sizeof *out->done);
	if (!out->done)
		die("out of memory");
	out->done[out->dones++] = xformat("%s", path);
}

void output_rest(struct output *out, const struct image *from, const char *const except[])
{
	static const char *const none[] = { NULL };

	for (size_t i = 0; i < from->members; i++)
		copy(out, from, from->member[i], NULL, except ? except : none, 0);
}
