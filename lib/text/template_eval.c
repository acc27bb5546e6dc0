/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_eval.c -- runs the nodes of a template; see template_private.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/template_private.h"

static struct value eval(struct run *r, const struct node *n);
static void run_all(struct run *r, const struct node *n);

/* --- variables --- */

static struct value *find_variable(const struct scope *s, struct span name)
{
	for (struct variable *v = s->first; v; v = v->next)
		if (span_equal(v->name, name))
			return &v->value;
	return NULL;
}

static void set_variable(struct run *r, struct span name, struct value value)
{
	struct value *old = find_variable(r->scope, name);
	struct variable *v;

	if (old) {
		*old = value;
		return;
	}
	v = r->unused;
	if (v)
		r->unused = v->next;
	else
		v = template_memory(r, 1, sizeof *v);
	*v = (struct variable){ name, value, r->scope->first };
	r->scope->first = v;
}

static struct value eval_name(struct run *r, const struct node *n)
{
	const struct callee *f;
	struct bound *b;

	for (const struct scope *s = r->scope; s; s = s->outer) {
		const struct value *v = find_variable(s, n->name);

		template_spend(r, 1);
		if (v)
			return *v;
	}
	f = template_function(n->name);
	if (!f)
		return value_undefined(n->name.s, n->name.n);
	b = template_memory(r, 1, sizeof *b);
	b->callee = f;
	return (struct value){ VALUE_FUNCTION, { .function = b } };
}

/* --- loops --- */

/* An item that passes the condition is found when it is needed, as jinja2 does: the condition may depend on
 * what the body has done. */
struct loop {
	const struct node *node;
	struct scope *outer;
	const struct list *items;
	size_t next;			/* the first item that was not looked at */
	bool ahead;			/* `following` was found */
	struct value before, current, following;
	size_t index0;
	bool has_before;
	size_t left;			/* items after `current`, if counted */
	bool counted;
};

/* A scope lasts for one item of a loop; its variables are used again. */
static void leave(struct run *r, struct scope *outer)
{
	for (struct variable *v = r->scope->first, *next; v; v = next) {
		next = v->next;
		v->next = r->unused;
		r->unused = v;
	}
	r->scope = outer;
}

static void bind_targets(struct run *r, const struct node *targets, struct value v)
{
	const struct list *l;
	size_t i = 0, n = 0;

	if (!targets->next) {
		set_variable(r, targets->name, v);
		return;
	}
	for (const struct node *t = targets; t; t = t->next)
		n++;
	l = value_items(r, v);
	if (l->n != n)
		template_fail(r, "an item has %zu parts, the loop has %zu variables", l->n, n);
	for (; targets; targets = targets->next)
		set_variable(r, targets->name, l->item[i++]);
}

static bool passes(struct run *r, const struct loop *l, struct value v)
{
	struct scope *const before = r->scope;
	bool y = true;

	template_spend(r, 1);
	if (l->node->c) {
		r->scope = &(struct scope){ l->outer, NULL };
		bind_targets(r, l->node->a, v);
		y = value_true(eval(r, l->node->c));
		leave(r, before);
	}
	return y;
}

/* Finds the item after the current one; false: no item is left. */
static bool look_ahead(struct run *r, struct loop *l)
{
	for (; !l->ahead && l->next < l->items->n; l->next++)
		if (passes(r, l, l->items->item[l->next])) {
			l->ahead = true;
			l->following = l->items->item[l->next];
		}
	return l->ahead;
}

/* The items that follow. All are found now, and become the list of the loop. */
static size_t count_left(struct run *r, struct loop *l)
{
	if (!l->counted) {
		struct value rest = value_list(r, FORM_LIST, 0);

		while (look_ahead(r, l)) {
			list_add(r, rest, l->following);
			l->ahead = false;
		}
		l->items = rest.list;
		l->next = 0;
		l->counted = true;
		l->left = l->items->n;
	}
	return l->left;
}

