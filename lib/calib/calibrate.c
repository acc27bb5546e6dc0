/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrate.c -- Hessians from a run of the model; see calibrate.h */
#include "calib/calibrate.h"
#include <gsl/gsl_sort.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/report.h"
#include "device/device_open.h"
#include "forward/cache.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "model/shard_file.h"

/* Fatal error unless the pair has blocks of the same sizes. */
static void check_pair(const struct config *c, const struct part *first, const struct run *pair)
{
	const struct config *d = pair->config;
	bool same = c->stacks == d->stacks && c->vocab == d->vocab;

	for (size_t i = 0; same && i < c->stacks; i++) {
		const struct stack *a = &c->stack[i], *b = &d->stack[i];

		same = a->arch == b->arch && a->blocks == b->blocks && a->hidden == b->hidden &&
			a->heads == b->heads && a->kv_heads == b->kv_heads &&
			a->head_dim == b->head_dim && a->intermediate == b->intermediate &&
			a->out == b->out && a->merged == b->merged && a->experts == b->experts &&
			a->expert == b->expert && a->shared == b->shared;
		for (size_t j = 0; same && j < a->blocks; j++)
			same = stack_sparse(a, j) == stack_sparse(b, j);
	}
	if (!same)
		die("%s: /config: is a model of other sizes than %s, expected the same model, unquantized",
			part_name(pair->part), part_name(first));
}

/* Begins the run of the pair. */
static void open_pair(struct calibrate_run *r, struct run *pair, const struct config *c,
	const struct part *first, size_t memory)
{
	if (r->execution.device)
		die("%s: --pair runs on the processor only (--device cpu), not on %s", part_name(pair->part),
			r->execution.device->name);
	check_pair(c, first, pair);
	pair->execution.modalities = r->windows.modalities;
	pair->forward = forward_open(pair->config, &pair->execution, &r->windows, memory);
	r->pair = pair;
}

struct calibrate_run *calibrate_open(const struct calibrate_text *t, const struct config *c,
	const struct part *first)
{
	struct calibrate_run *r = xalloc(1, sizeof *r);

	shard_refuse(first);
	r->tokens = part_open(t->tokens, "tokens");
	r->windows = windows_read(r->tokens, first, c, &t->windows, t->force_tokens, &r->calibration);
	windows_shard(&r->windows, t->shard);
	r->execution.compute_type = t->compute_type;
	r->execution.modalities = r->windows.modalities;
	r->execution.device = device_open(t->device);
	r->execution.cache = cache_use(c, first, &t->kv);
	r->forward = forward_open(c, &r->execution, &r->windows, t->memory);
	if (t->pair)
		open_pair(r, t->pair, c, first, t->memory);
	return r;
}

void calibrate_close(struct calibrate_run *r)
{
	forward_close(r->forward);
	if (r->pair)
		run_close(r->pair);
	windows_free(&r->windows);
	part_close(r->tokens);
	free(r->calibration), free(r);
}

struct search { const struct config *config; bool any; };

static void look_for_layer(void *arg, const struct layer_ref *layer, size_t in)
{
	struct search *w = arg;

	(void)in;
	w->any |= layer_ref_input(w->config, layer) < SIZE_MAX;
}

void calibrate_check(const struct config *c, const struct selection *layers, const char *name)
{
	struct search w = { c, false };

	layer_each(c, layers, look_for_layer, &w);
	if (!w.any)
		die("%s: --layers selects no linear layer that has inputs", name);
}

/* Leaves split columns of the layer out of magnitudes: its quantized weight does not multiply them. */
static void leave_out(const struct calibration *k, const struct part *part, const char *path, size_t place)
{
	struct layer layer = layer_read(part, path, 0, 0);

	for (int i = 0; i < 2; i++) {
		const struct sums *sums = &(i ? k->extra : k->input)[place];

		for (size_t m = 0; m < sums->modalities; m++)
			sums->moments[m].splits = layer.linear.splits,
			sums->moments[m].split = layer.linear.split_index;
	}
	layer_free(&layer);
}

/* Begins the sums of the layer's input, unless an earlier layer has the same input. */
static void add_input(struct calibration *k, const struct part *part, const struct layer_ref *layer,
	bool products)
{
	const struct config *c = k->config;
	const size_t place = layer_ref_input(c, layer), in = layer_ref_in(c, layer);
	const enum projection_name p = layer_ref_projection(layer);
	/* inputs of experts, and their priors, are not divided by modality */
	const bool mixed = p >= PROJECTION_ROUTER && p < PROJECTIONS;
	struct sums *s;

	if (place == SIZE_MAX || k->input[place].in)
		return;
	s = &k->input[place];
	*s = sums_make(in, mixed || layer_ref_is_visual(c, layer) ? 1 : k->modalities, products);
	s->device = p == PROJECTION_HEAD ? NULL : k->execution->device;
	if (p == PROJECTION_EXPERT_DOWN) {
		s->prior = &k->extra[place];
		*s->prior = sums_make(in, 1, products);
	} else if (p == PROJECTION_EXPERT_GATE_UP) {
		s->prior = &k->input[config_input(c, layer_ref_block(c, layer), PROJECTION_ROUTER, 0)];
		if (!s->prior->in)
			*s->prior = sums_make(in, 1, products);
	}
	if (!products)
		leave_out(k, part, layer->path, place);
}

