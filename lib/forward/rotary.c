/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rotary.c -- see rotary.h */
#include "forward/rotary.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "device/device_open.h"

struct rope rope_make(size_t positions, size_t half, const double frequency[half], double scale,
	bool interleaved)
{
	struct rope r = { positions, half, interleaved, xalloc(positions * half, sizeof(float)),
		xalloc(positions * half, sizeof(float)), NULL, NULL };

	for (size_t p = 0; p < positions; p++)
		for (size_t i = 0; i < half; i++) {
			r.cosine[p * half + i] = (float)(scale * cos((double)p * frequency[i]));
			r.sine[p * half + i] = (float)(scale * sin((double)p * frequency[i]));
		}
	return r;
}

void rope_free(struct rope *r)
{
	device_free(r->device, r->cosine);
	device_free(r->device, r->sine);
	if (r->device)
		device_free(r->device, (void *)(uintptr_t)r->axis);
	*r = (struct rope){ 0 };
}

/* Moves the tables to a device. */
static void rope_move(struct rope *r, const struct device *d)
{
	const size_t bytes = r->positions * r->half * sizeof(float);
	float *cosine = r->cosine, *sine = r->sine;

	r->device = d;
	r->cosine = device_copy(d, cosine, bytes);
	r->sine = device_copy(d, sine, bytes);
	r->axis = device_copy(d, r->axis, r->half);
	free(cosine), free(sine);
}

void rope_rotate(const struct rope *r, const int32_t position[], size_t heads, size_t head_dim,
	float x[heads][head_dim])
{
	float cosine[r->half], sine[r->half];
	const float *c = r->cosine + (size_t)position[0] * r->half;
	const float *s = r->sine + (size_t)position[0] * r->half;
	const size_t step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : r->half;

	if (r->axis) {
		for (size_t i = 0; i < r->half; i++) {
			const size_t at = (size_t)position[r->axis[i]] * r->half + i;

			cosine[i] = r->cosine[at];
			sine[i] = r->sine[at];
		}
		c = cosine, s = sine;
	}
	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < r->half; i++) {
			float a = x[h][i * step], b = x[h][i * step + apart];

			x[h][i * step] = a * c[i] - b * s[i];
			x[h][i * step + apart] = b * c[i] + a * s[i];
		}
}

struct rotary rotary_make(const struct stack *s, size_t positions, const struct device *d)
{
	const int settings = !s->rotary ? 0 : s->arch->local_theta_key ? ROPES : 1;
	double *frequency = xalloc(s->rotary, sizeof *frequency);
	struct rotary r = { .stack = s };

	for (int i = 0; i < settings; i++) {
		const double scale = rope_frequencies(&s->rope[i], s->rotary, positions, frequency);

		r.rope[i] = rope_make(positions, s->rotary / 2, frequency, scale,
			s->arch->rotary_interleaved);
		r.rope[i].axis = s->axis;
		if (d)
			rope_move(&r.rope[i], d);
	}
	free(frequency);
	return r;
}

void rotary_free(struct rotary *r)
{
	for (int i = 0; i < ROPES; i++)
		rope_free(&r->rope[i]);
}

void rotary_apply(const struct rotary *r, size_t block, const int32_t position[], size_t axes, float row[])
{
	const struct stack *s = r->stack;
	const int32_t same[AXES] = { *position, *position, *position };

	if (s->rotary)
		rope_rotate(&r->rope[stack_rope(s, block)], axes < 2 && s->axes > 1 ? same : position,
			s->heads + s->kv_heads, s->head_dim, (float (*)[s->head_dim])row);
}

void rotary_rows(const struct rotary *r, size_t block, const int32_t position[], size_t axes, size_t m,
	size_t stride, float *x)
{
	const struct stack *s = r->stack;
	const struct rope *own = s->rotary ? &r->rope[stack_rope(s, block)] : NULL;

	if (own)
		own->device->rope(&(struct device_rope){ m, stride, s->heads + s->kv_heads, s->head_dim,
			own->half, own->interleaved, own->cosine, own->sine,
			axes < s->axes ? NULL : own->axis, position, axes }, x);
}
