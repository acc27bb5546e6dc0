/* SPDX-License-Identifier: GPL-3.0-or-later */
/* solver_job.c -- workspace, order, groups and spans of a job; see solver_private.h */
#include <string.h>
#include "base/cpu.h"
#include "base/cut.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/bf16x2.h"
#include "quant/linear.h"
#include "solver/factor.h"
#include "solver/solver_private.h"

/* Allocation of parts of the workspace, which start on a cache line. */
struct pieces {
	char *base;
	size_t used;
};

static void *piece(struct pieces *p, size_t n, size_t size)
{
	return cut(p->base, &p->used, n, size);
}

static bool same_job(const struct solver_layer *a, const struct solver_layer *b)
{
	const size_t n = a->weight->in;

	return a->settings == b->settings && n == b->weight->in && a->h == b->h &&
		a->device == b->device && (a->order == b->order ||
		(a->order && b->order && !memcmp(a->order, b->order, n * sizeof *a->order)));
}

/* Columns of the widest span that job_plan() can make. Dead channels may shift groups relative to blocks. */
static size_t widest(const struct solver *s, size_t n, size_t group)
{
	if (s->group_view == VIEW_ORIGINAL || s->static_groups || group == n)
		return SPAN_COLUMNS;
	return s->group_view == VIEW_BLOCK ? n : max(group, SPAN_COLUMNS);
}

/*
 * Bytes of the left sides of all spans. There are at most 2n/256 + 1 spans, since two consecutive spans are
 * together wider than 256. They have at most 2 Σ (width + 31)(first + 31) numbers of 2 bytes.
 */
static size_t left_sides(size_t n)
{
	const size_t spans = 2 * n / SPAN_COLUMNS + 1, pad = 31;

	return 4 * (n * (n + SPAN_COLUMNS) / 2 + pad * n + pad * n * spans + pad * pad * spans);
}

static size_t paths_of(const struct solver *s)
{
	return s->paths && s->compensate != COMPENSATE_NONE ? s->paths : 1;
}

static void lay_out_job(struct pieces *p, struct job *j, const struct solver_layer *l)
{
	const struct solver *s = l->settings;
	const size_t n = l->weight->in;
	const struct device *device = solver_off_device(s, n) ? NULL : l->device;
	const bool solve = s->compensate != COMPENSATE_NONE && !device;

	*j = (struct job){ .s = s, .device = device, .n = n, .h = l->h, .order = l->order,
		.coding = { &s->storage, s->round_first && s->compute.kind ? &s->compute : NULL } };
	j->paths = paths_of(s);
	j->turns = solve ? s->turns : 0;
	j->groups = linear_groups(n, s->group);
	j->largest = s->group > 0 && (size_t)s->group < n ? (size_t)s->group : n;
	j->widest = widest(s, n, j->largest);
	j->column = piece(p, n, sizeof *j->column);
	j->group = piece(p, n, sizeof *j->group);
	j->first = piece(p, j->groups + 1, sizeof *j->first);
	j->member = piece(p, n, sizeof *j->member);
	j->span = piece(p, ceil_div(n, SPAN_COLUMNS) + j->groups, sizeof *j->span);
	j->r = piece(p, solve ? n * n : 0, sizeof *j->r);
	j->v = piece(p, solve ? j->widest * n : 0, sizeof *j->v);
	j->left = cpu_amx && solve ? piece(p, left_sides(n), 1) : NULL;
	j->inverse = piece(p, solve ? j->widest * j->widest : 0, sizeof *j->inverse);
}

static void lay_out_rows(struct pieces *p, struct rows *r, struct solver_layer *l)
{
	const bool tensor = l->settings->group == -1;
	const size_t m = l->weight->out, panels = ceil_div(m, job_panel_rows(l->settings));

	*r = (struct rows){ .layer = l, .m = m };
	r->low = piece(p, m, sizeof *r->low);
	r->high = piece(p, m, sizeof *r->high);
	r->scale8 = piece(p, m, sizeof *r->scale8);
	r->piece_loss = piece(p, tensor ? ceil_div(m, ROWS_AT_ONCE) * SEARCH_STEPS : 0,
		sizeof *r->piece_loss);
	r->sum = piece(p, panels, sizeof *r->sum);
	r->seconds = piece(p, panels, sizeof *r->seconds);
}