struct calibration calibrate_begin(const struct part *part, const struct config *c,
	const struct execution *e, const struct selection *layers, bool products)
{
	struct calibration k = { .config = c, .execution = e, .list = layer_list(part, c, layers),
		.name = part_name(part), .modalities = e->modalities ? e->modalities : 1,
		.input = xalloc(config_inputs(c), sizeof *k.input),
		.extra = xalloc(config_inputs(c), sizeof *k.extra) };

	for (size_t i = 0; i < k.list.n; i++)
		add_input(&k, part, &k.list.layer[i], products);
	return k;
}

static enum half_type half_of(const struct calibration *k)
{
	return compute_half(k->execution->compute_type);
}

void calibrate_pair(struct calibration *k, struct run *pair)
{
	k->pair = pair;
	k->cross = cross_open(k->config, half_of(k), k->input, k->extra);
}

static void on_input(void *arg, size_t block, enum projection_name p, const struct batch *batch,
	size_t first, size_t rows, size_t in, const float *x)
{
	struct calibration *k = arg;

	const size_t i = config_input(k->config, block, p, 0);

	(void)first, (void)in;	/* whole batches */
	sums_add(&k->input[i], half_of(k), batch, x, &k->rounded);
	if (k->cross && p == PROJECTION_PATCH && k->input[i].in)	/* patches are those of the images */
		sums_add_cross(&k->input[i], half_of(k), batch, x, x);
	else if (k->cross && p != PROJECTION_HEAD)
		cross_hold(k->cross, i, rows, NULL, x);
}

static void on_expert_input(void *arg, size_t block, enum projection_name p, size_t expert, size_t rows,
	size_t in, const int32_t token[], const float *x)
{
	const struct calibration *k = arg;
	const size_t i = config_input(k->config, block, p, expert);

	sums_add_rows(&k->input[i], half_of(k), rows, x);
	if (k->extra[i].in && k->input[i].moments->count >= in)	/* the prior is not needed */
		sums_free(&k->extra[i]);
	if (k->cross)
		cross_hold(k->cross, i, rows, token, x);
}

static size_t extra_tokens(void *arg, size_t block, size_t expert, int set, const int32_t **token)
{
	const struct calibration *k = arg;
	const struct sums *s = &k->extra[config_input(k->config, block, PROJECTION_EXPERT_DOWN, expert)];

	(void)token;			/* the first tokens */
	return s->in && !set ? s->in - s->moments->count : 0;
}

static void on_extra_input(void *arg, size_t block, enum projection_name p, size_t expert, int set,
	size_t rows, size_t in, const float *x)
{
	const struct calibration *k = arg;
	const size_t i = config_input(k->config, block, p, expert);

	(void)set, (void)in;
	if (p != PROJECTION_EXPERT_DOWN)
		return;
	sums_add_rows(&k->extra[i], half_of(k), rows, x);
	if (k->cross)
		cross_hold_extra(k->cross, i, rows, x);
}

struct observer calibrate_observer(struct calibration *k)
{
	return (struct observer){ on_input, k, true, on_expert_input, extra_tokens, on_extra_input };
}

/* A part of a model and of its pair. A part has at most one block. */
struct in_step {
	struct calibration *k;
	struct forward *forward;
	const struct part *part;
	void (*run)(void *arg, struct forward *f);
	void *arg;
	bool begun, ended;		/* the part of the model; it has the head */
};

static void run_block(void *arg, struct forward *f)
{
	const struct in_step *s = arg;

	if (!s->begun)
		die("%s: block %zu is missing; %s has it", part_name(s->k->pair->part), f->blocks,
			part_name(s->part));
	s->run(s->arg, f);
}

static void run_model(struct in_step *s)
{
	const struct observer observer = calibrate_observer(s->k);

	s->ended = forward_blocks(s->forward, s->part, &observer, run_block, s);
}

/* Called with the block of the pair: reads that of the model too. */
static void with_block(void *arg, struct forward *pair)
{
	struct in_step *s = arg;

	(void)pair;
	s->begun = true;
	run_model(s);
}

