/* SPDX-License-Identifier: GPL-3.0-or-later */
/* texts.c -- see texts.h */
#include "import/texts.h"
#include <stddef.h>

const struct text_row text_rows[TEXTS] = {
	[TEXT_CONFIG] = { "/config", "config.json", NULL },
	[TEXT_TOKENIZER] = { "/tokenizer", "tokenizer.json", NULL },
	/* newer versions of transformers store it in processor_config.json, with other settings */
	[TEXT_PROCESSOR] = { "/processor", "preprocessor_config.json", "processor_config.json" },
	[TEXT_TOKENIZER_CONFIG] = { "/tokenizer_config", "tokenizer_config.json", NULL },
	[TEXT_SPECIAL_TOKENS] = { "/special_tokens_map", "special_tokens_map.json", NULL },
	[TEXT_GENERATION] = { "/generation_config", "generation_config.json", NULL },
	[TEXT_CHAT] = { "/chat_template", "chat_template.jinja", NULL },
};
