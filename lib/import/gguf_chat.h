/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_chat.h -- chat templates and special tokens of a GGUF file, as the texts of a Hugging Face folder
 *
 * tokenizer.chat_template is the template "default", the other ones are tokenizer.chat_template.NAME, whose
 * names are in tokenizer.chat_templates. Special tokens are ids in a GGUF file, and texts in
 * tokenizer_config.json.
 *
 * Source: https://github.com/ggml-org/ggml, docs/gguf.md; gguf-py (add_chat_template).
 */
#ifndef IMPORT_GGUF_CHAT_H
#define IMPORT_GGUF_CHAT_H
#include "import/gguf.h"
#include "import/gguf_output.h"
#include "import/texts.h"

/* Sets chat_template.jinja, and tokenizer_config.json with bos_token, eos_token, unk_token, pad_token and the
 * templates of other names. It needs config.json, and stores NULL for what the file does not have. */
void gguf_read_chat(const struct gguf *g, const char *path, char *text[TEXTS]);
/* Writes all templates, of chat_template.jinja and tokenizer_config.json. Those without a name of their own,
 * or with a NUL, are left out with a warning. path: of the file, for messages. */
void gguf_put_chat(struct gguf_output *o, const char *path, char *const text[TEXTS]);
#endif
