/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_table_private.h -- the architectures of GGUF files: which keys and names stand for which of Hugging
 * Face's
 *
 * A row says what general.architecture is called as a class of transformers, which keys of the metadata
 * become keys of its config.json, and how the tensors are named and kept. What a file does not say (an
 * activation, a bias that no tensor has) is left to the class's defaults, as in a config.json without it.
 *
 * Source: https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py and tensor_mapping.py (names),
 * convert_hf_to_gguf.py (what is permuted, turned and renamed).
 */
#ifndef IMPORT_GGUF_TABLE_PRIVATE_H
#define IMPORT_GGUF_TABLE_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>

/* How a file keeps the rows of a tensor that transformers has as [rows, columns]. GGUF_PAIRS: of each head
 * the rows 0, d/2, 1, d/2 + 1, ..., so that the channels that a rotation pairs are neighbours. */
enum gguf_order {
	GGUF_AS_IS,
	GGUF_TRANSPOSED,		/* transformers has [columns, rows], as Conv1D */
	GGUF_PAIRS_Q, GGUF_PAIRS_K,	/* heads are those of queries, of keys */
	GGUF_HEADS_APART,	/* queries, keys, values; transformers has the three of a head together */
	GGUF_PLUS_ONE,		/* x + 1, as F32 */
	GGUF_ONE_ROW,		/* transformers has [1, n] */
};

struct gguf_name {
	/* Without ".weight", ".bias"; '#' is the block, '@' the expert, where their tensor stacks all; theirs
	 * NULL: the end. */
	const char *theirs, *ours;
	enum gguf_order order;
};

enum gguf_kind {
	GGUF_SIZE, GGUF_REAL, GGUF_FLAG,
	GGUF_TENSOR,		/* whether it is there */
	GGUF_TRUE		/* of all files */
};

struct gguf_key {
	const char *theirs, *ours;	/* theirs: behind "ARCHITECTURE.", or a tensor; NULL: the end */
	enum gguf_kind kind;
	bool required;
};

struct gguf_row {
	const char *name, *model_type, *class;	/* general.architecture; a class of architecture.h */
	bool experts;			/* the row is of files with an expert_count */
	const struct gguf_key *keys;
	const struct gguf_name *names;
	const char *heads, *kv_heads;	/* keys of config.json, NULL: the class has none */
	const char *head_dim, *theta;	/* likewise; without theta positions are not rotary */
	const char *rotary;		/* the part of a head that is rotated; NULL: all of it */
	bool longrope;			/* rope_factors_long.weight and its like are such a scaling */
	const char *window;		/* NULL: a window is refused */
	/* By whose root q k is divided: head_dim, but hidden size by heads where there are so many blocks. */
	const char *scale;
	size_t scale_blocks;
};

/* Ends with a row without a name. */
extern const struct gguf_row gguf_rows[];
#endif
