/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * part.c -- reads attributes, strings and tensors of a part; see part.h
 *
 * A tensor is a view of the part's memory, after a check that it lies inside it. Data of another byte order
 * or layout are converted.
 */
#include "io/part.h"
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "io/tree.h"

const char *part_name(const struct part *part)
{
	return part->name;
}

size_t part_index(const struct part *part)
{
	return part->part;
}

size_t part_count(const struct part *part)
{
	return part->parts;
}

/* The part of the chain that has the object, or NULL. */
static const struct part *owner(const struct part *part, const char *path)
{
	for (; part; part = part->also)
		if (hdf5_has(part->file, path, part->name) && (!strcmp(path, "/") ||
		    hdf5_true(H5Oexists_by_name(part->file, path, H5P_DEFAULT), part->name, path)))
			return part;
	return NULL;
}

bool part_has(const struct part *part, const char *path)
{
	return owner(part, path) != NULL;
}

/* Reads the string of an attribute or a dataset; NULL if it is not exactly one string. */
static char *read_string(const struct part *part, const char *path, hid_t object)
{
	bool attribute = H5Iget_type(object) == H5I_ATTR;
	hid_t t = hdf5_id(attribute ? H5Aget_type(object) : H5Dget_type(object), part->name, path);
	hid_t s = hdf5_id(attribute ? H5Aget_space(object) : H5Dget_space(object), part->name, path);
	bool variable = hdf5_true(H5Tis_variable_str(t), part->name, path);
	size_t n = variable ? 0 : H5Tget_size(t);
	hid_t memory = hdf5_id(H5Tcopy(t), part->name, path);
	char *text = NULL, *v = NULL;
	void *to = &v;

	if (H5Tget_class(t) == H5T_STRING && H5Sget_simple_extent_npoints(s) == 1) {
		if (n > part->length)
			die("%s: %s: is longer than the file; the file is damaged", part->name, path);
		if (!variable)
			to = text = xalloc(n + 1, 1);
		if ((attribute ? H5Aread(object, memory, to) :
		     H5Dread(object, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to)) < 0)
			die("%s: %s: cannot be read; the file is damaged", part->name, path);
		if (v)
			text = xformat("%s", v);
		H5free_memory(v);
	}
	H5Tclose(memory), H5Sclose(s), H5Tclose(t);
	return text;
}

/* Opens an attribute; false if the object does not have it. */
static bool open_attribute(const struct part *part, const char *path, const char *name, hid_t *a)
{
	hid_t o = hdf5_id(H5Oopen(part->file, path, H5P_DEFAULT), part->name, path);
	bool there = hdf5_true(H5Aexists(o, name), part->name, path);

	if (there)
		*a = hdf5_id(H5Aopen(o, name, H5P_DEFAULT), part->name, path);
	H5Oclose(o);
	return there;
}

char *part_text(const struct part *part, const char *path, const char *name)
{
	char *text;
	hid_t a;

	part = owner(part, path);
	if (!part || !open_attribute(part, path, name, &a))
		return NULL;
	text = read_string(part, path, a);
	if (!text)
		die("%s: %s: attribute %s is not one text", part->name, path, name);
	H5Aclose(a);
	return text;
}

struct histories { const struct part *part; FILE *text; };

static herr_t add_history(hid_t root, const char *name, const H5A_info_t *info, void *arg)
{
	const struct histories *h = arg;
	char *text = strncmp(name, "history", strlen("history")) ? NULL : part_text(h->part, "/", name);

	(void)root, (void)info;
	if (text)
		fprintf(h->text, "%s\n%s\n", name, text);
	free(text);
	return 0;
}

char *part_histories(const struct part *part)
{
	hid_t root = hdf5_id(H5Gopen2(part->file, "/", H5P_DEFAULT), part->name, "/");
	char *y = NULL;
	size_t n;
	struct histories h = { part, open_memstream(&y, &n) };

	if (!h.text)
		die("out of memory");
	if (H5Aiterate2(root, H5_INDEX_NAME, H5_ITER_INC, NULL, add_history, &h) < 0)
		die("%s: /: its attributes cannot be read; the file is damaged", part->name);
	if (ferror(h.text) || fclose(h.text) || !y)
		die("out of memory");
	H5Gclose(root);
	return y;
}

