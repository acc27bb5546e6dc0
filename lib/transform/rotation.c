/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rotation.c -- see rotation.h */
#include "transform/rotation.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"

enum { TILE = 16, FEW = 1 << 12 };

/* At most TILE rows of n numbers. */
static void rotate(const struct rotation *r, size_t m, size_t width, double x[m][width])
{
	const size_t n = r->n;

	for (size_t i = 0; r->sign && i < m; i++)
		for (size_t j = 0; j < n; j++)
			x[i][j] *= r->sign[j];
	if (!r->dense) {
		hadamard_product_double(&r->h, false, m, width, x);
		return;
	}

	double *y = xalloc(m * n, sizeof *y);

	linalg_product_double(m, n, n, n, (double (*)[n])y, width, (const double (*)[width])x,
		(const double (*)[n])r->dense);
	for (size_t i = 0; i < m; i++)
		memcpy(x[i], y + i * n, n * sizeof *y);
	free(y);
}

void rotation_rows(const struct rotation *r, size_t m, size_t width, double x[m][width])
{
	#pragma omp parallel for num_threads(threads) if (m * width > FEW) schedule(static)
	for (size_t i = 0; i < m; i += TILE)
		for (size_t j = 0; j < width; j += r->n)
			rotate(r, min(TILE, m - i), width, (double (*)[width])&x[i][j]);
}

void rotation_columns(const struct rotation *r, size_t m, size_t width, double x[m][width])
{
	#pragma omp parallel for num_threads(threads) if (m * width > FEW) schedule(static)
	for (size_t from = 0; from < width; from += TILE) {
		const size_t n = min(TILE, width - from);
		double *row = xalloc(n * m, sizeof *row);

		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < n; j++)
				row[j * m + i] = x[i][from + j];
		for (size_t j = 0; j < m; j += r->n)
			rotate(r, n, m, (double (*)[m])(row + j));
		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < n; j++)
				x[i][from + j] = row[j * m + i];
		free(row);
	}
}

static struct rotation make(const char *what, size_t n, size_t block)
{
	struct rotation r = { .n = n };

	if (block && n % block)
		die("%s: %zu channels cannot be divided into blocks of %zu", what, n, block);
	if (!hadamard_choose(&r.h, n, block))
		die("%s: no Hadamard matrix of order %zu is known, use blocks of %zu", what, block,
			hadamard_block(n));
	if (!block && r.h.block < n)
		warn("%s: no Hadamard matrix of order %zu is known: rotates blocks of %zu", what, n,
			r.h.block);
	r.memory = xalloc(hadamard_bytes(&r.h), 1);
	hadamard_build(&r.h, r.memory);
	return r;
}

static void draw_signs(struct rotation *r, size_t seed, const char *what)
{
	const struct random_stream draw = random_open(seed, what);

	r->sign = xalloc(r->n, sizeof *r->sign);
	for (size_t i = 0; i < r->n; i++)
		r->sign[i] = random_bits(&draw, i) & 1 ? -1 : 1;
}

static struct rotation read_learned(const struct part *part, const char *path, size_t n)
{
	const size_t dim[] = { n, n };
	const struct tensor t = part_tensor(part, path, TENSOR_F32, 2, dim);
	struct rotation r = { .n = n, .dense = xalloc(n * n, sizeof *r.dense) };
	double worst;

	for (size_t i = 0; i < n * n; i++)
		r.dense[i] = (double)((const float *)t.data)[i];
	worst = linalg_orthogonality(n, (const double (*)[n])r.dense);
	if (!(worst <= ROTATION_MAX))
		die("%s: %s: is not orthogonal: an element of Q Qᵀ - I is %.3g, expected at most %g",
			part_name(part), path, worst, ROTATION_MAX);
	return r;
}

/* Whether some block has no experts. */
static bool has_dense(const struct stack *s)
{
	for (size_t i = 0; i < s->blocks; i++)
		if (!stack_sparse(s, i))
			return true;
	return false;
}

