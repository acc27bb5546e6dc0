/* SPDX-License-Identifier: GPL-3.0-or-later */
/* calibrate.c -- Hessians of linear layers from what a model feeds them; see calibrate.h */
#include "calib/calibrate.h"
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/report.h"
#include "base/thread.h"
#include "calib/histogram.h"
#include "forward/cache.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/shard_file.h"
#include "num/half.h"

struct calibrate_run *calibrate_open(const struct calibrate_text *t, const struct config *c,
	const struct part *first)
{
	struct calibrate_run *r = xalloc(1, sizeof *r);
	struct tokens tokens;

	r->tokens = part_open(t->tokens, "tokens");
	tokens = tokens_read(r->tokens, first, c->vocab, t->force_tokens, t->limit);
	r->calibration = calibrated_line(r->tokens, tokens.n);
	r->windows = windows_cut(part_name(r->tokens), &tokens, t->convention,
		windows_ctx(t->ctx, c->positions), t->stride);
	windows_shard(&r->windows, t->shard);
	r->execution.compute_type = t->compute_type;
	r->execution.modalities = r->windows.modalities;
	r->execution.cache = cache_use(c, first, &t->kv);
	r->forward = forward_open(c, &r->execution, &r->windows, t->memory);
	return r;
}

void calibrate_close(struct calibrate_run *r)
{
	forward_close(r->forward);
	windows_free(&r->windows);
	part_close(r->tokens);
	free(r->calibration), free(r);
}

size_t calibrate_place(const struct config *c, const char *layer)
{
	size_t block, row, expert;
	const struct stack *s = config_find(c, layer, &block, &row, &expert);
	struct end_layer end;

	if (s)
		return config_input(c, s->first + block, s->arch->linear[row].projection, expert);
	if (!config_find_end(c, layer, &end) || end.projection == PROJECTION_NONE)
		return SIZE_MAX;
	return config_input(c, c->blocks, end.projection, 0);
}

struct search { const struct config *config; bool any; };

static void look_for(void *arg, const char *path, size_t in)
{
	struct search *w = arg;

	(void)in;
	w->any |= calibrate_place(w->config, path) < SIZE_MAX;
}

void calibrate_check(const struct config *c, const struct selection *layers, const char *name)
{
	struct search w = { c, false };

	layer_each(c, layers, look_for, &w);
	if (!w.any)
		die("%s: --layers selects no linear layer that has inputs", name);
}

/* Columns that the layer has split off are no inputs of its weight: magnitudes leave them out. */
static void leave_out(struct calibration *k, const struct part *part, const char *path, size_t place)
{
	struct layer layer = layer_read(part, path, 0, 0);

	k->projection[place].splits = k->sent[place].splits = layer.linear.splits;
	k->projection[place].split = k->sent[place].split = layer.linear.split_index;
	layer_free(&layer);
}

/* The sums of an input for a modality; NULL: the first has those of all. */
static struct moments *sums_of(const struct calibration *k, size_t place, size_t modality)
{
	struct moments *other = modality && modality < k->modalities ?
		&k->others[(modality - 1) * config_inputs(k->config) + place] : NULL;

	return !modality ? &k->projection[place] : other && other->in ? other : NULL;
}

/* Those of further modalities. */
static void make_others(struct calibration *k, const char *layer, size_t place, size_t in, bool products)
{
	size_t block, row;
	const struct stack *s = config_find(k->config, layer, &block, &row, NULL);
	/* experts' inputs, and what stands for them, are not told apart */
	const bool mixed = s && s->arch->linear[row].projection >= PROJECTION_ROUTER;

	for (size_t m = 1; m < k->modalities && !mixed && !config_is_visual(k->config, layer); m++)
		k->others[(m - 1) * config_inputs(k->config) + place] = moments_make(in, products);
}

