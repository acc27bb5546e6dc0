/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vision.c -- see vision.h */
#include "vision/vision.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/size.h"

struct processor processor_of(const struct part *part)
{
	struct processor p;
	char *text;

	if (!part_has(part, "/processor"))
		die("%s: /processor: is missing; a model that sees images needs its preprocessor_config.json",
			part_name(part));
	text = part_string(part, "/processor");
	p = processor_parse(part_keep(part, xformat("%s: /processor", part_name(part))), text);
	free(text);
	return p;
}

void vision_grid(const struct config *c, const struct processor *p, size_t h, size_t w, size_t *rows,
	size_t *columns)
{
	const struct vision *v = &c->vision;
	size_t height, width;

	if (p->patch && (p->patch != v->patch || p->merge != v->merge || p->frames != v->frames))
		die("%s: makes patches of %zu pixels of %zu frames, %zu x %zu of them a token; the model "
			"takes %zu of %zu, and %zu x %zu", p->name, p->patch, p->frames, p->merge, p->merge,
			v->patch, v->frames, v->merge, v->merge);
	processor_size(p, h, w, &height, &width);
	if (v->side && (height != v->side || width != v->side))
		die("%s: makes %zu x %zu pixels of a picture of %zu x %zu; the vision tower takes %zu x %zu",
			p->name, height, width, h, w, v->side, v->side);
	*rows = height / v->patch, *columns = width / v->patch;
	if (!v->side && (!p->patch || *rows % v->merge || *columns % v->merge))
		die("%s: is of %sImageProcessor, expected Qwen2VLImageProcessor for this model", p->name,
			p->kind);
}

void vision_positions(const struct config *c, size_t n, int32_t position[n][AXES], size_t first,
	size_t images, const size_t at[images], const int32_t grid[images][3])
{
	const int32_t merge = (int32_t)c->vision.merge;
	size_t image = 0;
	int32_t next = 0;

	for (size_t i = 0; i < n;) {
		if (image == images || at[image] != first + i) {
			for (int a = 0; a < AXES; a++)
				position[i][a] = next;
			next++, i++;
			continue;
		}
		const int32_t rows = grid[image][1] / merge, columns = grid[image][2] / merge;

		for (int32_t k = 0; k < rows * columns; k++, i++) {
			position[i][0] = next;
			position[i][1] = next + k / columns;
			position[i][2] = next + k % columns;
		}
		next += rows > columns ? rows : columns;
		image++;
	}
}
