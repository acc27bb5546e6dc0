/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * modality -- a block with the shape of Qwen2-VL-7B's language model: 16 bits, weights of 4 bits, W4A8
 *
 *	modality [-r RUNS] [-j THREADS] layers|decode|block|memory...
 *
 * The block has random numbers, 3584 inputs, intermediate size 18944, 28 heads and 4 key heads.
 *
 * layers prints `what product rows input_seconds seconds operations` of its linear layers for 4096 visual and
 * 64 text tokens, with text and images interleaved, or with the visual tokens first (aifs). Variants
 * alternate every 512 tokens, and the median of these chunks counts. input_seconds is the time of preparing
 * inputs alone.
 *
 * decode prints `what product bytes seconds` for one row, with all weights from memory, and for reading
 * alone.
 *
 * block prints `side visual rows what prepare_seconds seconds` of the whole block, with an image of side ×
 * side pixels between 15 tokens of text.
 *
 * memory prints `what stored prepared peak`: bytes of the weights in a file, bytes as they are multiplied,
 * and the peak memory of the process with this block alone, with an image of 1120 × 1120.
 *
 * product: the row of the down projection. Results are medians of RUNS rounds; each round runs all variants
 * once. With -j 1 the time is CPU time of the thread.
 */
#include "base/size.h"
#include "bench.h"
#include "forward/block.h"
#include "quant/pack.h"

enum { PIECE = 512, TEXT = 64, VISUAL = 4096, IMAGES = 3, QUESTION = 15, PATCH = 28, MODALITIES = 2,
	PIECES = (TEXT + VISUAL + PIECE - 1) / PIECE };
static const char model[] = "{\"model_type\": \"qwen2\", \"hidden_size\": 3584, "
	"\"intermediate_size\": 18944, \"num_attention_heads\": 28, \"num_key_value_heads\": 4, "
	"\"num_hidden_layers\": 1, "
	"\"vocab_size\": 152064, \"max_position_embeddings\": 32768, \"rope_theta\": 1000000.0, "
	"\"rms_norm_eps\": 1e-6}";

/* Weights, and the rounding of their inputs. */
struct weights { enum half_type half; const char *storage; long group; enum compute_type type; };
enum { F16, BF16, W4, W4A8, KINDS };
static const struct weights weights[KINDS] = {
	[F16] = { HALF_F16, NULL, 0, COMPUTE_F32 }, [BF16] = { HALF_BF16, NULL, 0, COMPUTE_BF16 },
	[W4] = { HALF_NONE, "uint4", 128, COMPUTE_F32 }, [W4A8] = { HALF_NONE, "int4", 0, COMPUTE_F32 },
};

/* first: visual tokens first; few: packed words are multiplied directly. */
struct way { const char *name; int weights; enum input_mode mode; bool first, few; };
enum { WAYS = 8 };

static float unit(size_t i)
{
	return (float)(uint32_t)(i * 2654435761u) * 0x1p-31f - 1;
}

static float *floats(size_t n, float from, float by)
{
	float *y = xalloc(n, sizeof *y);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n; i++)
		y[i] = from + by * unit(i);
	return y;
}

static void *words(size_t bytes, uint32_t keep, uint32_t set)
{
	uint32_t *y = xalloc(bytes / 4 + 1, sizeof *y);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i <= bytes / 4; i++)
		y[i] = ((uint32_t)(i * 2654435761u) & keep) | set;
	return y;
}

/* ---- a block, in stored form and in multiplied form ---- */

/* For a quantized layer. */
static size_t stored_bytes(const struct linear *l)
{
	return l->out * (pack_words(l->storage.bits, l->in) * 4 + l->groups * (sizeof(float) + !!l->zero));
}

static struct linear linear_make(const struct weights *w, size_t out, size_t in, size_t *stored)
{
	static const float scale[MODALITIES] = { 1.f / 127, 1.f / 100 };
	struct linear l = { .out = out, .in = in, .weight_type = w->half };

	if (!w->storage) {	/* ±(1 to 2)/128 */
		l.weight = words(out * in * 2, 0x83ff83ff, w->half == HALF_F16 ? 0x20002000 : 0x3c003c00);
		*stored += out * in * 2;
		return l;
	}
	format_parse(&l.storage, w->storage);
	l.group = w->group, l.groups = linear_groups(in, w->group);
	l.packed = words(out * pack_words(l.storage.bits, in) * 4, 0x77777777, 0);
	l.scale = floats(out * l.groups, 0.002f, 0.001f);
	l.zero = l.storage.asymmetric ? words(out * l.groups, 0x07070707, 0) : NULL;
	*stored += stored_bytes(&l);
	format_parse(&l.input.format, "int8");
	l.input.scale = scale, l.input.modalities = MODALITIES;
	return l;
}