/* Maxima over all jobs. turns: groups of jobs with turns. */
struct extents { size_t n, groups, members, widest, refined, clipped, paths, turns; };

static void lay_out_turns(struct pieces *p, struct workspace *a, const struct extents *e)
{
	struct turns unused = { 0 }, *t;
	const size_t groups = e->turns;

	a->turns = NULL;
	if (!groups)
		return;
	a->turns = t = piece(p, 1, sizeof *t);
	t = t ? t : &unused;
	t->kept = piece(p, e->n, sizeof *t->kept);
	t->level = piece(p, e->n, sizeof *t->level);
	t->rows = piece(p, SPAN_COLUMNS, sizeof *t->rows);
	t->matrix = piece(p, groups * (groups + 1) / 2, sizeof *t->matrix);
	t->side = piece(p, groups, sizeof *t->side);
}

static void lay_out_thread(struct pieces *p, struct workspace *a, const struct extents *e)
{
	a->read = piece(p, ROWS_AT_ONCE * e->n, sizeof *a->read);
	a->w = piece(p, e->n, sizeof *a->w);
	a->e = piece(p, e->n, sizeof *a->e);
	a->right = cpu_amx ? piece(p, bf16x2_right_size(e->n, PANEL_ROWS), 1) : NULL;
	a->d = piece(p, e->widest, sizeof *a->d);
	a->b = piece(p, BLOCK_COLUMNS, sizeof *a->b);
	a->code = piece(p, e->n, sizeof *a->code);
	a->scale = piece(p, e->groups, sizeof *a->scale);
	a->zero = piece(p, e->groups, sizeof *a->zero);
	a->member = piece(p, e->members, sizeof *a->member);
	a->exact = piece(p, e->refined, sizeof *a->exact);
	a->refine = piece(p, refine_workspace(e->refined), sizeof *a->refine);
	a->clip = piece(p, e->clipped, sizeof *a->clip);
	a->y = piece(p, SPAN_COLUMNS, sizeof *a->y);
	a->x = piece(p, BLOCK_COLUMNS, sizeof *a->x);
	a->scale8 = piece(p, PANEL_ROWS, sizeof *a->scale8);
	a->cost = piece(p, PANEL_ROWS, sizeof *a->cost);
	a->paths = piece(p, e->paths, sizeof *a->paths);
	lay_out_turns(p, a, e);
}

size_t job_panel_rows(const struct solver *s)
{
	return PANEL_ROWS / paths_of(s);
}

size_t job_lay_out(struct call *call, size_t count, struct solver_layer layer[count], char *base)
{
	struct pieces p = { .base = base };
	struct job one, *job = piece(&p, count, sizeof *job);
	struct rows none, *rows = piece(&p, count, sizeof *rows);
	struct workspace unused;
	struct extents e = { 0 };
	size_t work = 0;		/* units of work: panels of rows, columns of tiles of a factor */

	*call = (struct call){ .layers = count, .job = job, .rows = rows };
	for (size_t i = 0; i < count; i++) {
		if (!i || !same_job(&layer[i - 1], &layer[i])) {
			lay_out_job(&p, &one, &layer[i]);
			if (base)
				job[call->jobs] = one;
			call->jobs++;
		}
		lay_out_rows(&p, base ? &rows[i] : &none, &layer[i]);
		if (base)
			rows[i].job = &job[call->jobs - 1];
		work += ceil_div(layer[i].weight->out, job_panel_rows(layer[i].settings)) +
			ceil_div(one.n, SPAN_COLUMNS);
		e.n = max(e.n, one.n);
		e.groups = max(e.groups, one.groups);
		e.members = max(e.members, one.s->group == -1 ? 0 : one.largest);
		e.widest = max(e.widest, one.widest);
		e.paths |= one.paths > 1;
		e.turns = one.turns ? max(e.turns, one.groups) : e.turns;
		if (one.s->group != -1 && one.s->search == SEARCH_HESSIAN)
			e.refined = max(e.refined, one.largest);
		if (one.s->group != -1 && one.s->search == SEARCH_LEARNED)
			e.clipped = max(e.clipped, one.groups);
	}
	call->threads = threads_for(work);
	call->workspace = piece(&p, (size_t)call->threads, sizeof *call->workspace);
	for (int t = 0; t < call->threads; t++)
		lay_out_thread(&p, base ? &call->workspace[t] : &unused, &e);
	return p.used;
}

