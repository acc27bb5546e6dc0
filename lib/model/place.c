/* SPDX-License-Identifier: GPL-3.0-or-later */
/* place.c -- where the layers of a model stand in its tree, and which inputs they have; see config.h */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "model/config.h"

char *stack_path(const struct stack *s, size_t block, const char *name)
{
	return xformat("%s/%zu/%s", s->arch->blocks, block, name);
}

char *stack_attention(const struct stack *s, size_t block)
{
	char *path = stack_path(s, block, s->arch->linear->name);

	*strrchr(path, '/') = 0;
	return path;
}

char *stack_expert_path(const struct stack *s, size_t block, const char *name, size_t expert)
{
	const char *number = strchr(name, '#');

	if (!number)
		return stack_path(s, block, name);
	return xformat("%s/%zu/%.*s%zu%s", s->arch->blocks, block, (int)(number - name), name, expert,
		number + 1);
}

const struct stack *config_block(const struct config *c, const char *path, size_t *block, const char **rest)
{
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++) {
		const size_t n = strlen(s->arch->blocks);
		char *end;

		if (strncmp(path, s->arch->blocks, n) || path[n] != '/' || path[n + 1] < '0' ||
		    path[n + 1] > '9')
			continue;
		*block = strtoul(path + n + 1, &end, 10);
		if (rest)
			*rest = *end == '/' ? end + 1 : end;
		return !*end || *end == '/' ? s : NULL;
	}
	return NULL;
}

const char *stack_below(const char *name, const char *path, size_t *expert)
{
	const size_t n = strcspn(name, "#");
	char *end = (char *)(uintptr_t)path;

	*expert = 0;
	if (name[n]) {
		if (strncmp(name, path, n) || path[n] < '0' || path[n] > '9' ||
		    (path[n] == '0' && isdigit((unsigned char)path[n + 1])))
			return NULL;
		*expert = strtoul(path + n, &end, 10);
		name += n + 1;
	}
	if (strncmp(end, name, strlen(name)))
		return NULL;
	end += strlen(name);
	return *end == '/' || !*end ? end : NULL;
}

const struct stack *config_find(const struct config *c, const char *path, size_t *block, size_t *row,
	size_t *expert)
{
	const char *rest;
	const struct stack *s = config_block(c, path, block, &rest);
	size_t number;

	for (*row = 0; s && *block < s->blocks && s->arch->linear[*row].name; ++*row) {
		const struct linear_row *l = &s->arch->linear[*row];

		const char *below = stack_below(l->name, rest, &number);

		if (!below || *below)
			continue;
		if (expert)
			*expert = number;
		return number < stack_copies(s, l) && stack_has(s, *block, l) ? s : NULL;
	}
	return NULL;
}

/* Of a block: those of the second expert are behind those of the first. */
static size_t inputs_of_block(const struct config *c)
{
	size_t n = PROJECTIONS;

	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++)
		n = s->experts > 1 ? larger(n, PROJECTIONS + 2 * (s->experts - 1)) : n;
	return n;
}

size_t config_inputs(const struct config *c)
{
	return c->blocks * inputs_of_block(c) + 1;
}

size_t config_input(const struct config *c, size_t block, enum projection_name projection, size_t expert)
{
	const size_t in_block = projection == PROJECTION_HEAD ? 0 : (size_t)projection + 2 * expert;

	return block * inputs_of_block(c) + in_block;
}

const struct stack *config_last(const struct config *c)
{
	return &c->stack[c->stacks - 1];
}
