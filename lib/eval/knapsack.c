/* SPDX-License-Identifier: GPL-3.0-or-later */
/* knapsack.c -- see knapsack.h */
#include "eval/knapsack.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"

/* A partial sum over the items so far. */
struct sum { uint64_t size; double cost, bound; uint32_t parent, choice; };
struct sums { size_t n; struct sum *sum; };
/* A step along the lower convex hull of the choices of an item: more size for less cost. */
struct step { size_t item, to; uint64_t size; double slope; };

struct work {
	const struct knapsack *k;	/* arrays are of its items */
	size_t steps;
	struct step *step;		/* steepest first */
	double price;			/* of a unit of size, λ */
	double *least;			/* [items + 1] Σ of min (cost + λ size) over items i, i + 1, ... */
	uint64_t *small;		/* [items + 1] Σ of the smallest sizes */
	double best, dropped;		/* cost of a known solution; least bound that was dropped */
	struct sums *after;		/* [items] */
};

static uint64_t size_of(const struct knapsack *k, size_t i, size_t c)
{
	return k->size[i * k->choices + c];
}

static double cost_of(const struct knapsack *k, size_t i, size_t c)
{
	return k->cost[i * k->choices + c];
}

static uint64_t smallest_size(const struct knapsack *k, size_t i)
{
	uint64_t y = size_of(k, i, 0);

	for (size_t c = 1; c < k->choices; c++)
		y = size_of(k, i, c) < y ? size_of(k, i, c) : y;
	return y;
}

uint64_t knapsack_least(const struct knapsack *k)
{
	uint64_t y = 0;

	for (size_t i = 0; i < k->items; i++)
		y += smallest_size(k, i);
	return y;
}

/* The smallest choice of an item; among equal sizes the cheapest. */
static size_t smallest(const struct knapsack *k, size_t i)
{
	size_t best = 0;

	for (size_t c = 1; c < k->choices; c++)
		if (size_of(k, i, c) < size_of(k, i, best) || (size_of(k, i, c) == size_of(k, i, best) &&
		    cost_of(k, i, c) < cost_of(k, i, best)))
			best = c;
	return best;
}

/* The next choice on the hull: the largest saving for its size; the choice itself at the end. */
static size_t next(const struct knapsack *k, size_t i, size_t from, double *slope)
{
	size_t best = from;

	*slope = 0;
	for (size_t c = 0; c < k->choices; c++) {
		double more = (double)size_of(k, i, c) - (double)size_of(k, i, from), s;

		if (more <= 0)
			continue;
		s = (cost_of(k, i, from) - cost_of(k, i, c)) / more;
		if (s > *slope || (s == *slope && s > 0 && size_of(k, i, c) > size_of(k, i, best)))
			best = c, *slope = s;
	}
	return best;
}