static struct norm norm_make(const struct stack *s)
{
	return (struct norm){ .kind = s->arch->norm_kind, .n = s->hidden, .eps = s->eps,
		.gain = floats(s->hidden, 1, 0) };
}

static struct block *block_make(const struct config *c, const struct weights *w, bool few, size_t *stored)
{
	const struct stack *s = config_last(c);
	struct block *b = xalloc(1, sizeof *b);

	*b = (struct block){ .config = c, .stack = s };
	b->norm[BEFORE_ATTENTION] = norm_make(s), b->norm[BEFORE_MLP] = norm_make(s);
	*stored = 0;
	for (const struct linear_row *row = s->arch->linear; row->name; row++) {
		struct projection *p = &b->projection[row->projection];
		const size_t i = p->layers++, out = stack_out(s, row->role);

		p->name = row->projection, p->type = w->type, p->rows = few ? 1 : 0;
		p->in = stack_in(s, row->projection);
		p->at[i] = p->out, p->out += out;
		p->layer[i].linear = linear_make(w, out, p->in, stored);
	}
	return b;
}

/* Prepares the stored block for products; returns the bytes of the prepared weights. */
static size_t block_prepare(struct block *b)
{
	size_t bytes = 0;

	for (struct projection *p = b->projection; p < b->projection + PROJECTIONS; p++) {
		for (size_t i = 0; i < p->layers; i++)
			p->product[i] = product_choose(&p->layer[i].linear, p->type, p->rows);
		projection_prepare(p);
		bytes += p->bytes;
	}
	return bytes;
}

static void block_set(struct block *b, enum input_mode mode)
{
	for (struct projection *p = b->projection; p < b->projection + PROJECTIONS; p++)
		for (size_t i = 0; i < p->layers; i++)
			p->layer[i].linear.input.mode = mode;
}

static void block_drop(struct block *b)
{
	for (struct projection *p = b->projection; p < b->projection + PROJECTIONS; p++)
		for (size_t i = 0; i < p->layers; i++) {
			const struct linear *l = &p->layer[i].linear;

			free((void *)(uintptr_t)l->weight), free((void *)(uintptr_t)l->packed);
			if (l->packed)
				free((void *)(uintptr_t)l->scale), free((void *)(uintptr_t)l->zero);
		}
	block_free(b);
}

/* ---- tokens ---- */

/* `spans` images with text before, between and after them; or the visual tokens first. */
struct tokens { size_t rows; uint8_t *modality; int32_t *index; };

static struct tokens tokens_make(size_t visual, size_t text, size_t spans, bool first)
{
	struct tokens t = { visual + text, xalloc(visual + text, 1), xalloc(visual + text, sizeof(int32_t)) };
	uint8_t *is = xalloc(t.rows, 1);
	size_t end = 0;

	for (size_t k = 0, i = 0; k < spans; k++) {
		i += text / (spans + 1);
		for (const size_t to = i + visual / spans; i < to; i++)
			is[i] = 1;
	}
	for (int kind = 1; kind >= 0; kind--)
		for (size_t i = 0; i < t.rows; i++)
			if (!first ? kind : is[i] == kind) {
				t.modality[end] = is[i];
				t.index[end++] = (int32_t)i;
			}
	free(is);
	return t;
}

static void tokens_free(struct tokens *t)
{
	free(t->modality), free(t->index);
}

static struct batch batch_of(const struct tokens *t, struct sequence *s, const struct way *w)
{
	*s = (struct sequence){ .length = t->rows };
	return (struct batch){ .rows = t->rows, .sequences = 1, .sequence = s, .modality = t->modality,
		.position = w->first ? t->index : NULL, .index = w->first ? t->index : NULL };
}

/* ---- linear layers ---- */

