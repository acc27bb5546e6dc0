/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokens.c -- see tokens.h */
#include "model/tokens.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/option.h"

enum { PLACES = 1 << 24 };	/* positions, at most */

/* A number a token, from 0 to most - 1, or NULL. */
static const int32_t *read_places(const struct image *image, const char *path, size_t n, size_t most)
{
	struct tensor t;

	if (!image_find(image, path, TENSOR_I32, -1, NULL, &t))
		return NULL;
	if (t.rank == 2)
		die("%s: %s: has %zu numbers a token, as multimodal rotary positions do, "
			"expected one", image_name(image), path, t.dim[1]);
	if (t.rank != 1 || t.dim[0] != n)
		die("%s: %s: expected one number a token, for %zu tokens", image_name(image), path, n);
	for (size_t i = 0; i < n; i++)
		if (((const int32_t *)t.data)[i] < 0 || (size_t)((const int32_t *)t.data)[i] >= most)
			die("%s: %s: token %zu has %d, expected a number from 0 to %zu", image_name(image),
				path, i, ((const int32_t *)t.data)[i], most - 1);
	return t.data;
}

static void read_sequences(const struct image *image, struct tokens *y)
{
	struct tensor t;

	if (!image_find(image, "/sequence", TENSOR_I64, 1, NULL, &t))
		return;
	y->sequence = t.data;
	y->sequences = t.dim[0] ? t.dim[0] - 1 : 0;
	if (!y->sequences || y->sequence[0] || y->sequence[y->sequences] != (int64_t)y->n)
		die("%s: /sequence: expected offsets from 0 to the number of tokens, %zu", image_name(image),
			y->n);
	for (size_t i = 0; i < y->sequences; i++)
		if (y->sequence[i + 1] <= y->sequence[i])
			die("%s: /sequence: sequence %zu has no tokens", image_name(image), i);
}

/* The index of each sequence must be its places, 0 to its length - 1, in some order. */
static void check_index(const struct image *image, const struct tokens *y)
{
	bool *seen = xalloc(y->n, sizeof *seen);
	size_t sequences = y->sequences ? y->sequences : 1;

	for (size_t s = 0; y->index && s < sequences; s++) {
		size_t first = y->sequences ? (size_t)y->sequence[s] : 0;
		size_t end = y->sequences ? (size_t)y->sequence[s + 1] : y->n;

		for (size_t i = first; i < end; i++) {
			size_t at = first + (size_t)y->index[i];

			if (at >= end || seen[at])
				die("%s: /index: token %zu has %d, expected each number from 0 to %zu "
					"once in its sequence", image_name(image), i, y->index[i],
					end - first - 1);
			seen[at] = true;
		}
	}
	free(seen);
}

/* Sequences, the order of their tokens, and what kind each is of. */
static void read_order(const struct image *image, struct tokens *y)
{
	struct tensor t;

	read_sequences(image, y);
	y->index = read_places(image, "/index", y->n, y->n);
	check_index(image, y);
	if (image_find(image, "/modality", TENSOR_U8, 1, &y->n, &t))
		y->modality = t.data;
}

/* Where each token stands, as far as the file says so. */
static void read_place(const struct image *image, struct tokens *y)
{
	if (image_has(image, "/images"))
		die("%s: /images: holds images, which are not read yet", image_name(image));
	read_order(image, y);
	y->position = read_places(image, "/position", y->n, PLACES);
}

struct tokens tokens_order(const struct image *image)
{
	struct tensor t = image_tensor(image, "/tokens", TENSOR_I32, 1, NULL);
	struct tokens y = { .n = t.dim[0], .id = t.data };

	read_order(image, &y);
	return y;
}

/* The first n tokens only; of a reordered sequence all or none. */
static void cut(const struct image *image, struct tokens *y, size_t n)
{
	while (y->sequences && (size_t)y->sequence[y->sequences - 1] >= n)
		y->sequences--;
	if (y->index && y->sequences && (size_t)y->sequence[y->sequences] > n)
		n = (size_t)y->sequence[--y->sequences];
	if (y->index && (!n || !y->sequence))
		die("%s: /index: --limit ends within the first sequence, which was reordered",
			image_name(image));
	y->n = n;
}

