/* SPDX-License-Identifier: GPL-3.0-or-later */
/* check.c -- see check.h */
#include "forward/check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"
#include "forward/forward.h"
#include "forward/logits.h"
#include "io/relay.h"
#include "vision/vision.h"

enum { SEQUENCES = 2, LENGTH = 64, BOTH = 2 };
enum { MEMORY = 512 << 20 };	/* bytes of hidden states that stay in memory */

struct check {
	void (*part)(void *arg, const struct filter *f);
	void *arg;
	struct relay *relay;
	const struct config *config;	/* of both */
	struct execution execution;
	struct windows windows;
	struct forward *forward[BOTH];
	struct token_image image[SEQUENCES];
	uint8_t *rgb;			/* their pixels */
	double *difference, *max;	/* [rows]: the largest of each */
	double limit;
	bool done;
};

/* Makes an image of noise for each sequence; returns the number of tokens of an image. */
static size_t draw_images(struct check *k, const struct part *first)
{
	const struct vision *v = &k->config->vision;
	const size_t square = v->patch * v->merge, h = v->side ? v->side : 2 * square;
	const size_t w = v->side ? v->side : 4 * square, pixels = h * w;
	const struct random_stream draw = random_open(1, "check");
	const struct processor processor = processor_of(first);

	k->rgb = xalloc(SEQUENCES * pixels, CHANNELS);
	for (size_t i = 0; i < SEQUENCES * pixels * CHANNELS; i++)
		k->rgb[i] = (uint8_t)(random_uniform(&draw, i) * 256);
	for (size_t i = 0; i < SEQUENCES; i++) {
		k->image[i] = vision_image(k->config, &processor, part_name(first), h, w);
		k->image[i].rgb = k->rgb + i * pixels * CHANNELS;
	}
	return k->image->n;
}

/* Puts an image before the text of each sequence. */
static void place_images(struct check *k, struct tokens *t, int32_t id[], int64_t feature[],
	uint8_t modality[], int32_t (*position)[AXES])
{
	const size_t each = t->n / SEQUENCES, n = k->image->n;
	const int32_t placeholder = k->config->vision.placeholder;

	for (size_t i = 0; i < t->n; i++) {
		modality[i] = i % each < n;
		feature[i] = modality[i] ? (int64_t)(i / each * n + i % each) : -1;
		if ((id[i] == placeholder) != modality[i])
			id[i] = modality[i] ? placeholder : placeholder ? placeholder - 1 : 1;
	}
	for (size_t i = 0; i < SEQUENCES; i++) {
		k->image[i].first = i * each;
		vision_positions(k->config, each, position + i * each, i * each, 1, &k->image[i]);
	}
	t->images = SEQUENCES;
	t->image = k->image;
	t->feature = feature;
	if (config_last(k->config)->axes == AXES) {
		t->position = *position;
		t->axes = AXES;
	}
}

static struct windows draw_windows(struct check *k, const struct part *first)
{
	const struct config *c = k->config;
	const size_t text = max(2, min(LENGTH, c->positions));
	const size_t length = text + (c->vision.class ? draw_images(k, first) : 0), n = SEQUENCES * length;
	const struct random_stream draw = random_open(0, "check");
	int32_t *id = xalloc(n, sizeof *id), (*position)[AXES] = xalloc(n, sizeof *position);
	int64_t *feature = xalloc(n, sizeof *feature), sequence[SEQUENCES + 1] = { 0 };
	uint8_t *modality = xalloc(n, 1);
	struct tokens tokens = { .n = n, .id = id, .bos = -1, .sequences = SEQUENCES, .sequence = sequence };
	struct windows w;

	for (size_t i = 0; i < n; i++)
		id[i] = (int32_t)(random_uniform(&draw, i) * (double)c->vocab);
	for (size_t i = 1; i <= SEQUENCES; i++)
		sequence[i] = (int64_t)(i * length);
	if (c->vision.class)
		place_images(k, &tokens, id, feature, modality, position);
	w = windows_cut("the check", &tokens, WINDOWS_GPTQ, length, 0);
	free(id), free(feature), free(modality), free(position);
	return w;
}

static void compare(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[])
{
	struct check *k = arg;

	(void)first;
	for (size_t i = 0; i < m * n; i++) {
		const double before = (double)y[0][i], difference = fabs((double)y[1][i] - before);
		const size_t at = row + i / n;

		k->max[at] = fmax(k->max[at], fabs(before));
		k->difference[at] = fmax(k->difference[at], isnan(difference) ? INFINITY : difference);
	}
}

/* part: the parts with the heads of both versions. */
static void compare_logits(struct check *k, const char *name, const struct part *const part[BOTH])
{
	struct head head[BOTH];
	double difference = 0, max = 0;

	for (int i = 0; i < BOTH; i++)
		head[i] = head_read(part[i], k->config, &k->execution, false);
	logits_tiles(BOTH, k->forward, (const struct head *[]){ &head[0], &head[1] }, compare, k);
	for (size_t i = 0; i < k->windows.rows; i++) {
		difference = fmax(difference, k->difference[i]);
		max = fmax(max, k->max[i]);
	}
	for (int i = 0; i < BOTH; i++)
		head_free(&head[i]);
	if (difference > 0)
		difference /= max;
	progress_clear();
	if (!quiet)
		fprintf(stderr, "%s: check: the logits differ by at most %.3g of the largest\n", program,
			difference);
	if (!(difference <= k->limit))
		die("%s: the logits differ by %.3g of the largest, expected at most %g", name, difference,
			k->limit);
	k->done = true;
}

static void prepare_check(struct check *k, const struct part *first)
{
	k->windows = draw_windows(k, first);
	k->execution.rows = k->windows.rows;
	for (int i = 0; i < BOTH; i++)
		k->forward[i] = forward_open(k->config, &k->execution, &k->windows, MEMORY);
	k->difference = xalloc(k->windows.rows, sizeof *k->difference);
	k->max = xalloc(k->windows.rows, sizeof *k->max);
}

static void check_part(void *arg, const struct filter *f)
{
	struct check *k = arg;
	struct filter own = *f;
	const struct part *part[BOTH] = { f->part, NULL };
	bool head = false;

	if (!k->forward[0])
		prepare_check(k, f->part);
	own.out = relay_output(k->relay);
	k->part(k->arg, &own);
	part[1] = relay_next(k->relay);
	for (int i = 0; i < BOTH; i++)
		head = forward_part(k->forward[i], part[i], NULL);
	if (head)
		compare_logits(k, input_name(f->in), part);
	relay_pass(k->relay, f->out);
}

void check_filter(struct filter *f, void (*part)(void *arg, const struct filter *f), void *arg, bool check,
	double limit)
{
	struct check k = { .part = part, .arg = arg, .limit = limit };

	if (!check) {
		model_filter(f, part, arg);
		return;
	}
	k.config = f->config;
	k.execution.exact_inputs = true;	/* rounding would differ though the function is the same */
	k.relay = relay_open("the result", "model");
	model_filter(f, check_part, &k);
	if (!k.done)
		die("%s: %s: is missing; the model has no head", input_name(f->in), config_end(f->config));
	for (int i = 0; i < BOTH; i++)
		forward_close(k.forward[i]);
	relay_close(k.relay);
	windows_free(&k.windows);
	free(k.rgb), free(k.difference), free(k.max);
}
