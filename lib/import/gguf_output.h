/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_output.h -- a GGUF file (import/gguf.h), written in one pass
 *
 *	struct gguf_output *o = gguf_create("model.gguf");
 *
 *	gguf_put_text(o, "general.architecture", "llama");	metadata, then
 *	gguf_reserve_table(o, bytes);					room for the table of tensors
 *	at = gguf_add(o, "output_norm.weight", 0, 1, (size_t []){ n }, 4 * n);
 *	gguf_write(o, at, x, 4 * n);
 *	gguf_finish(o);
 *
 * The table of tensors precedes their data, but the number and types of tensors may be known only after the
 * data. So gguf_reserve_table() reserves space for the table. The key ptqtools.padding fills the unused rest
 * with blanks. The file is of version 3 and aligned to 32 bytes. It appears under its name when it is
 * complete.
 *
 * A full disk is a fatal error in all functions.
 */
#ifndef IMPORT_GGUF_OUTPUT_H
#define IMPORT_GGUF_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_output;
struct gguf_output *gguf_create(const char *path);	/* fatal error if the path is an input */

/* Values of the metadata. Keys must be unique, which is not checked. Reals are stored as float32. */
void gguf_put_size(struct gguf_output *o, const char *key, size_t v);	/* u32; others are an error */
void gguf_put_real(struct gguf_output *o, const char *key, double v);
void gguf_put_flag(struct gguf_output *o, const char *key, bool v);
void gguf_put_text(struct gguf_output *o, const char *key, const char *v);
void gguf_put_texts(struct gguf_output *o, const char *key, size_t n, char *const v[n]);
void gguf_put_reals(struct gguf_output *o, const char *key, size_t n, const float v[n]);
void gguf_put_integers(struct gguf_output *o, const char *key, size_t n, const int32_t v[n]);

/* Ends the metadata. bytes: an upper limit of the table, the sum of gguf_entry_bytes() of its tensors. */
void gguf_reserve_table(struct gguf_output *o, size_t bytes);
size_t gguf_entry_bytes(size_t name, int rank);		/* name: bytes of the name */
/* Adds a tensor and returns the offset of its data. type: a number of import/ggml.h; dim: slowest first. */
size_t gguf_add(struct gguf_output *o, const char *name, uint32_t type, int rank, const size_t dim[],
	size_t bytes);
void gguf_write(struct gguf_output *o, size_t at, const void *data, size_t bytes);
/*
 * The path of a file for gguf_open_own(), with the metadata and tensors so far and n further tensors without
 * data. Valid until the next call on o.
 */
const char *gguf_preview(struct gguf_output *o, size_t n, const char *const name[n]);
/* Renames the file to its name and frees o. */
void gguf_finish(struct gguf_output *o);
#endif