struct names { char **name; size_t n; };

static void add_name(struct names *y, const char *slash, const char *name)
{
	y->name = xgrow(y->name, y->n + 1, sizeof *y->name);
	y->name[y->n++] = xformat("%s%s", slash, name);
}

static herr_t add_member(hid_t group, const char *name, const H5L_info_t *info, void *arg)
{
	(void)group, (void)info;
	add_name(arg, "", name);
	return 0;
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *arg)
{
	(void)object, (void)info;
	add_name(arg, "/", name);
	return 0;
}

char **part_names(const struct part *part, const char *group, size_t *n)
{
	struct names y = { 0 };
	hid_t o;

	part = owner(part, group);
	o = part ? hdf5_id(H5Oopen(part->file, group, H5P_DEFAULT), part->name, group) : -1;
	if (part && ((H5Iget_type(o) == H5I_GROUP &&
	    H5Literate(o, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_member, &y) < 0) ||
	    H5Aiterate2(o, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_attribute, &y) < 0))
		die("%s: %s: cannot list this group; the file is damaged", part->name, group);
	if (part)
		H5Oclose(o);
	*n = y.n;
	return y.name;
}

void part_free_names(char **name, size_t n)
{
	while (n)
		free(name[--n]);
	free(name);
}

/* A visit of the attributes of the root. */
struct attributes {
	const struct part *part;
	void (*visit)(void *arg, const char *name, const char *text, double number);
	void *arg;
};

static herr_t visit_attribute(hid_t root, const char *name, const H5A_info_t *info, void *arg)
{
	const struct attributes *w = arg;
	hid_t a = hdf5_id(H5Aopen(root, name, H5P_DEFAULT), w->part->name, "/");
	hid_t t = hdf5_id(H5Aget_type(a), w->part->name, "/");
	hid_t s = hdf5_id(H5Aget_space(a), w->part->name, "/");
	const H5T_class_t is = H5Tget_class(t);
	const bool one = H5Sget_simple_extent_npoints(s) == 1;
	const bool negative = is == H5T_INTEGER && H5Tget_sign(t) == H5T_SGN_2;
	char *text = is == H5T_STRING ? read_string(w->part, "/", a) : NULL;
	double v = NAN;
	union { int64_t i; uint64_t u; } whole;

	(void)info;
	if (one && (is == H5T_INTEGER || is == H5T_FLOAT || is == H5T_ENUM) &&
	    H5Aread(a, H5T_NATIVE_DOUBLE, &v) < 0)
		die("%s: /: attribute %s cannot be read; the file is damaged", w->part->name, name);
	if (is == H5T_INTEGER && fabs(v) >= 0x1p53 &&
	    H5Aread(a, negative ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, &whole) >= 0)
		text = negative ? xformat("%" PRId64, whole.i) : xformat("%" PRIu64, whole.u);
	H5Sclose(s), H5Tclose(t), H5Aclose(a);
	w->visit(w->arg, name, text, v);
	free(text);
	return 0;
}

void part_attributes(const struct part *part, void (*visit)(void *arg, const char *name, const char *text,
	double number), void *arg)
{
	struct attributes w = { part, visit, arg };
	hid_t root = hdf5_id(H5Gopen2(part->file, "/", H5P_DEFAULT), part->name, "/");

	if (H5Aiterate2(root, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_attribute, &w) < 0)
		die("%s: /: its attributes cannot be read; the file is damaged", part->name);
	H5Gclose(root);
}

