/* SPDX-License-Identifier: GPL-3.0-or-later */
/* job.c -- see job.h: the work area, then order and groups by counting */
#include "quant/job.h"
#include <string.h>
#include "base/thread.h"
#include "quant/factor.h"
#include "quant/linear.h"

static void *take(char *base, size_t *used, size_t n, size_t size)
{
	size_t at = *used;

	*used += (n * size + 63) & ~(size_t)63;
	return base ? base + at : NULL;
}

size_t job_lay_out(struct job *j, const struct solver *s, size_t m, size_t n, char *base)
{
	const bool solve = s->compensate != COMPENSATE_NONE, tensor = s->group == -1;
	struct area a;
	size_t used = 0;

	j->groups = linear_groups(n, s->group);
	j->largest = s->group > 0 && (size_t)s->group < n ? (size_t)s->group : n;
	j->column = take(base, &used, n, sizeof *j->column);
	j->group = take(base, &used, n, sizeof *j->group);
	j->first = take(base, &used, j->groups + 1, sizeof *j->first);
	j->member = take(base, &used, n, sizeof *j->member);
	j->factor = take(base, &used, solve ? n * n : 0, sizeof *j->factor);
	j->u = take(base, &used, solve ? n * n : 0, sizeof *j->u);
	j->pivot = take(base, &used, n, sizeof *j->pivot);
	j->low = take(base, &used, m, sizeof *j->low);
	j->high = take(base, &used, m, sizeof *j->high);
	j->scale8 = take(base, &used, m, sizeof *j->scale8);
	j->strip_loss = take(base, &used, tensor ? ceil_div(m, STRIP) * SEARCH_STEPS : 0, sizeof *j->strip_loss);
	j->sum = take(base, &used, ceil_div(m, PANEL) * 3, sizeof *j->sum);
	j->area = take(base, &used, (size_t)threads, sizeof *j->area);
	for (int t = 0; t < threads; t++) {
		a.w = take(base, &used, n, sizeof *a.w);
		a.d = take(base, &used, n, sizeof *a.d);
		a.code = take(base, &used, n, sizeof *a.code);
		a.scale = take(base, &used, j->groups, sizeof *a.scale);
		a.zero = take(base, &used, j->groups, sizeof *a.zero);
		a.member = take(base, &used, tensor ? 0 : j->largest, sizeof *a.member);
		a.e = take(base, &used, BLOCK, sizeof *a.e);
		a.y = take(base, &used, BLOCK, sizeof *a.y);
		a.u = take(base, &used, BLOCK, sizeof *a.u);
		a.x = take(base, &used, BLOCK, sizeof *a.x);
		a.scale8 = take(base, &used, PANEL, sizeof *a.scale8);
		if (base)
			j->area[t] = a;
	}
	return used;
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

enum solver_status job_plan(struct job *j, const int32_t *order, size_t *index)
{
	const struct solver *s = j->s;
	const bool solve = s->compensate != COMPENSATE_NONE;
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
	return SOLVER_DONE;
}
