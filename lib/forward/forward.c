/* SPDX-License-Identifier: GPL-3.0-or-later */
/* forward.c -- runs a model over all windows, part by part; see forward.h */
#include "forward/forward.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/embed.h"
#include "model/layer_list.h"
#include "model/layer_ref.h"

/* Constants, not options, since results depend on them. TOKENS: of a chunk, and of a piece of it in an MLP.
 * TOKENS_OBSERVED: of a chunk of experts, of a projector or of the head with an observer, and of the chunks
 * that a thread takes for a group. TOKENS_DEVICE: of a chunk on a device. */
enum { TOKENS = 512, TOKENS_OBSERVED = 2048, TOKENS_DEVICE = 8192 };
/* Most bytes of workspaces and collected inputs, of all threads together. */
static const size_t SIDE_BY_SIDE = (size_t)4 << 30;

struct forward *forward_open(const struct config *c, const struct execution *e, const struct windows *w,
	size_t memory)
{
	struct forward *f = xalloc(1, sizeof *f);

	if (w->position && w->positions > c->positions && w->positions > w->longest)
		die("%s: /position: a token is at position %zu, the model has %zu positions", w->name,
			w->positions - 1, c->positions);
	f->config = c;
	f->execution = e;
	f->windows = w;
	f->name = "the model";
	if (w->position && w->axes > 1 && w->axes != config_last(c)->axes)
		die("%s: /position: has %zu numbers per token, the model expects %d", w->name,
			w->axes, config_last(c)->axes ? (int)config_last(c)->axes : 1);
	if (w->images && config_last(c)->axes > 1 && w->axes != config_last(c)->axes)
		die("%s: /position: is missing, expected frames, rows and columns (images-import)", w->name);
	if (w->images && !c->vision.class)
		die("%s: /images: the model reads no images", w->name);
	if (e->device && (w->images || w->modality))
		die("%s: tokens with images run on the processor only (--device cpu), not on %s", w->name,
			e->device->name);
	f->hidden = hidden_make(w->rows, config_last(c)->hidden, memory);
	if (e->device)
		e->device->pin(f->hidden.x, f->hidden.bytes);
	if (w->images)
		f->images = images_open(c, e, w, memory);
	return f;
}

static void free_works(struct forward *f)
{
	for (size_t i = 0; i < f->works; i++)
		work_free(&f->work[i]);
	free(f->work);
	f->works = 0;
	f->work = NULL;
}

void forward_close(struct forward *f)
{
	if (f->block)
		block_free(f->block);
	if (f->execution->device)
		f->execution->device->unpin(f->hidden.x);
	hidden_free(&f->hidden);
	if (f->images)
		images_close(f->images);
	free_works(f);
	free(f->collection.memory.memory);
	free(f);
}

/* The windows that pass the current block: of tokens, of images, or of attention windows of images. */
static const struct windows *windows_of(const struct forward *f)
{
	const struct stack *s = f->block->stack;

	if (s == config_last(f->config))
		return f->windows;
	return s->slides && s->slides[f->block->index] ? &f->images->local : &f->images->windows;
}

/* Makes n workspaces of the stack. */
static void make_works(struct forward *f, const struct stack *s, size_t n, size_t tokens, size_t piece)
{
	if (f->works == n && f->work->stack == s && f->work->tokens == tokens && f->work->piece == piece)
		return;
	free_works(f);
	f->work = xalloc(n, sizeof *f->work);
	for (f->works = 0; f->works < n; f->works++)
		f->work[f->works] = work_on(f->execution->device, s, tokens, piece, windows_of(f)->positions);
}

/* Windows that pass a block in lockstep. */
struct chunk { size_t first, n; };
struct chunks { struct chunk *chunk; size_t n, tokens; };	/* tokens: most tokens of a chunk */

/* Each chunk has at most `tokens` tokens, or is one window. */
static struct chunks chunks_of(const struct windows *w, size_t tokens)
{
	struct chunks y = { .chunk = xalloc(w->n, sizeof *y.chunk) };

	for (size_t first = 0, n, rows; first < w->n; first += n) {
		n = windows_within(w, first, tokens);
		rows = w->sequence[first + n - 1].first + w->sequence[first + n - 1].length -
			w->sequence[first].first;
		y.chunk[y.n++] = (struct chunk){ first, n };
		y.tokens = rows > y.tokens ? rows : y.tokens;
	}
	return y;
}

