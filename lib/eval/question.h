/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * question.h -- questions with choices or with a text as answer, and their encoding as token ids
 *
 * A file of questions has JSON lines. Each line is an object with the members
 *
 *	task		text: results are summed by task
 *	context		text before each choice, or before the answer
 *	images		names of files; optional
 *
 * of a question with choices, and
 *
 *	choices		texts, at least one, none of them empty
 *	gold		number of the right choice, from 0
 *	contexts	in place of context and images: a text for each choice. A single text of choices
 *			follows each of them.
 *
 * or of a question whose answer is generated, and
 *
 *	answer		text that is right
 *	match		how texts are compared (eval/match.h)
 *	until		texts that end an answer, at least one, none of them empty; optional
 *
 * Other members are ignored with a warning. A name that differs from one of these by one letter is an error.
 *
 * A context before an answer is encoded as it is. Context and choice are joined without a separator. White
 * space (Python's str.isspace()) at the end of a context belongs to the choices, since most tokenizers put it
 * into the token of the next word. The ids of a choice are the ids of context and choice together, without
 * the first ones, as many as the context alone has (lm-evaluation-harness, _encode_pair()).
 *
 * Calling sequence: questions_read(); questions_encode(); prompts_free(); questions_free().
 */
#ifndef EVAL_QUESTION_H
#define EVAL_QUESTION_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "eval/match.h"
#include "forward/prompt.h"
#include "import/tokenize.h"
#include "io/part.h"
#include "vision/vision.h"

enum question_form { QUESTION_CHOICES, QUESTION_ANSWER };

struct question {
	const char *task;		/* owned by `json`, as all texts */
	size_t choices, gold, images, line;
	const char **choice;		/* [choices] */
	size_t contexts;		/* 1, or `choices` */
	const char **context;		/* [contexts] */
	const char *answer;		/* NULL: a question with choices */
	const struct match *match;
	size_t untils;
	const char **until;		/* [untils] */
	json_t *json;
};

struct questions {
	const char *name;		/* of the file, not owned */
	size_t n, choices, contexts;	/* choices, contexts: of all questions */
	struct question *item;		/* [n] */
	char *digest;			/* SHA-256 of the file */
	char *images;			/* SHA-256 of the files of images, in their order; NULL: none */
	char *settings;			/* options that change what is asked; owned, set by the tool */
};

/* limit: number of questions to read, 0: all. A bad question is a fatal error, which names file and line. */
struct questions questions_read(const char *path, size_t limit, enum question_form form);
void questions_free(struct questions *q);

/* Whether contexts begin with a BOS. auto: if the tokenizer puts one before a text; yes: always; no: never. A
 * context without tokens always gets a BOS. */
enum bos { BOS_AUTO, BOS_YES, BOS_NO };
extern const char *const bos_names[];	/* NULL-terminated */

struct encode {
	const struct vocabulary *v;
	enum bos bos;
	bool special;			/* special tokens are recognized in texts */
	const char *until;		/* not NULL: adds a continuation, the gold choice and this text */
	const struct part *model;	/* whose processor is used for questions with images */
	const struct config *config;	/* of the model */
	struct prompt_images *images;	/* receives the images; names are relative to the file's folder */
	bool aifs;			/* visual tokens of contexts come first */
	size_t room;			/* tokens of an answer */
};
/* Returns [q->contexts] prompts, one for each context of each question; prompts_free() them. Continuations
 * are the choices of the context and, for the gold choice, the one with `until`. The only continuation of a
 * question with an answer has `room` tokens without ids. Fatal errors: the vocabulary lacks an id; a context
 * does not have one placeholder for each of its images; images for a model of text; a context before an
 * answer leaves no position for it. */
struct prompt *questions_encode(const struct questions *q, const struct encode *e);
#endif
