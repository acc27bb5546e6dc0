/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenize -- text as token ids, without a BOS
 *
 * /tokens holds the ids, /bytes how many bytes of the text each stands for. With --bytes every byte is its
 * own id, and NUL stands as BOS, as byte-level models have it.
 */
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/history.h"
#include "base/option.h"
#include "io/image.h"
#include "io/text.h"
#include "model/config.h"
#include "model/tokens.h"
#include "text/tokenizer.h"

static const struct tool tool = {
	.name = "tokenize",
	.brief = "text as token ids",
	.operands = "[TEXT]",
	.max_operands = 1,
	.about = "Ids are those of the model's tokenizer.json; no BOS is added (evaluation and calibration "
		"do, by their --convention). Text need not be valid UTF-8. Give one of --model and --bytes.",
	.examples = "  tokenize --bytes README.md -o text.h5",
};

struct vocabulary { size_t size; long bos; bool add_bos; char *text; };	/* text: of tokenizer.json, or NULL */

/* Ids by the model's tokenizer; its config says how many there are, and the BOS if the tokenizer does not. */
static struct encoding by_model(struct vocabulary *v, const struct image *image, size_t n, const char text[n],
	bool special)
{
	char *json = image_string(image, "/tokenizer"), *config = image_config(image);
	char *name = xformat("%s: /tokenizer", image_name(image));
	struct tokenizer *t;
	struct encoding k;

	if (!json)
		die("%s: is not there; the model was imported without a tokenizer.json", name);
	t = tokenizer_read(name, json);
	*v = (struct vocabulary){ tokenizer_vocab(t), tokenizer_bos(t), tokenizer_bos(t) >= 0, json };
	if (config) {
		struct config c = config_read(image);

		v->size = c.vocab;
		if (v->bos < 0)
			v->bos = c.bos;
		config_free(&c);
	}
	k = tokenizer_encode(t, n, text, special);
	for (size_t i = 0; i < k.n; i++)
		if ((size_t)k.id[i] >= v->size)
			die("%s: id %d is not below the %zu of the model's vocabulary", name,
				k.id[i], v->size);
	tokenizer_close(t);
	free(name);
	free(config);
	return k;
}

int main(int argc, char *argv[])
{
	const char *model;
	bool bytes, special;
	const struct option_row rows[] = {
		{ 0, "model", OPTION_FILE(&model), "MODEL", "use the tokenizer of this model" },
		{ 0, "bytes", OPTION_BOOL(&bytes), NULL, "ids are bytes, 0 to 255" },
		{ 0, "special", OPTION_BOOL(&special), NULL, "read special tokens (<s>, ...) in the text" },
		{ .type = OPTION_END }
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	const char *path = c.operand[0];
	struct vocabulary v = { 256, 0, true, NULL };
	struct image *image = NULL;
	struct output *out;
	struct encoding k;
	enum newline newline;
	char *text, *digest;
	size_t n;

	if (!model == !bytes)
		misuse("exactly one of --model and --bytes is expected");
	option_idle(1, &(struct option_idle){ bytes, "special", "--bytes" });
	out = output_open(c.output, "tokens");
	text = text_read(path, SIZE_MAX / 4, &n);
	if (!n)
		die("%s: the text is empty", strcmp(path, "-") ? path : "<stdin>");
	if (model)
		image = image_open(model, "model");
	k = image ? by_model(&v, image, n, text, special) : encoding_of_bytes(n, text);
	newline = text[n - 1] != '\n' ? NEWLINE_NONE : k.bytes[k.n - 1] == 1 ? NEWLINE_ALONE : NEWLINE_WITHIN;
	digest = digest_of(n, text);
	history_note("text-sha256", digest);
	free(text), free(digest);

	output_start(out, 0, 1);
	if (image)
		output_history(out, "model", image);
	output_write(out, "/tokens", tensor_1d(TENSOR_I32, k.id, k.n));
	tokens_describe(out, v.text, v.bos, v.add_bos, v.size);
	output_integer(out, "/tokens", "newline", newline);
	output_write(out, "/bytes", tensor_1d(TENSOR_U16, k.bytes, k.n));
	output_end(out);
	output_close(out);
	encoding_free(&k);
	free(v.text);
	if (image)
		image_close(image);
	return 0;
}