static bool take(struct run *r, struct loop *l)
{
	if (l->counted ? l->next >= l->items->n && !l->ahead : !look_ahead(r, l))
		return false;
	if (!l->ahead)
		l->following = l->items->item[l->next++];
	l->ahead = false;
	l->left -= l->counted;
	l->current = l->following;
	return true;
}

static struct value loop_attribute(struct run *r, struct loop *l, struct span name)
{
	static const char *const refused[] = { "cycle", "changed" };
	const int64_t i = (int64_t)l->index0;

	for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
		if (span_is(name, refused[k]))
			template_fail(r, "'loop.%s' is not supported", refused[k]);
	if (span_is(name, "index"))
		return value_integer(i + 1);
	if (span_is(name, "index0"))
		return value_integer(i);
	if (span_is(name, "first"))
		return value_bool(!i);
	if (span_is(name, "depth") || span_is(name, "depth0"))
		return value_integer(name.n == 5);
	if (span_is(name, "previtem") && l->has_before)
		return l->before;
	if (span_is(name, "length"))
		return value_integer(i + 1 + (int64_t)count_left(r, l));
	if (span_is(name, "revindex") || span_is(name, "revindex0"))
		return value_integer((int64_t)count_left(r, l) + (name.n == 8));
	if (span_is(name, "last") || span_is(name, "nextitem")) {
		const bool more = l->counted ? l->left > 0 : look_ahead(r, l);

		if (name.n == 4)
			return value_bool(!more);
		if (more)
			return l->counted && !l->ahead ? l->items->item[l->next] : l->following;
	}
	return value_undefined(name.s, name.n);
}

static void run_for(struct run *r, const struct node *n)
{
	struct loop *l = template_memory(r, 1, sizeof *l);
	struct scope *const outer = r->scope;

	*l = (struct loop){ .node = n, .outer = outer, .items = value_items(r, eval(r, n->b)) };
	for (; take(r, l); l->index0++) {
		r->scope = &(struct scope){ outer, NULL };
		bind_targets(r, n->a, l->current);
		set_variable(r, (struct span){ "loop", 4 }, (struct value){ VALUE_LOOP, { .loop = l } });
		run_all(r, n->body);
		leave(r, outer);
		l->before = l->current;
		l->has_before = true;
	}
	if (!l->index0 && n->other) {
		r->scope = &(struct scope){ outer, NULL };
		run_all(r, n->other);
		leave(r, outer);
	}
}

/* --- statements --- */

static void run_text(struct run *r, const struct node *n) { build(&r->out, n->name.n, n->name.s); }
static void run_output(struct run *r, const struct node *n) { value_print(&r->out, eval(r, n->a)); }
static void run_set(struct run *r, const struct node *n) { set_variable(r, n->name, eval(r, n->a)); }

static void run_set_attribute(struct run *r, const struct node *n)
{
	const struct value of = eval(r, n->b), v = eval(r, n->a);

	r->line = n->line;
	if (of.kind != VALUE_NAMESPACE)
		template_fail(r, "'%.*s' is %s, expected a namespace to set an attribute of",
			(int)n->b->name.n, n->b->name.s, value_kind(of));
	namespace_set(r, of, n->name, v);
}

static void run_if(struct run *r, const struct node *n)
{
	run_all(r, value_true(eval(r, n->a)) ? n->body : n->other);
}

static void run_all(struct run *r, const struct node *n)
{
	static void (*const rows[])(struct run *r, const struct node *n) = { [NODE_TEXT] = run_text,
		[NODE_OUTPUT] = run_output, [NODE_SET] = run_set, [NODE_SET_ATTRIBUTE] = run_set_attribute,
		[NODE_FOR] = run_for, [NODE_IF] = run_if };

	for (; n; n = n->next) {
		template_spend(r, 1);
		r->line = n->line;
		rows[n->kind](r, n);
	}
}

/* --- arithmetic --- */

