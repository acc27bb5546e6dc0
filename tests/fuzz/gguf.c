/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf.c -- any bytes as a GGUF file: opened as a source, checked against its config, all tensors read */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/scratch.h"
#include "import/checkpoint.h"
#include "import/source.h"
#include "model/config.h"
#include "survive.h"

static char *path;

static void drop(void)
{
	unlink(path);
}

static void put(const void *data, size_t n)
{
	int fd;

	if (!path) {
		path = xformat("%s/ptqfuzz.XXXXXX.gguf", scratch_folder());
		fd = mkstemps(path, 5);
		atexit(drop);
	} else {
		fd = open(path, O_WRONLY | O_TRUNC);
	}
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	close(fd);
}

struct one { struct source *s; const char *name; };

static void read_one(void *arg)
{
	struct one *o = arg;
	struct tensor t = o->s->kind->read(o->s, o->name);

	survive_use(t.data, tensor_count(&t) * tensor_size(t.type));
}

static void check(void *arg)
{
	struct source *s = arg;
	struct config c = config_parse(s->config_name, s->text[TEXT_CONFIG]);
	struct checkpoint k = checkpoint_open(s, &c);

	checkpoint_close(&k);
	config_free(&c);
}

static void read_all(void *arg)
{
	struct source *s = source_open(arg);

	if (s->text[TEXT_TOKENIZER])
		survive_use(s->text[TEXT_TOKENIZER], strlen(s->text[TEXT_TOKENIZER]));
	attempt(check, s);
	for (size_t i = 0; i < s->n; i++) {
		struct one o = { s, s->tensor[i].name };

		attempt(read_one, &o);
	}
	source_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	put(data, n);
	attempt(read_all, path);
	survive_forget();
	return 0;
}