void tokens_compare(const struct image *image, const char *name, const char *tokenizer)
{
	char *theirs = image_text(image, "/tokens", "tokenizer_sha256");
	char *digest = theirs ? digest_of(strlen(tokenizer), tokenizer) : NULL;

	if (digest && strcmp(digest, theirs))
		warn("%s: /tokens: made by another tokenizer than that of %s", image_name(image), name);
	free(theirs), free(digest);
}

static void check_maker(const struct image *image, const struct image *part, size_t ours, size_t vocab,
	bool force)
{
	char *text = image_has(part, "/tokenizer") ? image_string(part, "/tokenizer") : NULL;

	option_idle(1, &(struct option_idle){ !ours || ours == vocab, "force-tokens",
		"the vocabularies have one size" });
	if (ours && ours != vocab && !force)
		die("%s: /tokens: made for a vocabulary of %zu, %s has %zu: "
			"tokenize the text for this model (--force-tokens takes them all the same)",
			image_name(image), ours, image_name(part), vocab);
	if (text)
		tokens_compare(image, image_name(part), text);
	free(text);
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

/* Of /tokens, or of the root as older files have it. */
static double attribute(const struct image *image, const char *name, double otherwise)
{
	return image_number(image, "/tokens", name, image_number(image, "/", name, otherwise));
}

struct tokens tokens_read(const struct image *image, const struct image *part, size_t vocab, bool force,
	size_t limit)
{
	struct tensor t = image_tensor(image, "/tokens", TENSOR_I32, 1, NULL), b;
	struct tokens y = { .n = t.dim[0], .id = t.data };
	double add = attribute(image, "add_bos", NAN), bos = attribute(image, "bos_id", -1);
	double size = attribute(image, "vocab", 0), newline = attribute(image, "newline", NEWLINE_NONE);

	if (!(bos >= -1) || bos >= INT32_MAX || bos != (int32_t)bos)
		die("%s: /tokens: attribute bos_id is no token id", image_name(image));
	if (!(size >= 0) || size > INT32_MAX || size != floor(size))
		die("%s: /tokens: attribute vocab is no size", image_name(image));
	if (!isnan(add) && add != 0 && add != 1)
		die("%s: /tokens: attribute add_bos is %g, expected 0 or 1", image_name(image), add);
	if (newline != NEWLINE_NONE && newline != NEWLINE_ALONE && newline != NEWLINE_WITHIN)
		die("%s: /tokens: attribute newline is %g, expected 0, 1 or 2", image_name(image), newline);
	if (add > 0 && bos < 0)
		die("%s: /tokens: attribute add_bos is 1, but there is no bos_id", image_name(image));
	if (isnan(add))
		warn("%s: /tokens: has no attribute add_bos: no BOS is put before the text",
			image_name(image));
	y.bos = (int32_t)bos;
	y.add_bos = add > 0;
	y.vocab = (size_t)size;
	y.newline = (enum newline)newline;
	read_place(image, &y);
	if (part)
		check_maker(image, part, y.vocab, vocab, force);
	if (image_find(image, "/bytes", TENSOR_U16, 1, &y.n, &b))
		y.bytes = b.data;
	if (limit && limit < y.n) {
		cut(image, &y, limit);
		y.newline = NEWLINE_NONE;
	}
	for (size_t i = 0; vocab && i < y.n; i++)
		if (y.id[i] < 0 || (size_t)y.id[i] >= vocab)
			die("%s: /tokens: id %d at %zu is not in the model's vocabulary of %zu: "
				"made by another tokenizer", image_name(image), y.id[i], i, vocab);
	if (vocab && y.bos >= 0 && (size_t)y.bos >= vocab)
		die("%s: /tokens: bos_id %d is not in the model's vocabulary of %zu", image_name(image),
			y.bos, vocab);
	return y;
}
