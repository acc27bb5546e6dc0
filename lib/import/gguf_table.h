/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_table.h -- the architectures of GGUF files: which keys and names are which of Hugging Face's
 *
 * A row says what general.architecture is called as a class of transformers, which keys of the metadata
 * become keys of its config.json, and how the tensors are named and kept (gguf_layout.h). No other
 * file spells a key that a row has. What a file does not say (an activation, a bias that no tensor has) is
 * left to the class's defaults, as in a config.json without it.
 *
 * Source: https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py and tensor_mapping.py (names),
 * convert_hf_to_gguf.py (keys).
 */
#ifndef IMPORT_GGUF_TABLE_H
#define IMPORT_GGUF_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include "import/gguf_layout.h"

struct config;
struct gguf_name {
	/* Without ".weight", ".bias"; '#' is the block, '@' the expert, where their tensor stacks all; theirs
	 * NULL: the end. */
	const char *theirs, *ours;
	enum gguf_layout_name layout;
};

/* Whole keys of files of every architecture: what a file is, and its tokenizer. */
#define GGUF_ARCHITECTURE "general.architecture"
#define GGUF_TYPE "general.type"			/* "model" */
#define GGUF_QUANTIZATION "general.quantization_version"	/* 2 */
#define GGUF_SPLIT "split.count"
#define GGUF_TOKENIZER "tokenizer.ggml.model"
#define GGUF_TOKENIZER_JSON "tokenizer.huggingface.json"
#define GGUF_PRE "tokenizer.ggml.pre"
#define GGUF_TOKENS "tokenizer.ggml.tokens"
#define GGUF_TOKEN_TYPES "tokenizer.ggml.token_type"
#define GGUF_SCORES "tokenizer.ggml.scores"
#define GGUF_MERGES "tokenizer.ggml.merges"
#define GGUF_BOS_ID "tokenizer.ggml.bos_token_id"
#define GGUF_EOS_ID "tokenizer.ggml.eos_token_id"
#define GGUF_UNKNOWN_ID "tokenizer.ggml.unknown_token_id"
#define GGUF_PADDING_ID "tokenizer.ggml.padding_token_id"
#define GGUF_ADD_BOS "tokenizer.ggml.add_bos_token"
#define GGUF_ADD_EOS "tokenizer.ggml.add_eos_token"
#define GGUF_ADD_PREFIX "tokenizer.ggml.add_space_prefix"
#define GGUF_CHAT "tokenizer.chat_template"
/* Behind "ARCHITECTURE.": it is read before the row is known. */
#define GGUF_EXPERT_COUNT "expert_count"
/* Tensors that a configuration depends on. */
#define GGUF_EMBEDDING "token_embd.weight"
#define GGUF_HEAD "output.weight"

/* What the value of a key is. */
enum gguf_kind {
	GGUF_SIZE, GGUF_REAL, GGUF_FLAG,	/* a whole number, a number, a bool: as config.json has it */
	GGUF_TENSOR, GGUF_NO_TENSOR,		/* whether the tensor is there, is not */
	GGUF_TRUE,				/* of all files */
	GGUF_BLOCKS, GGUF_CONTEXT, GGUF_HIDDEN, GGUF_EXPERTS,	/* sizes that others depend on */
	GGUF_HEADS,
	GGUF_KV_HEADS,		/* absent: as many as heads; ours NULL: another number is refused */
	GGUF_KEY_LENGTH,	/* of a head. Absent: hidden / heads; ours NULL: another is refused */
	GGUF_VALUE_LENGTH,	/* absent: as of keys; never another */
	GGUF_SCALE,		/* by whose root q k is divided: the length of keys, but see scale_blocks */
	GGUF_WINDOW,		/* ours NULL: one that is shorter than the context is refused */
	GGUF_THETA,		/* absent: 10000 */
	GGUF_ROTATED,		/* channels of a head; ours: the part of it. Ours NULL: all of them */
	GGUF_SCALING,		/* a text, the kind of rotary scaling. config.json has an object, with */
	GGUF_FACTOR,		/* the factor, of the first such key that is there, or factors of tensors */
	GGUF_VOCAB,		/* absent: as many as there are tokens, or rows of the embedding */
	GGUF_BOS, GGUF_EOS,	/* absent: 1, 2 for SentencePiece's tokenizer, else none */
	GGUF_KINDS
};

struct gguf_key {
	/* theirs: after "ARCHITECTURE.", or a tensor, or (gguf_last_keys) a whole key; NULL: the end. ours
	 * NULL: the class has no such key. */
	const char *theirs, *ours;
	enum gguf_kind kind;
	bool required;
	/* What a model has for it, of a tensor whether it will be there; below 0: it is not written. NULL:
	 * gguf_metadata.c knows when it is. */
	double (*value)(const struct config *c);
};

/* What llama.cpp takes for the head: a tensor of its own, or if there is none, the embedding; or only one of
 * these. */
enum gguf_head { GGUF_HEAD_ANY, GGUF_HEAD_TIED, GGUF_HEAD_OWN };

struct gguf_row {
	const char *name, *model_type, *class;	/* general.architecture; a class of architecture.h */
	bool experts;			/* the row is of files with an expert_count */
	enum gguf_head head;
	const struct gguf_key *keys;
	const struct gguf_name *names;
	bool longrope;			/* rope_factors_long.weight and its like are such a scaling */
	size_t scale_blocks;		/* GGUF_SCALE is hidden / heads where there are so many */
};

/* Of every architecture, after its own. */
extern const struct gguf_key gguf_last_keys[];

/* Tensors that are part of the configuration: factors of rotary frequencies. */
#define GGUF_ROPE_FREQS "rope_freqs.weight"	/* Llama 3's: what each frequency is divided by */
struct gguf_tensor_key {
	const char *theirs, *ours;	/* ours: of a longrope scaling, or NULL; theirs NULL: the end */
};
extern const struct gguf_tensor_key gguf_rotary_tensors[];

/* Ends with a row without a name. */
extern const struct gguf_row gguf_rows[];
#endif
