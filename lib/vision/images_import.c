/* SPDX-License-Identifier: GPL-3.0-or-later */
/* images_import.c -- see images_import.h */
#include "vision/images_import.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "io/file.h"
#include "io/part.h"
#include "model/tokens.h"
#include "vision/image.h"
#include "vision/processor.h"
#include "vision/vision.h"

/* The ids with images. */
struct expanded {
	size_t n;
	int32_t *id;			/* [n] */
	uint16_t *bytes;
	uint8_t *modality;
	int64_t *sequence;		/* [sequences + 1] */
};

static struct config config_of(const struct part *model)
{
	const struct config c = config_read(model);

	if (!c.vision.class)
		die("%s: /config: is not of a vision-language model", part_name(model));
	return c;
}

static void check_tokens(const struct part *part, const struct tokens *t, const struct vision *v,
	size_t n)
{
	const char *name = part_name(part);
	size_t places = 0;

	if (t->position || t->index)
		die("%s: %s: is present already, expected tokens of a text without it", name,
			t->index ? "/index" : "/position");
	if (t->images)
		die("%s: /images: has images already", name);
	for (size_t i = 0; t->modality && i < t->n; i++)
		if (t->modality[i])
			die("%s: /modality: token %zu is visual, but of no image", name, i);
	for (size_t i = 0; i < t->n; i++)
		places += t->id[i] == v->placeholder;
	if (places != n)
		die("%s: /tokens: has %zu placeholder%s (id %d), and there %s %zu image%s, expected one "
			"for each", name, places, places == 1 ? "" : "s", v->placeholder,
			n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
}

/* Records the image files as inputs before the output is written, since it must not be one of them. */
static void note_images(size_t n, const char *const path[n])
{
	for (size_t i = 0; i < n; i++) {
		struct stat st;
		char *name;

		if (!strcmp(path[i], "-")) {
			file_note(0, "<stdin>");
		} else if (!stat(path[i], &st) && S_ISREG(st.st_mode)) {
			close(file_open(path[i], &name));
			free(name);
		}
	}
}

/* Writes the decoded image i. */
static struct token_image write_image(struct output *out, const struct config *c, const struct processor *p,
	size_t i, const char *path)
{
	struct image image = image_read(path);
	char *to = xformat("/images/%zu", i);
	struct token_image y;

	error_prefix(path);
	y = vision_image(c, p, NULL, image.h, image.w);
	error_prefix(NULL);
	output_write(out, to, tensor_of(TENSOR_U8, image.rgb, 3,
		(const size_t[]){ image.h, image.w, 3 }));
	free(to), free(image.rgb);
	return y;
}

/* Repeats each placeholder; stores the first token of each image. */
static struct expanded expand_placeholders(const struct tokens *t, int32_t placeholder, size_t images,
	struct token_image image[images])
{
	struct expanded y = { .n = t->n - images };
	size_t at = 0, sequence = 0;

	for (size_t i = 0; i < images; i++)
		y.n += image[i].n;
	y.id = xalloc(y.n, sizeof *y.id);
	y.bytes = xalloc(y.n, sizeof *y.bytes);
	y.modality = xalloc(y.n, sizeof *y.modality);
	y.sequence = xalloc(t->sequences + 1, sizeof *y.sequence);
	for (size_t i = 0; i < t->n; i++) {
		const bool visual = t->id[i] == placeholder;
		const size_t n = visual ? image->n : 1;

		if (t->sequences && t->sequence[sequence] == (int64_t)i)
			y.sequence[sequence++] = (int64_t)at;
		if (visual)
			image++->first = at;
		for (const size_t end = at + n; at < end; at++) {
			y.id[at] = t->id[i];
			y.bytes[at] = t->bytes && !visual ? t->bytes[i] : 0;
			y.modality[at] = visual;
		}
	}
	y.sequence[t->sequences] = (int64_t)y.n;
	return y;
}

/* Multimodal rotary positions, sequence by sequence. */
static void write_positions(struct output *out, const struct config *c, const struct tokens *t,
	const struct expanded *y, size_t images, const struct token_image image[images])
{
	int32_t (*position)[AXES] = xalloc(y->n, sizeof *position);

	for (size_t s = 0; s < (t->sequences ? t->sequences : 1); s++) {
		const size_t first = t->sequences ? (size_t)y->sequence[s] : 0;
		const size_t end = t->sequences ? (size_t)y->sequence[s + 1] : y->n;
		size_t n = 0;

		while (n < images && image[n].first < end)
			n++;
		vision_positions(c, end - first, position + first, first, n, image);
		image += n, images -= n;
	}
	output_write(out, "/position", tensor_2d(TENSOR_I32, position, y->n, AXES));
	free(position);
}

static void write_tokens(struct output *out, const struct part *from, const struct tokens *t,
	struct expanded *y, size_t images, const struct token_image image[images])
{
	int32_t (*grid)[3] = xalloc(images, sizeof *grid);
	int64_t (*span)[2] = xalloc(images, sizeof *span);

	for (size_t i = 0; i < images; i++) {
		grid[i][0] = (int32_t)image[i].frames, grid[i][1] = (int32_t)image[i].rows;
		grid[i][2] = (int32_t)image[i].columns;
		span[i][0] = (int64_t)image[i].first, span[i][1] = (int64_t)image[i].n;
	}
	output_write(out, "/tokens", tensor_1d(TENSOR_I32, y->id, y->n));
	tokens_write_digest(out, y->n, y->id);
	output_attributes(out, from, "/tokens");
	output_write(out, "/modality", tensor_1d(TENSOR_U8, y->modality, y->n));
	output_write(out, "/image_grid", tensor_2d(TENSOR_I32, grid, images, 3));
	output_write(out, "/image_span", tensor_2d(TENSOR_I64, span, images, 2));
	if (t->bytes)
		output_write(out, "/bytes", tensor_1d(TENSOR_U16, y->bytes, y->n));
	if (t->sequences)
		output_write(out, "/sequence", tensor_1d(TENSOR_I64, y->sequence, t->sequences + 1));
	output_rest(out, from, NULL);
	free(y->id), free(y->bytes), free(y->modality), free(y->sequence), free(grid), free(span);
}

void images_import(const char *to, const char *model, const char *tokens, bool force, size_t n,
	const char *const path[n])
{
	struct part *part = part_open(model, "model"), *from = part_open(tokens, "tokens");
	struct output *out = output_open(to, "tokens");
	const struct config c = config_of(part);
	const struct processor p = processor_of(part);
	struct tokens t = tokens_read(from, part, c.vocab, force, 0, 0);
	struct token_image *image = xalloc(n, sizeof *image);
	struct expanded y;

	check_tokens(from, &t, &c.vision, n);
	note_images(n, path);
	output_begin(out, from);
	output_history(out, "model", part);
	for (size_t i = 0; i < n; i++)
		image[i] = write_image(out, &c, &p, i, path[i]);
	y = expand_placeholders(&t, c.vision.placeholder, n, image);
	if (config_last(&c)->axes == AXES)
		write_positions(out, &c, &t, &y, n, image);
	write_tokens(out, from, &t, &y, n, image);
	output_end(out);
	output_close(out);
	free(image);
	config_free(&c);
	part_close(from), part_close(part);
}