double part_number(const struct part *part, const char *path, const char *name, double default_value)
{
	double v = default_value;
	H5T_class_t is;
	hid_t a, s, t;

	part = owner(part, path);
	if (!part || !open_attribute(part, path, name, &a))
		return default_value;
	s = hdf5_id(H5Aget_space(a), part->name, path);
	t = hdf5_id(H5Aget_type(a), part->name, path);
	is = H5Tget_class(t);	/* h5py stores True as an H5T_ENUM */
	if ((is != H5T_INTEGER && is != H5T_FLOAT && is != H5T_ENUM) ||
	    H5Sget_simple_extent_npoints(s) != 1 || H5Aread(a, H5T_NATIVE_DOUBLE, &v) < 0)
		die("%s: %s: attribute %s is not one number", part->name, path, name);
	H5Tclose(t), H5Sclose(s), H5Aclose(a);
	return v;
}

char *part_string(const struct part *part, const char *path)
{
	hid_t ds;
	char *text;

	part = owner(part, path);
	if (!part)
		return NULL;
	ds = H5Dopen2(part->file, path, H5P_DEFAULT);
	if (ds < 0)
		die("%s: %s: is not a dataset", part->name, path);
	text = read_string(part, path, ds);
	if (!text)
		die("%s: %s: is not a string", part->name, path);
	H5Dclose(ds);
	return text;
}

