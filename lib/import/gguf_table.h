/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_table.h -- architectures of GGUF files: their keys and names, and those of Hugging Face
 *
 * A row specifies the class of transformers for a general.architecture, the keys of config.json for keys of
 * the metadata, and the names and layouts of tensors (gguf_layout.h). A key of a row is spelled in no other
 * file. Settings that a file does not store (an activation, a bias without a tensor) have the default of the
 * class, as in a config.json without them.
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
	/* Without ".weight", ".bias". '#' is the number of the block, '@' that of the expert if the tensor of
	 * the file stacks all experts. gguf: of the file, NULL: the end; hf: of transformers. */
	const char *gguf, *hf;
	enum gguf_layout_name layout;
};

/* Whole keys of files of every architecture: the kind of file, and its tokenizer. */
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
#define GGUF_CHATS "tokenizer.chat_templates"	/* names of others, which follow GGUF_CHAT "." */
/* After "ARCHITECTURE."; it is read before the row is known. */
#define GGUF_EXPERT_COUNT "expert_count"
/* Tensors that a configuration depends on. */
#define GGUF_EMBEDDING "token_embd.weight"
#define GGUF_HEAD "output.weight"

/* The kind of value of a key. */
enum gguf_kind {
	GGUF_SIZE, GGUF_REAL, GGUF_FLAG,	/* a whole number, a number, a bool; so in config.json */
	GGUF_TENSOR, GGUF_NO_TENSOR,		/* whether the tensor is present, is absent */
	GGUF_TRUE,				/* true in all files */
	GGUF_BLOCKS, GGUF_CONTEXT, GGUF_HIDDEN, GGUF_EXPERTS,	/* sizes that others depend on */
	GGUF_HEADS,
	GGUF_KV_HEADS,		/* default: the number of heads; hf NULL: only that */
	GGUF_KEY_LENGTH,	/* of a head. Default: hidden / heads; hf NULL: only that */
	GGUF_VALUE_LENGTH,	/* default: the length of keys; only that */
	GGUF_SCALE,		/* q k is divided by its root: the length of keys, except with scale_blocks */
	GGUF_WINDOW,		/* hf NULL: a window shorter than the context is refused */
	GGUF_THETA,		/* default: 10000 */
	GGUF_ROTATED,		/* rotated channels of a head; hf: their fraction, or NULL: all */
	GGUF_SCALING,		/* a text, the kind of rotary scaling; in config.json an object, with: */
	GGUF_FACTOR,		/* the factor, from the first such key of the file, or from tensors */
	GGUF_VOCAB,		/* default: the number of tokens, or of rows of the embedding */
	GGUF_BOS, GGUF_EOS,	/* default: 1, 2 for SentencePiece's tokenizer, else none */
	GGUF_KINDS
};

struct gguf_key {
	/* gguf: the key after "ARCHITECTURE.", or a tensor, or (gguf_last_keys) a whole key; NULL: end.
	 * hf NULL: the class has no such key. */
	const char *gguf, *hf;
	enum gguf_kind kind;
	bool required;
	/* For export: the value from the configuration; for a tensor, whether it will be present. Below 0:
	 * the key is not written. NULL: gguf_metadata.c decides. */
	double (*value)(const struct config *c);
};

/* The head in llama.cpp: a separate tensor, or the embedding if that is absent (ANY); only the embedding;
 * only a separate tensor. */
enum gguf_head { GGUF_HEAD_ANY, GGUF_HEAD_TIED, GGUF_HEAD_OWN };

struct gguf_row {
	const char *name, *model_type, *class;	/* general.architecture; a class of architecture.h */
	bool experts;			/* the row is for files with an expert_count */
	enum gguf_head head;
	const struct gguf_key *keys;
	const struct gguf_name *names;
	bool longrope;			/* rope_factors_long.weight and _short.weight are such a scaling */
	size_t scale_blocks;		/* with so many blocks, GGUF_SCALE is hidden / heads */
};

/* Keys of every architecture, after the keys of its row. */
extern const struct gguf_key gguf_last_keys[];

/* Tensors that belong to the configuration: factors of rotary frequencies. */
#define GGUF_ROPE_FREQS "rope_freqs.weight"	/* Llama 3's divisors of the frequencies */
struct gguf_tensor_key {
	const char *gguf, *hf;	/* hf: the key of a longrope scaling, or NULL; gguf NULL: end */
};
extern const struct gguf_tensor_key gguf_rotary_tensors[];

/* Ends with a row without a name. */
extern const struct gguf_row gguf_rows[];
#endif