static double real(struct value v)
{
	return v.kind == VALUE_BOOL ? v.yes : v.kind == VALUE_INTEGER ? (double)v.integer : v.real;
}

static struct value reals(enum operator op, double a, double b)
{
	double rest, floored;

	switch (op) {
	case OP_ADD: return value_real(a + b);
	case OP_SUBTRACT: return value_real(a - b);
	case OP_MULTIPLY: return value_real(a * b);
	case OP_DIVIDE: return value_real(a / b);
	default: break;
	}
	/* as float_floor_div() and float_rem() of Python */
	rest = fmod(a, b);
	floored = (a - rest) / b;
	if (rest != 0 && (b < 0) != (rest < 0)) {
		rest += b;
		floored -= 1;
	}
	rest = rest == 0 ? copysign(0, b) : rest;
	floored = floored == 0 ? copysign(0, a / b) :
		floor(floored) + (floored - floor(floored) > 0.5 ? 1 : 0);
	return value_real(op == OP_MODULO ? rest : floored);
}

static struct value integers(struct run *r, enum operator op, int64_t a, int64_t b)
{
	const bool divides = op == OP_FLOOR || op == OP_MODULO;
	int64_t y = 0;
	bool over;

	if (op == OP_DIVIDE)
		return value_real(llabs(a) >> 53 || llabs(b) >> 53 ? (double)((long double)a / b) :
			(double)a / (double)b);
	if (divides && b == -1) {
		over = op == OP_FLOOR && __builtin_sub_overflow(0, a, &y);
	} else if (divides) {
		const bool down = a % b && (a % b < 0) != (b < 0);

		over = false;
		y = op == OP_FLOOR ? a / b - down : a % b + (down ? b : 0);
	} else {
		over = op == OP_ADD ? __builtin_add_overflow(a, b, &y) : op == OP_SUBTRACT ?
			__builtin_sub_overflow(a, b, &y) : __builtin_mul_overflow(a, b, &y);
	}
	if (over)
		template_fail(r, "a number needs more than 64 bits");
	return value_integer(y);
}

static int64_t whole(struct value v) { return v.kind == VALUE_BOOL ? v.yes : v.integer; }

/* A text or a list, several times. */
static struct value repeat(struct run *r, struct value v, int64_t times)
{
	struct builder b = { .r = r };
	struct value y;

	if (v.kind == VALUE_TEXT) {
		for (; times > 0 && v.text.n; times--, template_spend(r, 1))
			build(&b, v.text.n, v.text.s);
		return built(&b);
	}
	y = value_list(r, v.list->form, 0);
	for (; times > 0 && v.list->n; times--)
		for (size_t i = 0; i < v.list->n; i++)
			list_add(r, y, v.list->item[i]);
	return y;
}

static bool is_sequence(struct value v)
{
	return v.kind == VALUE_TEXT || (v.kind == VALUE_LIST && v.list->form <= FORM_TUPLE);
}

static struct value join(struct run *r, struct value a, struct value b)
{
	struct value y;

	if (a.kind == VALUE_TEXT) {
		char *text = template_memory(r, a.text.n + b.text.n + 1, 1);

		memcpy(text, a.text.s, a.text.n);
		memcpy(text + a.text.n, b.text.s, b.text.n);
		return value_text(text, a.text.n + b.text.n);
	}
	y = value_list(r, a.list->form, a.list->n + b.list->n);
	for (size_t i = 0; i < a.list->n; i++)
		list_add(r, y, a.list->item[i]);
	for (size_t i = 0; i < b.list->n; i++)
		list_add(r, y, b.list->item[i]);
	return y;
}

static struct value eval_arithmetic(struct run *r, const struct node *n)
{
	const struct value a = eval(r, n->a), b = eval(r, n->b);
	const bool whole_a = a.kind == VALUE_INTEGER || a.kind == VALUE_BOOL;
	const bool whole_b = b.kind == VALUE_INTEGER || b.kind == VALUE_BOOL;