/* Takes a chunk through the current block. */
static void run_chunk(struct forward *f, struct work *w, struct chunk k, struct stage stage,
	const struct observer *observer)
{
	const struct block *b = f->block;
	const struct windows *all = windows_of(f);
	const struct hidden *h = all == f->windows ? &f->hidden : &f->images->hidden;
	struct sequence *sequence = xalloc(k.n, sizeof *sequence);
	struct batch batch = windows_batch(all, k.first, k.n, sequence);
	const struct device *d = f->execution->device;
	const size_t bytes = batch.rows * h->width * sizeof *h->x;
	float *x = h->x + all->sequence[k.first].first * h->width;

	#pragma omp critical
	progress(b->stack->arch->blocks + 1, (b->stack->first + b->index) * all->n + k.first,
		f->config->blocks * all->n);
	if (b->stack->arch->projector) {
		images_project(f->images, b, w, k.first, k.n, stage, observer);
	} else if (d) {
		d->upload(w->hidden, x, bytes);
		block_stage(b, w, &batch, (float (*)[h->width])w->hidden, stage, observer);
		d->download(x, w->hidden, bytes);
	} else
		block_stage(b, w, &batch, (float (*)[h->width])x, stage, observer);
	free(sequence);
}

/* Runs n chunks from `first` on, each by one thread (side_by_side) or by all. */
static void run_chunks(struct forward *f, const struct chunks *all, size_t first, size_t n, bool side_by_side,
	struct stage stage, const struct observer *observer)
{
	#pragma omp parallel for num_threads(threads) if (side_by_side) schedule(dynamic)
	for (size_t i = first; i < first + n; i++)
		run_chunk(f, &f->work[omp_get_thread_num()], all->chunk[i], stage, observer);
}

static void run_unobserved(struct forward *f, const struct chunks *all, struct stage stage)
{
	const size_t alone = all->n - all->n % (size_t)threads;

	run_chunks(f, all, 0, alone, true, stage, NULL);
	run_chunks(f, all, alone, all->n - alone, false, stage, NULL);
}

/* Runs a group of n chunks, and shows the observer their inputs. */
static void run_group(struct forward *f, const struct chunks *all, size_t first, size_t n, bool side_by_side,
	struct stage stage, const struct observer *observer)
{
	const struct windows *w = windows_of(f);
	const struct chunk *from = &all->chunk[first], *last = from + n - 1;
	const size_t windows = last->first + last->n - from->first, row = w->sequence[from->first].first;
	struct sequence *sequence = xalloc(windows, sizeof *sequence);
	const struct batch batch = windows_batch(w, from->first, windows, sequence);

	collection_begin(&f->collection, f->block, stage.to, batch.rows);
	#pragma omp parallel for num_threads(threads) if (side_by_side) schedule(dynamic)
	for (size_t i = 0; i < n; i++) {
		struct collection_chunk chunk;
		const struct observer own = collection_of_chunk(&chunk, &f->collection,
			w->sequence[from[i].first].first - row);

		run_chunk(f, &f->work[omp_get_thread_num()], from[i], stage, &own);
	}
	collection_show(&f->collection, &batch, observer);
	free(sequence);
}

/* Models whose windows pass a block in lockstep. */
struct in_step {
	size_t n;
	struct forward *const *f;	/* [n] */
	const struct observer *const *observer;
};

/* Runs groups of `each` chunks for a thread, or of one chunk for all. */
static void run_observed(const struct in_step *m, const struct chunks *all, bool side_by_side, size_t each,
	struct stage stage)
{
	const size_t group = side_by_side ? (size_t)threads * each : 1;

	for (size_t i = 0; i < all->n; i += group)
		for (size_t k = 0; k < m->n; k++)
			run_group(m->f[k], all, i, min(group, all->n - i), side_by_side, stage,
				m->observer[k]);
}

static void run_in_order(const struct in_step *m, const struct chunks *all, struct stage stage)
{
	for (size_t i = 0; i < all->n; i++)
		for (size_t k = 0; k < m->n; k++)
			run_chunks(m->f[k], all, i, 1, false, stage, m->observer[k]);
}

void forward_stages(size_t n, struct forward *const model[n], struct stage stage,
	const struct observer *const observers[n])
{
	const struct in_step m = { n, model, observers };
	struct forward *f = *model;
	const struct observer *observer = *observers;
	const struct stack *s = f->block->stack;
	/* their inputs are not collected: all threads work on one chunk */
	const bool in_order = observer && (s->arch->projector || stack_sparse(s, f->block->index));
	const bool on_device = f->execution->device, collected = observer && observer->on_input && !in_order;
	struct chunks all = chunks_of(windows_of(f), on_device ? TOKENS_DEVICE :
		in_order ? TOKENS_OBSERVED : TOKENS);
	const size_t piece = in_order || on_device ? all.tokens : min(TOKENS, all.tokens);
	const size_t each = max(1, TOKENS_OBSERVED / all.tokens);	/* chunks of a thread in a group */
	const size_t bytes = n * (work_size(s, all.tokens, piece) +
		(collected ? each * all.tokens * collection_size(f->block, stage.to) : 0));
	const bool side_by_side = !in_order && !on_device && all.n >= (size_t)threads && (!collected ||
		bytes <= SIDE_BY_SIDE / (size_t)threads);

	for (size_t k = 0; k < n; k++)
		make_works(model[k], model[k]->block->stack, side_by_side ? (size_t)threads : 1, all.tokens,
			piece);
	if (in_order || on_device)
		run_in_order(&m, &all, stage);
	else if (collected)
		run_observed(&m, &all, side_by_side, each, stage);
	else
		run_unobserved(f, &all, stage);
	free(all.chunk);
}

