/* SPDX-License-Identifier: GPL-3.0-or-later */
/* device_open.c -- loads the module of a device; see device_open.h */
#include "device/device_open.h"
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "device/device_codes.h"

/* The file of a module in `folder`, a path relative to that of the tools; NULL: absent. */
static char *module_in(const char *folder, const char *name)
{
	char tool[PATH_MAX], *slash, *path;
	const ssize_t n = readlink("/proc/self/exe", tool, sizeof tool - 1);

	if (n < 0)
		return NULL;
	tool[n] = 0;
	slash = strrchr(tool, '/');
	path = xformat("%.*s/%s/%s.so", (int)(slash - tool), tool, folder, name);
	if (!access(path, R_OK))
		return path;
	free(path);
	return NULL;
}

static char *module_path(const char *name)
{
	char *path = strchr(name, '/') ? xformat("%s", name) : module_in("../lib/ptqtools", name);

	if (!path)
		path = module_in("../build", name);
	if (!path)
		die("--device %s: there is no module %s.so in lib/ptqtools next to the folder of the tools; "
			"make CUDA=1 builds cuda.so", name, name);
	return path;
}

const struct device *device_open(const char *name)
{
	static const struct device_host host = { PTQ_VERSION, die };
	const struct device *(*entry)(const struct device_host *);
	const struct device *d;
	void *module;
	char *path;

	if (!name || !*name || !strcmp(name, "cpu"))
		return NULL;
	path = module_path(name);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		die("--device %s: %s", name, dlerror());
	entry = (const struct device *(*)(const struct device_host *))(uintptr_t)dlsym(module, "ptq_device");
	if (!entry)
		die("--device %s: %s is no module of a device", name, path);
	d = entry(&host);
	if (!d)
		die("--device %s: this machine has no such device, or its driver does not work", name);
	free(path);
	return d;
}

void *device_memory(const struct device *d, size_t n, size_t size)
{
	size_t bytes;

	if (!d)
		return xalloc(n, size);
	if (__builtin_mul_overflow(n, size, &bytes))
		die("%s: a matrix is too large", d->name);
	return d->allocate(bytes);
}

void device_free(const struct device *d, void *memory)
{
	if (!d)
		free(memory);
	else if (memory)
		d->release(memory);
}

void *device_copy(const struct device *d, const void *x, size_t bytes)
{
	void *y = x ? device_memory(d, bytes, 1) : NULL;

	if (x && d)
		d->upload(y, x, bytes);
	else if (x)
		memcpy(y, x, bytes);
	return y;
}

/* A value of a format, with its code. */
struct value { float value; uint8_t code; };

static int by_value(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/* The smallest number that is rounded to b, of two neighbouring values a < b. */
static double edge_between(const struct format *f, float a, float b)
{
	const double middle = ((double)a + b) / 2;
	const float one = 1;
	uint8_t code;
	float y;

	format_quantize(f, 1, &code, &y, &middle, &one, &(uint8_t){ 0 });
	return y >= b ? middle : nextafter(middle, INFINITY);
}

struct device_format device_format(const struct format *f, float limit)
{
	struct device_format y = { .max = f->max, .integers = f->integers, .away = f->away,
		.floats = !f->integers && device_codes_float(f), .mantissa = f->y, .bias = f->bias };
	struct value value[256] = { { 0 } };
	int n = 0;

	for (int c = 0; c < 1 << f->bits; c++)
		if ((c & f->code_mask) <= f->code_last)
			value[n++] = (struct value){ f->grid[c], (uint8_t)c };
	qsort(value, (size_t)n, sizeof *value, by_value);
	for (int i = 0; i < n; i++) {
		const float v = value[i].value;

		if (y.n && y.value[y.n - 1] == v)	/* the code of zero, not that of -0 */
			continue;
		if (limit > 0 && fabsf(v) > limit)
			continue;
		if (y.n)
			y.edge[y.n - 1] = edge_between(f, y.value[y.n - 1], v);
		y.code[y.n] = value[i].code;
		y.value[y.n++] = v;
	}
	return y;
}