/* Projection p of rows [i, i + m). With y NULL only its inputs are prepared. */
static double project(const struct projection *p, const struct batch *batch, size_t i, size_t m, float *y,
	const float *x, struct workspace *workspace)
{
	const size_t bytes = product_workspace(&p->product[0], m);
	const double start = bench_now();

	if (y)
		projection_apply(p, batch, i, m, p->out, (float (*)[p->out])y, (const float (*)[p->in])x,
			workspace, NULL, false);
	else
		product_input(&p->product[0], m, workspace_of(workspace, bytes), (const float (*)[p->in])x,
			batch->modality + i);
	return bench_now() - start;
}

static const struct way prefill[] = {
	{ "f16", F16, INPUT_AS_IS, false, false }, { "bf16", BF16, INPUT_AS_IS, false, false },
	{ "w4a8-token", W4A8, INPUT_DYNAMIC_TOKEN, false, false },
	{ "w4a8-tensor", W4A8, INPUT_STATIC_TENSOR, false, false },
	{ "w4a8-msq", W4A8, INPUT_STATIC_MODALITY, false, false },
	{ "w4a8-msq-aifs", W4A8, INPUT_STATIC_MODALITY, true, false },
};
enum { PREFILL = sizeof prefill / sizeof *prefill };

static const char *row_of(const struct block *b)
{
	return b->projection[PROJECTION_DOWN].product->row->name;
}

static size_t numbers_of(const struct block *b)
{
	size_t n = 0;

	for (const struct projection *p = b->projection; p < b->projection + PROJECTION_ROUTER; p++)
		n += p->in * p->out;
	return n;
}

/* Seconds per row of a variant, for its next sample: of the products, and of preparing inputs alone. */
struct samples { size_t n; double all[RUNS * PIECES], inputs[RUNS * PIECES]; };

/* Runs each variant on one chunk, then on the next. */
static void measure(struct block *const block[KINDS], const struct tokens t[2], enum projection_name name,
	struct samples samples[PREFILL], float *y, const float *x, struct workspace *workspace)
{
	for (size_t i = 0; i < t->rows; i += PIECE)
		for (int k = 0; k < PREFILL; k++) {
			const struct way *w = &prefill[k];
			const struct projection *p = &block[w->weights]->projection[name];
			const size_t m = min(PIECE, t->rows - i);
			struct samples *to = &samples[k];
			struct sequence sequence;
			const struct batch batch = batch_of(&t[w->first], &sequence, w);

			block_set(block[w->weights], w->mode);
			to->all[to->n] = project(p, &batch, i, m, y, x + i * p->in, workspace) / (double)m;
			to->inputs[to->n++] = project(p, &batch, i, m, NULL, x + i * p->in, workspace) /
				(double)m;
		}
}

static void run_layers(void)
{
	struct config c = config_parse("modality", model);
	const size_t wide = config_last(&c)->intermediate;
	struct tokens t[2] = { tokens_make(VISUAL, TEXT, IMAGES, false),
		tokens_make(VISUAL, TEXT, IMAGES, true) };
	float *x = floats(t->rows * wide, 0, 1), *y = xalloc(PIECE * 2 * wide, sizeof *y);
	struct samples (*samples)[PREFILL] = xalloc(PROJECTION_ROUTER, sizeof *samples);
	struct workspace workspace = { 0 };
	struct block *block[KINDS] = { NULL };
	size_t stored;

	for (int k = 0; k < KINDS; k++)
		if (k != W4) {
			block[k] = block_make(&c, &weights[k], false, &stored);
			block_set(block[k], k == W4A8 ? INPUT_DYNAMIC_TOKEN : INPUT_AS_IS);
			block_prepare(block[k]);
		}
	for (int r = 0; r < runs; r++)
		for (int p = 0; p < PROJECTION_ROUTER; p++)
			measure(block, t, (enum projection_name)p, samples[p], y, x, &workspace);
	printf("what\tproduct\trows\tinput_seconds\tseconds\toperations\n");
	for (int k = 0; k < PREFILL; k++) {
		double all = 0, inputs = 0;

		for (int p = 0; p < PROJECTION_ROUTER; p++) {
			all += (double)t->rows * bench_median(samples[p][k].n, samples[p][k].all);
			inputs += (double)t->rows * bench_median(samples[p][k].n, samples[p][k].inputs);
		}
		printf("%s\t%s\t%zu\t%.5g\t%.5g\t%zu\n", prefill[k].name,
			row_of(block[prefill[k].weights]), t->rows, inputs, all,
			2 * t->rows * numbers_of(block[F16]));
	}
	for (int k = 0; k < KINDS; k++)
		if (block[k])
			block_drop(block[k]);
	tokens_free(&t[0]), tokens_free(&t[1]);
	free(x), free(y), free(samples), free(workspace.memory);
	config_free(&c);
}

