/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokens.c -- see tokens.h */
#include "model/tokens.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/option.h"

enum {
	PLACES = 1 << 24,	/* most positions */
	GRID = 1 << 16		/* most patches per side */
};

/* Reads one number (or three) per token, from 0 to max - 1; NULL if absent. */
static const int32_t *read_places(const struct part *part, const char *path, size_t n, size_t max,
	size_t *axes)
{
	enum { THREE = 3 };
	size_t each;
	struct tensor t;

	if (!part_find(part, path, TENSOR_I32, -1, NULL, &t))
		return NULL;
	each = t.rank == 2 ? t.dim[1] : 1;
	if (t.rank < 1 || t.rank > 2 || t.dim[0] != n || (each != 1 && (each != THREE || !axes)))
		die("%s: %s: expected one number a token%s, for %zu tokens", part_name(part), path,
			axes ? ", or three" : "", n);
	for (size_t i = 0; i < n * each; i++)
		if (((const int32_t *)t.data)[i] < 0 || (size_t)((const int32_t *)t.data)[i] >= max)
			die("%s: %s: token %zu has %d, expected a number from 0 to %zu", part_name(part),
				path, i / each, ((const int32_t *)t.data)[i], max - 1);
	if (axes)
		*axes = each;
	return t.data;
}

static void read_sequences(const struct part *part, struct tokens *y)
{
	struct tensor t;

	if (!part_find(part, "/sequence", TENSOR_I64, 1, NULL, &t))
		return;
	y->sequence = t.data;
	y->sequences = t.dim[0] ? t.dim[0] - 1 : 0;
	if (!y->sequences || y->sequence[0] || y->sequence[y->sequences] != (int64_t)y->n)
		die("%s: /sequence: expected offsets from 0 to the number of tokens, %zu", part_name(part),
			y->n);
	for (size_t i = 0; i < y->sequences; i++)
		if (y->sequence[i + 1] <= y->sequence[i])
			die("%s: /sequence: sequence %zu has no tokens", part_name(part), i);
}

/* Checks that the index of each sequence is a permutation of 0 .. length - 1. */
static void check_index(const struct part *part, const struct tokens *y)
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
					"once in its sequence", part_name(part), i, y->index[i],
					end - first - 1);
			seen[at] = true;
		}
	}
	free(seen);
}

/* Reads the pixels of image i. */
static void read_pixels(const struct part *part, size_t i, size_t images, struct token_image *p)
{
	char *path = xformat("/images/%zu", i);
	struct tensor t;

	if (!part_find(part, path, TENSOR_U8, 3, (const size_t[]){ 0, 0, 3 }, &t))
		die("%s: %s: is missing, /image_span has spans of %zu images", part_name(part), path,
			images);
	if (!t.dim[0] || !t.dim[1])
		die("%s: %s: has no pixels", part_name(part), path);
	p->h = t.dim[0], p->w = t.dim[1], p->rgb = t.data;
	free(path);
}

/* Reads the tokens and patches of image i. Image i - 1 ends before token `from`; *s is the current
 * sequence. */
static void read_span(const struct part *part, const struct tokens *y, size_t i, const int64_t span[2],
	const int32_t grid[3], size_t from, size_t *s, struct token_image *p)
{
	if (span[0] < 0 || span[1] < 1 || (size_t)span[0] > y->n || (size_t)span[1] > y->n - (size_t)span[0])
		die("%s: /image_span: image %zu has first token %jd and %jd tokens, expected at least one "
			"of the %zu", part_name(part), i, (intmax_t)span[0], (intmax_t)span[1], y->n);
	if ((size_t)span[0] < from)
		die("%s: /image_span: image %zu begins before the one before it ends, at token %zu",
			part_name(part), i, from);
	while (*s < y->sequences && y->sequence[*s + 1] <= span[0])
		++*s;
	if (*s < y->sequences && span[0] + span[1] > y->sequence[*s + 1])
		die("%s: /image_span: image %zu has tokens of two sequences", part_name(part), i);
	for (size_t k = 0; k < 3; k++)
		if (grid[k] < 1 || grid[k] > GRID)
			die("%s: /image_grid: image %zu has %d, expected frames, rows and columns of "
				"patches, 1 to %d", part_name(part), i, grid[k], GRID);
	p->number = i;
	p->first = (size_t)span[0], p->n = (size_t)span[1];
	p->frames = (size_t)grid[0], p->rows = (size_t)grid[1], p->columns = (size_t)grid[2];
}