const float *job_weights(const struct rows *l, const struct workspace *a, size_t row, size_t n)
{
	const struct linear *w = l->layer->weight;

	if (w->weight && w->weight_type == HALF_NONE)
		return (const float *)w->weight + row * w->in;
	linear_weight(w, row, n, (float (*)[w->in])a->read);
	return a->read;
}

/* Whether the columns of each original group are adjacent in the order. */
static bool groups_adjacent(const struct job *j, const int32_t order[], int32_t seen[])
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

/* End of the group of position p in the order. */
static size_t group_end(const struct job *j, size_t p)
{
	size_t end = p;

	while (end < j->live && j->group[end] == j->group[p])
		end++;
	return end;
}

/* End of the last group that ends within `wide` columns from first; 0: none does. */
static size_t whole_groups(const struct job *j, size_t first, size_t wide)
{
	size_t end = min(first + wide, j->live), p = first;

	while (p < end && group_end(j, p) <= end)
		p = group_end(j, p);
	return p > first ? p : 0;
}

/*
 * End of the span from first. Late parameters are computed from weights that all earlier
 * columns, or blocks, have compensated. So a span must contain whole groups.
 */
static size_t span_end(const struct job *j, size_t first)
{
	size_t end = min(first + SPAN_COLUMNS, j->live), p = first;

	if (!j->late)
		return end;
	if (j->s->group_view == VIEW_EXACT) {
		end = whole_groups(j, first, SPAN_COLUMNS);
		return end ? end : group_end(j, first);
	}
	for (; p < end; p = group_end(j, p))	/* whole blocks that do not divide a group */
		while (end < group_end(j, p))
			end = min(end + BLOCK_COLUMNS, j->live);
	return end;
}

size_t job_block_end(const struct job *j, const struct span *span, size_t first)
{
	size_t end = j->late && j->s->group_view == VIEW_EXACT ? whole_groups(j, first, BLOCK_COLUMNS) : 0;

	return min(end ? end : first + BLOCK_COLUMNS, span->last);
}

static void plan_spans(struct job *j)
{
	float *v = j->v;
	char *left = j->left;

	j->spans = 0;
	for (size_t first = 0, last; first < j->live; first = last) {
		last = span_end(j, first);
		j->span[j->spans++] = (struct span){ first, last, v, left };
		v = v ? v + (last - first) * (last - first) : NULL;
		left = left ? left + bf16x2_left_size(first, last - first) : NULL;
	}
}

enum status job_plan(struct job *j, size_t *index)
{
	const struct solver *s = j->s;
	const bool solve = s->compensate != COMPENSATE_NONE;
	const int32_t *order = j->order;
	bool adjacent = true;

	if (order) {
		memset(j->member, 0, j->n * sizeof *j->member);
		for (size_t i = 0; i < j->n; i++)
			if (order[i] < 0 || (size_t)order[i] >= j->n || j->member[order[i]]++) {
				*index = i;
				return STATUS_BAD_ORDER;
			}
		adjacent = groups_adjacent(j, order, j->first);
	}
	j->moved = !adjacent && !(solve && s->static_groups);
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
	/* The loop above stored the start of each group one element too far right. */
	memmove(j->first, j->first + 1, j->groups * sizeof *j->first);
	j->first[j->groups] = (int32_t)j->live;
	plan_spans(j);
	return STATUS_DONE;
}
