/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * source.h -- where an import takes a model from, whatever its files are
 *
 * A kind of source is a row of a table in source.c. It gives a model as Hugging Face
 * keeps it: the texts of config.json, tokenizer.json and others, and tensors under the
 * names and in the shapes that the class in transformers gives them. A kind whose files are
 * otherwise translates them: names and texts when it is opened, data when they are read;
 * quantized ones are dequantized, or given as codes where the format has a layer of them.
 */
#ifndef IMPORT_SOURCE_H
#define IMPORT_SOURCE_H
#include <stdbool.h>
#include <stddef.h>
#include "import/source_layer.h"
#include "import/texts.h"
#include "io/tensor.h"

struct source_tensor {
	const char *name, *file;	/* file: that holds it, for messages */
	struct tensor shape;		/* without data; type TENSOR_ANY where read() would refuse it */
	bool packed;			/* a weight, always [out, in], that codes() gives, not read() */
};

struct source {
	const struct source_kind *kind;
	const char *path;	/* borrowed */
	char *text[TEXTS];	/* of its files (import/texts.h); NULL: there is none, but of config.json */
	char *config_name;	/* what messages on config.json name */
	char *history;		/* what was done to the weights, a line; NULL: nothing is known */
	size_t n;
	struct source_tensor *tensor;	/* [n], each name once */
	void *data;		/* of the kind */
};

/* All functions die with "FILE: TENSOR: what is wrong" on bad data. */
struct source_kind {
	const char *what;	/* "a Hugging Face folder": what messages expect */
	bool (*fits)(const char *path);
	void (*open)(struct source *s);		/* fills everything after path */
	void (*close)(struct source *s);	/* of data; the rest is freed by source_close() */
	/* F32, F16 or BF16, of rank at most TENSOR_RANK: a view until release(), which frees copies. */
	struct tensor (*read)(struct source *s, const char *name);
	/* NULL: no tensor is packed. Memory of its own. */
	struct source_layer (*codes)(struct source *s, const char *name);
	/* The i-th of the file's tensors that it consists of, one unless it is packed: its bytes, u8 [n],
	 * a view too. False: there are no more. */
	bool (*stored)(struct source *s, const struct source_tensor *t, size_t i, struct tensor *bytes);
	void (*release)(struct source *s);
};

bool source_fits(const char *path);	/* whether some kind takes the path */
/* By the first kind that takes the path; dies if there is none. */
struct source *source_open(const char *path);
void source_close(struct source *s);
#endif
