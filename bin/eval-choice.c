/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * eval-choice -- measure the accuracy on multiple-choice questions
 *
 * Runs the model over questions with their choices, block by block as it streams in. A context is computed
 * once for its choices (forward/prompt.h). acc is the share of questions for which the gold choice
 * has the largest sum of log p over its tokens, acc_norm the same for that sum over the choice's characters
 * (eval/choice.h). With an earlier record, also paired differences by question. With a reference model,
 * which streams in parallel, also the divergence of the two.
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/history.h"
#include "base/option.h"
#include "eval/choice.h"
#include "eval/divergence.h"
#include "eval/mark.h"
#include "eval/question.h"
#include "eval/record.h"
#include "forward/run.h"
#include "model/setting.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "eval-choice",
	.brief = "measure the accuracy on multiple-choice questions",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Prints, for each task and for all questions, the share of questions for which the "
		"gold choice has the largest log-likelihood (acc), or the largest per character "
		"(acc_norm) or per byte (acc_bytes), with standard errors over questions. A single "
		"choice, as in LAMBADA, is right if greedy decoding gives it. A question is a JSON line "
		"with task, context, choices and gold. -o stores the likelihood of every choice.",
	.examples = "  echo '{\"task\": \"a\", \"context\": \"Once upon a \",' \\\n"
		"    '\"choices\": [\"time\", \"tree\"], \"gold\": 0}' > questions.jsonl\n"
		"  eval-choice --questions questions.jsonl model.h5 -o answers.h5\n"
		"  dpq-run -q --compensate none model.h5 |\n"
		"    eval-choice --questions questions.jsonl --paired answers.h5 \\\n"
		"      --reference model.h5",
};

/* Values of the options. */
struct settings {
	const char *questions, *paired, *reference, *until;
	size_t limit, memory;
	enum bos bos;
	enum compute_type compute_type;
	struct cache_format kv;
	bool greedy, special, aifs, json;
};

/* Converts the questions into ids of the model, and collects their images. */
static struct prompt *encode(const struct settings *set, const struct questions *q, const struct run *model,
	struct prompt_images *images)
{
	struct vocabulary v = vocabulary_of(model->part, model->config);
	const struct encode e = { .v = &v, .bos = set->bos, .special = set->special,
		.until = set->greedy ? set->until : NULL, .model = model->part,
		.config = model->config, .images = images, .aifs = set->aifs };
	struct prompt *p;

	option_without_effect(1, &(struct option_without_effect){ !v.t, "special", "ids are bytes" });
	p = questions_encode(q, &e);
	option_without_effect(1, &(struct option_without_effect){
		!images->n, "aifs", "no question has images" });
	vocabulary_close(&v);
	return p;
}

static void warn_long(const struct questions *q, const struct prompt p[q->contexts], const struct windows *w,
	size_t positions)
{
	const size_t cut = prompts_cut(q->contexts, p, positions);

	if (cut)
		warn("%s: %zu of %zu contexts are too long for the %zu positions of the model and lose their "
			"first tokens", q->name, cut, q->contexts, positions);
	if (positions && w->longest > positions)
		warn("%s: the longest question with images has %zu tokens, the model only %zu positions; "
			"likelihoods beyond them are not reliable", w->name, w->longest, positions);
}

/* Closes the models. */
static void measure(const struct settings *set, const struct questions *q, struct run *model,
	struct run *reference, const char *to)
{
	struct prompt_images images = { 0 };
	struct prompt *prompts = encode(set, q, model, &images);
	const size_t positions = model->config->positions;
	struct windows windows = prompt_windows(q->name, q->contexts, prompts, &images, AXES, positions);
	struct part *before = set->paired ? choices_open_earlier(set->paired, q) : NULL;
	struct output *out = record_open(to, model->part);
	double *nll = xalloc(windows.targets, sizeof *nll);

	warn_long(q, prompts, &windows, positions);
	if (before)
		record_input(out, "paired", before);
	if (reference) {
		run_match(model, reference);
		record_input(out, "reference", reference->part);
	}

	struct divergence d = { 0 };
	uint8_t *likeliest = reference ? NULL : xalloc(windows.targets, sizeof *likeliest);

	if (reference)
		d = divergence_measure(model, reference, &windows, set->memory, nll);
	else
		run_score(model, &windows, set->memory, nll, likeliest);
	struct choices choices = choices_of(q, prompts, &windows, nll, reference ? d.likeliest : likeliest,
		reference ? &d : NULL, set->greedy);
	struct table table = choices_table(&choices, before);

	table_print(&table, set->json);
	choices_write(out, &choices, &table);
	marks_table_free(&table);
	choices_free(&choices);
	divergence_free(&d);
	if (before)
		part_close(before);
	windows_free(&windows);
	prompts_free(q->contexts, prompts);
	prompt_images_free(&images);
	free(likeliest);
	free(nll);
}

int main(int argc, char *argv[])
{
	struct settings set = { 0 };
	const struct option_row rows[] = {
		{ 0, "questions", OPTION_FILE(&set.questions), "FILE", "questions, as JSON lines" },
		{ 0, "limit", OPTION_SIZE(&set.limit), "N", "only the first N questions (default: all)" },
		{ 0, "bos", OPTION_ENUM(enum bos, &set.bos, bos_names), NULL,
			"whether contexts begin with a BOS", .default_value = "auto" },
		{ 0, "special", OPTION_BOOL(&set.special), NULL,
			"read special tokens (<s>, ...) in questions" },
		{ 0, "aifs", OPTION_BOOL(&set.aifs), NULL,
			"visual tokens first (no result changes)" },
		{ 0, "greedy", OPTION_BOOL(&set.greedy), NULL,
			"also test whether greedy decoding is right" },
		{ 0, "until", OPTION_UTF8(&set.until), "TEXT", "text that must follow the greedy choice" },
		{ 0, "paired", OPTION_FILE(&set.paired), "FILE",
			"compare with FILE of an earlier -o" },
		{ 'r', "reference", OPTION_FILE(&set.reference), "MODEL",
			"measure the divergence from MODEL" },
		OPTION_COMPUTE_TYPE(&set.compute_type),
		OPTION_KV_FORMAT(&set.kv),
		OPTION_MEMORY(&set.memory),
		{ 0, "json", OPTION_BOOL(&set.json), NULL, "print JSON", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();
	if (!set.questions)
		misuse("--questions FILE is expected");
	option_without_effect(1, &(struct option_without_effect){ !set.greedy, "until", "no --greedy" });

	struct questions questions = questions_read(set.questions, set.limit, QUESTION_CHOICES);
	struct run *model = run_open(c.operand[0], set.compute_type, &set.kv);
	struct run *reference = set.reference ?
		run_open(set.reference, set.compute_type, &(struct cache_format){ 0 }) : NULL;

	questions.settings = xformat("--bos %s%s%s%s%s%s", bos_names[set.bos],
		set.special ? " --special" : "", set.greedy && set.until ? " --until " : "",
		set.greedy && set.until ? set.until : "", set.compute_type ? " --compute-type " : "",
		set.compute_type ? compute_types[set.compute_type] : "");
	history_note("questions-sha256", questions.digest);
	measure(&set, &questions, model, reference, c.output);
	questions_free(&questions);
	return 0;
}