/* Makes rotations of the inputs of the stack's down projections, for widths without one. */
static void make_inner(struct rotations *r, const struct stack *s, size_t block)
{
	const size_t inner[] = { !s->experts || has_dense(s) ? s->intermediate : 0, s->expert, s->shared };

	for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
		struct rotation *to = r->inner;

		while (to->n && to->n != inner[i])
			to++;
		if (inner[i] && !to->n)
			*to = make(i ? "inputs of experts' down projections" : "inputs of down projections",
				inner[i], block);
	}
}

static void make_stream(struct rotations *r, const struct config *c, const struct rotation_options *o,
	size_t i, const struct part *learned)
{
	const struct stack *s = &c->stack[i];
	const bool last = s == config_last(c);
	const size_t of_head = o->block && s->head_dim % o->block ? s->head_dim : o->block;

	if (last && learned)
		r->residual[i] = read_learned(learned, "/residual", s->hidden);
	else {
		r->residual[i] = make(last ? "the residual stream" : "the encoder's residual stream",
			s->hidden, o->block);
		draw_signs(&r->residual[i], o->seed, last ? "rotation" : "rotation of the encoder");
	}
	r->value[i] = last && learned && part_has(learned, "/value") ?
		read_learned(learned, "/value", s->head_dim) :
		make("values of a head", s->head_dim, of_head == s->head_dim ? 0 : of_head);
}

struct rotations rotations_make(const struct config *c, const struct rotation_options *o,
	const bool unchanged[STACKS], const struct part *learned)
{
	struct rotations r = { 0 };

	for (size_t i = 0; i < c->stacks; i++)
		if (!unchanged[i] && !c->stack[i].arch->projector)
			make_stream(&r, c, o, i, learned);
	for (size_t i = 0; i < c->stacks && !o->offline; i++)
		if (!unchanged[c->stack[i].arch->projector ? 0 : i])
			make_inner(&r, &c->stack[i], o->block);
	if (o->keys)
		r.keys = hadamard_block(config_last(c)->head_dim);
	for (size_t i = 0; i < ROTATION_INNER; i++)
		if (r.inner[i].h.block == 1)	/* the identity */
			r.inner[i].n = 0;
	return r;
}

char *rotations_settings(const struct rotations *r, size_t seed)
{
	static const char *const name[] = { "residual", "value", "inner" };
	const struct rotation *all[] = { r->residual, r->value, r->inner };
	const size_t n[] = { STACKS, STACKS, ROTATION_INNER };
	bool drawn = false;
	char *y = xformat("blocks"), *before;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct rotation *x = all[i]; x < all[i] + n[i]; x++) {
			if (!x->n)
				continue;
			drawn |= x->sign != NULL;
			before = y;
			y = xformat("%s %s=%zu/%zu", before, name[i], x->n, x->dense ? x->n : x->h.block);
			free(before);
		}
	before = y;
	if (drawn) {
		y = xformat("%s seed=%zu", before, seed);
		free(before);
	}
	return y;
}

void rotations_free(struct rotations *r)
{
	struct rotation *all[] = { r->residual, r->value, r->inner };
	const size_t n[] = { STACKS, STACKS, ROTATION_INNER };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (struct rotation *y = all[i]; y < all[i] + n[i]; y++)
			free(y->memory), free(y->sign), free(y->dense);
	*r = (struct rotations){ 0 };
}

const struct rotation *rotations_of(const struct rotations *r, enum channels kind, size_t stack,
	size_t width)
{
	if (!r || kind == CHANNELS_OWN)
		return NULL;
	if (kind == CHANNELS_RESIDUAL)
		return &r->residual[stack];
	if (kind == CHANNELS_VALUE)
		return &r->value[stack];
	for (size_t i = 0; i < ROTATION_INNER; i++)
		if (width && r->inner[i].n == width)
			return &r->inner[i];
	return NULL;
}
