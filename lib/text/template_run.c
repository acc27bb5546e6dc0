/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_run.c -- runs the nodes of a template; see template_private.h */
#include <string.h>
#include "text/template_private.h"

static json_t *eval(struct run *r, const struct node *n);

/* --- expressions --- */

static void assign(json_t *to, const char *name, json_t *v)
{
	value_checked(!json_object_set_nocheck(to, name, v));
}

static json_t *eval_name(struct run *r, const char *name)
{
	for (const struct scope *s = r->scope; s; s = s->outer) {
		json_t *v = json_object_get(s->names, name);

		run_spend(r, 1);
		if (v)
			return v;
	}
	return template_row(FUNCTION, name) ? &template_function : &template_undefined;
}

/* A list, a dict or a namespace. */
static json_t *eval_items(struct run *r, const struct node *n)
{
	json_t *y = n->kind == NODE_LIST ? value_list(r) : n->kind == NODE_DICT ? value_dict(r) :
		value_marked(r, KIND_NAMESPACE, NULL);

	for (const struct node *k = n->part[0]; k; k = k->next) {
		json_t *key = k->kind == NODE_PAIR ? eval(r, k->part[0]) : NULL;
		json_t *v = eval(r, key ? k->part[1] : k);

		if (!key)
			value_add(r, y, v);
		else if (!json_is_string(key) || strlen(json_string_value(key)) != json_string_length(key))
			fail("the key of a dict is %s, expected a text without NUL", value_kind_name(key));
		else
			assign(y, json_string_value(key), v);
	}
	return y;
}

/* Of rows without a function, "and" and "or", the second part is evaluated only if it decides. */
static json_t *eval_call(struct run *r, const struct node *n)
{
	json_t *v[PARTS] = { NULL };

	for (int i = 0; i < (n->row->run ? PARTS : 1); i++)
		v[i] = n->part[i] ? eval(r, n->part[i]) : NULL;
	r->at = n->at;
	if (n->row->run)
		return template_call(r, n->row, v[0], v + 1);
	return value_truth(v[0]) == n->row->option ? eval(r, n->part[1]) : v[0];
}

static json_t *eval(struct run *r, const struct node *n)
{
	json_t *y;

	r->at = n->at;
	run_spend(r, 1);
	run_deeper(r);
	switch (n->kind) {
	case NODE_CONSTANT: y = n->value; break;
	case NODE_NAME: y = eval_name(r, json_string_value(n->value)); break;
	case NODE_LIST: case NODE_DICT: case NODE_NAMESPACE: y = eval_items(r, n); break;
	case NODE_IF:
		n = n->part[value_truth(eval(r, n->part[0])) ? 1 : 2];
		y = n ? eval(r, n) : &template_undefined;
		break;
	default: y = eval_call(r, n);
	}
	r->depth--;
	return y;
}

/* --- statements --- */

static void bind(struct run *r, const struct node *names, json_t *v)
{
	json_t *items = names->next ? value_items(r, v) : NULL;
	size_t i = 0, n = json_array_size(items);

	json_object_clear(r->scope->names);
	for (; names && (!items || i < n); names = names->next)
		assign(r->scope->names, json_string_value(names->value),
			items ? json_array_get(items, i++) : v);
	if (names || i < n)
		fail("an item has %zu parts, which are not as many as the variables of the loop", n);
}

static json_t *make_loop(struct run *r, size_t i, size_t n)
{
	const json_int_t left = (json_int_t)(n - i);
	json_t *y = value_marked(r, KIND_LOOP, NULL);

	value_checked(!json_object_update_new(y, json_pack("{sI sI sI sI sI sb sb}", "index",
		(json_int_t)i + 1, "index0", (json_int_t)i, "revindex", left, "revindex0", left - 1,
		"length", (json_int_t)n, "first", !i, "last", left == 1)));
	return y;
}

static void run_all(struct run *r, const struct node *n, struct text *out);

static void run_for(struct run *r, const struct node *n, struct text *out)
{
	json_t *all = value_items(r, eval(r, n->part[1])), *items = n->part[2] ? value_list(r) : all;
	struct scope scope = { json_object(), r->scope };

	r->scope = &scope;
	r->in_condition = true;
	for (size_t i = 0; n->part[2] && i < json_array_size(all); i++) {
		bind(r, n->part[0], json_array_get(all, i));
		if (value_truth(eval(r, n->part[2])))
			value_add(r, items, json_array_get(all, i));
	}
	r->in_condition = false;
	for (size_t i = 0; i < json_array_size(items); i++) {
		bind(r, n->part[0], json_array_get(items, i));
		assign(scope.names, "loop", make_loop(r, i, json_array_size(items)));
		run_all(r, n->part[3], out);
	}
	r->scope = scope.outer;
	json_decref(scope.names);
}

static void run_set(struct run *r, const struct node *n)
{
	json_t *to = n->part[1] ? eval(r, n->part[1]) : r->scope->names, *v = eval(r, n->part[0]);

	r->at = n->at;
	if (n->part[1] && value_kind(to) != KIND_NAMESPACE)
		fail("'%s' is %s, expected a namespace to set an attribute of",
			json_string_value(n->part[1]->value), value_kind_name(to));
	assign(to, json_string_value(n->value), v);
}

static void run_all(struct run *r, const struct node *n, struct text *out)
{
	r->depth++;
	for (; n; n = n->next) {
		r->at = n->at;
		run_spend(r, 1);
		switch (n->kind) {
		case NODE_OUTPUT: text_put_str(out, eval(r, n->part[0])); break;
		case NODE_SET: run_set(r, n); break;
		case NODE_FOR: run_for(r, n, out); break;
		default: run_all(r, n->part[value_truth(eval(r, n->part[0])) ? 1 : 2], out);
		}
	}
	r->depth--;
}

/* Frees the values of a run: first the members of dicts and namespaces, which may be within themselves, then
 * the last before those within it, so that no call goes deep. */
static void free_all(json_t *made)
{
	size_t i;
	json_t *v;

	json_array_foreach(made, i, v)
		json_object_clear(v);
	while (json_array_size(made))
		json_array_remove(made, json_array_size(made) - 1);
	json_decref(made);
}

char *template_run(const struct template *t, const json_t *variables, const char *date, size_t *n)
{
	struct run r = { .t = t, .date = date, .made = json_array() };
	struct scope context = { (json_t *)variables, NULL }, root = { json_object(), &context };
	struct text out = { .r = &r };

	value_checked(r.made && root.names);
	r.scope = &root;
	run_all(&r, t->statements, &out);
	text_put(&out, "", 1);
	*n = out.n - 1;
	json_decref(root.names);
	free_all(r.made);
	return out.s;
}