	r->line = n->line;
	if (value_is_number(a) && value_is_number(b)) {
		if (n->op >= OP_DIVIDE && real(b) == 0)
			template_fail(r, "division by zero");
		return whole_a && whole_b ? integers(r, n->op, whole(a), whole(b)) :
			reals(n->op, real(a), real(b));
	}
	if (n->op == OP_MULTIPLY && whole_b && is_sequence(a))
		return repeat(r, a, whole(b));
	if (n->op == OP_MULTIPLY && whole_a && is_sequence(b))
		return repeat(r, b, whole(a));
	if (n->op == OP_ADD && is_sequence(a) && a.kind == b.kind && is_sequence(b) &&
	    (a.kind == VALUE_TEXT || a.list->form == b.list->form))
		return join(r, a, b);
	if (n->op == OP_MODULO && a.kind == VALUE_TEXT)
		template_fail(r, "the format operator %% of a text is not supported");
	need_defined(r, a);
	need_defined(r, b);
	template_fail(r, "this operation has no meaning for %s and %s", value_kind(a), value_kind(b));
}

static struct value eval_sign(struct run *r, const struct node *n)
{
	const struct value v = eval(r, n->a);

	r->line = n->line;
	if (!value_is_number(v))
		template_fail(r, "%s has no sign, expected a number", value_kind(v));
	if (v.kind == VALUE_REAL)
		return n->op == OP_SUBTRACT ? value_real(-v.real) : v;
	return n->op == OP_SUBTRACT ? integers(r, OP_SUBTRACT, 0, whole(v)) : value_integer(whole(v));
}

/* --- other expressions --- */

static struct value eval_constant(struct run *r, const struct node *n) { (void)r; return n->value; }
static struct value eval_not(struct run *r, const struct node *n)
{
	return value_bool(!value_true(eval(r, n->a)));
}

static struct value eval_and(struct run *r, const struct node *n)
{
	const struct value a = eval(r, n->a);

	return value_true(a) ? eval(r, n->b) : a;
}

static struct value eval_or(struct run *r, const struct node *n)
{
	const struct value a = eval(r, n->a);

	return value_true(a) ? a : eval(r, n->b);
}

static struct value eval_condition(struct run *r, const struct node *n)
{
	return value_true(eval(r, n->a)) ? eval(r, n->b) : n->c ? eval(r, n->c) :
		value_undefined("an inline if without else", 25);
}

static struct value eval_list(struct run *r, const struct node *n)
{
	const struct value y = value_list(r, n->kind == NODE_TUPLE ? FORM_TUPLE : FORM_LIST, 0);

	for (const struct node *k = n->a; k; k = k->next)
		list_add(r, y, eval(r, k));
	return y;
}

static struct value eval_dict(struct run *r, const struct node *n)
{
	const struct value y = value_dict(r);

	for (const struct node *k = n->a; k; k = k->next) {
		const struct value key = eval(r, k->a);

		if (key.kind != VALUE_TEXT && key.kind != VALUE_NONE && !value_is_number(key))
			template_fail(r, "%s as the key of a dict is not supported", value_kind(key));
		dict_set(r, y.dict, key, eval(r, k->b));
	}
	return y;
}

static struct value eval_concat(struct run *r, const struct node *n)
{
	struct builder b = { .r = r };

	for (const struct node *k = n->a; k; k = k->next)
		value_print(&b, eval(r, k));
	return built(&b);
}

static struct value eval_compare(struct run *r, const struct node *n)
{
	struct value left = eval(r, n->a);

	for (const struct node *k = n->b; k; k = k->next) {
		const struct value right = eval(r, k->a);

		r->line = n->line;
		if (!value_holds(r, k->op, left, right))
			return value_bool(false);
		left = right;
	}
	return value_bool(true);
}

struct value value_attribute(struct run *r, struct value v, struct span name)
{
	const struct callee *m = template_method(name, v.kind);

