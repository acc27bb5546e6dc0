/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokens.c -- see tokens.h */
#include "model/tokens.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/option.h"

/* Readers give every id its usual place, so files that say otherwise are refused. */
static void check_members(const struct image *image)
{
	static const char *const places[] = { "/sequence", "/position", "/index", "/modality" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (image_has(image, places[i]))
			die("%s: %s: tokens with sequences, positions or modalities of their own are not read yet", image_name(image), places[i]);
}

static void check_maker(const struct image *image, const struct image *part, size_t ours, size_t vocab, bool force)
{
	char *theirs = image_text(image, "/tokens", "tokenizer_sha256");
	char *text = theirs && image_has(part, "/tokenizer") ? image_string(part, "/tokenizer") : NULL;
	char *digest = text ? digest_of(strlen(text), text) : NULL;

	option_idle(1, &(struct option_idle){ !ours || ours == vocab, "force-tokens", "the vocabularies have one size" });
	if (ours && ours != vocab && !force)
		die("%s: /tokens: made for a vocabulary of %zu, %s has %zu: tokenize the text for this model (--force-tokens takes them all the same)",
			image_name(image), ours, image_name(part), vocab);
	if (digest && strcmp(digest, theirs))
		warn("%s: /tokens: made by another tokenizer than that of %s", image_name(image), image_name(part));
	free(theirs), free(text), free(digest);
}

void tokens_describe(struct output *out, const char *tokenizer, long bos, bool add_bos, size_t vocab)
{
	char *digest = tokenizer ? digest_of(strlen(tokenizer), tokenizer) : NULL;

	output_integer(out, "/tokens", "bos_id", bos);
	output_integer(out, "/tokens", "add_bos", add_bos);
	output_integer(out, "/tokens", "vocab", (int64_t)vocab);
	if (digest)
		output_text(out, "/tokens", "tokenizer_sha256", digest);
	free(digest);
}

struct tokens tokens_read(const struct image *image, const struct image *part, size_t vocab, bool force, size_t limit)
{
	struct tensor t = image_tensor(image, "/tokens", TENSOR_I32, 1, NULL), b;
	struct tokens y = { .n = t.dim[0], .id = t.data };
	double add = image_number(image, "/tokens", "add_bos", image_number(image, "/", "add_bos", NAN));
	double bos = image_number(image, "/tokens", "bos_id", image_number(image, "/", "bos_id", -1));
	double size = image_number(image, "/tokens", "vocab", image_number(image, "/", "vocab", 0));

	if (!(bos >= -1) || bos >= INT32_MAX || bos != (int32_t)bos)
		die("%s: /tokens: attribute bos_id is no token id", image_name(image));
	if (!(size >= 0) || size > INT32_MAX || size != floor(size))
		die("%s: /tokens: attribute vocab is no size", image_name(image));
	if (!isnan(add) && add != 0 && add != 1)
		die("%s: /tokens: attribute add_bos is %g, 0 or 1 was wanted", image_name(image), add);
	if (add > 0 && bos < 0)
		die("%s: /tokens: attribute add_bos is 1, but there is no bos_id", image_name(image));
	if (isnan(add))
		warn("%s: /tokens: has no attribute add_bos: no BOS is put before the text", image_name(image));
	y.bos = (int32_t)bos;
	y.add_bos = add > 0;
	y.vocab = (size_t)size;
	check_members(image);
	if (part)
		check_maker(image, part, y.vocab, vocab, force);
	if (image_find(image, "/bytes", TENSOR_U16, 1, &y.n, &b))
		y.bytes = b.data;
	if (limit && limit < y.n)
		y.n = limit;
	for (size_t i = 0; vocab && i < y.n; i++)
		if (y.id[i] < 0 || (size_t)y.id[i] >= vocab)
			die("%s: /tokens: id %d at %zu is not in the model's vocabulary of %zu: made by another tokenizer",
				image_name(image), y.id[i], i, vocab);
	if (vocab && y.bos >= 0 && (size_t)y.bos >= vocab)
		die("%s: /tokens: bos_id %d is not in the model's vocabulary of %zu", image_name(image), y.bos, vocab);
	return y;
}
