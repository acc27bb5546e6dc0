/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * safetensors.c -- any bytes as model.safetensors
 *
 * Inputs that begin with '{' are the index of a folder with one shard, a small valid file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/scratch.h"
#include "import/safetensors.h"
#include "survive.h"

static char *folder;

static void put(const char *name, const void *data, size_t n)
{
	char *path = xformat("%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	close(fd);
	free(path);
}

static void drop(const char *name)
{
	char *path = xformat("%s/%s", folder, name);

	unlink(path);
	free(path);
}

static void drop_all(void)
{
	drop("model.safetensors");
	drop("model.safetensors.index.json");
	drop("a.safetensors");
	rmdir(folder);
}

static void make_folder(void)
{
	static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
	unsigned char shard[8 + sizeof header - 1 + 8] = { sizeof header - 1 };

	folder = xformat("%s/ptqfuzz.XXXXXX", scratch_folder());
	if (!mkdtemp(folder))
		abort();
	atexit(drop_all);
	memcpy(shard + 8, header, sizeof header - 1);
	put("a.safetensors", shard, sizeof shard);
}

struct one { struct safetensors *s; const char *name; };

static void read_one(void *arg)
{
	struct one *o = arg;
	struct tensor t = safetensors_tensor(o->s, o->name);

	survive_use(t.data, tensor_count(&t) * tensor_size(t.type));
}

static void read_all(void *arg)
{
	struct safetensors *s = safetensors_open(arg);

	for (size_t i = 0; i < safetensors_count(s); i++) {
		struct one o = { s, safetensors_at(s, i) };

		safetensors_describe(s, o.name);
		if (!safetensors_file(s, o.name))
			abort();
		attempt(read_one, &o);
	}
	safetensors_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	bool index = n && *data == '{';

	if (!folder)
		make_folder();
	put(index ? "model.safetensors.index.json" : "model.safetensors", data, n);
	drop(index ? "model.safetensors" : "model.safetensors.index.json");
	attempt(read_all, folder);
	survive_forget();
	return 0;
}
