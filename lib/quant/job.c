/* SPDX-License-Identifier: GPL-3.0-or-later */
/* job.c -- see job.h: the work area, then order and groups by counting */
#include "quant/job.h"
#include <string.h>
#include "base/thread.h"
#include "quant/factor.h"
#include "quant/linear.h"

/* A piece of the work area, that starts on a cache line. */
struct pieces {
	char *base;
	size_t used;
};

static void *take(struct pieces *p, size_t n, size_t size)
{
	size_t at = p->used;

	p->used += (n * size + 63) & ~(size_t)63;
	return p->base ? p->base + at : NULL;
}

static bool same_job(const struct solver_layer *a, const struct solver_layer *b)
{
	const size_t n = a->weight->in;

	return n == b->weight->in && a->h == b->h && (a->order == b->order ||
		(a->order && b->order && !memcmp(a->order, b->order, n * sizeof *a->order)));
}

/* Columns of the widest span that job_plan() can make: dead channels may shift groups against blocks. */
static size_t widest(const struct solver *s, size_t n, size_t group)
{
	if (s->group_view == VIEW_ORIGINAL || s->static_groups || group == n)
		return SPAN;
	return s->group_view == VIEW_BLOCK ? n : group > SPAN ? group : SPAN;
}

static void lay_out_job(struct pieces *p, struct job *j, const struct solver *s, const struct solver_layer *l)
{
	const bool solve = s->compensate != COMPENSATE_NONE;
	const size_t n = l->weight->in;

	*j = (struct job){ .s = s, .n = n, .h = l->h, .order = l->order, .groups = linear_groups(n, s->group) };
	j->largest = s->group > 0 && (size_t)s->group < n ? (size_t)s->group : n;
	j->widest = widest(s, n, j->largest);
	j->column = take(p, n, sizeof *j->column);
	j->group = take(p, n, sizeof *j->group);
	j->first = take(p, j->groups + 1, sizeof *j->first);
	j->member = take(p, n, sizeof *j->member);
	j->span = take(p, ceil_div(n, SPAN) + j->groups, sizeof *j->span);
	j->r = take(p, solve ? n * n : 0, sizeof *j->r);
	j->v = take(p, solve ? j->widest * n : 0, sizeof *j->v);
	j->inverse = take(p, solve ? j->widest * j->widest : 0, sizeof *j->inverse);
}

static void lay_out_rows(struct pieces *p, struct rows *r, struct solver_layer *l, bool tensor)
{
	const size_t m = l->weight->out;

	*r = (struct rows){ .layer = l, .m = m };
	r->low = take(p, m, sizeof *r->low);
	r->high = take(p, m, sizeof *r->high);
	r->scale8 = take(p, m, sizeof *r->scale8);
	r->strip_loss = take(p, tensor ? ceil_div(m, STRIP) * SEARCH_STEPS : 0, sizeof *r->strip_loss);
	r->sum = take(p, ceil_div(m, PANEL), sizeof *r->sum);
	r->seconds = take(p, ceil_div(m, PANEL), sizeof *r->seconds);
}

size_t job_lay_out(struct batch *batch, const struct solver *s, size_t count, struct solver_layer layer[count], char *base)
{
	struct pieces p = { .base = base };
	struct job one, *job = take(&p, count, sizeof *job);
	struct rows none, *rows = take(&p, count, sizeof *rows);
	size_t n = 0, groups = 0, largest = 0, wide = 0, pieces = 0;

	*batch = (struct batch){ .layers = count, .job = job, .rows = rows };
	for (size_t i = 0; i < count; i++) {
		bool fresh = !i || !same_job(&layer[i - 1], &layer[i]);

		if (fresh) {
			lay_out_job(&p, base ? &job[batch->jobs] : &one, s, &layer[i]);
			if (base)
				one = job[batch->jobs];
			batch->jobs++;
		}
		lay_out_rows(&p, base ? &rows[i] : &none, &layer[i], s->group == -1);
		if (base)
			rows[i].job = &job[batch->jobs - 1];
		pieces += ceil_div(layer[i].weight->out, PANEL) + ceil_div(one.n, SPAN);	/* panels of rows, columns of tiles of a factor */
		n = one.n > n ? one.n : n;
		groups = one.groups > groups ? one.groups : groups;
		largest = one.largest > largest ? one.largest : largest;
		wide = one.widest > wide ? one.widest : wide;
	}
	batch->threads = threads_for(pieces);
	batch->area = take(&p, (size_t)batch->threads, sizeof *batch->area);
	for (int t = 0; t < batch->threads; t++) {
		struct area a;

		a.strip = take(&p, STRIP * n, sizeof *a.strip);
		a.w = take(&p, n, sizeof *a.w);
		a.e = take(&p, n, sizeof *a.e);
		a.d = take(&p, wide, sizeof *a.d);
		a.b = take(&p, BLOCK, sizeof *a.b);
		a.code = take(&p, n, sizeof *a.code);
		a.scale = take(&p, groups, sizeof *a.scale);
		a.zero = take(&p, groups, sizeof *a.zero);
		a.member = take(&p, s->group == -1 ? 0 : largest, sizeof *a.member);
		a.y = take(&p, SPAN, sizeof *a.y);
		a.x = take(&p, BLOCK, sizeof *a.x);
		a.scale8 = take(&p, PANEL, sizeof *a.scale8);
		if (base)
			batch->area[t] = a;
	}
	return p.used;
}