/* Warns if the pair has a quantized or corrected layer up to its first block. */
static void check_plain(const struct run *pair)
{
	struct layer_list list = layer_list(pair->part, pair->config, &(struct selection){ 0 });
	char *by = NULL;

	for (size_t i = 0; i < list.n && !by; i++) {
		const char *path = list.layer[i].path;
		const bool quantized = layer_quantized(pair->part, path);

		by = quantized ? xformat("quantized") : part_text(pair->part, path, "corrected");
		if (by)
			warn("%s: %s: is %s%s; --pair expects the unquantized model", part_name(pair->part),
				path, quantized ? "" : "corrected by ", by);
	}
	layer_list_free(&list), free(by);
}

bool calibrate_blocks(struct calibration *k, struct forward *f, const struct part *part,
	void (*run)(void *arg, struct forward *f), void *arg)
{
	struct in_step s = { k, f, part, run, arg, !k->pair, false };
	const struct run *pair = k->pair;
	bool ended;

	if (!pair) {
		run_model(&s);
		return s.ended;
	}
	ended = forward_blocks(pair->forward, pair->part, NULL, with_block, &s);
	if (!s.begun)
		run_model(&s);
	if (ended != s.ended)
		die("%s: ends before the other model, %s", part_name(ended ? pair->part : part),
			part_name(ended ? part : pair->part));
	return ended;
}

void calibrate_stage(struct calibration *k, struct forward *f, struct stage stage)
{
	const struct observer own = calibrate_observer(k);
	const struct observer other = k->cross ? cross_observer(k->cross) : own;

	forward_stages(k->pair ? 2 : 1, (struct forward *const[]){ f, k->pair ? k->pair->forward : NULL },
		stage, (const struct observer *const[]){ &own, &other });
}

/* Σ z xᵀ of the head, whose inputs are the hidden states now. */
static void cross_head(const struct calibration *k, const struct forward *f, struct sums *s)
{
	const struct windows *w = f->windows;
	const float *z = k->pair->forward->hidden.x;

	for (size_t i = 0; i < w->n; i++) {
		struct sequence one;
		const struct batch batch = windows_batch(w, i, 1, &one);
		const size_t at = w->sequence[i].first * f->hidden.width;

		sums_add_cross(s, half_of(k), &batch, z + at, f->hidden.x + at);
	}
}

static void run_head(struct forward *f, const struct part *part, const struct observer *observer)
{
	struct head head = head_read(part, f->config, f->execution, false);

	forward_head(f, &head, observer);
	head_free(&head);
}

void calibrate_head(struct calibration *k, struct forward *f, const struct part *part)
{
	const struct observer observer = calibrate_observer(k);
	const struct layer_ref last = layer_ref_head(f->config);
	struct sums *head = calibrate_find(k, &last);

	if (!head)
		return;
	run_head(f, part, &observer);
	if (k->pair) {
		run_head(k->pair->forward, k->pair->part, NULL);
		cross_head(k, f, head);
	}
}

/* Takes the windows through a block. */
static void run_whole(void *arg, struct forward *f)
{
	calibrate_stage(arg, f, (struct stage){ PROJECTION_QKV, PROJECTIONS });
}

void calibrate_observe(struct calibration *k, struct forward *f, const struct part *part)
{
	if (calibrate_blocks(k, f, part, run_whole, k))
		calibrate_head(k, f, part);
}

struct sums *calibrate_find(const struct calibration *k, const struct layer_ref *layer)
{
	const size_t place = layer_ref_input(k->config, layer);

	return place < SIZE_MAX && k->input[place].in ? &k->input[place] : NULL;
}

static struct second_moments in_memory(void *arg, const struct layer_ref *layer, size_t n, bool needed)
{
	const struct calibration *k = arg;
	struct sums *s = calibrate_find(k, layer);
	struct hessian h;
	double seen;

	if (!s) {
		if (needed)
			die("%s: %s: has no calibration", k->name, layer->path);
		return (struct second_moments){ 0 };
	}
	h = sums_mixed(s, k->name, layer->path);
	if (h.in != n)
		die("%s: %s: has %zu inputs, its calibration has %zu", k->name, layer->path, n, h.in);
	seen = (double)s->moments->count;
	return (struct second_moments){ .hessian = h.sum, .cross = h.cross, .absmax = h.absmax,
		.count = (int64_t)s->moments->count, .prior = sums_prior(s) ? 1 - seen / (double)n : 0 };
}

static void drop_memory(void *arg)
{
	const struct calibration *k = arg;

	for (size_t i = 0; i < config_inputs(k->config); i++)
		sums_drop(&k->input[i]), sums_drop(&k->extra[i]);
}

struct moments_source calibrate_source(struct calibration *k, const char *name)
{
	k->name = name;
	return (struct moments_source){ in_memory, in_memory, drop_memory, k, name, NULL };
}

