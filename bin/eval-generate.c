/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * eval-generate -- generate answers to questions, and measure how many are right
 *
 * The model is read once into memory. Answers are generated greedily, several at once, each with its slot of
 * a KV cache (forward/generate.h). Two filters extract an answer from each text, which is compared with the
 * right one (eval/match.h). With an earlier record, also paired differences by question.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/history.h"
#include "base/option.h"
#include "base/progress.h"
#include "eval/answers.h"
#include "eval/mark.h"
#include "eval/record.h"
#include "forward/forward.h"
#include "forward/generate.h"
#include "model/setting.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "eval-generate",
	.brief = "measure how many generated answers are right",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Generates an answer to each question greedily and prints, for each task and for all "
		"questions, the share of right answers by two filters, with standard errors over "
		"questions. A question is a JSON line with the texts task, context and answer; match, one of "
		"exact, gsm8k and gsm8k-cot; and until, an array of texts that end the answer (optional). "
		"-o stores the answers.",
	.examples = "  echo '{\"task\": \"a\", \"context\": \"Once upon a \",' \\\n"
		"    '\"answer\": \"time\", \"match\": \"exact\", \"until\": [\" \"]}' > answers.jsonl\n"
		"  eval-generate --questions answers.jsonl --max 8 model.h5 -o answers.h5\n"
		"  dpq-run -q --compensate none model.h5 -o quantized.h5\n"
		"  eval-generate --questions answers.jsonl --max 8 quantized.h5 \\\n"
		"    --paired answers.h5",
};

/* Values of the options. */
struct settings {
	const char *questions, *paired, *until;
	size_t limit, memory, max, together;
	enum bos bos;
	enum compute_type compute_type;
	struct cache_format kv;
	bool special, json;
};

static struct prompt *encode(const struct settings *set, const struct questions *q, const struct part *model,
	const struct config *c, const struct vocabulary *v, struct prompt_images *images)
{
	const struct encode e = { .v = v, .bos = set->bos, .special = set->special, .model = model,
		.config = c, .images = images, .room = set->max };

	option_without_effect(1, &(struct option_without_effect){ !v->t, "special", "ids are bytes" });
	return questions_encode(q, &e);
}

/* Runs the encoder of images; NULL without images. w must outlive the result. */
static struct forward *see(const struct settings *set, const struct part *model, const struct config *c,
	const struct execution *e, const struct windows *w)
{
	struct forward *f = w->images ? forward_open(c, e, w, set->memory) : NULL;

	if (f)
		forward_features(f, model);
	return f;
}

/* Generates an answer to each question. */
static struct generated *run(const struct settings *set, const struct questions *q, const struct part *model,
	const struct config *c, const struct vocabulary *v, struct answers_until *until)
{
	struct prompt_images images = { 0 };
	struct prompt *prompts = encode(set, q, model, c, v, &images);
	const struct windows seen = { .name = q->name, .images = images.n, .image = images.image,
		.axes = config_last(c)->axes };
	const struct execution execution = { .compute_type = set->compute_type, .rows = PRODUCT_FEW,
		.modalities = images.n ? 2 : 1, .cache = cache_use(c, model, &set->kv) };
	struct forward *f = see(set, model, c, &execution, &seen);
	struct resident resident = resident_open(model, c, &execution);
	struct generated *y = xalloc(q->n, sizeof *y);
	int32_t end[EOS];
	const struct generate g = { .name = part_name(model), .max = set->max, .together = set->together,
		.memory = set->memory, .ends = answers_ends(model, c, end), .end = end, .stop = answers_stop,
		.arg = until, .feature = f ? &f->images->feature : NULL };

	generate(&resident, &g, q->n, prompts, y);
	progress_clear();
	resident_close(&resident);
	if (f)
		forward_close(f);
	prompts_free(q->n, prompts);
	prompt_images_free(&images);
	return y;
}

static void measure(const struct settings *set, const struct questions *q, const struct part *model,
	const char *to)
{
	const struct config *c = config_open(model);
	struct vocabulary v = vocabulary_of(model, c);
	struct answers_until until = { q, &v, set->until };
	struct part *before = set->paired ? answers_open_earlier(set->paired, q) : NULL;
	struct output *out = record_open(to, model);

	if (before)
		record_input(out, "paired", before);

	struct answers answers = answers_of(&until, run(set, q, model, c, &v, &until));
	struct table table = answers_table(&answers, before);

	table_print(&table, set->json);
	answers_write(out, &answers, &table);
	marks_table_free(&table);
	answers_free(&answers);
	if (before)
		part_close(before);
	vocabulary_close(&v);
	config_close(c);
}

int main(int argc, char *argv[])
{
	struct settings set = { 0 };
	const struct option_row rows[] = {
		{ 0, "questions", OPTION_FILE(&set.questions), "FILE", "questions, as JSON lines" },
		{ 0, "limit", OPTION_SIZE(&set.limit), "N", "only the first N questions (default: all)" },
		{ 0, "max", OPTION_SIZE(&set.max), "N", "most tokens of an answer", .default_value = "256",
			.min = 1, .max = 1 << 20 },
		{ 0, "until", OPTION_UTF8(&set.until), "TEXT", "TEXT also ends an answer" },
		{ 0, "bos", OPTION_ENUM(enum bos, &set.bos, bos_names), NULL,
			"whether contexts begin with a BOS", .default_value = "auto" },
		{ 0, "special", OPTION_BOOL(&set.special), NULL,
			"read special tokens (<s>, ...) in questions" },
		{ 0, "paired", OPTION_FILE(&set.paired), "FILE",
			"compare with FILE of an earlier -o" },
		{ 0, "batch", OPTION_SIZE(&set.together), "N", "questions that run together",
			.default_value = "32", .min = 1, .max = 4096, .neutral = true },
		OPTION_COMPUTE_TYPE(&set.compute_type),
		OPTION_KV_FORMAT(&set.kv),
		{ 0, "memory", OPTION_SIZE(&set.memory), "BYTES", "memory of keys and values",
			.default_value = "1G", .neutral = true },
		{ 0, "json", OPTION_BOOL(&set.json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();
	if (!set.questions)
		misuse("--questions FILE is expected");

	struct questions questions = questions_read(set.questions, set.limit, QUESTION_ANSWER);
	struct part *model = part_open(c.operand[0], "model");

	questions.settings = xformat("--bos %s%s --max %zu%s%s%s%s", bos_names[set.bos],
		set.special ? " --special" : "", set.max, set.until ? " --until " : "",
		set.until ? set.until : "", set.compute_type ? " --compute-type " : "",
		set.compute_type ? compute_types[set.compute_type] : "");
	history_note("questions-sha256", questions.digest);
	measure(&set, &questions, model, c.output);
	part_close(model);
	questions_free(&questions);
	return 0;
}
