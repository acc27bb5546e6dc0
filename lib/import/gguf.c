/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf.c -- a mapped GGUF file, its values and tensors by name; see gguf.h */
#include "import/gguf.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "io/file.h"

enum { HEADER = 24, ALIGNMENT = 32, ALIGNMENT_MIN = 8, ALIGNMENT_MAX = 1 << 16, ARRAY_DEPTH = 8 };
enum { VALUE_MIN = 8 + 4 + 1, TENSOR_MIN = 8 + 4 + 4 + 8, STRING_MIN = 8, ARRAY_MIN = 4 + 8 };

enum type { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };

static const struct { const char *name; size_t size; } types[TYPES] = {
	[U8] = { "u8", 1 }, [I8] = { "i8", 1 }, [U16] = { "u16", 2 }, [I16] = { "i16", 2 },
	[U32] = { "u32", 4 }, [I32] = { "i32", 4 }, [F32] = { "f32", 4 }, [BOOL] = { "bool", 1 },
	[STRING] = { "string", 0 }, [ARRAY] = { "array", 0 }, [U64] = { "u64", 8 }, [I64] = { "i64", 8 },
	[F64] = { "f64", 8 },
};

struct value {
	char *key;
	enum type type, element;	/* element: of an array */
	size_t n;			/* elements of an array */
	const unsigned char *at;	/* the value, or the first element */
};

struct gguf {
	char *path;
	unsigned char *map;
	size_t size;
	struct value *value;
	size_t values;
	struct gguf_tensor *tensor;
	size_t tensors;
};

/* The position in the file, and the name of the object there, for messages. */
struct cursor { const struct gguf *g; const unsigned char *at; const char *what; };

static size_t left(const struct cursor *c)
{
	return c->g->size - (size_t)(c->at - c->g->map);
}

static const unsigned char *take(struct cursor *c, size_t n)
{
	const unsigned char *p = c->at;

	if (n > left(c))
		die("%s: %s: goes beyond the end of the file: it needs %zu bytes, %zu are left; the file is "
			"damaged",
			c->g->path, c->what, n, left(c));
	c->at += n;
	return p;
}

static uint32_t take_u32(struct cursor *c)
{
	uint32_t v;

	memcpy(&v, take(c, sizeof v), sizeof v);
	return v;
}

static uint64_t take_u64(struct cursor *c)
{
	uint64_t v;

	memcpy(&v, take(c, sizeof v), sizeof v);
	return v;
}

static struct gguf_text take_text(struct cursor *c)
{
	uint64_t n = take_u64(c);

	return (struct gguf_text){ (const char *)take(c, n), n };
}

/* A name: not empty and without a NUL. */
static char *take_name(struct cursor *c)
{
	struct gguf_text t = take_text(c);

	if (!t.n || memchr(t.s, 0, t.n))
		die("%s: %s: is %s, expected a text", c->g->path, c->what,
			t.n ? "a name with a NUL byte" : "empty");
	return xformat("%.*s", (int)(t.n < INT32_MAX ? t.n : INT32_MAX), t.s);
}

/* A number of elements of at least `bytes` each. */
static size_t take_count(struct cursor *c, size_t bytes)
{
	uint64_t n = take_u64(c);

	if (n > left(c) / bytes)
		die("%s: %s: %ju elements of at least %zu bytes do not fit in the %zu bytes left; the file "
			"is damaged",
			c->g->path, c->what, (uintmax_t)n, bytes, left(c));
	return n;
}

static enum type take_type(struct cursor *c)
{
	uint32_t t = take_u32(c);

	if (t >= TYPES)
		die("%s: %s: has a value of type %u, expected one of 0 to %d", c->g->path, c->what, t,
			TYPES - 1);
	return (enum type)t;
}