/* Checks that a token is visual exactly if it belongs to an image, and numbers visual tokens. */
static void number_features(const struct part *part, struct tokens *y)
{
	int64_t *feature = part_keep(part, xalloc(y->n, sizeof *feature)), count = 0;
	size_t at = 0;

	for (size_t i = 0; i < y->n; i++) {
		const struct token_image *p = &y->image[at];
		const bool within = at < y->images && i >= p->first;

		if ((y->modality ? y->modality[i] : 0) != within)
			die("%s: /modality: token %zu is %s, and %s", part_name(part), i,
				within ? "text" : "visual",
				within ? "one of an image's, by /image_span" : "in no span of /image_span");
		feature[i] = within ? count++ : -1;
		at += within && i + 1 == p->first + p->n;
	}
	y->feature = feature;
}

static void read_images(const struct part *part, struct tokens *y)
{
	struct tensor span, grid;
	struct token_image *p;
	size_t sequence = 0;
	char *more;

	if (!part_has(part, "/images") && !part_has(part, "/image_span") &&
	    !part_has(part, "/image_grid"))
		return;
	span = part_tensor(part, "/image_span", TENSOR_I64, 2, (const size_t[]){ 0, 2 });
	y->images = span.dim[0];
	grid = part_tensor(part, "/image_grid", TENSOR_I32, 2, (const size_t[]){ y->images, 3 });
	more = xformat("/images/%zu", y->images);
	if (part_has(part, more))
		die("%s: %s: has no span, /image_span has spans of %zu images", part_name(part), more,
			y->images);
	free(more);
	p = part_keep(part, xalloc(y->images, sizeof *p));
	y->image = p;
	for (size_t i = 0; i < y->images; i++) {
		read_span(part, y, i, (const int64_t *)span.data + 2 * i, (const int32_t *)grid.data + 3 * i,
			i ? p[i - 1].first + p[i - 1].n : 0, &sequence, &p[i]);
		read_pixels(part, i, y->images, &p[i]);
	}
	number_features(part, y);
}

/* Reads sequences, the order of their tokens, modalities, and images. */
static void read_order(const struct part *part, struct tokens *y)
{
	struct tensor t;

	read_sequences(part, y);
	y->index = read_places(part, "/index", y->n, y->n, NULL);
	check_index(part, y);
	if (part_find(part, "/modality", TENSOR_U8, 1, &y->n, &t))
		y->modality = t.data;
	for (size_t i = 0; y->modality && i < y->n; i++)
		if (y->modality[i] > 1)
			die("%s: /modality: token %zu is of kind %d, expected 0, text, or 1, visual",
				part_name(part), i, y->modality[i]);
	read_images(part, y);
}

/* Reads the position of each token, if the file has it. */
static void read_place(const struct part *part, struct tokens *y)
{
	read_order(part, y);
	y->position = read_places(part, "/position", y->n, PLACES, &y->axes);
}

struct tokens tokens_order(const struct part *part)
{
	struct tensor t = part_tensor(part, "/tokens", TENSOR_I32, 1, NULL);
	struct tokens y = { .n = t.dim[0], .id = t.data };

	read_order(part, &y);
	return y;
}

/* Drops images that do not end within the first n tokens; returns n without the tokens of a cut image. */
static size_t cut_images(struct tokens *y, size_t n)
{
	for (const struct token_image *p; y->images; y->images--) {
		p = &y->image[y->images - 1];
		if (p->first + p->n <= n)
			break;
		n = n < p->first ? n : p->first;
	}
	return n;
}

/* Keeps the first n tokens. An image or a reordered sequence is kept whole or dropped. */
static void cut_tokens(const struct part *part, struct tokens *y, size_t n)
{
	n = cut_images(y, n);
	if (!n)
		die("%s: /image_span: --limit ends within the image that comes first", part_name(part));
	while (y->sequences && (size_t)y->sequence[y->sequences - 1] >= n)
		y->sequences--;
	if (y->index && y->sequences && (size_t)y->sequence[y->sequences] > n)
		n = (size_t)y->sequence[--y->sequences];
	if (y->index && (!n || !y->sequence))
		die("%s: /index: --limit ends within the first sequence, which was reordered",
			part_name(part));
	y->n = cut_images(y, n);
}

