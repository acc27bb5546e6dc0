/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * source.h -- a checkpoint to import, independent of its file format
 *
 * A kind of source is a row of a table in source.c. It represents a model in the form of Hugging Face: the
 * texts of config.json, tokenizer.json and others, and tensors with the names and shapes of the class in
 * transformers. A kind with other files converts them: names and texts in open(), data in read(). Quantized
 * tensors are dequantized, or returned as codes if a layer of this project can store them.
 *
 *	struct source *s = source_open(path);
 *
 *	for each s->tensor:
 *		s->kind->read(s, name), or s->kind->codes(s, name) if it is packed
 *		s->kind->release(s);
 *	source_close(s);
 */
#ifndef IMPORT_SOURCE_H
#define IMPORT_SOURCE_H
#include <stdbool.h>
#include <stddef.h>
#include "import/source_layer.h"
#include "import/texts.h"
#include "io/tensor.h"

struct source_tensor {
	const char *name, *file;	/* file: the file with the tensor, for messages */
	struct tensor shape;		/* without data; type TENSOR_ANY if read() would refuse it */
	bool packed;			/* a weight, always [out, in], for codes() instead of read() */
};

struct source {
	const struct source_kind *kind;
	const char *path;	/* borrowed */
	char *text[TEXTS];	/* of its files (import/texts.h); NULL: absent; config.json is never absent */
	char *config_name;	/* the name of config.json in messages */
	char *history;		/* a line of history about the weights; NULL: none */
	size_t n;
	struct source_tensor *tensor;	/* [n], each name once */
	void *data;		/* of the kind */
};

/* Bad data is a fatal error in all functions, with the message "FILE: TENSOR: what is wrong". */
struct source_kind {
	const char *what;	/* "a Hugging Face folder", for messages */
	bool (*fits)(const char *path);
	void (*open)(struct source *s);		/* sets all members after path */
	void (*close)(struct source *s);	/* frees data; source_close() frees the rest */
	/* F32, F16 or BF16, of rank at most TENSOR_RANK; a view, valid until release(). */
	struct tensor (*read)(struct source *s, const char *name);
	/* In separate memory: free it by source_layer_free(). NULL: the kind has no packed tensors. */
	struct source_layer (*codes)(struct source *s, const char *name);
	/* Bytes, u8 [n], of the i-th tensor of the file that t consists of: one, or several if t is packed. A
	 * view, valid until release(). False: there are no more. */
	bool (*stored)(struct source *s, const struct source_tensor *t, size_t i, struct tensor *bytes);
	void (*release)(struct source *s);
};

bool source_fits(const char *path);	/* whether some kind fits the path */
/* Opens the path with the first kind that fits; if none does, it is a fatal error. */
struct source *source_open(const char *path);
void source_close(struct source *s);
#endif
