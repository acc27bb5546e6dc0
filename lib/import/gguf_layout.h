/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_layout.h -- how a GGUF file keeps a tensor of transformers, read both ways
 *
 * A row says what differs: the shape, the order of the rows, a number that is added. Stacked experts are said
 * by the name (gguf_table.h).
 *
 * Source: https://github.com/ggml-org/llama.cpp, convert_hf_to_gguf.py.
 */
#ifndef IMPORT_GGUF_LAYOUT_H
#define IMPORT_GGUF_LAYOUT_H
#include <stdbool.h>
#include <stddef.h>

enum gguf_layout_name {
	GGUF_AS_IS,
	GGUF_TRANSPOSED,		/* transformers has [columns, rows], as Conv1D */
	GGUF_PAIRS_Q, GGUF_PAIRS_K,	/* heads are those of queries, of keys */
	GGUF_HEADS_APART,	/* queries, keys, values; transformers has the three of a head together */
	GGUF_PLUS_ONE,		/* x + 1, as F32 */
	GGUF_ONE_ROW,		/* transformers has [1, n]; F32, as routers are */
	GGUF_ROUTER,		/* F32, whatever the type of other weights */
	GGUF_LAYOUTS
};

enum gguf_rows {
	GGUF_ROWS_AS_IS,
	/* Of each head the rows 0, d/2, 1, d/2 + 1, ..., so that the channels that a rotation pairs are
	 * neighbours. */
	GGUF_ROWS_PAIRS,
	GGUF_ROWS_APART,	/* all queries, all keys, all values, of rows that have the three by heads */
};

struct gguf_layout {
	enum gguf_rows rows;
	bool of_keys;		/* heads are those of keys; otherwise those of queries */
	bool transposed, one_row;
	bool f32;		/* it is written as F32 */
	float plus;		/* what the file has more than transformers; not 0: it is stored as F32 */
};

/* By enum gguf_layout_name. */
extern const struct gguf_layout gguf_layouts[GGUF_LAYOUTS];

struct gguf_sizes { size_t heads, kv_heads, head_dim, experts; };

/* How many heads there are of those that it names. */
size_t gguf_layout_heads(const struct gguf_layout *l, const struct gguf_sizes *sizes);
/* Whether so many rows are those of the heads: they could not be put in order otherwise. */
bool gguf_layout_fits(const struct gguf_layout *l, const struct gguf_sizes *sizes, size_t rows);
/* The row of the file that is row i of transformers' tensor; each is one. The rows fit. */
size_t gguf_layout_row(const struct gguf_layout *l, const struct gguf_sizes *sizes, size_t rows, size_t i);
#endif
