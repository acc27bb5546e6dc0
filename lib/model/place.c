/* SPDX-License-Identifier: GPL-3.0-or-later */
/* place.c -- where the layers of a model stand in its tree, their sizes and their inputs; see config.h */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "model/config.h"

bool stack_sparse(const struct stack *s, size_t block)
{
	return s->experts && !s->dense[block];
}

bool stack_has(const struct stack *s, size_t block, const struct linear_row *row)
{
	if (row->projection < PROJECTION_GATE_UP)
		return true;
	return (row->projection >= PROJECTION_ROUTER) == stack_sparse(s, block);
}

size_t stack_copies(const struct stack *s, const struct linear_row *row)
{
	return row->projection >= PROJECTION_EXPERT_GATE_UP ? s->experts : 1;
}

bool role_is_kept(enum role role)
{
	return role == ROLE_ROUTER || role == ROLE_SHARED_SWITCH;
}

size_t stack_out(const struct stack *s, enum role role)
{
	size_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;

	switch (role) {
	case ROLE_Q:	return q;
	case ROLE_K:
	case ROLE_V:	return kv;
	case ROLE_QKV:	return q + 2 * kv;
	case ROLE_GATE:
	case ROLE_UP:	return s->intermediate;
	case ROLE_SHARED_GATE:
	case ROLE_SHARED_UP:	return s->shared;
	case ROLE_EXPERT_GATE:
	case ROLE_EXPERT_UP:	return s->expert;
	case ROLE_ROUTER:	return s->experts;
	case ROLE_SHARED_SWITCH: return 1;
	default:	return s->out ? s->out : s->hidden;
	}
}

size_t stack_in(const struct stack *s, enum projection_name projection)
{
	switch (projection) {
	case PROJECTION_OUTPUT:	return s->heads * s->head_dim;
	case PROJECTION_DOWN:	return s->intermediate;
	case PROJECTION_SHARED_DOWN: return s->shared;
	case PROJECTION_EXPERT_DOWN: return s->expert;
	default:		return s->hidden * (s->merged ? s->merged : 1);
	}
}

size_t stack_width(const struct stack *s, enum projection_name projection)
{
	size_t n = 0;

	for (const struct linear_row *row = s->arch->linear; row->name; row++)
		if (row->projection == projection)
			n += stack_out(s, row->role);
	return n;
}

size_t stack_window(const struct stack *s, size_t block)
{
	return !s->slides || s->slides[block] ? s->sliding_window : 0;
}

const char *stack_final_norm(const struct stack *s)
{
	return s->norms_last ? NULL : s->arch->final_norm;
}

enum rope_blocks stack_rope(const struct stack *s, size_t block)
{
	return s->arch->local_theta_key && s->slides[block] ? ROPE_SLIDING : ROPE_FULL;
}

struct row_place stack_rows(const struct stack *s, const struct linear_row *row)
{
	size_t groups = row->order == ROWS_INTERLEAVED ? s->kv_heads : 1;
	size_t each = stack_out(s, row->role) / groups;
	struct row_place p = { .groups = groups, .each = each, .rows = each * groups };

	for (const struct linear_row *l = s->arch->linear; row->fused && l->name; l++) {
		if (l == row || !l->fused || strcmp(l->fused, row->fused))
			continue;
		p.rows += stack_out(s, l->role);
		if (l < row)
			p.before += stack_out(s, l->role) / groups;
	}
	return p;
}

const char *config_end(const struct config *c)
{
	const char *norm = stack_final_norm(config_last(c));

	return norm ? norm : c->arch->head;
}

char *stack_path(const struct stack *s, size_t block, const char *name)
{
	if (s->arch->projector)
		return xformat("%s/%s", s->arch->blocks, name);
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

		if (strncmp(path, s->arch->blocks, n) || (path[n] != '/' && path[n]))
			continue;
		if (s->arch->projector) {
			*block = 0;
			if (rest)
				*rest = path[n] ? path + n + 1 : path + n;
			return s;
		}
		if (!path[n] || path[n + 1] < '0' || path[n + 1] > '9')
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
		n = s->experts > 1 ? max(n, PROJECTIONS + 2 * (s->experts - 1)) : n;
	return n;
}

size_t config_inputs(const struct config *c)
{
	return c->blocks * inputs_of_block(c) + 1 + PROJECTION_PATCH - PROJECTION_HEAD;
}

size_t config_input(const struct config *c, size_t block, enum projection_name projection, size_t expert)
{
	const size_t in_block = projection >= PROJECTION_HEAD ? (size_t)(projection - PROJECTION_HEAD) :
		(size_t)projection + 2 * expert;

	return block * inputs_of_block(c) + in_block;
}

const struct stack *config_last(const struct config *c)
{
	return &c->stack[c->stacks - 1];
}

const struct stack *config_encoder(const struct config *c)
{
	return c->vision.class ? &c->stack[0] : NULL;
}

const struct stack *config_projector(const struct config *c)
{
	return c->vision.class ? &c->stack[1] : NULL;
}

const char *config_class(const struct config *c)
{
	return c->vision.class ? c->vision.class->name : c->arch->name;
}

size_t vision_numbers(const struct vision *v)
{
	return CHANNELS * v->frames * v->patch * v->patch;
}

size_t config_ends(const struct config *c, struct end_layer end[ENDS])
{
	const struct stack *encoder = config_encoder(c);
	const size_t hidden = config_last(c)->hidden;
	size_t n = 0;

	end[n++] = (struct end_layer){ c->arch->head, hidden, PROJECTION_HEAD };
	end[n++] = (struct end_layer){ c->arch->embedding, hidden, PROJECTION_NONE };
	if (encoder)
		end[n++] = (struct end_layer){ encoder->arch->embedding, vision_numbers(&c->vision),
			PROJECTION_PATCH };
	return n;
}

bool config_find_end(const struct config *c, const char *path, struct end_layer *end)
{
	struct end_layer all[ENDS];

	for (size_t i = 0, n = config_ends(c, all); i < n; i++)
		if (!strcmp(path, all[i].path)) {
			*end = all[i];
			return true;
		}
	return false;
}

bool config_is_visual(const struct config *c, const char *path)
{
	struct end_layer end;
	size_t block;
	const struct stack *s = config_block(c, path, &block, NULL);

	return s ? s != config_last(c) : config_find_end(c, path, &end) && end.projection == PROJECTION_PATCH;
}
