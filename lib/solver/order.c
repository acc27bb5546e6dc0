/* SPDX-License-Identifier: GPL-3.0-or-later */
/* order.c -- see order.h; a list of columns is sorted twice: within groups, and by the keys of groups */
#include "solver/order.h"
#include <stdlib.h>

struct column {
	double key;		/* of its group */
	float diag;
	int32_t group, index;
};

/* Keys of a group; its columns are in descending order. */
static double sum(size_t n, const struct column c[n])
{
	double s = 0;

	for (size_t i = 0; i < n; i++)
		s += c[i].diag;
	return s;
}

static double max(size_t n, const struct column c[n])
{
	(void)n;
	return c[0].diag;
}

static double mean(size_t n, const struct column c[n])
{
	return sum(n, c) / n;
}

static double median(size_t n, const struct column c[n])
{
	return ((double)c[(n - 1) / 2].diag + c[n / 2].diag) / 2;
}

static double top10(size_t n, const struct column c[n])
{
	return mean((n + 9) / 10, c);
}

static double (*const keys[])(size_t n, const struct column c[n]) = {
	[ORDER_MAX] = max, [ORDER_MEAN] = mean, [ORDER_SUM] = sum, [ORDER_MEDIAN] = median,
	[ORDER_TOP10] = top10,
};
const char *const order_keys[] = {
	[ORDER_MAX] = "max", [ORDER_MEAN] = "mean", [ORDER_SUM] = "sum", [ORDER_MEDIAN] = "median",
	[ORDER_TOP10] = "top10", NULL
};

#define BY(a, b) if ((a) != (b)) return (a) < (b) ? -1 : 1

static int in_group(const void *a, const void *b)
{
	const struct column *x = a, *y = b;

	BY(x->group, y->group);
	BY(y->diag, x->diag);
	BY(x->index, y->index);
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct column *x = a, *y = b;

	BY(y->key, x->key);
	return in_group(a, b);
}

static void sort(size_t n, struct column c[n], enum order_key key, size_t group)
{
	qsort(c, n, sizeof *c, in_group);
	for (size_t first = 0; first < n; first += group) {
		size_t size = n - first < group ? n - first : group;
		double k = keys[key](size, c + first);

		for (size_t i = first; i < first + size; i++)
			c[i].key = k;
	}
	qsort(c, n, sizeof *c, by_key);
}

const char *const order_kinds[] = { [ORDER_NONE] = "none", [ORDER_FULL] = "full", [ORDER_GAR] = "gar", NULL };

size_t order_workspace(size_t n)
{
	return n * sizeof(struct column);
}

size_t order_columns(size_t n, int32_t order[n], const float diag[n], enum order_kind kind,
	enum order_key key, size_t group, void *work)
{
	struct column *c = work;

	if (kind != ORDER_GAR || group == 0 || group > n)
		group = n;
	for (size_t i = 0; i < n; i++) {
		if (!(diag[i] >= 0))
			return i + 1;
		c[i] = (struct column){ .diag = diag[i], .group = (int32_t)(i / group), .index = (int32_t)i };
	}
	if (kind != ORDER_NONE)
		sort(n, c, key, group);
	for (size_t i = 0; i < n; i++)
		order[i] = c[i].index;
	return 0;
}
