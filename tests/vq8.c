/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vq8.c -- see vq8.h */
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/size.h"
#include "num/code_form.h"
#include "quant/linear.h"
#include "transform/quantizer.h"
#include "vq8.h"

enum { ENTRIES = 60, TALL = 2, WIDE = 4, PLACES = 8, HALF = 4, HALVES = 250 };

/* Pseudo-random numbers from -1 to 1; entry 0 is all zero. */
static float entry(size_t code, size_t place)
{
	uint32_t x = (uint32_t)(code * PLACES + place) * 2654435761u;

	x = (x ^ x >> 16) * 0x45d9f3bu;
	return code ? (float)((x ^ x >> 16) >> 8) * 0x1p-23f - 1 : 0;
}

static void decode(const struct format *f, size_t row, size_t i, size_t n, float w[n], const uint8_t code[],
	const float scale[n], const uint8_t zero[n])
{
	(void)f, (void)zero;
	for (size_t j = 0; j < n; j++)
		w[j] = entry(code[(i + j) / WIDE], row * WIDE + (i + j) % WIDE) * scale[j];
}

const struct code_form vq8_form = { TALL, WIDE, decode, NULL, false };

bool vq8_fill(struct format *f)
{
	f->bits = 6;
	f->code_last = ENTRIES - 1;
	return true;
}

static size_t number_of(const uint8_t code[2])
{
	return code[0] + 256u * code[1];
}

static void decode_halves(const struct format *f, size_t row, size_t i, size_t n, float w[n],
	const uint8_t code[], const float scale[n], const uint8_t zero[n])
{
	(void)f, (void)zero;
	for (size_t j = 0; j < n; j++) {
		const size_t k = number_of(code + (i + j) * 2);

		w[j] = entry(row < HALF ? k % HALVES : k / HALVES, row) * scale[j];
	}
}

static bool valid_halves(const struct format *f, const uint8_t code[])
{
	(void)f;
	return number_of(code) < HALVES * HALVES;
}

const struct code_form vq16_form = { PLACES, 1, decode_halves, valid_halves, false };

bool vq16_fill(struct format *f)
{
	f->bits = 16;
	return true;
}

/* The scale of each group, from its largest weight. */
static void set_scales(struct codes *c, const float *w)
{
	const size_t group = c->group > 0 ? (size_t)c->group : c->in;

	for (size_t k = 0; k < c->scales; k++)
		c->scale[k] = 0;
	for (size_t o = 0; o < c->out; o++)
		for (size_t i = 0; i < c->in; i++) {
			float *s = &c->scale[c->group < 0 ? 0 : o * c->groups + i / group];

			*s = fmaxf(*s, fabsf(w[o * c->in + i]));
		}
	for (size_t k = 0; k < c->scales; k++)
		c->scale[k] = format_scale(&c->storage, c->scale[k] > 0 ? (double)c->scale[k] : 1);
	c->scale_tensor = 1;
	for (size_t k = 0; k < c->scales8; k++)
		c->scale8[k] = 1;
}

/* Σ (w - ŵ)² over positions [from, end) of the tile at row o, column i, with an entry. */
static double loss(const struct codes *c, const float *w, size_t o, size_t i, size_t from, size_t end,
	size_t code)
{
	const size_t group = c->group > 0 ? (size_t)c->group : c->in, wide = c->storage.form->columns;
	double sum = 0;

	for (size_t p = from; p < end; p++) {
		const size_t r = o + p / wide, k = i + p % wide;

		if (r < c->out && k < c->in) {
			const float s = c->scale[c->group < 0 ? 0 : r * c->groups + k / group];
			const double d = (double)(w[r * c->in + k] - entry(code, p) * s);

			sum += d * d;
		}
	}
	return sum;
}

/* The entry with the smallest loss at these positions; the loss is added to *sum. */
static size_t nearest(const struct codes *c, const float *w, size_t o, size_t i, size_t from, size_t end,
	size_t entries, double *sum)
{
	double min = loss(c, w, o, i, from, end, 0);
	size_t y = 0;

	for (size_t k = 1; k < entries; k++) {
		const double e = loss(c, w, o, i, from, end, k);

		if (e < min)
			min = e, y = k;
	}
	*sum += min;
	return y;
}

struct vq8_state { double mse; };

void vq8_begin(struct quantized *t)
{
	t->state = xalloc(1, sizeof(struct vq8_state));
}

void vq8_values(const struct quantized *t, double value[])
{
	const struct vq8_state *s = t->state;

	for (size_t i = 0; i < t->method->quantizer->report[1]->columns; i++)
		value[i] = NAN;
	value[1] = s->mse;
}

void vq8_free(struct quantized *t)
{
	free(t->state);
}

size_t vq8_workspace(size_t n, struct quantized *const t[n])
{
	return t[0]->weight->out * t[0]->weight->in * sizeof(float) * n;
}

void vq8_run(size_t n, struct quantized *const t[n], void *workspace)
{
	const struct linear *l = t[0]->weight;
	struct codes *c = &t[0]->codes;
	const struct code_form *form = c->storage.form;
	uint8_t *code = c->codes;
	float *w = workspace;
	double sum = 0;

	linear_weight(l, 0, l->out, (float (*)[l->in])w);
	set_scales(c, w);
	for (size_t o = 0; o < l->out; o += form->rows)
		for (size_t i = 0; i < l->in; i += form->columns) {
			if (form == &vq8_form) {
				*code++ = (uint8_t)nearest(c, w, o, i, 0, PLACES, ENTRIES, &sum);
			} else {
				const size_t k = nearest(c, w, o, i, 0, HALF, HALVES, &sum) +
					HALVES * nearest(c, w, o, i, HALF, PLACES, HALVES, &sum);

				*code++ = (uint8_t)k;
				*code++ = (uint8_t)(k >> 8);
			}
		}
	((struct vq8_state *)t[0]->state)->mse = sum / (double)(l->out * l->in);
}