static int by_slope(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	if (a->slope != b->slope)
		return a->slope < b->slope ? 1 : -1;
	if (a->item != b->item)
		return a->item < b->item ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

/* Steps of all items, by descending slope; the steps of one item are in the order of their sizes. */
static void list_steps(struct work *w)
{
	const struct knapsack *k = w->k;

	for (size_t i = 0; i < k->items; i++) {
		double slope;

		for (size_t c = smallest(k, i), to; (to = next(k, i, c, &slope)) != c; c = to)
			w->step[w->steps++] = (struct step){ i, to, size_of(k, i, to), slope };
	}
	qsort(w->step, w->steps, sizeof *w->step, by_slope);
}

/* Takes steps while they fit. Sets the price to the slope of the first one that does not. */
static double take_steps(struct work *w, size_t choice[])
{
	const struct knapsack *k = w->k;
	uint64_t size = w->small[0];
	double cost = 0;
	bool full = false;

	for (size_t i = 0; i < k->items; i++)
		choice[i] = smallest(k, i);
	for (const struct step *s = w->step; s < w->step + w->steps; s++) {
		const uint64_t more = s->size - size_of(k, s->item, choice[s->item]);

		if (size + more <= k->budget) {
			size += more;
			choice[s->item] = s->to;
		} else if (!full) {
			full = true;
			w->price = s->slope;
		}
	}
	for (size_t i = 0; i < k->items; i++)
		cost += cost_of(k, i, choice[i]);
	return cost;
}

/* No solution that contains the partial sum over items before i costs less. */
static double bound_of(const struct work *w, size_t i, const struct sum *s)
{
	return s->cost + w->least[i] - w->price * (double)(w->k->budget - s->size);
}

static int by_size(const void *x, const void *y)
{
	const struct sum *a = x, *b = y;

	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	if (a->cost != b->cost)
		return a->cost < b->cost ? -1 : 1;
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return a->choice < b->choice ? -1 : a->choice > b->choice;
}

static int by_bound(const void *x, const void *y)
{
	const struct sum *a = x, *b = y;

	return a->bound != b->bound ? (a->bound < b->bound ? -1 : 1) : by_size(x, y);
}

/* Bounds are sums of rounded numbers, with errors below this. */
static double margin(double cost)
{
	return 1e-12 * (1 + fabs(cost));
}

/* Adds the choices of item i to the partial sums before it. */
static struct sums extend(const struct work *w, size_t i, const struct sums *before)
{
	const struct knapsack *k = w->k;
	struct sums y = { 0, xalloc(before->n, k->choices * sizeof *y.sum) };

	for (size_t p = 0; p < before->n; p++)
		for (size_t c = 0; c < k->choices; c++) {
			struct sum s = { before->sum[p].size + size_of(k, i, c),
				before->sum[p].cost + cost_of(k, i, c), 0, (uint32_t)p, (uint32_t)c };

			if (s.size + w->small[i + 1] > k->budget)
				continue;
			s.bound = bound_of(w, i + 1, &s);
			if (s.bound <= w->best + margin(w->best))
				y.sum[y.n++] = s;
		}
	return y;
}

/* Keeps the sums that no smaller one undercuts, and of these the `limit` with the best bounds. */
static void reduce(struct work *w, struct sums *y)
{
	double least = INFINITY;
	size_t n = 0;

	qsort(y->sum, y->n, sizeof *y->sum, by_size);
	for (size_t p = 0; p < y->n; p++)
		if (y->sum[p].cost < least) {
			least = y->sum[p].cost;
			y->sum[n++] = y->sum[p];
		}
	y->n = n;
	if (n <= w->k->limit)
		return;
	qsort(y->sum, n, sizeof *y->sum, by_bound);
	y->n = w->k->limit;
	w->dropped = fmin(w->dropped, y->sum[y->n].bound);
}

/* Takes the cheapest sum over all items, if it is cheaper than the known solution. */
static void trace(struct work *w, size_t choice[])
{
	const struct sums *last = &w->after[w->k->items - 1];
	size_t at = 0;

	for (size_t p = 1; p < last->n; p++)
		if (last->sum[p].cost < last->sum[at].cost)
			at = p;
	if (!last->n || last->sum[at].cost >= w->best)
		return;
	w->best = last->sum[at].cost;
	for (size_t i = w->k->items; i--; ) {
		const struct sum *s = &w->after[i].sum[at];

		choice[i] = s->choice;
		at = s->parent;
	}
}

/* Fills the arrays of w, and finds a first solution. */
static void prepare(struct work *w, size_t choice[])
{
	const struct knapsack *k = w->k;

	list_steps(w);
	w->best = take_steps(w, choice);
	for (size_t i = k->items; i--; ) {
		double least = INFINITY;

		for (size_t c = 0; c < k->choices; c++)
			least = fmin(least, cost_of(k, i, c) + w->price * (double)size_of(k, i, c));
		w->least[i] = w->least[i + 1] + least;
	}
}

/* Finds a better solution than the first one, if there is one. */
static void improve(struct work *w, size_t choice[])
{
	struct sum none = { 0 };
	const struct sums start = { 1, &none };

	for (size_t i = 0; i < w->k->items; i++) {
		w->after[i] = extend(w, i, i ? &w->after[i - 1] : &start);
		reduce(w, &w->after[i]);
	}
	trace(w, choice);
	for (size_t i = 0; i < w->k->items; i++)
		free(w->after[i].sum);
}

bool knapsack_solve(const struct knapsack *k, size_t choice[k->items], double *cost, double *bound)
{
	const size_t n = k->items;
	struct work w = { .k = k, .step = xalloc(n, k->choices * sizeof *w.step), .dropped = INFINITY,
		.least = xalloc(n + 1, sizeof *w.least), .small = xalloc(n + 1, sizeof *w.small),
		.after = xalloc(n, sizeof *w.after) };
	bool fits;

	w.least[n] = 0;
	w.small[n] = 0;
	for (size_t i = n; i--; )
		w.small[i] = w.small[i + 1] + smallest_size(k, i);
	fits = w.small[0] <= k->budget;
	if (fits) {
		prepare(&w, choice);
		improve(&w, choice);
		*cost = w.best;
		*bound = fmin(w.best, w.dropped - margin(w.best));
	}
	free(w.step), free(w.least), free(w.small), free(w.after);
	return fits;
}