/* The first token from `skip` on that is not within an image, nor within a reordered sequence. */
static size_t whole_from(const struct tokens *y, size_t skip)
{
	size_t s = 0;

	for (size_t i = 0; i < y->images; i++)
		if (y->image[i].first < skip && skip < y->image[i].first + y->image[i].n)
			skip = y->image[i].first + y->image[i].n;
	while (y->index && s < y->sequences && (size_t)y->sequence[s] < skip)
		s++;
	return !y->index ? skip : s < y->sequences ? (size_t)y->sequence[s] : y->n;
}

/* Leaves out sequences and images before token `skip`, and counts the others from there. */
static void shift_places(const struct part *part, struct tokens *y, size_t skip)
{
	int64_t *sequence = part_keep(part, xalloc(y->sequences + 1, sizeof *sequence));
	int64_t *feature = part_keep(part, xalloc(y->n, sizeof *feature)), gone = 0;
	struct token_image *image = part_keep(part, xalloc(y->images, sizeof *image));
	size_t images = 0;

	while (y->sequences && (size_t)y->sequence[1] <= skip)
		y->sequence++, y->sequences--;
	for (size_t i = 1; y->sequences && i <= y->sequences; i++)
		sequence[i] = y->sequence[i] - (int64_t)skip;
	if (y->sequences)
		y->sequence = sequence;
	for (size_t i = 0; i < y->images; i++)
		if (y->image[i].first < skip) {
			gone += (int64_t)y->image[i].n;
		} else {
			image[images] = y->image[i];
			image[images++].first -= skip;
		}
	y->image = image, y->images = images;
	for (size_t i = 0; y->feature && i < y->n - skip; i++)
		feature[i] = y->feature[skip + i] < 0 ? -1 : y->feature[skip + i] - gone;
	if (y->feature)
		y->feature = feature;
}

/* Leaves out the first `skip` tokens. An image or a reordered sequence is kept whole or dropped. */
static void skip_tokens(const struct part *part, struct tokens *y, size_t skip)
{
	const size_t from = whole_from(y, skip);

	if (from >= y->n)
		die("%s: %s: --skip %zu leaves no whole %s", part_name(part),
			y->index ? "/index" : y->images ? "/image_span" : "/tokens", skip, y->index ?
			"sequence, and they were reordered" : "image or text before the end or --limit");
	shift_places(part, y, from);
	y->id += from;
	if (y->position)
		y->position += from * (y->axes ? y->axes : 1);
	if (y->index)
		y->index += from;
	if (y->modality)
		y->modality += from;
	if (y->bytes)
		y->bytes += from;
	y->first = from;
	y->n -= from;
}

void tokens_compare(const struct part *part, const char *name, const char *tokenizer)
{
	char *theirs = part_text(part, "/tokens", "tokenizer_sha256");
	char *digest = theirs ? digest_of(strlen(tokenizer), tokenizer) : NULL;

	if (digest && strcmp(digest, theirs))
		warn("%s: /tokens: made by another tokenizer than that of %s", part_name(part), name);
	free(theirs), free(digest);
}

static void check_maker(const struct part *part, const struct part *model, size_t ours, size_t vocab,
	bool force)
{
	char *text = part_has(model, "/tokenizer") ? part_string(model, "/tokenizer") : NULL;

	option_without_effect(1, &(struct option_without_effect){ !ours || ours == vocab, "force-tokens",
		"the vocabularies have one size" });
	if (ours && ours != vocab && !force)
		die("%s: /tokens: made for a vocabulary of %zu, %s has %zu: "
			"tokenize the text for this model (--force-tokens accepts them)",
			part_name(part), ours, part_name(model), vocab);
	if (text)
		tokens_compare(part, part_name(model), text);
	free(text);
}

static char *digest_ids(size_t n, const int32_t id[n])
{
	return digest_of(n * sizeof *id, (const char *)id);
}

