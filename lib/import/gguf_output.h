/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_output.h -- a GGUF file (import/gguf.h) that is written in one pass
 *
 *	struct gguf_output *o = gguf_create("model.gguf");
 *
 *	gguf_put_text(o, "general.architecture", "llama");	metadata, then
 *	gguf_room(o, bytes);					room for the table of tensors
 *	at = gguf_add(o, "output_norm.weight", 0, 1, (size_t []){ n }, 4 * n);
 *	gguf_write(o, at, x, 4 * n);
 *	gguf_finish(o);
 *
 * The table of tensors comes before their data, but their number and types may be known only after them.
 * So there is room for it, of which the value of the key ptqtools.padding, blanks, takes what is left over.
 * The file appears under its name when it is whole. Version 3, aligned to 32 bytes. All functions die where
 * the disk is full.
 */
#ifndef IMPORT_GGUF_OUTPUT_H
#define IMPORT_GGUF_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_output;
struct gguf_output *gguf_create(const char *path);

/* Values of the metadata, whose keys are not checked for being new. Reals are stored as float32. */
void gguf_put_size(struct gguf_output *o, const char *key, size_t v);	/* u32; dies beyond it */
void gguf_put_real(struct gguf_output *o, const char *key, double v);
void gguf_put_flag(struct gguf_output *o, const char *key, bool v);
void gguf_put_text(struct gguf_output *o, const char *key, const char *v);
void gguf_put_texts(struct gguf_output *o, const char *key, size_t n, char *const v[n]);
void gguf_put_reals(struct gguf_output *o, const char *key, size_t n, const float v[n]);
void gguf_put_integers(struct gguf_output *o, const char *key, size_t n, const int32_t v[n]);

/* Ends the metadata. bytes: of the table, at most, as the sum of gguf_entry_bytes(). */
void gguf_room(struct gguf_output *o, size_t bytes);
size_t gguf_entry_bytes(size_t name, int rank);		/* name: its bytes */
/* A tensor of a type as import/ggml.h numbers them, extents with the slowest first: where its bytes go. */
size_t gguf_add(struct gguf_output *o, const char *name, uint32_t type, int rank, const size_t dim[],
	size_t bytes);
void gguf_write(struct gguf_output *o, size_t at, const void *data, size_t bytes);
/*
 * The path of a file that gguf_open_own() reads: what is there so far, and n tensors without numbers. Valid
 * until the next call on o.
 */
const char *gguf_preview(struct gguf_output *o, size_t n, const char *const name[n]);
/* Gives the file its name and frees o. */
void gguf_finish(struct gguf_output *o);
#endif