struct calibration calibrate_begin(const struct part *part, const struct config *c,
	const struct execution *e, const struct selection *layers, bool products)
{
	struct calibration k = { .config = c, .execution = e, .list = layer_list(part, c, layers),
		.name = part_name(part) };

	k.projection = xalloc(config_inputs(c), sizeof *k.projection);
	k.sent = xalloc(config_inputs(c), sizeof *k.sent);
	k.modalities = e->modalities ? e->modalities : 1;
	k.others = xalloc((k.modalities - 1) * config_inputs(c), sizeof *k.others);
	for (size_t i = 0; i < k.list.n; i++) {
		const size_t s = calibrate_place(c, k.list.path[i]);
		size_t block, row, prior;
		const struct stack *stack = config_find(c, k.list.path[i], &block, &row, NULL);
		enum projection_name p;
		struct end_layer end;
		size_t in;

		if (!stack)
			config_find_end(c, k.list.path[i], &end);
		p = stack ? stack->arch->linear[row].projection : end.projection;
		in = stack ? stack_in(stack, p) : end.in;
		if (s == SIZE_MAX || k.projection[s].in)
			continue;
		k.projection[s] = moments_make(in, products);
		make_others(&k, k.list.path[i], s, in, products);
		k.projection[s].prior = p == PROJECTION_EXPERT_GATE_UP || p == PROJECTION_EXPERT_DOWN;
		if (p == PROJECTION_EXPERT_DOWN)
			k.sent[s] = moments_make(in, products);
		if (!products)
			leave_out(&k, part, k.list.path[i], s);
		if (p != PROJECTION_EXPERT_GATE_UP)
			continue;
		prior = config_input(c, stack->first + block, PROJECTION_ROUTER, 0);
		if (!k.projection[prior].in)
			k.projection[prior] = moments_make(in, products);
	}
	return k;
}

/* Sequences from s on that have one length. */
static size_t equals(const struct batch *batch, size_t s)
{
	size_t n = 1;

	while (s + n < batch->sequences && batch->sequence[s + n].length == batch->sequence[s].length)
		n++;
	return n;
}

/* Adds the sequences of a batch to sums, if there are any. */
static void add_batch(const struct calibration *k, struct moments *h, const struct batch *batch, size_t in,
	const float *x)
{
	const enum half_type type = compute_half(k->execution->compute_type);
	const bool half = h->in && type != HALF_NONE;
	uint16_t *narrow = half ? xalloc(batch->rows, in * sizeof *narrow) : NULL;

	#pragma omp parallel for num_threads(threads) if (half) schedule(static)
	for (size_t t = 0; t < (half ? batch->rows : 0); t++)
		half_narrow(in, narrow + t * in, x + t * in, type);
	for (size_t s = 0, n; h->in && s < batch->sequences; s += n) {
		size_t tokens = batch->sequence[s].length, from = batch->sequence[s].first * in;

		n = equals(batch, s);
		if (half)
			moments_add_bf16(h, n, tokens,
				(const uint16_t (*)[tokens][in])(narrow + from));
		else
			moments_add(h, n, tokens, (const float (*)[tokens][in])(x + from));
	}
	free(narrow);
}

/* The rows of each modality by themselves, sequence by sequence. */
static void add_by_modality(const struct calibration *k, size_t place, const struct batch *batch, size_t in,
	const float *x)
{
	float *own = xalloc(batch->rows, in * sizeof *own);
	struct sequence *sequence = xalloc(batch->sequences, sizeof *sequence);

	for (size_t m = 0; m < k->modalities; m++) {
		struct batch some = { .sequence = sequence };

		for (size_t s = 0; s < batch->sequences; s++) {
			const struct sequence *q = &batch->sequence[s];
			const size_t first = some.rows;

			for (size_t t = q->first; t < q->first + q->length; t++)
				if (batch->modality[t] == m)
					memcpy(own + some.rows++ * in, x + t * in, in * sizeof *own);
			if (some.rows > first)
				sequence[some.sequences++] =
					(struct sequence){ .first = first, .length = some.rows - first };
		}
		add_batch(k, sums_of(k, place, m), &some, in, own);
	}
	free(own), free(sequence);
}

static void see(void *arg, size_t block, enum projection_name p, const struct batch *batch, size_t in,
	const float *x)
{
	struct calibration *k = arg;

	const size_t place = config_input(k->config, block, p, 0);

	if (k->modalities > 1 && batch->modality && sums_of(k, place, 1))
		add_by_modality(k, place, batch, in, x);
	else
		add_batch(k, &k->projection[place], batch, in, x);
}

/* Rows that no sequence orders, as one. */
static void add_rows(const struct calibration *k, struct moments *h, size_t rows, size_t in, const float *x)
{
	const struct sequence all = { .length = rows };

	add_batch(k, h, &(struct batch){ .rows = rows, .sequences = 1, .sequence = &all }, in, x);
}

static void see_expert(void *arg, size_t block, enum projection_name p, size_t expert, size_t rows, size_t in,
	const float *x)
{
	struct calibration *k = arg;
	const size_t i = config_input(k->config, block, p, expert);

	add_rows(k, &k->projection[i], rows, in, x);
	if (k->projection[i].count >= in && k->sent[i].in)	/* no prior will be needed */
		moments_free(&k->sent[i]);
}

static size_t to_send(void *arg, size_t block, size_t expert)
{
	struct calibration *k = arg;
	const struct moments *h = &k->sent[config_input(k->config, block, PROJECTION_EXPERT_DOWN, expert)];

	return h->in - h->count;
}