static const struct way decode[] = {
	{ "f16", F16, INPUT_AS_IS, false, true }, { "bf16", BF16, INPUT_AS_IS, false, true },
	{ "w4-packed", W4, INPUT_AS_IS, false, true },
	{ "w4a8-token", W4A8, INPUT_DYNAMIC_TOKEN, false, false },
	{ "w4a8-msq", W4A8, INPUT_STATIC_MODALITY, false, false },
	{ "w4a8-token-packed", W4A8, INPUT_DYNAMIC_TOKEN, false, true },
	{ "w4a8-msq-packed", W4A8, INPUT_STATIC_MODALITY, false, true },
};
enum { DECODE = sizeof decode / sizeof *decode };

/* Sum of the words, by all threads; y receives it. */
static double read_words(size_t bytes, const uint32_t *w, float *y)
{
	const double start = bench_now();
	uint32_t sum = 0;

	#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+:sum)
	for (size_t i = 0; i < bytes / 4; i++)
		sum += w[i];
	*y = (float)sum;
	return bench_now() - start;
}

/* Bytes of weights that a product with one row of x reads: prepared weights, or words that stay packed. */
static size_t bytes_read(const struct block *b)
{
	size_t bytes = 0;

	for (const struct projection *p = b->projection; p < b->projection + PROJECTION_ROUTER; p++)
		for (size_t i = 0; i < p->layers; i++) {
			const struct linear *l = &p->layer[i].linear;
			const size_t own = product_size(&p->product[i], l->out);

			bytes += l->packed && own < l->out ? stored_bytes(l) : own;
		}
	return bytes;
}

static void run_decode(void)
{
	struct config c = config_parse("modality", model);
	const struct stack *s = config_last(&c);
	struct tokens t = tokens_make(0, 1, 1, false);
	float *x = floats(s->intermediate, 0, 1), *y = xalloc(2 * s->intermediate, sizeof *y);
	double seconds[WAYS][RUNS], reads[RUNS];
	struct workspace workspace = { 0 };
	struct block *block[DECODE];
	struct sequence sequence;
	size_t stored, bytes;

	for (int k = 0; k < DECODE; k++) {
		block[k] = block_make(&c, &weights[decode[k].weights], decode[k].few, &stored);
		block_set(block[k], decode[k].mode);
		block_prepare(block[k]);
	}
	bytes = block[0]->projection[PROJECTION_GATE_UP].bytes;
	printf("what\tproduct\tbytes\tseconds\n");
	for (int r = -1; r < runs; r++) {	/* the first round does not count */
		for (int k = 0; k < DECODE; k++) {
			const struct batch batch = batch_of(&t, &sequence, &decode[k]);

			double all = 0;

			for (int p = 0; p < PROJECTION_ROUTER; p++)
				all += project(&block[k]->projection[p], &batch, 0, 1, y, x, &workspace);
			seconds[k][r < 0 ? 0 : r] = all;
		}
		reads[r < 0 ? 0 : r] = read_words(bytes, block[0]->projection[PROJECTION_GATE_UP].memory, y);
	}
	printf("read\t-\t%zu\t%.5g\n", bytes, bench_median((size_t)runs, reads));
	for (int k = 0; k < DECODE; k++) {
		printf("%s\t%s\t%zu\t%.5g\n", decode[k].name,
			row_of(block[k]), bytes_read(block[k]),
			bench_median((size_t)runs, seconds[k]));
		block_drop(block[k]);
	}
	tokens_free(&t);
	free(x), free(y), free(workspace.memory);
	config_free(&c);
}

/* ---- the whole block ---- */

static const struct way whole[] = {
	{ "f16", F16, INPUT_AS_IS, false, false }, { "w4", W4, INPUT_AS_IS, false, false },
	{ "w4a8-token", W4A8, INPUT_DYNAMIC_TOKEN, false, false },
	{ "w4a8-msq-aifs", W4A8, INPUT_STATIC_MODALITY, true, false },
};
static const size_t sides[] = { 280, 560, 1120, 1680 };
enum { WHOLE = sizeof whole / sizeof *whole, SIDES = sizeof sides / sizeof *sides };