	if (v.kind == VALUE_LOOP)
		return loop_attribute(r, v.loop, name);
	if (m && v.kind == VALUE_DICT) {	/* a method of a dict hides its item */
		struct bound *b = template_memory(r, 1, sizeof *b);

		*b = (struct bound){ m, v };
		return (struct value){ VALUE_FUNCTION, { .function = b } };
	}
	return value_item(r, v, value_text(name.s, name.n));
}

static struct value eval_attribute(struct run *r, const struct node *n)
{
	const struct value v = eval(r, n->a);

	r->line = n->line;
	return value_attribute(r, v, n->name);
}

static struct value eval_item(struct run *r, const struct node *n)
{
	const struct value v = eval(r, n->a), key = eval(r, n->b);

	r->line = n->line;
	return value_item(r, v, key);
}

static struct value eval_slice(struct run *r, const struct node *n)
{
	const struct value v = eval(r, n->a);
	const struct node *const parts[3] = { n->b, n->c, n->body };
	struct value bound[3] = { { 0 } };

	for (int i = 0; i < 3; i++)
		if (parts[i])
			bound[i] = eval(r, parts[i]);
	r->line = n->line;
	return value_slice(r, v, bound);
}

/* Of a call, a filter and a test: the function, and its arguments. */
static struct value eval_call(struct run *r, const struct node *n)
{
	const struct value v = eval(r, n->a);
	struct argument *all = NULL;
	size_t given = 0;

	for (const struct node *k = n->b; k; k = k->next)
		given++;
	if (given)
		all = template_memory(r, given, sizeof *all);
	given = 0;
	for (const struct node *k = n->b; k; k = k->next)
		all[given++] = (struct argument){ k->name, eval(r, k->a) };
	r->line = n->line;
	if (n->kind != NODE_CALL)
		return template_call(r, n->callee, v, given, all);
	need_defined(r, v);
	if (v.kind != VALUE_FUNCTION)
		template_fail(r, "%s cannot be called", value_kind(v));
	return template_call(r, v.function->callee, v.function->self, given, all);
}

static struct value eval(struct run *r, const struct node *n)
{
	static struct value (*const rows[NODE_KINDS])(struct run *r, const struct node *n) = {
		[NODE_CONSTANT] = eval_constant, [NODE_NAME] = eval_name, [NODE_LIST] = eval_list,
		[NODE_TUPLE] = eval_list, [NODE_DICT] = eval_dict, [NODE_SIGN] = eval_sign,
		[NODE_NOT] = eval_not, [NODE_AND] = eval_and, [NODE_OR] = eval_or,
		[NODE_ARITHMETIC] = eval_arithmetic, [NODE_CONCAT] = eval_concat,
		[NODE_COMPARE] = eval_compare, [NODE_CONDITION] = eval_condition,
		[NODE_ATTRIBUTE] = eval_attribute, [NODE_ITEM] = eval_item, [NODE_SLICE] = eval_slice,
		[NODE_CALL] = eval_call, [NODE_FILTER] = eval_call, [NODE_TEST] = eval_call };

	template_spend(r, 1);
	return rows[n->kind](r, n);
}

char *template_run(const struct template *t, const json_t *variables, const char *date, size_t *n)
{
	struct run r = { .t = t, .line = 1, .date = date };
	struct scope context = { NULL, NULL }, root = { &context, NULL };
	const char *key;
	char *text;
	json_t *v;

	r.out.r = &r;
	r.scope = &context;
	json_object_foreach((json_t *)variables, key, v) {
		set_variable(&r, (struct span){ key, strlen(key) }, value_of_json(&r, v));
	}
	r.scope = &root;
	run_all(&r, t->statements);
	*n = r.out.n;
	text = xalloc(*n + 1, 1);
	if (*n)
		memcpy(text, r.out.s, *n);
	arena_free(&r.arena);
	return text;
}