static void see_sent(void *arg, size_t block, size_t expert, size_t rows, size_t in, const float *x)
{
	struct calibration *k = arg;

	add_rows(k, &k->sent[config_input(k->config, block, PROJECTION_EXPERT_DOWN, expert)], rows, in, x);
}

struct observer calibrate_observer(struct calibration *k)
{
	return (struct observer){ see, k, see_expert, to_send, see_sent };
}

void calibrate_observe(struct calibration *k, struct forward *f, const struct part *part)
{
	const struct observer observer = calibrate_observer(k);

	if (forward_part(f, part, &observer) && calibrate_find(k, f->config->arch->head)) {
		struct head head = head_read(part, f->config, f->execution, false);

		forward_head(f, &head, &observer);
		head_free(&head);
	}
}

/* The prior of the inputs i, or NULL where they need none. */
static struct moments *prior_of(const struct calibration *k, const char *layer, size_t i)
{
	size_t block, row;
	const struct stack *s = config_find(k->config, layer, &block, &row, NULL);

	if (!k->projection[i].prior || k->projection[i].count >= k->projection[i].in)
		return NULL;
	return s->arch->linear[row].projection == PROJECTION_EXPERT_DOWN ? &k->sent[i] :
		&k->projection[config_input(k->config, s->first + block, PROJECTION_ROUTER, 0)];
}

const struct moments *calibrate_find(const struct calibration *k, const char *layer)
{
	size_t s = calibrate_place(k->config, layer);

	return s < SIZE_MAX && k->projection[s].in ? &k->projection[s] : NULL;
}

/* The larger of both sums' max |x|, of columns that are not left out. Dies on what is not finite. */
static float largest(const struct calibration *k, const char *layer, const struct moments *h,
	const struct moments *prior)
{
	float max = 0;

	for (size_t j = 0, split = 0; j < h->in; j++) {
		if (!isfinite(h->absolute[j]))
			die("%s: %s: input %zu is not finite", k->name, layer, j);
		if (split < h->splits && (size_t)h->split[split] == j) {
			split++;
			continue;
		}
		max = fmaxf(max, prior ? fmaxf(h->absmax[j], prior->absmax[j]) : h->absmax[j]);
	}
	return max;
}

size_t calibrate_modalities(const struct calibration *k, const char *layer)
{
	return sums_of(k, calibrate_place(k->config, layer), 1) ? k->modalities : 1;
}

/* The sums over all modalities: they are joined into the first, once. */
static struct moments *joined(const struct calibration *k, size_t place)
{
	struct moments *h = &k->projection[place];

	for (size_t m = 1; m < k->modalities; m++) {
		struct moments *other = sums_of(k, place, m);

		if (other) {
			moments_join(h, other);
			moments_free(other);
		}
	}
	return h;
}

float calibrate_percentile(struct calibration *k, const char *layer, size_t modality, double p)
{
	const size_t i = calibrate_place(k->config, layer);
	const struct moments *h = modality == ALL_MODALITIES ? joined(k, i) : sums_of(k, i, modality);
	const struct moments *prior = prior_of(k, layer, i);
	double more = prior ? ((double)h->in - (double)h->count) / (double)prior->count : 0;
	double *count = xalloc(HISTOGRAM_BINS, sizeof *count);
	float edge;

	if (!h->count && !(prior && prior->count))
		die("%s: %s: has seen no tokens", k->name, layer);
	for (size_t b = 0; b < HISTOGRAM_BINS; b++)
		count[b] = (double)h->histogram[b] + (prior ? more * (double)prior->histogram[b] : 0);
	edge = histogram_percentile(count, p);
	free(count);
	return fminf(edge, largest(k, layer, h, prior));
}

static struct second_moments in_memory(void *arg, const char *layer, size_t n, bool needed)
{
	const struct calibration *k = arg;
	const size_t i = calibrate_place(k->config, layer);
	struct moments *prior;
	struct hessian h;

	if (!calibrate_find(k, layer)) {
		if (needed)
			die("%s: %s: was not calibrated", k->name, layer);
		return (struct second_moments){ 0 };
	}
	prior = prior_of(k, layer, i);
	h = moments_mixed(joined(k, i), prior, k->name, layer);
	if (h.in != n)
		die("%s: %s: has %zu inputs, %zu were calibrated", k->name, layer, n, h.in);
	return (struct second_moments){ .hessian = h.sum, .absmax = h.absmax,
		.count = (int64_t)k->projection[i].count,
		.prior = prior ? 1 - (double)k->projection[i].count / (double)n : 0 };
}

static void drop_memory(void *arg)
{
	const struct calibration *k = arg;

	for (size_t i = 0; i < config_inputs(k->config); i++)
		moments_drop(&k->projection[i]), moments_drop(&k->sent[i]);
}

