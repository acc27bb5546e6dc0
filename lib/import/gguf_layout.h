/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_layout.h -- layouts of tensors of transformers in a GGUF file, for import and export
 *
 * A layout specifies the differences: the shape, the order of the rows, an added number. Whether experts are
 * stacked is specified by the name (gguf_table.h).
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
	GGUF_PAIRS_Q, GGUF_PAIRS_K,	/* GGUF_ROWS_PAIRS for the heads of queries, of keys */
	GGUF_SPLIT_QKV,	/* queries, keys, values; transformers has the three of a head together */
	GGUF_PLUS_ONE,		/* x + 1, as F32 */
	GGUF_ONE_ROW,		/* transformers has [1, n]; F32, as for routers */
	GGUF_ROUTER,		/* F32 for any type of other weights */
	GGUF_LAYOUTS
};

enum gguf_rows {
	GGUF_ROWS_AS_IS,
	/* The rows of each head in the order 0, d/2, 1, d/2 + 1, ..., so that the two channels of a rotary
	 * pair are neighbours. */
	GGUF_ROWS_PAIRS,
	GGUF_ROWS_SPLIT_QKV,	/* all queries, all keys, all values; transformers has them head by head */
};

struct gguf_layout {
	enum gguf_rows rows;
	bool of_keys;		/* heads are heads of keys; else heads of queries */
	bool transposed, one_row;
	bool f32;		/* written as F32 */
	float plus;		/* number of the file - number of transformers; if not 0, stored as F32 */
};

/* By enum gguf_layout_name. */
extern const struct gguf_layout gguf_layouts[GGUF_LAYOUTS];

struct gguf_sizes { size_t heads, kv_heads, head_dim, experts; };

/* The number of heads, of keys or of queries. */
size_t gguf_layout_heads(const struct gguf_layout *l, const struct gguf_sizes *sizes);
/* Whether the number of rows fits the number of heads, which gguf_layout_row() requires. */
bool gguf_layout_fits(const struct gguf_layout *l, const struct gguf_sizes *sizes, size_t rows);
/* The row of the file that is row i of the tensor of transformers: a permutation of `rows` rows. */
size_t gguf_layout_row(const struct gguf_layout *l, const struct gguf_sizes *sizes, size_t rows, size_t i);
#endif
