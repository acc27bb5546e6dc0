/* SPDX-License-Identifier: GPL-3.0-or-later */
/* input_scale.c -- see input_scale.h */
#include "calib/input_scale.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "forward/cache.h"
#include "model/calibrated.h"
#include "model/layer.h"
#include "model/layer_list.h"

const char *const input_scale_modes[] = {
	[INPUT_AS_IS] = "none", [INPUT_STATIC_TENSOR] = "static-tensor",
	[INPUT_DYNAMIC_TOKEN] = "dynamic-token", [INPUT_STATIC_MODALITY] = "static-modality", NULL
};

const char *const input_scale_clipped[] = {
	[CLIPPED_TEXT] = "text", [CLIPPED_VISUAL] = "visual", [CLIPPED_ALL] = "all", NULL
};

static const struct report_column columns[] = {
	{ "absmax", REPORT_MAX }, { "clip", REPORT_MAX }, { "scale", REPORT_MAX },
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table table = { .column = columns, .columns = COLUMNS };

/* A scale from the calibration of the layer's inputs, of one modality or of all. whole: without clipping. */
static float scale_of(const struct input_scales *s, struct report *report, const struct calibration *k,
	const struct layer_ref *layer, size_t modality, bool whole, const char *row)
{
	struct sums *sums = calibrate_find(k, layer);
	const float absmax = sums_percentile(sums, modality, 100, k->name, layer->path);
	const float clip = whole ? absmax :
		sums_percentile(sums, modality, s->percentile, k->name, layer->path);
	const float scale = linear_scale_of(clip, s->input.format.max);

	report_row(report, &table, row, (double[COLUMNS]){ (double)absmax, (double)clip, (double)scale });
	return scale;
}

/* The layer's scales, [*modalities]; free() them. */
static float *scales_of(const struct input_scales *s, struct report *report, const struct calibration *k,
	const struct layer_ref *layer, size_t *modalities)
{
	const size_t apart = calibrate_find(k, layer)->modalities;
	const bool each = s->input.mode == INPUT_STATIC_MODALITY && apart > 1;
	const enum clipped whose = layer_ref_is_visual(k->config, layer) ? CLIPPED_VISUAL : CLIPPED_ALL;
	float *scale;

	*modalities = each ? apart : 1;
	scale = xalloc(*modalities, sizeof *scale);
	for (size_t m = 0; m < *modalities; m++) {
		char *row = each && m < CLIPPED_ALL ? xformat("%s %s", layer->path, input_scale_clipped[m]) :
			xformat("%s", layer->path);

		scale[m] = scale_of(s, report, k, layer, each ? m : ALL_MODALITIES,
			s->clipped != CLIPPED_ALL && s->clipped != (each ? m : whose), row);
		free(row);
	}
	return scale;
}

void input_scale_refuse(const struct part *part, const char *layer)
{
	die("%s: %s: has input_signs, and a static scale would be that of inputs before them; expected "
		"--act-mode dynamic-token or none", part_name(part), layer);
}

static void write_layer(struct input_scales *s, const struct filter *f, struct calibration *k,
	const struct layer_ref *at)
{
	struct layer layer = layer_read(f->part, at->path, 0, 0);
	struct linear *l = &layer.linear;
	float *scale = NULL;

	if (s->run && linear_own_rotation(&l->rotation_in))
		input_scale_refuse(f->part, at->path);
	l->input = s->input;
	if (s->run)
		l->input.scale = scale = scales_of(s, f->report, k, at, &l->input.modalities);
	if (s->run && l->input.modalities < k->modalities && !layer_ref_is_visual(k->config, at))
		l->input.mode = INPUT_STATIC_TENSOR;	/* mixture of experts: not divided by modality */
	layer_write(f->out, f->part, at->path, l);
	s->done++;
	layer_free(&layer);
	free(scale);
}

void input_scales_part(void *arg, const struct filter *f)
{
	struct input_scales *s = arg;
	struct layer_list list = layer_list(f->part, f->config, s->layers);
	struct calibration k = { 0 };

	if (s->run) {
		k = calibrate_begin(f->part, f->config, &s->run->execution, s->layers, false);
		calibrate_observe(&k, s->run->forward, f->part);
	}
	output_begin(f->out, f->part);
	if (!part_index(f->part))
		cache_write(f->out, s->kv);
	if (s->run && !part_index(f->part)) {
		calibrated_write(f->out, 1, (const struct part *[]){ f->part }, s->run->calibration);
		output_history(f->out, "tokens", s->run->tokens);
	}
	for (size_t i = 0; !s->kv_alone && i < list.n; i++) {
		progress_part(list.layer[i].path, part_index(f->part), part_count(f->part), i, list.n);
		if (!f->config || layer_ref_input(f->config, &list.layer[i]) < SIZE_MAX)
			write_layer(s, f, &k, &list.layer[i]);
	}
	output_rest(f->out, f->part, NULL);
	output_end(f->out);
	if (s->run)
		calibrate_end(&k);
	layer_list_free(&list);
}