void forward_stage(struct forward *f, struct stage stage, const struct observer *observer)
{
	forward_stages(1, &f, stage, &observer);
}

/* Groups of the model in a part. A part of a file may contain the rest of the file too. */
struct forward_found {
	const struct part *part;
	const struct config *config;
	bool embedding, position, head, images;
	bool *block;			/* [blocks] */
};

static void look_for_part(void *arg, const char *path)
{
	struct forward_found *y = arg;
	const struct architecture *arch = y->config->arch;
	size_t block;
	const struct stack *s = layer_block(y->part, y->config, path, &block);

	y->embedding |= !strcmp(path, arch->embedding);
	y->position |= arch->position && !strcmp(path, arch->position);
	y->head |= !strcmp(path, config_end(y->config));
	y->images |= y->config->vision.class && !strcmp(path, config_encoder(y->config)->arch->embedding);
	if (s)
		y->block[s->first + block] = true;
}

/* Fatal error: the group is missing, or comes after blocks or positions that need it. */
static _Noreturn void missing(const struct part *part, const char *group)
{
	die("%s: %s/weight: is missing or comes too late, expected before the blocks", part_name(part),
		group);
}

static void embed_all_positions(struct forward *f, const struct layer *position)
{
	struct sequence *sequence = xalloc(f->windows->n, sizeof *sequence);
	struct batch all = windows_batch(f->windows, 0, f->windows->n, sequence);

	embed_positions(position, f->config->arch->position_offset, &all,
		(float (*)[f->hidden.width])f->hidden.x);
	free(sequence);
}

/* Replaces the embeddings of visual tokens by features from the projector. */
static void embed_features(struct forward *f)
{
	const size_t bytes = f->hidden.width * sizeof(float);
	const float *feature = f->images->feature.x;
	float *x = f->hidden.x;

	for (size_t i = 0; i < f->hidden.rows; i++)
		if (f->windows->feature[i] >= 0)
			memcpy(x + i * f->hidden.width,
				feature + (size_t)f->windows->feature[i] * f->hidden.width, bytes);
}

/* Visual tokens must be exactly the placeholders, and features must be computed before they are used. */
static void check_placeholders(const struct forward *f, const struct part *part)
{
	const struct windows *w = f->windows;
	const struct vision *v = &f->config->vision;

	for (size_t i = 0; v->class && i < w->rows; i++) {
		const bool visual = w->feature && w->feature[i] >= 0;

		if ((w->id[i] == v->placeholder) != visual)
			die("%s: /tokens: %s is %d: %s", w->name, windows_place(w, i), w->id[i], visual ?
				"it belongs to an image, expected the placeholder of images" :
				"it is the placeholder of images, expected an image there (images-import)");
	}
	if (f->images && f->blocks != config_last(f->config)->first)
		die("%s: %s: comes before the image encoder, expected after it", part_name(part),
			f->config->arch->embedding);
}

static void embed(struct forward *f, const struct part *part, const struct forward_found *found)
{
	const struct config *c = f->config;
	size_t n = f->hidden.rows, hidden = f->hidden.width;
	float (*x)[hidden] = (float (*)[hidden])f->hidden.x;
	struct layer l;

	if (found->embedding) {
		check_placeholders(f, part);
		l = layer_read(part, c->arch->embedding, c->vocab, hidden);
		layer_require_plain(part, &l);
		if (f->embedding)
			l.linear = *f->embedding;
		embed_tokens(c, f->execution, &l, n, x, f->windows->id);
		if (f->images)
			embed_features(f);
		layer_free(&l);
		f->embedded = true;
	}
	if (found->position) {
		if (!f->embedded)
			missing(part, c->arch->embedding);
		l = layer_read(part, c->arch->position, 0, hidden);
		layer_require_plain(part, &l);
		embed_all_positions(f, &l);
		layer_free(&l);
		f->placed = true;
	}
}

