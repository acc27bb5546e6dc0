/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_run.c -- runs the nodes of a template; see template_private.h */
#include <string.h>
#include "text/template_private.h"

static json_t *eval(struct run *r, const struct node *n);

/* --- operators --- */

static json_t *integers(struct run *r, char op, json_int_t a, json_int_t b)
{
	json_int_t y = 0;
	bool over = false;

	if ((op == '/' || op == '%') && !b)
		fail("division by zero");
	switch (b == -1 && op == '/' ? '*' : op) {
	case '+': over = __builtin_add_overflow(a, b, &y); break;
	case '-': over = __builtin_sub_overflow(a, b, &y); break;
	case '*': over = __builtin_mul_overflow(a, b, &y); break;
	case '/': y = a / b - (a % b && (a % b < 0) != (b < 0)); break;
	default: y = b == -1 ? 0 : a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0);
	}
	if (over)
		fail("a number needs more than 64 bits");
	return make_integer(r, y);
}

static json_t *arithmetic(struct run *r, const char *op, json_t *a, json_t *b)
{
	const enum kind kind = kind_of(a);
	json_t *y;

	if (*op != '~' && is_whole(a) && is_whole(b))
		return integers(r, *op, whole(a), whole(b));
	if (strchr("+-*", *op) && is_number(a) && is_number(b))
		return make_real(r, *op == '+' ? real(a) + real(b) : *op == '-' ? real(a) - real(b) :
			real(a) * real(b));
	if (*op != '~' && (*op != '+' || kind != kind_of(b) || (kind != KIND_TEXT && kind != KIND_LIST)))
		fail("'%s' of %s and %s cannot be computed", op, kind_name(a), kind_name(b));
	y = make_list(r);
	if (*op == '+' && kind == KIND_LIST) {
		spend(r, json_array_size(a) + json_array_size(b));
		json_array_extend(y, a), json_array_extend(y, b);
		return y;
	}
	add(r, y, a), add(r, y, b);
	return join(r, y, NULL);
}

static bool contains(struct run *r, json_t *a, json_t *b)
{
	json_t *items;

	if (json_is_string(b) && !json_is_string(a))
		fail("'in' looks for %s in a text", kind_name(a));
	if (json_is_string(b))
		return memmem(json_string_value(b), json_string_length(b), json_string_value(a),
			json_string_length(a));
	if (kind_of(b) == KIND_DICT && (kind_of(a) == KIND_LIST || kind_of(a) == KIND_DICT))
		fail("'in' looks for %s in the keys of a dict", kind_name(a));
	items = items_of(r, b);
	for (size_t i = 0; i < json_array_size(items); i++)
		if (same(r, json_array_get(items, i), a))
			return true;
	return false;
}

static json_t *compare(struct run *r, const char *op, json_t *a, json_t *b)
{
	const size_t n = json_string_length(a), m = json_string_length(b);
	int d;

	if (*op == 'i' || *op == 'n')
		return json_boolean(contains(r, a, b) == (*op == 'i'));
	if (*op == '=' || *op == '!')
		return json_boolean(same(r, a, b) == (*op == '='));
	if (is_number(a) && is_number(b))
		d = order_of(a, b);
	else if (!json_is_string(a) || !json_is_string(b))
		fail("%s and %s have no order", kind_name(a), kind_name(b));
	else if (!(d = memcmp(json_string_value(a), json_string_value(b), n < m ? n : m)))
		d = (n > m) - (n < m);
	return json_boolean((*op == '<' ? d < 0 : d > 0) || (op[1] && !d));
}

/* --- expressions --- */

static void assign(json_t *to, const char *name, json_t *v)
{
	checked(!json_object_set_nocheck(to, name, v));
}

static json_t *eval_name(struct run *r, const char *name)
{
	for (const struct scope *s = r->scope; s; s = s->outer) {
		json_t *v = json_object_get(s->names, name);

		spend(r, 1);
		if (v)
			return v;
	}
	return template_row(FUNCTION, name) ? &template_function : &template_undefined;
}

static json_t *eval_items(struct run *r, const struct node *n)
{
	json_t *y = n->kind == NODE_DICT ? keep(r, json_object()) : n->kind == NODE_NAMESPACE ?
		make_marked(r, KIND_NAMESPACE, NULL) : make_list(r);

	for (const struct node *k = n->part[0]; k; k = k->next) {
		json_t *key = json_is_object(y) ? eval(r, k->part[0]) : NULL;
		json_t *v = eval(r, key ? k->part[1] : k);

		check_nested(r, v, 1);
		if (!key)
			add(r, y, v);
		else if (!json_is_string(key) || strlen(json_string_value(key)) != json_string_length(key))
			fail("the key of a dict is %s, expected a text without NUL", kind_name(key));
		else
			assign(y, json_string_value(key), v);
	}
	return n->kind == NODE_TUPLE ? make_marked(r, KIND_VIEW, y) : y;
}