/* Skips n values of a type. */
static void skip(struct cursor *c, enum type type, size_t n, int depth)
{
	if (depth > ARRAY_DEPTH)
		die("%s: %s: has arrays inside each other, expected at most %d", c->g->path, c->what,
			ARRAY_DEPTH);
	for (size_t i = 0; types[type].size == 0 && i < n; i++)
		if (type == STRING) {
			take_text(c);
		} else {
			enum type element = take_type(c);
			size_t m = take_count(c, element == STRING ? STRING_MIN :
				element == ARRAY ? ARRAY_MIN : types[element].size);

			skip(c, element, m, depth + 1);
		}
	take(c, n * types[type].size);
}

static struct value take_value(struct cursor *c)
{
	struct value v = { .n = 1 };

	c->what = "the key of a value";
	v.key = take_name(c);
	c->what = v.key;
	v.type = take_type(c);
	v.at = c->at;
	if (v.type == ARRAY) {
		v.element = take_type(c);
		v.n = take_count(c, v.element == STRING ? STRING_MIN :
			v.element == ARRAY ? ARRAY_MIN : types[v.element].size);
		v.at = c->at;
		skip(c, v.element, v.n, 1);
	} else {
		skip(c, v.type, 1, 0);
	}
	return v;
}

/* *offset: of its data, relative to the beginning of all data, which is not known yet. */
static struct gguf_tensor take_tensor(struct cursor *c, size_t *offset)
{
	struct gguf_tensor t = { .rank = 0 };
	size_t n = 1;
	uint32_t rank;

	c->what = "the name of a tensor";
	t.name = take_name(c);
	c->what = t.name;
	rank = take_u32(c);
	if (rank > GGUF_RANK)
		die("%s: %s: has %u dimensions, expected at most %d", c->g->path, t.name, rank, GGUF_RANK);
	t.rank = (int)rank;
	for (int i = t.rank - 1; i >= 0; i--) {
		t.dim[i] = take_u64(c);
		if (__builtin_mul_overflow(n, t.dim[i], &n) || n > SIZE_MAX / 16)
			die("%s: %s: the shape overflows", c->g->path, t.name);
	}
	t.type = take_u32(c);
	*offset = take_u64(c);
	return t;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct value *)a)->key, ((const struct value *)b)->key);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct gguf_tensor *)a)->name, ((const struct gguf_tensor *)b)->name);
}

static int by_data(const void *a, const void *b)
{
	const unsigned char *x = ((const struct gguf_tensor *)a)->data,
			    *y = ((const struct gguf_tensor *)b)->data;

	return (x > y) - (x < y);
}

static const struct value *find_key(const struct gguf *g, const char *key)
{
	struct value v = { .key = (char *)key };

	return g->values ? bsearch(&v, g->value, g->values, sizeof v, by_key) : NULL;
}

static void read_values(struct gguf *g, struct cursor *c, size_t n)
{
	g->value = xalloc(n, sizeof *g->value);
	for (; g->values < n; g->values++)
		g->value[g->values] = take_value(c);
	if (n)
		qsort(g->value, n, sizeof *g->value, by_key);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(g->value[i - 1].key, g->value[i].key))
			die("%s: %s: occurs twice", g->path, g->value[i].key);
}

static size_t alignment(const struct gguf *g)
{
	int64_t a = ALIGNMENT;

	gguf_integer(g, "general.alignment", &a);
	if (a < ALIGNMENT_MIN || a > ALIGNMENT_MAX || a & (a - 1))
		die("%s: general.alignment: is %jd, expected a power of two from %d to %d", g->path,
			(intmax_t)a, ALIGNMENT_MIN, ALIGNMENT_MAX);
	return (size_t)a;
}

