/* SPDX-License-Identifier: GPL-3.0-or-later */
/* device_open.c -- see device_open.h */
#include "device/device_open.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"

/* The path of a module in `folder`, which is relative to the folder of the tool; NULL: absent. */
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
	static struct device_host host = { PTQ_VERSION, die, NULL };
	const struct device *(*entry)(const struct device_host *);
	const struct device *d;
	void *module;
	char *path;

	if (!name || !strcmp(name, "cpu"))
		return NULL;
	if (!*name)
		misuse("--device: the name is empty, expected cpu, cuda or the file of a module");
	path = module_path(name);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		die("--device %s: %s", name, dlerror());
	entry = (const struct device *(*)(const struct device_host *))(uintptr_t)dlsym(module, "ptq_device");
	if (!entry)
		die("--device %s: %s is not the module of a device", name, path);
	host.file = path;
	d = entry(&host);
	host.file = NULL;
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
