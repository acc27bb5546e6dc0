/* SPDX-License-Identifier: GPL-3.0-or-later */
/* input_scale.c -- see input_scale.h */
#include "transform/input_scale.h"
#include "base/progress.h"
#include "base/report.h"
#include "model/layer.h"

static const char *const columns[] = { "absmax", "clip", "scale" };
enum { COLUMNS = sizeof columns / sizeof *columns };
static struct report table = { .column = columns, .columns = COLUMNS };

/* The layer's scale from what was calibrated. */
static float scale_of(const struct input_scales *s, const struct calibration *k, const struct layer *l)
{
	const float absmax = calibrate_percentile(k, l->path, 100);
	const float clip = calibrate_percentile(k, l->path, s->percentile);
	const float scale = linear_scale_of(clip, s->input.format.top);

	report_row(&table, l->path, (double[COLUMNS]){ (double)absmax, (double)clip, (double)scale });
	return scale;
}

static void write_layer(struct input_scales *s, const struct filter *f, const struct calibration *k,
	const char *path)
{
	struct layer layer = layer_read(f->image, path, 0, 0);
	struct linear *l = &layer.linear;
	float scale;

	l->input = s->input;
	if (s->run) {
		scale = scale_of(s, k, &layer);
		l->input.scale = &scale;
		l->input.modalities = 1;
	}
	layer_write(f->out, f->image, path, l);
	s->done++;
	layer_free(&layer);
}

void input_scales_part(void *arg, const struct filter *f)
{
	struct input_scales *s = arg;
	struct layer_list list = layer_list(f->image, f->config, s->layers);
	struct calibration k = { 0 };

	if (s->run) {
		k = calibrate_begin(f->image, f->config, s->layers, false);
		calibrate_observe(&k, s->run->forward, f->image);
	}
	output_begin(f->out, f->image);
	if (s->run && !image_part(f->image))
		output_history(f->out, "tokens", s->run->tokens);
	for (size_t i = 0; i < list.n; i++) {
		progress_part(list.path[i], image_part(f->image), image_parts(f->image), i, list.n);
		if (!f->config || calibrate_place(f->config, list.path[i]) < SIZE_MAX)
			write_layer(s, f, &k, list.path[i]);
	}
	output_rest(f->out, f->image, NULL);
	output_end(f->out);
	if (s->run)
		calibrate_end(&k);
	layer_list_free(&list);
}