static void read_tensors(struct gguf *g, struct cursor *c, size_t n)
{
	const size_t step = alignment(g);
	size_t *offset = xalloc(n, sizeof *offset), data;

	g->tensor = xalloc(n, sizeof *g->tensor);
	for (; g->tensors < n; g->tensors++)
		g->tensor[g->tensors] = take_tensor(c, offset + g->tensors);
	data = (g->size - left(c) + step - 1) / step * step;
	for (size_t i = 0; i < n; i++) {
		struct gguf_tensor *t = g->tensor + i;

		if (offset[i] % step)
			die("%s: %s: its data are at %zu, expected a multiple of %zu", g->path, t->name,
				offset[i], step);
		if (data > g->size || offset[i] > g->size - data)
			die("%s: %s: its data begin %zu bytes after the header, beyond the end of the file; "
				"the file is damaged",
				g->path, t->name, offset[i]);
		t->data = g->map + data + offset[i];
	}
	free(offset);
	if (n)
		qsort(g->tensor, n, sizeof *g->tensor, by_data);
	for (size_t i = 0; i < n; i++)
		g->tensor[i].room =
			(size_t)((i + 1 < n ? g->tensor[i + 1].data : g->map + g->size) - g->tensor[i].data);
	if (n)
		qsort(g->tensor, n, sizeof *g->tensor, by_name);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(g->tensor[i - 1].name, g->tensor[i].name))
			die("%s: %s: the tensor occurs twice", g->path, g->tensor[i].name);
}