const float *job_strip(const struct rows *l, const struct area *a, size_t row, size_t n)
{
	const struct linear *w = l->layer->weight;

	if (w->weight && w->weight_type == HALF_NONE)
		return (const float *)w->weight + row * w->in;
	linear_weight(w, row, n, (float (*)[w->in])a->strip);
	return a->strip;
}

/* Whether each group of original columns stands together in the order. */
static bool groups_stand(const struct job *j, const int32_t order[], int32_t seen[])
{
	size_t last = j->groups;

	memset(seen, 0, j->groups * sizeof *seen);
	for (size_t i = 0; i < j->n; i++) {
		size_t g = (size_t)order[i] / j->largest;

		if (g == last)
			continue;
		if (seen[g])
			return false;
		seen[last = g] = 1;
	}
	return true;
}

/* Where the group of position p ends in the order. */
static size_t group_end(const struct job *j, size_t p)
{
	size_t end = p;

	while (end < j->live && j->group[end] == j->group[p])
		end++;
	return end;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Where the last group ends that does so within `wide` columns; 0: none does. */
static size_t whole_groups(const struct job *j, size_t first, size_t wide)
{
	size_t end = least(first + wide, j->live), p = first;

	while (p < end && group_end(j, p) <= end)
		p = group_end(j, p);
	return p > first ? p : 0;
}

/*
 * Parameters that wait for compensation are taken from weights that all earlier
 * columns, or blocks, have compensated: a span must hold what a group needs.
 */
static size_t span_end(const struct job *j, size_t first)
{
	size_t end = least(first + SPAN, j->live), p = first;

	if (!j->late)
		return end;
	if (j->s->group_view == VIEW_EXACT) {
		end = whole_groups(j, first, SPAN);
		return end ? end : group_end(j, first);
	}
	for (; p < end; p = group_end(j, p))	/* whole blocks, which cut no group */
		while (end < group_end(j, p))
			end = least(end + BLOCK, j->live);
	return end;
}

size_t job_block_end(const struct job *j, const struct span *span, size_t first)
{
	size_t end = j->late && j->s->group_view == VIEW_EXACT ? whole_groups(j, first, BLOCK) : 0;

	return least(end ? end : first + BLOCK, span->last);
}

static void plan_spans(struct job *j)
{
	float *v = j->v;

	j->spans = 0;
	for (size_t first = 0, last; first < j->live; first = last) {
		last = span_end(j, first);
		j->span[j->spans++] = (struct span){ first, last, v };
		v = v ? v + (last - first) * (last - first) : NULL;
	}
}

enum solver_status job_plan(struct job *j, size_t *index)
{
	const struct solver *s = j->s;
	const bool solve = s->compensate != COMPENSATE_NONE;
	const int32_t *order = j->order;
	bool stand = true;

	if (order) {
		memset(j->member, 0, j->n * sizeof *j->member);
		for (size_t i = 0; i < j->n; i++)
			if (order[i] < 0 || (size_t)order[i] >= j->n || j->member[order[i]]++) {
				*index = i;
				return SOLVER_BAD_ORDER;
			}
		stand = groups_stand(j, order, j->first);
	}
	j->moved = !stand && !s->static_groups;
	j->late = solve && j->groups > 1 && s->group_view != VIEW_ORIGINAL && !s->static_groups;

	j->live = factor_columns(j->n, j->column, solve ? j->h : NULL, order);
	memset(j->first, 0, (j->groups + 1) * sizeof *j->first);
	for (size_t i = 0; i < j->n; i++) {
		j->group[i] = (int32_t)((j->moved ? i : (size_t)j->column[i]) / j->largest);
		if (i < j->live)
			j->first[j->group[i] + 1]++;
	}
	for (size_t g = 0; g < j->groups; g++)
		j->first[g + 1] += j->first[g];
	for (size_t i = j->live; i-- > 0;)
		j->member[--j->first[j->group[i] + 1]] = (int32_t)i;
	/* The loop above left each group's start one place too far right. */
	memmove(j->first, j->first + 1, j->groups * sizeof *j->first);
	j->first[j->groups] = (int32_t)j->live;
	plan_spans(j);
	return SOLVER_DONE;
}
