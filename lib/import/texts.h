/* SPDX-License-Identifier: GPL-3.0-or-later */
/* texts.h -- the texts of a model: files of a Hugging Face folder, datasets of the root */
#ifndef IMPORT_TEXTS_H
#define IMPORT_TEXTS_H

enum {
	TEXT_CONFIG, TEXT_TOKENIZER, TEXT_PROCESSOR,
	TEXT_TOKENIZER_CONFIG, TEXT_SPECIAL_TOKENS, TEXT_GENERATION, TEXT_CHAT,	/* for other programs */
	TEXTS
};
struct text_row {
	const char *path;		/* "/tokenizer" */
	const char *file;		/* "tokenizer.json" */
	const char *also;		/* another name of the file, tried if it is absent; NULL: none */
};
extern const struct text_row text_rows[TEXTS];
#endif