/* Makes block i of the stack the current block. */
static void read_block(struct forward *f, const struct part *part, const struct stack *s, size_t i)
{
	const struct config *c = f->config;

	if (s != config_last(c) && !f->images->embedded)
		missing(part, config_encoder(c)->arch->embedding);
	if (s == config_last(c) && (!f->embedded || (c->arch->position && !f->placed)))
		missing(part, f->embedded ? c->arch->position : c->arch->embedding);
	if (s->first + i != f->blocks)
		die("%s: %s: block %zu was expected; blocks are missing or out of order",
			part_name(part), stack_block_path(s, i), f->blocks);
	if (f->block)
		block_next(f->block, part, s, i);
	else
		f->block = block_read(part, c, f->execution, s, i);
}

/* Runs the blocks of a stack that are in the part. Without images, blocks of an encoder and projector are
 * skipped. */
static void run_stack(struct forward *f, const struct part *part, const struct stack *s, const bool found[],
	void (*run)(void *arg, struct forward *f), void *arg)
{
	const bool idle = s != config_last(f->config) && !f->images;

	for (size_t i = 0; i < s->blocks; i++)
		if (found[i]) {
			if (!idle) {
				read_block(f, part, s, i);
				run(arg, f);
			}
			f->blocks++;
		}
}

/* Fatal error if the device does not run the model. All of its blocks are known from the first part. */
static void check_device(const struct forward *f, const struct part *part)
{
	const struct config *c = f->config;
	const struct device *d = f->execution->device;

	if (d && f->execution->cache.format.kind)
		die("%s: a format of keys and values runs on the processor only (--device cpu), not on %s",
			part_name(part), d->name);
	if (d && f->execution->compute_type == COMPUTE_INT16)
		die("%s: --compute-type int16 runs on the processor only (--device cpu), not on %s",
			part_name(part), d->name);
	for (const struct stack *s = c->stack; d && s < c->stack + c->stacks; s++)
		for (size_t i = 0; i < s->blocks; i++)
			if (stack_sparse(s, i))
				die("%s: block %zu: experts run on the processor only (--device cpu), "
					"not on %s", part_name(part), s->first + i, d->name);
}

bool forward_blocks(struct forward *f, const struct part *part, const struct observer *observer,
	void (*run)(void *arg, struct forward *f), void *arg)
{
	const struct config *c = f->config;
	struct forward_found found = { .part = part, .config = c, .block = xalloc(c->blocks,
		sizeof *found.block) };

	f->name = part_name(part);
	check_device(f, part);
	part_groups(part, look_for_part, &found);
	if (f->images && !f->images->prepared_by)
		images_prepare(f->images, part);
	if (found.images && f->images)
		images_embed(f->images, part, observer);
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++) {
		if (s == config_last(c))
			embed(f, part, &found);
		run_stack(f, part, s, found.block + s->first, run, arg);
	}
	if (found.head && f->blocks != c->blocks)
		die("%s: has %zu blocks, expected %zu as in /config", part_name(part), f->blocks, c->blocks);
	free(found.block);
	if (f->blocks == c->blocks && f->block) {
		block_free(f->block);
		f->block = NULL;
	}
	return found.head;
}

static void run_whole(void *arg, struct forward *f)
{
	const struct observer *const *observer = arg;

	forward_stage(f, (struct stage){ PROJECTION_QKV, PROJECTIONS }, *observer);
}

bool forward_part(struct forward *f, const struct part *part, const struct observer *observer)
{
	return forward_blocks(f, part, observer, run_whole, &observer);
}

void forward_features(struct forward *f, const struct part *part)
{
	const struct config *c = f->config;
	const struct observer *none = NULL;
	bool *all = xalloc(c->blocks, sizeof *all);

	f->name = part_name(part);
	memset(all, true, c->blocks * sizeof *all);
	images_prepare(f->images, part);
	images_embed(f->images, part, NULL);
	for (const struct stack *s = c->stack; s < config_last(c); s++)
		run_stack(f, part, s, all, run_whole, &none);
	free(all);
}

void forward_head(struct forward *f, const struct head *h, const struct observer *observer)
{
	size_t hidden = f->hidden.width;
	struct chunks all = { 0 };

	if (f->normed)
		return;
	all = chunks_of(f->windows, TOKENS_OBSERVED);
	for (size_t i = 0; i < all.n; i++) {
		struct chunk k = all.chunk[i];
		struct sequence *sequence = xalloc(k.n, sizeof *sequence);
		struct batch batch = windows_batch(f->windows, k.first, k.n, sequence);
		size_t row = f->windows->sequence[k.first].first;
		float (*x)[hidden] = (float (*)[hidden])(f->hidden.x + row * hidden);

		head_norm(h, &batch, x, (const float (*)[hidden])x, observer);
		free(sequence);
	}
	free(all.chunk);
	f->normed = true;
}