static size_t visual_of(size_t side)
{
	return (side / PATCH) * (side / PATCH);
}

static double forward(struct block *b, struct work *work, const struct way *w, size_t visual, float *x)
{
	const size_t hidden = b->stack->hidden;
	struct tokens t = tokens_make(visual, QUESTION, 1, w->first);
	struct sequence sequence;
	const struct batch batch = batch_of(&t, &sequence, w);
	double start;

	for (size_t i = 0; i < t.rows * hidden; i++)
		x[i] = unit(i);
	start = bench_now();
	block_forward(b, work, &batch, (float (*)[hidden])x, NULL, NULL);
	start = bench_now() - start;
	tokens_free(&t);
	return start;
}

static void run_block(void)
{
	struct config c = config_parse("modality", model);
	const size_t max = visual_of(sides[SIDES - 1]) + QUESTION;
	struct work work = work_make(config_last(&c), max, PIECE, max);
	float *x = xalloc(max * config_last(&c)->hidden, sizeof *x);
	double seconds[SIDES][WHOLE][RUNS], prepares[WHOLE][RUNS];
	struct block *block[WHOLE];
	size_t stored;

	for (int k = 0; k < WHOLE; k++) {
		block[k] = block_make(&c, &weights[whole[k].weights], false, &stored);
		block_set(block[k], whole[k].mode);
	}
	for (int r = 0; r < runs; r++)
		for (int k = 0; k < WHOLE; k++) {
			prepares[k][r] = -bench_now();
			block_prepare(block[k]);
			prepares[k][r] += bench_now();
		}
	for (int r = 0; r < runs; r++)
		for (size_t i = 0; i < SIDES; i++)
			for (int k = 0; k < WHOLE; k++) {
				if (!i)		/* warm-up of pages and clocks */
					forward(block[k], &work, &whole[k], visual_of(sides[0]), x);
				seconds[i][k][r] = forward(block[k], &work, &whole[k],
					visual_of(sides[i]), x);
			}
	printf("side\tvisual\trows\twhat\tprepare_seconds\tseconds\n");
	for (size_t i = 0; i < SIDES; i++)
		for (int k = 0; k < WHOLE; k++)
			printf("%zu\t%zu\t%zu\t%s\t%.5g\t%.5g\n", sides[i], visual_of(sides[i]),
				visual_of(sides[i]) + QUESTION, whole[k].name,
				bench_median((size_t)runs, prepares[k]),
				bench_median((size_t)runs, seconds[i][k]));
	for (int k = 0; k < WHOLE; k++)
		block_drop(block[k]);
	work_free(&work), config_free(&c);
	free(x);
}

/* Peak memory of this process since the last reset. */
static size_t peak_bytes(bool reset)
{
	FILE *f = fopen(reset ? "/proc/self/clear_refs" : "/proc/self/status", reset ? "w" : "r");
	char line[256];
	size_t kilobytes = 0;

	if (!f || (reset && (fputs("5", f) < 0 || fflush(f))))
		die("/proc/self: has no peak memory of this process");
	while (!reset && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %zu", &kilobytes) != 1)
		;
	fclose(f);
	return kilobytes << 10;
}

static void run_memory(void)
{
	struct config c = config_parse("modality", model);
	const size_t visual = visual_of(sides[SIDES - 2]), rows = visual + QUESTION;

	printf("what\tstored\tprepared\tpeak\n");
	for (int k = 0; k < WHOLE; k++) {
		struct work work = work_make(config_last(&c), rows, PIECE, rows);
		float *x = xalloc(rows * config_last(&c)->hidden, sizeof *x);
		size_t stored, prepared;
		struct block *b;

		peak_bytes(true);
		b = block_make(&c, &weights[whole[k].weights], false, &stored);
		block_set(b, whole[k].mode);
		prepared = block_prepare(b);
		forward(b, &work, &whole[k], visual, x);
		printf("%s\t%zu\t%zu\t%zu\n", whole[k].name, stored, prepared, peak_bytes(false));
		block_drop(b);
		work_free(&work);
		free(x);
	}
	config_free(&c);
}

int main(int argc, char *argv[])
{
	static const struct section parts[] = {
		{ "layers", run_layers }, { "decode", run_decode }, { "block", run_block },
		{ "memory", run_memory },
	};

	return bench_main(argc, argv, "modality", sizeof parts / sizeof *parts, parts);
}