static json_t *eval_all(struct run *r, const struct node *n)
{
	json_t *v[PARTS] = { NULL };

	for (int i = 0; i < PARTS; i++)
		if (n->part[i])
			v[i] = eval(r, n->part[i]);
	r->line = n->line;
	switch (n->kind) {
	case NODE_NOT: return json_boolean(!truth(v[0]));
	case NODE_BINARY:
		return (strchr("=!<>in", *n->op) ? compare : arithmetic)(r, n->op, v[0], v[1]);
	case NODE_ATTRIBUTE: return item_of(r, v[0], n->value, true);
	case NODE_ITEM: return item_of(r, v[0], v[1], false);
	case NODE_SLICE: return slice_of(r, v[0], v + 1);
	default: return template_call(r, n->row, v[0], v + 1);
	}
}

static json_t *eval(struct run *r, const struct node *n)
{
	json_t *y;

	r->line = n->line;
	spend(r, 1);
	if (++r->depth > TEMPLATE_DEPTH)
		fail("is nested in more than %d levels", TEMPLATE_DEPTH);
	switch (n->kind) {
	case NODE_CONSTANT: y = n->value; break;
	case NODE_NAME: y = eval_name(r, json_string_value(n->value)); break;
	case NODE_LIST: case NODE_TUPLE: case NODE_DICT: case NODE_NAMESPACE: y = eval_items(r, n); break;
	case NODE_CONDITION:
		n = n->part[truth(eval(r, n->part[0])) ? 1 : 2];
		y = n ? eval(r, n) : &template_undefined;
		break;
	case NODE_BINARY:
		if (*n->op == 'a' || *n->op == 'o') {
			y = eval(r, n->part[0]);
			y = truth(y) == (*n->op == 'a') ? eval(r, n->part[1]) : y;
			break;
		}	/* fall through */
	default: y = eval_all(r, n);
	}
	r->depth--;
	return y;
}

/* --- statements --- */

static void bind(struct run *r, const struct node *names, json_t *v)
{
	json_t *items = names->next ? items_of(r, v) : NULL;
	size_t i = 0, n = json_array_size(items);

	json_object_clear(r->scope->names);
	for (; names && (!items || i < n); names = names->next)
		assign(r->scope->names, json_string_value(names->value),
			items ? json_array_get(items, i++) : v);
	if (names || i < n)
		fail("an item has %zu parts, which are not as many as the variables of the loop", n);
}

static json_t *make_loop(struct run *r, json_t *items, size_t i)
{
	const json_int_t at = (json_int_t)i, n = (json_int_t)json_array_size(items);
	json_t *before = i ? json_array_get(items, i - 1) : &template_undefined;
	json_t *after = at + 1 < n ? json_array_get(items, i + 1) : &template_undefined;
	json_t *y = make_marked(r, KIND_LOOP, NULL);

	checked(!json_object_update_new(y, json_pack("{sI sI sI sI sI sb sb sO sO}", "index", at + 1,
		"index0", at, "revindex", n - at, "revindex0", n - at - 1, "length", n, "first", !i,
		"last", at + 1 == n, "previtem", before, "nextitem", after)));
	return y;
}

static void run_all(struct run *r, const struct node *n, struct text *out);

static void run_for(struct run *r, const struct node *n, struct text *out)
{
	json_t *all = items_of(r, eval(r, n->part[1])), *items = n->part[2] ? make_list(r) : all;
	struct scope scope = { json_object(), r->scope };

	r->scope = &scope;
	for (size_t i = 0; n->part[2] && i < json_array_size(all); i++) {
		bind(r, n->part[0], json_array_get(all, i));
		r->in_condition = true;
		if (truth(eval(r, n->part[2])))
			add(r, items, json_array_get(all, i));
		r->in_condition = false;
	}
	for (size_t i = 0; i < json_array_size(items); i++) {
		bind(r, n->part[0], json_array_get(items, i));
		assign(scope.names, "loop", make_loop(r, items, i));
		run_all(r, n->part[3], out);
	}
	r->scope = scope.outer;
	json_decref(scope.names);
}

static void run_set(struct run *r, const struct node *n)
{
	json_t *to = n->part[1] ? eval(r, n->part[1]) : r->scope->names, *v = eval(r, n->part[0]);

	r->line = n->line;
	if (n->part[1] && kind_of(to) != KIND_NAMESPACE)
		fail("'%s' is %s, expected a namespace to set an attribute of",
			json_string_value(n->part[1]->value), kind_name(to));
	if (n->part[1])
		check_nested(r, v, 1);
	assign(to, json_string_value(n->value), v);
}

static void run_all(struct run *r, const struct node *n, struct text *out)
{
	r->depth++;
	for (; n; n = n->next) {
		r->line = n->line;
		spend(r, 1);
		switch (n->kind) {
		case NODE_TEXT: put_str(out, n->value); break;
		case NODE_OUTPUT: put_str(out, eval(r, n->part[0])); break;
		case NODE_SET: run_set(r, n); break;
		case NODE_FOR: run_for(r, n, out); break;
		default: run_all(r, n->part[truth(eval(r, n->part[0])) ? 1 : 2], out);
		}
	}
	r->depth--;
}

char *template_run(const struct template *t, const json_t *variables, const char *date, size_t *n)
{
	struct run r = { .t = t, .line = 1, .date = date, .made = json_array() };
	struct scope context = { (json_t *)variables, NULL }, root = { json_object(), &context };
	struct text out = { .r = &r };

	checked(r.made && root.names);
	r.scope = &root;
	run_all(&r, t->statements, &out);
	put(&out, "", 1);
	*n = out.n - 1;
	json_decref(root.names), json_decref(r.made);
	return out.s;
}
