/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf.h -- read-only view of a GGUF file: metadata and tensors
 *
 * A file of version 2 or 3, little-endian, is
 *
 *	"GGUF", u32 version, u64 tensors, u64 values
 *	values:  string key, u32 type, the value; an array has u32 type and u64 count before its elements
 *	tensors: string name, u32 rank, u64 extents[rank], the fastest first, u32 type, u64 offset
 *	data:    from the next multiple of general.alignment (32 if absent); offsets count from there
 *
 * and a string is a u64 length and its bytes. The file is mapped. Every length, count and offset is checked
 * in gguf_open(), so no view leaves the map. Types of tensors are not checked here.
 *
 *	struct gguf *g = gguf_open(path);
 *
 *	gguf_string(g, key), ...		values of the metadata
 *	gguf_tensor(g, name), gguf_at(g, i)	tensors
 *	gguf_close(g);
 *
 * Source: https://github.com/ggml-org/ggml, docs/gguf.md.
 */
#ifndef IMPORT_GGUF_H
#define IMPORT_GGUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/tensor.h"

struct gguf;

struct gguf_text { const char *s; size_t n; };	/* n bytes without a final NUL */

enum { GGUF_RANK = 4 };		/* of a tensor, at most */

struct gguf_tensor {
	char *name;
	uint32_t type;			/* a number of import/ggml.h */
	int rank;
	size_t dim[GGUF_RANK];		/* slowest first, unlike in the file; the product does not overflow */
	const unsigned char *data;	/* aligned to 8 bytes at least */
	size_t room;			/* bytes from there to the data of the next tensor, or to the end */
};

/* Bad data is a fatal error in all functions, with the message "FILE: NAME: what is wrong". */
struct gguf *gguf_open(const char *path);
struct gguf *gguf_open_own(const char *path);	/* a file that the tool itself is writing, not an input */
void gguf_close(struct gguf *g);
void gguf_release(struct gguf *g);	/* releases the pages that were read; views stay valid */

/* Tensors in ascending order of their names, each once. */
size_t gguf_count(const struct gguf *g);
const struct gguf_tensor *gguf_at(const struct gguf *g, size_t i);
const struct gguf_tensor *gguf_tensor(const struct gguf *g, const char *name);	/* NULL: absent */

/* A value of the metadata; false: absent. A value of another kind is a fatal error. A whole number may have
 * any integer type, a real number any integer or float type. */
bool gguf_flag(const struct gguf *g, const char *key, bool *v);
bool gguf_integer(const struct gguf *g, const char *key, int64_t *v);
bool gguf_real(const struct gguf *g, const char *key, double *v);
char *gguf_string(const struct gguf *g, const char *key);	/* NULL: absent; free() it */

/* An array of *n elements; NULL: absent. free() it. */
struct gguf_text *gguf_strings(const struct gguf *g, const char *key, size_t *n);	/* views of the map */
int64_t *gguf_integers(const struct gguf *g, const char *key, size_t *n);
double *gguf_reals(const struct gguf *g, const char *key, size_t *n);
#endif