char *tokens_digest(const struct part *part)
{
	char *y = part_text(part, "/tokens", "tokens_sha256");
	struct tensor t;

	if (y && strlen(y) != DIGEST_DIGITS)
		die("%s: /tokens: attribute tokens_sha256 is '%.80s', expected %d hexadecimal digits",
			part_name(part), y, DIGEST_DIGITS);
	if (y)
		return y;
	t = part_tensor(part, "/tokens", TENSOR_I32, 1, NULL);
	return digest_ids(t.dim[0], t.data);
}

void tokens_write_digest(struct output *out, size_t n, const int32_t id[n])
{
	char *digest = digest_ids(n, id);

	output_text(out, "/tokens", "tokens_sha256", digest);
	free(digest);
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

/* An attribute of /tokens, or, in older files, of the root. */
static double attribute(const struct part *part, const char *name, double default_value)
{
	return part_number(part, "/tokens", name, part_number(part, "/", name, default_value));
}

struct tokens tokens_read(const struct part *part, const struct part *model, size_t vocab, bool force,
	size_t skip, size_t limit)
{
	struct tensor t = part_tensor(part, "/tokens", TENSOR_I32, 1, NULL), b;
	struct tokens y = { .n = t.dim[0], .id = t.data };
	double add = attribute(part, "add_bos", NAN), bos = attribute(part, "bos_id", -1);
	double size = attribute(part, "vocab", 0), newline = attribute(part, "newline", NEWLINE_NONE);

	if (!(bos >= -1) || bos >= INT32_MAX || bos != (int32_t)bos)
		die("%s: /tokens: attribute bos_id is not a token id", part_name(part));
	if (!(size >= 0) || size > INT32_MAX || size != floor(size))
		die("%s: /tokens: attribute vocab is not a size", part_name(part));
	if (!isnan(add) && add != 0 && add != 1)
		die("%s: /tokens: attribute add_bos is %g, expected 0 or 1", part_name(part), add);
	if (newline != NEWLINE_NONE && newline != NEWLINE_ALONE && newline != NEWLINE_WITHIN)
		die("%s: /tokens: attribute newline is %g, expected 0, 1 or 2", part_name(part), newline);
	if (add > 0 && bos < 0)
		die("%s: /tokens: attribute add_bos is 1, but there is no bos_id", part_name(part));
	if (isnan(add))
		warn("%s: /tokens: has no attribute add_bos: no BOS is put before the text",
			part_name(part));
	y.bos = (int32_t)bos;
	y.add_bos = add > 0;
	y.vocab = (size_t)size;
	y.newline = (enum newline)newline;
	read_place(part, &y);
	if (model)
		check_maker(part, model, y.vocab, vocab, force);
	if (part_find(part, "/bytes", TENSOR_U16, 1, &y.n, &b))
		y.bytes = b.data;
	if (skip && skip >= y.n)
		die("%s: /tokens: --skip %zu leaves none of the %zu ids", part_name(part), skip, y.n);
	if (limit && limit < y.n - skip) {
		cut_tokens(part, &y, skip + limit);
		y.newline = NEWLINE_NONE;
	}
	if (skip)
		skip_tokens(part, &y, skip);
	for (size_t i = 0; vocab && i < y.n; i++)
		if (y.id[i] < 0 || (size_t)y.id[i] >= vocab)
			die("%s: /tokens: id %d at %zu is not in the model's vocabulary of %zu: "
				"made by another tokenizer", part_name(part), y.id[i], y.first + i, vocab);
	if (vocab && y.bos >= 0 && (size_t)y.bos >= vocab)
		die("%s: /tokens: bos_id %d is not in the model's vocabulary of %zu", part_name(part),
			y.bos, vocab);
	return y;
}

void tokens_visual_first(size_t n, size_t order[n], const uint8_t modality[n], const int32_t *index)
{
	size_t *token = xalloc(n, sizeof *token), places = 0;

	for (size_t i = 0; i < n; i++)
		token[index ? (size_t)index[i] : i] = i;
	for (int visual = 1; visual >= 0; visual--)
		for (size_t i = 0; i < n; i++)
			if ((modality[token[i]] != 0) == visual)
				order[places++] = token[i];
	free(token);
}
