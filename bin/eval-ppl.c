/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * eval-ppl -- measure perplexity and KL divergence
 *
 * Runs the model over windows of tokens, block by block as it streams in, and prints over all targets
 *	nll = mean of -log p(target),	ppl = exp(nll)
 *	nll_se = √((mean nll² - mean² nll) / (n - 1))
 *	bits_per_byte = Σ nll / (ln 2 · bytes of the targets)
 * With an earlier record, also the mean difference by target and its standard errors. With a format of
 * keys and values, also kv_bits, the bits per number (forward/cache.h). With a reference model, which
 * streams in parallel, also the divergence of the two (eval/divergence.h).
 */
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "device/device_open.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "eval/record.h"
#include "forward/cache.h"
#include "forward/run.h"
#include "io/file.h"
#include "io/part.h"
#include "model/calibrated.h"
#include "model/setting.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "eval-ppl",
	.brief = "measure perplexity and KL divergence",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Runs the model over windows of tokens. Prints the mean negative log-likelihood of "
		"the targets in nats, its standard error and the perplexity, and bits per byte if "
		"the length of the text is known. --reference also prints KL(reference || model), "
		"top-token agreement and the change of the target's probability. -o stores the "
		"likelihood of every target.",
	.examples = "  eval-ppl --tokens test.h5 --ctx 256 --convention bos model.h5 -o plain.h5\n"
		"  dpq-run -q --compensate none model.h5 |\n"
		"    eval-ppl --tokens test.h5 --ctx 256 --convention bos --paired plain.h5\n"
		"  dpq-run -q --compensate none model.h5 |\n"
		"    eval-ppl --tokens test.h5 --ctx 256 --convention bos --reference model.h5",
};

/* Values of the options. */
struct settings {
	const char *tokens, *paired, *reference, *device;
	struct windows_options windows;
	size_t memory;
	enum compute_type compute_type;
	struct cache_format kv;
	bool json, force_tokens, as_reference;
};
enum { METRICS = PERPLEXITY_METRICS + 1 + DIVERGENCE_METRICS + RECORD_METRICS };

/* before: an earlier record, or NULL. d: NULL without --reference. */
static void report(const struct settings *set, struct output *out, const struct windows *w,
	const double nll[w->targets], double kv_bits, const struct part *before, const struct divergence *d)
{
	struct perplexity p = perplexity_of(w->targets, nll, w->bytes);
	struct metric metric[METRICS];
	size_t numbers = perplexity_metrics(&p, metric);

	if (kv_bits > 0)
		metric[numbers++] = (struct metric){ "kv_bits", kv_bits, 6 };
	if (d) {
		numbers += divergence_metrics(d, w, metric + numbers);
		divergence_write(out, d);
	}
	if (before)
		numbers += record_metrics(before, w, nll, d, metric + numbers);
	file_check();
	report_metrics(numbers, metric, set->json);
	record_write(out, numbers, metric, w, nll);
}

/* Runs and closes the models, and reports. reference: NULL without --reference. */
static void measure(const struct settings *set, struct run *model, struct run *reference,
	struct output *out, const struct windows *w, const struct part *before)
{
	const double kv_bits = cache_bits(model->config, &model->execution.cache);
	double *nll = xalloc(w->targets, sizeof *nll);
	struct divergence d = { 0 };

	if (set->as_reference)
		run_store(model, out, w);
	if (reference)
		d = divergence_measure(model, reference, w, set->memory, nll);
	else
		run_score(model, w, set->memory, nll, NULL);
	report(set, out, w, nll, kv_bits, before, reference ? &d : NULL);
	divergence_free(&d);
	free(nll);
}

static void check_files(const struct settings *set, const char *output)
{
	if (!set->tokens)
		misuse("--tokens FILE is expected");
	if (set->as_reference && !output)
		misuse("--as-reference: -o FILE is expected");
}

int main(int argc, char *argv[])
{
	struct settings set = { 0 };
	const struct option_row rows[] = {
		{ 't', "tokens", OPTION_FILE(&set.tokens), "FILE", "token ids of the text" },
		WINDOWS_OPTIONS(&set.windows),
		{ 0, "paired", OPTION_FILE(&set.paired), "FILE",
			"compare with FILE of an earlier -o" },
		{ 'r', "reference", OPTION_FILE(&set.reference), "MODEL",
			"measure the divergence from MODEL", .alias = "against" },
		{ 0, "as-reference", OPTION_BOOL(&set.as_reference), NULL,
			"also store in -o what --reference reads" },
		OPTION_COMPUTE_TYPE(&set.compute_type),
		OPTION_DEVICE(&set.device),
		OPTION_KV_FORMAT(&set.kv),
		OPTION_FORCE_TOKENS(&set.force_tokens),
		OPTION_MEMORY(&set.memory),
		{ 0, "json", OPTION_BOOL(&set.json), NULL, "print one JSON object", .neutral = true },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();
	check_files(&set, c.output);
	option_without_effect(1, &(struct option_without_effect)
		STRIDE_WITHOUT_EFFECT(set.windows.convention));

	const struct device *device = device_open(set.device);
	struct part *file = part_open(set.tokens, "tokens");
	struct run *model = run_open(c.operand[0], set.compute_type, &set.kv);
	struct run *reference = !set.reference ? NULL : run_open_reference(set.reference, set.compute_type);
	char *used, *settings = xformat("--compute-type %s", compute_types[set.compute_type]);
	struct windows windows = windows_scored(windows_read(file, model->part, model->config,
		&set.windows, set.force_tokens, &used));

	calibrated_warn(model->part, file, used);

	struct part *before = !set.paired ? NULL :
		record_open_earlier(set.paired, &windows, used, settings, set.reference);
	struct output *out = record_open(c.output, model->part);

	record_input(out, "tokens", file);
	record_tokens(out, used);
	record_settings(out, settings);
	if (before)
		record_input(out, "paired", before);
	model->execution.device = device;
	if (reference) {
		reference->execution.device = device;
		run_match(model, reference);
		record_input(out, "reference", reference->part);
	}
	measure(&set, model, reference, out, &windows, before);
	part_close(file);
	if (before)
		part_close(before);
	windows_free(&windows);
	free(used), free(settings);
	return 0;
}
