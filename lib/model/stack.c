/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stack.c -- see stack.h */
#include "model/stack.h"
#include <string.h>

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

struct row_slice stack_rows(const struct stack *s, const struct linear_row *row)
{
	size_t groups = row->order == ROWS_INTERLEAVED ? s->kv_heads : 1;
	size_t each = stack_out(s, row->role) / groups;
	struct row_slice p = { .groups = groups, .each = each, .rows = each * groups };

	for (const struct linear_row *l = s->arch->linear; row->fused && l->name; l++) {
		if (l == row || !l->fused || strcmp(l->fused, row->fused))
			continue;
		p.rows += stack_out(s, l->role);
		if (l < row)
			p.before += stack_out(s, l->role) / groups;
	}
	return p;
}
