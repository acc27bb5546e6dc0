/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * question.h -- multiple-choice questions, and their texts as token ids
 *
 * A file of JSON lines, each an object of
 *
 *	task		text: what results are summed up by
 *	context		text that all choices follow
 *	choices		texts, one at least, none of them empty
 *	gold		which of them is right, from 0
 *	images		names of files, which may be left out
 *
 * Other members are not read, with a warning; one whose name is a letter away from one of these is an error.
 * A choice follows the context as they are written, with nothing between them. White space at the end of a
 * context counts to the choices: most tokenizers put it into the token of the word behind it. The ids of a
 * choice are those of context and choice together, behind as many as the context alone has
 * (lm-evaluation-harness, _encode_pair()).
 */
#ifndef EVAL_QUESTION_H
#define EVAL_QUESTION_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "forward/prompt.h"
#include "import/tokenize.h"
#include "vision/vision.h"

struct question {
	const char *task, *context;	/* borrowed from `json` */
	size_t choices, gold, images, line;
	const char **choice;		/* [choices] */
	json_t *json;
};

struct questions {
	const char *name;		/* of the file, borrowed */
	size_t n, choices;		/* choices: of all */
	struct question *item;		/* [n] */
	char *digest;			/* SHA-256 of the file */
};

/* limit: first questions only; 0: all. Dies, naming file and line, on what is none. */
struct questions questions_read(const char *path, size_t limit);
void questions_free(struct questions *q);

/* Whether contexts begin with a BOS: where the tokenizer puts one before a text, always, never. A context
 * without a token has one all the same. */
enum bos { BOS_AUTO, BOS_YES, BOS_NO };
extern const char *const bos_names[];	/* NULL-terminated */

struct encode {
	const struct vocabulary *v;
	enum bos bos;
	bool special;			/* special tokens are looked for in texts */
	const char *until;		/* not NULL: one more continuation, the gold choice and this text */
	const struct config *config;
	const struct processor *processor;	/* of a model that sees images, where questions have some */
	struct prompt_images *images;	/* gets those of the questions, by their names beside the file */
	bool aifs;			/* visual tokens of contexts stand first */
};
/* [q->n], for prompts_free(). Dies where the vocabulary lacks an id, where a context has not one placeholder
 * for each of its images, and on images where the model sees none. */
struct prompt *questions_encode(const struct questions *q, const struct encode *e);
#endif