void calibrate_write(struct calibration *k, struct output *out, const char *file)
{
	for (size_t i = 0; i < k->list.n; i++) {
		const char *layer = k->list.layer[i].path;
		struct sums *s = calibrate_find(k, &k->list.layer[i]);
		/* if the layer is a link, so is its prior */
		struct sums *prior = s && !s->written ? sums_prior(s) : NULL;
		char *group = hessian_prior(layer);

		if (s)
			sums_write(s, out, file, layer);
		if (prior)
			sums_write(prior, out, file, group);
		free(group);
	}
}

/* Sets count[] to the tokens of each calibrated expert of a block. Returns the number of these experts. */
static size_t count_experts(const struct calibration *k, const struct stack *s, size_t block, double count[])
{
	size_t n = 0;

	for (size_t e = 0; e < s->experts; e++)
		for (int p = PROJECTION_EXPERT_GATE_UP; p <= PROJECTION_EXPERT_DOWN; p++) {
			const struct sums *h = &k->input[config_input(k->config, s->first + block,
				(enum projection_name)p, e)];

			if (!h->in)
				continue;
			count[n++] = (double)h->moments->count;
			break;		/* the other projection has the same number */
		}
	return n;
}

static double below(size_t n, const double sorted[n], double min)
{
	size_t few = 0;

	while (few < n && sorted[few] < min)
		few++;
	return (double)few;
}

static const struct report_column columns[] = {
	{ "experts", REPORT_SUM }, { "least", REPORT_MIN }, { "median", REPORT_NONE }, { "most", REPORT_MAX },
	{ "none", REPORT_SUM }, { "few_gate_up", REPORT_SUM }, { "few_down", REPORT_SUM },
};
static const struct report_table table = { .name = "tokens of the experts of", .column = columns,
	.columns = sizeof columns / sizeof *columns };

/* Reports the numbers of tokens that reached the experts of each block, if any were calibrated. */
static void report_experts(const struct calibration *k, struct report *report)
{
	for (const struct stack *s = k->config->stack; s < k->config->stack + k->config->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++) {
			double *count = xalloc(s->experts, sizeof *count);
			const size_t n = count_experts(k, s, i, count);
			char *path = stack_block_path(s, i);

			gsl_sort(count, 1, n);
			if (n)
				report_row(report, &table, path, (double[]){ (double)n, count[0],
					(count[(n - 1) / 2] + count[n / 2]) / 2, count[n - 1],
					below(n, count, 1), below(n, count, (double)s->hidden),
					below(n, count, (double)s->expert) });
			free(path), free(count);
		}
}

void calibrate_end(struct calibration *k)
{
	const size_t n = config_inputs(k->config);

	for (size_t i = 0; i < n; i++)
		sums_free(&k->input[i]), sums_free(&k->extra[i]);
	free(k->input), free(k->extra), free(k->rounded.memory);
	if (k->cross)
		cross_close(k->cross);
	layer_list_free(&k->list);
}

void calibrate_part(void *arg, const struct filter *f)
{
	const struct calibrate *c = arg;
	struct forward *run = c->forward;
	const struct part *part = f->part;
	struct calibration k = calibrate_begin(part, run->config, run->execution, c->layers, true);

	if (c->pair) {
		c->pair->part = input_matching(c->pair->in, c->pair->part, part);
		if (!c->pair->forward->blocks)
			check_plain(c->pair);
		calibrate_pair(&k, c->pair);
	}
	for (size_t i = 0; i < config_inputs(run->config); i++)
		k.input[i].partial = c->shard->n > 1;
	output_begin(f->out, part);
	if (!part_index(part)) {
		output_copy(f->out, part, "/config", NULL);
		basis_copy(f->out, part);
		calibrated_write(f->out, 0, NULL, c->calibration);
		output_history(f->out, "tokens", c->tokens);
		if (c->pair)
			output_history(f->out, "pair", c->pair->part);
		shard_write(f->out, c->shard, (const char *[SHARD_INPUTS]){
			[SHARD_MODEL] = input_name(f->in), [SHARD_TOKENS] = part_name(c->tokens),
			[SHARD_PAIR] = c->pair ? input_name(c->pair->in) : NULL });
	}
	calibrate_observe(&k, run, part);
	calibrate_write(&k, f->out, part_name(part));
	report_experts(&k, f->report);
	output_end(f->out);
	calibrate_end(&k);
}

void calibrate_finished(void *arg, const struct filter *f)
{
	static const struct observer in_groups = { 0 };	/* groups windows as in a run with sums */
	const struct calibrate *c = arg;

	filter_report(f, &table);
	if (c->pair)
		c->pair->part = input_matching(c->pair->in, c->pair->part, f->part);
	if (f->all_finished)
		return;
	forward_part(c->forward, f->part, &in_groups);
	if (c->pair)
		forward_part(c->pair->forward, c->pair->part, &in_groups);
}