struct moments_source calibrate_source(struct calibration *k, const char *name)
{
	k->name = name;
	return (struct moments_source){ in_memory, in_memory, drop_memory, k, name, NULL };
}

/* Writes sums below a group, or a link to the group *first where they stand already. */
static void write_once(size_t modalities, struct moments *const h[modalities], struct output *out,
	const char *file, const char *group, char **first)
{
	if (*first)
		output_link(out, group, *first);
	else {
		moments_write(modalities, h, out, file, group);
		*first = xformat("%s", group);
	}
}

/* The sums of a layer, those of each modality side by side. */
static void write_layer(struct calibration *k, struct output *out, const char *file, const char *layer,
	size_t place, char **first)
{
	const size_t modalities = calibrate_modalities(k, layer);
	struct moments **all = xalloc(modalities, sizeof *all);

	for (size_t m = 0; m < modalities; m++)
		all[m] = sums_of(k, place, m);
	write_once(modalities, all, out, file, layer, first);
	free(all);
}

void calibrate_write(struct calibration *k, struct output *out, const char *file)
{
	const size_t inputs = config_inputs(k->config);
	char **first = xalloc(inputs, sizeof *first);

	for (size_t i = 0; i < k->list.n; i++) {
		const char *layer = k->list.path[i];
		const size_t s = calibrate_place(k->config, layer);
		const bool written = s < SIZE_MAX && first[s];
		struct moments *prior = s < SIZE_MAX ? prior_of(k, layer, s) : NULL;
		char *group = hessian_prior(layer);

		if (s < SIZE_MAX)
			write_layer(k, out, file, layer, s, &first[s]);
		if (prior && !written) {	/* or it is there by the link to the layer */
			char *own = NULL;
			const bool sent = prior >= k->sent && prior < k->sent + inputs;

			write_once(1, &prior, out, file, group, sent ? &own : &first[prior - k->projection]);
			free(own);
		}
		free(group);
	}
	for (size_t i = 0; i < inputs; i++)
		free(first[i]);
	free(first);
}

/* Of the experts of a block: in[2] of gate and up, of down. Returns how many were calibrated. */
static size_t count_experts(const struct calibration *k, const struct stack *s, size_t block, double count[])
{
	size_t n = 0;

	for (size_t e = 0; e < s->experts; e++)
		for (int p = PROJECTION_EXPERT_GATE_UP; p <= PROJECTION_EXPERT_DOWN; p++) {
			const struct moments *h = &k->projection[config_input(k->config, s->first + block,
				(enum projection_name)p, e)];

			if (!h->in)
				continue;
			count[n++] = (double)h->count;
			break;		/* as many reach the other */
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

void calibrate_report(const struct calibration *k, struct report *report)
{
	for (const struct stack *s = k->config->stack; s < k->config->stack + k->config->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++) {
			double *count = xalloc(s->experts, sizeof *count);
			const size_t n = count_experts(k, s, i, count);
			char *path = xformat("%s/%zu", s->arch->blocks, i);

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
		moments_free(&k->projection[i]), moments_free(&k->sent[i]);
	for (size_t i = 0; i < (k->modalities - 1) * n; i++)
		moments_free(&k->others[i]);
	free(k->projection), free(k->others), free(k->sent);
	layer_list_free(&k->list);
}

void calibrate_part(void *arg, const struct filter *f)
{
	const struct calibrate *c = arg;
	struct forward *run = c->forward;
	const struct part *part = f->part;
	struct calibration k = calibrate_begin(part, run->config, run->execution, c->layers, true);

	for (size_t i = 0; i < config_inputs(run->config); i++)
		k.projection[i].part = c->shard->n > 1;
	output_begin(f->out, part);
	if (!part_index(part)) {
		output_copy(f->out, part, "/config", NULL);
		basis_copy(f->out, part);
		calibrated_write(f->out, 0, NULL, c->calibration);
		output_history(f->out, "tokens", c->tokens);
		shard_write(f->out, c->shard, (const char *[SHARD_INPUTS]){
			[SHARD_MODEL] = input_name(f->in), [SHARD_TOKENS] = part_name(c->tokens) });
	}
	calibrate_observe(&k, run, part);
	calibrate_write(&k, f->out, part_name(part));
	calibrate_report(&k, f->report);
	output_end(f->out);
	calibrate_end(&k);
}

void calibrate_finished(void *arg, const struct filter *f)
{
	static const struct observer in_groups = { 0 };	/* windows go together as under sums */
	const struct calibrate *c = arg;

	filter_report(f, &table);
	if (!f->all_there)
		forward_part(c->forward, f->part, &in_groups);
}