char **part_strings(const struct part *from, const char *path, size_t n)
{
	const struct part *part = owner(from, path);
	hid_t ds = part ? H5Dopen2(part->file, path, H5P_DEFAULT) : -1, t, s;
	char **text = xalloc(n, sizeof *text), *data;
	size_t size;
	bool variable;

	if (ds < 0)
		die("%s: %s: is missing, expected a dataset", part_name(from), path);
	t = hdf5_id(H5Dget_type(ds), part->name, path);
	s = hdf5_id(H5Dget_space(ds), part->name, path);
	if (H5Tget_class(t) != H5T_STRING || H5Sget_simple_extent_npoints(s) != (hssize_t)n)
		die("%s: %s: is not %zu texts", part->name, path, n);
	variable = hdf5_true(H5Tis_variable_str(t), part->name, path);
	size = H5Tget_size(t);
	if (size > part->length)
		die("%s: %s: is longer than the file; the file is damaged", part->name, path);
	data = xalloc(n, size);
	if (H5Dread(ds, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
		die("%s: %s: cannot be read; the file is damaged", part->name, path);
	for (size_t i = 0; i < n; i++) {
		const char *own = data + i * size, *elsewhere = NULL;

		if (variable)
			memcpy(&elsewhere, own, sizeof elsewhere);
		text[i] = variable ? xformat("%s", elsewhere ? elsewhere : "") :
			xformat("%.*s", (int)min(size, INT_MAX), own);
	}
	if (variable)
		H5Dvlen_reclaim(t, s, H5P_DEFAULT, data);
	free(data);
	H5Sclose(s), H5Tclose(t), H5Dclose(ds);
	return text;
}

char *part_config(const struct part *part)
{
	return part_string(part, "/config");
}

const char *part_kind(const struct part *from)
{
	struct part *part = (struct part *)(uintptr_t)from;
	char *text = part_text(part, "/", "ptq_kind");

	snprintf(part->kind, sizeof part->kind, "%s", text ? text : "");
	free(text);
	return part->kind;
}

void *part_keep(const struct part *from, void *p)
{
	struct part *part = (struct part *)(uintptr_t)from;

	part->copy = xgrow(part->copy, part->copies + 1, sizeof *part->copy);
	return part->copy[part->copies++] = p;
}

static bool is_float(enum tensor_type t)
{
	return t >= TENSOR_F32 && t <= TENSOR_F64;
}

/* The type in memory of stored data that is read as `type`. TENSOR_ANY: not possible, since HDF5 converts
 * floats of 16 bits slowly, and some wrongly. */
static enum tensor_type type_in_memory(enum tensor_type stored, enum tensor_type type)
{
	if (type == TENSOR_ANY)
		return stored == TENSOR_F64 ? TENSOR_F32 : stored;
	if (stored == type || (!is_float(stored) && !is_float(type)))
		return type;
	if (is_float(stored) && is_float(type) && tensor_size(stored) >= 4 && tensor_size(type) >= 4)
		return type;
	return TENSOR_ANY;
}

/* Stops a conversion at a value that the new type cannot represent: HDF5 would clamp it, or make it
 * infinite. */
static H5T_conv_ret_t refuse_range(H5T_conv_except_t what, hid_t from, hid_t to, void *value, void *result,
	void *arg)
{
	(void)from, (void)to, (void)value, (void)result;
	if (what != H5T_CONV_EXCEPT_RANGE_HI && what != H5T_CONV_EXCEPT_RANGE_LOW)
		return H5T_CONV_UNHANDLED;
	*(bool *)arg = true;
	return H5T_CONV_ABORT;
}

/* The first filter of the data that the library lacks, or NULL. */
static char *missing_filter(hid_t creation)
{
	const int n = H5Pget_nfilters(creation);	/* below 0: the library failed */

	for (int i = 0; i < n; i++) {
		unsigned flags, config;
		size_t none = 0;
		char name[64] = "";
		H5Z_filter_t f = H5Pget_filter2(creation, (unsigned)i, &flags, &none, NULL, sizeof name, name,
			&config);

		if (f >= 0 && H5Zfilter_avail(f) <= 0)
			return xformat("filter %d (%s)", f, *name ? name : "unnamed");
	}
	return NULL;
}

static void read_converted(const struct part *part, const char *path, hid_t ds, hid_t creation,
	enum tensor_type stored, const struct tensor *t)
{
	hid_t how = hdf5_id(H5Pcreate(H5P_DATASET_XFER), part->name, path);
	char *filter = missing_filter(creation);
	bool beyond = false;

	if (filter)
		die("%s: %s: is compressed by %s, which this HDF5 library lacks, expected gzip or none",
			part->name, path, filter);
	hdf5_id(H5Pset_type_conv_cb(how, refuse_range, &beyond), part->name, path);
	if (tensor_count(t) && H5Dread(ds, hdf5_type(t->type), H5S_ALL, H5S_ALL, how, t->data) < 0) {
		if (beyond)
			die("%s: %s: holds %s values that do not fit %s", part->name, path,
				tensor_name(stored), tensor_name(t->type));
		die("%s: %s: cannot be read; the file is damaged", part->name, path);
	}
	H5Pclose(how);
}

/* Points t to the data in the part; false if they are not contiguous or not aligned. */
static bool view(struct part *part, const char *path, hid_t ds, struct tensor *t)
{
	size_t bytes = tensor_count(t) * tensor_size(t->type);
	haddr_t at = H5Dget_offset(ds);

	if (at == HADDR_UNDEF)
		return false;
	if (at > part->length || bytes > part->length - at)
		die("%s: %s: lies outside the file; the file is damaged", part->name, path);
	if (((uintptr_t)part->base + at) % tensor_size(t->type))
		return false;
	t->data = (void *)(uintptr_t)(part->base + at);
	return true;
}

/* Formats a shape, "[2, 3]". If `free`, extents of 0 are ":", and all extents are if dim is NULL. */
static char *shape_text(int rank, const size_t dim[], bool free, char text[128])
{
	size_t n = (size_t)sprintf(text, "[");

	for (int i = 0; i < rank; i++)
		if (free && (!dim || !dim[i]))
			n += (size_t)sprintf(text + n, "%s:", i ? ", " : "");
		else
			n += (size_t)sprintf(text + n, "%s%zu", i ? ", " : "", dim[i]);
	strcpy(text + n, "]");
	return text;
}

/* Reads rank and extents; fatal error if they differ from the expected ones. */
static void read_shape(const struct part *part, const char *path, hid_t ds, int rank, const size_t dim[],
	struct tensor *t)
{
	hid_t s = hdf5_id(H5Dget_space(ds), part->name, path);
	hsize_t d[H5S_MAX_RANK];
	char is[128], expected[128];
	size_t n = 1;
	bool fits;

	t->rank = H5Sget_simple_extent_type(s) == H5S_NULL ? -1 : H5Sget_simple_extent_ndims(s);
	if (t->rank < 0 || t->rank > TENSOR_RANK)
		die(t->rank < 0 ? "%s: %s: is an empty dataset" : "%s: %s: has %d dimensions",
			part->name, path, t->rank);
	hdf5_id(H5Sget_simple_extent_dims(s, d, NULL), part->name, path);
	H5Sclose(s);
	fits = rank < 0 || t->rank == rank;
	for (int i = 0; i < t->rank; i++) {
		t->dim[i] = (size_t)d[i];
		if (__builtin_mul_overflow(n, t->dim[i], &n) || n > PTRDIFF_MAX / 8)
			die("%s: %s: has impossible dimensions; the file is damaged", part->name, path);
		fits &= rank < 0 || !dim || i >= rank || !dim[i] || dim[i] == t->dim[i];
	}
	if (!fits)
		die("%s: %s: has shape %s, expected %s", part->name, path,
			shape_text(t->rank, t->dim, false, is), shape_text(rank, dim, true, expected));
}

/* An open dataset. */
struct dataset { struct part *part; hid_t id, creation; enum tensor_type stored; bool exact; };

static void close_dataset(const struct dataset *d)
{
	H5Pclose(d->creation), H5Dclose(d->id);
}

/* Opens a dataset, and sets the type and the extents of t; false if it does not exist. */
static bool open_dataset(const struct part *from, const char *path, enum tensor_type type, int rank,
	const size_t dim[], struct tensor *t, struct dataset *d)
{
	struct part *part = (struct part *)(uintptr_t)owner(from, path);
	hid_t ty;

	*t = (struct tensor){ 0 };
	*d = (struct dataset){ .part = part };
	if (!part)
		return false;
	d->id = H5Dopen2(part->file, path, H5P_DEFAULT);
	if (d->id < 0)
		die("%s: %s: is not a dataset that can be read", part->name, path);
	ty = hdf5_id(H5Dget_type(d->id), part->name, path);
	d->creation = hdf5_id(H5Dget_create_plist(d->id), part->name, path);
	d->stored = hdf5_type_of(ty, &d->exact, part->name, path);
	H5Tclose(ty);
	if (d->stored == TENSOR_ANY)
		die("%s: %s: has an unsupported type, expected floats, or integers of 8 to 64 bits",
			part->name, path);
	t->type = type_in_memory(d->stored, type);
	if (t->type == TENSOR_ANY)
		die("%s: %s: is %s, expected %s", part->name, path, tensor_name(d->stored),
			tensor_name(type));
	if (H5Pget_layout(d->creation) == H5D_VIRTUAL || H5Pget_external_count(d->creation) > 0)
		die("%s: %s: is stored in other files, expected data in this one", part->name, path);
	read_shape(part, path, d->id, rank, dim, t);
	return true;
}

bool part_shape(const struct part *part, const char *path, enum tensor_type type, int rank,
	const size_t dim[], struct tensor *t)
{
	struct dataset d;

	if (!open_dataset(part, path, type, rank, dim, t, &d))
		return false;
	close_dataset(&d);
	return true;
}

bool part_find(const struct part *from, const char *path, enum tensor_type type, int rank,
	const size_t dim[], struct tensor *t)
{
	struct dataset d;
	struct part *part;

	if (!open_dataset(from, path, type, rank, dim, t, &d))
		return false;
	part = d.part;
	if (!d.exact || d.stored != t->type || H5Pget_layout(d.creation) != H5D_CONTIGUOUS ||
	    !view(part, path, d.id, t)) {
		size_t n = tensor_count(t);

		if (n / 4096 > part->length)	/* no filter expands bytes by a larger factor */
			die("%s: %s: has more data than its file can hold; it is damaged", part->name, path);
		t->data = part_keep(part, xalloc(n, tensor_size(t->type)));
		read_converted(part, path, d.id, d.creation, d.stored, t);
	}
	close_dataset(&d);
	return true;
}

struct tensor part_tensor(const struct part *part, const char *path, enum tensor_type type, int rank,
	const size_t dim[])
{
	struct tensor t;

	if (!part_find(part, path, type, rank, dim, &t))
		die("%s: %s: is missing", part->name, path);
	return t;
}