static void map_gguf(struct gguf *g, bool own)
{
	int fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open:", g->path);
	if (!S_ISREG(st.st_mode))
		die("%s: is not a regular file", g->path);
	if (!own)
		file_note(fd, g->path);
	g->size = (size_t)st.st_size;
	if (g->size < HEADER)
		die("%s: is not a GGUF file: it has %zu bytes, expected at least %d", g->path, g->size,
			HEADER);
	g->map = mmap(NULL, g->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (g->map == MAP_FAILED)
		die("%s: cannot map:", g->path);
	close(fd);
}

static struct gguf *open_gguf(const char *path, bool own)
{
	struct gguf *g = xalloc(1, sizeof *g);
	struct cursor c = { .g = g };
	uint32_t version;
	size_t tensors, values;

	g->path = xformat("%s", path);
	map_gguf(g, own);
	c.at = g->map;
	if (memcmp(take(&c, 4), "GGUF", 4))
		die("%s: is not a GGUF file: it does not begin with GGUF", path);
	version = take_u32(&c);
	if (__builtin_bswap32(version) >= 1 && __builtin_bswap32(version) <= 3)
		die("%s: is a GGUF file for big-endian machines, expected a little-endian one", path);
	if (version != 2 && version != 3)
		die("%s: is GGUF of version %u, expected 2 or 3", path, version);
	c.what = "its tensors";
	tensors = take_count(&c, TENSOR_MIN);
	c.what = "its values";
	values = take_count(&c, VALUE_MIN);
	read_values(g, &c, values);
	read_tensors(g, &c, tensors);
	return g;
}

struct gguf *gguf_open(const char *path)
{
	return open_gguf(path, false);
}

struct gguf *gguf_open_own(const char *path)
{
	return open_gguf(path, true);
}

void gguf_release(struct gguf *g)
{
	madvise(g->map, g->size, MADV_DONTNEED);
}

void gguf_close(struct gguf *g)
{
	munmap(g->map, g->size);
	for (size_t i = 0; i < g->values; i++)
		free(g->value[i].key);
	for (size_t i = 0; i < g->tensors; i++)
		free(g->tensor[i].name);
	free(g->value);
	free(g->tensor);
	free(g->path);
	free(g);
}

size_t gguf_count(const struct gguf *g)
{
	return g->tensors;
}

const struct gguf_tensor *gguf_at(const struct gguf *g, size_t i)
{
	return g->tensor + i;
}

const struct gguf_tensor *gguf_tensor(const struct gguf *g, const char *name)
{
	struct gguf_tensor t = { .name = (char *)name };

	return g->tensors ? bsearch(&t, g->tensor, g->tensors, sizeof t, by_name) : NULL;
}

static bool is_integer(enum type t)
{
	return t <= I32 || t == U64 || t == I64;
}

static bool is_real(enum type t)
{
	return t == F32 || t == F64 || is_integer(t);
}

static bool is_flag(enum type t)
{
	return t == BOOL;
}

static bool is_string(enum type t)
{
	return t == STRING;
}

/* The value of that key, of a kind, or an array of that kind; NULL: absent. */
static const struct value *look_up(const struct gguf *g, const char *key, bool array, bool (*is)(enum type),
	const char *expected)
{
	const struct value *v = find_key(g, key);

	if (!v)
		return NULL;
	if (array ? v->type != ARRAY || !is(v->element) : !is(v->type))
		die("%s: %s: is %s %s, expected %s %s", g->path, key,
			v->type == ARRAY ? "an array of" : "of type",
			types[v->type == ARRAY ? v->element : v->type].name, array ? "an array of" : "a",
			expected);
	return v;
}

static int64_t integer_at(const struct gguf *g, const char *key, enum type type, const unsigned char *p)
{
	uint64_t u = 0;

	memcpy(&u, p, types[type].size);
	switch (type) {
	case I8:	return (int8_t)u;
	case I16:	return (int16_t)u;
	case I32:	return (int32_t)u;
	case U64:
		if (u > INT64_MAX)
			die("%s: %s: holds %ju, expected at most %jd", g->path, key, (uintmax_t)u,
				(intmax_t)INT64_MAX);
		return (int64_t)u;
	default:	return (int64_t)u;
	}
}

static double real_at(const struct gguf *g, const char *key, enum type type, const unsigned char *p)
{
	float f;
	double d;

	if (type == F32)
		memcpy(&f, p, sizeof f), d = f;
	else if (type == F64)
		memcpy(&d, p, sizeof d);
	else
		d = (double)integer_at(g, key, type, p);
	if (!isfinite(d))
		die("%s: %s: holds a number that is not finite", g->path, key);
	return d;
}

bool gguf_flag(const struct gguf *g, const char *key, bool *y)
{
	const struct value *v = look_up(g, key, false, is_flag, "bool");

	if (v && *v->at > 1)
		die("%s: %s: is %d, expected 0 or 1", g->path, key, *v->at);
	if (v)
		*y = *v->at;
	return v;
}

bool gguf_integer(const struct gguf *g, const char *key, int64_t *y)
{
	const struct value *v = look_up(g, key, false, is_integer, "whole number");

	if (v)
		*y = integer_at(g, key, v->type, v->at);
	return v;
}

bool gguf_real(const struct gguf *g, const char *key, double *y)
{
	const struct value *v = look_up(g, key, false, is_real, "number");

	if (v)
		*y = real_at(g, key, v->type, v->at);
	return v;
}

char *gguf_string(const struct gguf *g, const char *key)
{
	const struct value *v = look_up(g, key, false, is_string, "string");
	struct cursor c = { g, v ? v->at : NULL, key };
	struct gguf_text t;

	if (!v)
		return NULL;
	t = take_text(&c);
	if (memchr(t.s, 0, t.n) || t.n > INT32_MAX)
		die("%s: %s: has a NUL byte, expected a text", g->path, key);
	return xformat("%.*s", (int)t.n, t.s);
}

struct gguf_text *gguf_strings(const struct gguf *g, const char *key, size_t *n)
{
	const struct value *v = look_up(g, key, true, is_string, "strings");
	struct cursor c = { g, v ? v->at : NULL, key };
	struct gguf_text *y = v ? xalloc(v->n, sizeof *y) : NULL;

	*n = v ? v->n : 0;
	for (size_t i = 0; i < *n; i++)
		y[i] = take_text(&c);
	return y;
}

int64_t *gguf_integers(const struct gguf *g, const char *key, size_t *n)
{
	const struct value *v = look_up(g, key, true, is_integer, "whole numbers");
	int64_t *y = v ? xalloc(v->n, sizeof *y) : NULL;

	*n = v ? v->n : 0;
	for (size_t i = 0; i < *n; i++)
		y[i] = integer_at(g, key, v->element, v->at + i * types[v->element].size);
	return y;
}

double *gguf_reals(const struct gguf *g, const char *key, size_t *n)
{
	const struct value *v = look_up(g, key, true, is_real, "numbers");
	double *y = v ? xalloc(v->n, sizeof *y) : NULL;

	*n = v ? v->n : 0;
	for (size_t i = 0; i < *n; i++)
		y[i] = real_at(g, key, v->element, v->at + i * types[v->element].size);
	return y;
}
