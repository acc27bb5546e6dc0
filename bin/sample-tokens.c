/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sample-tokens -- sample token ids from a model
 *
 *	p(id) ∝ exp(logit / temperature), BOS and EOS excluded
 *
 * Sequences have --ctx ids and begin with BOS. The ids after BOS are written, one sequence after the
 * other, so that eval-ppl --convention bos with the same --ctx reads each sequence as it was sampled. The
 * result serves as calibration or test data if there is no corpus.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "forward/cache.h"
#include "forward/execution.h"
#include "forward/sample.h"
#include "forward/windows.h"
#include "io/part.h"
#include "model/setting.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "sample-tokens",
	.brief = "sample token ids from a model",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Samples sequences of ids that begin with BOS, --ctx - 1 ids each, until there are "
		"--length ids. A random number depends on its place in the result, not on the order "
		"of the work.",
	.examples = "  sample-tokens --length 2040 --ctx 256 --seed 1 model.h5 -o calib.h5\n"
		"  sample-tokens --length 2040 --ctx 256 --seed 2 model.h5 -o test.h5",
};

static void write_tokens(struct output *out, const struct part *model, const struct config *c, size_t n,
	int32_t id[n])
{
	enum { BYTES = 256 };
	char *tokenizer = part_has(model, "/tokenizer") ? part_string(model, "/tokenizer") : NULL;
	uint16_t *one = xalloc(n, sizeof *one);

	for (size_t i = 0; i < n; i++)
		one[i] = 1;
	output_start(out, 0, 1);
	output_history(out, "model", model);
	output_write(out, "/tokens", tensor_1d(TENSOR_I32, id, n));
	tokens_write_digest(out, n, id);
	tokens_describe(out, tokenizer, c->bos, true, c->vocab);
	if (!tokenizer && c->vocab == BYTES)
		output_write(out, "/bytes", tensor_1d(TENSOR_U16, one, n));
	output_end(out);
	free(one);
	free(tokenizer);
}

int main(int argc, char *argv[])
{
	size_t n, ctx, seed;
	double temperature;
	enum compute_type compute_type;
	struct cache_format kv = { 0 };
	const struct option_row rows[] = {
		{ 'n', "length", OPTION_SIZE(&n), "N", "number of ids to sample", .default_value = "16384",
			.min = 1, .max = 1 << 30, .alias = "tokens" },
		{ 0, "temperature", OPTION_REAL(&temperature), "T",
			"divisor of logits; 0: greedy", .default_value = "1", .max = 1e6 },
		{ 'c', "ctx", OPTION_SIZE(&ctx), "N",
			"ids a sequence (default: at most 2048)",
			.min = 2, .max = WINDOWS_LONGEST },
		OPTION_COMPUTE_TYPE(&compute_type),
		OPTION_KV_FORMAT(&kv),
		OPTION_SEED(&seed),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	linalg_init();
	option_without_effect(1, &(struct option_without_effect){
		!(temperature > 0), "seed", "--temperature 0" });

	struct part *part = part_open(c.operand[0], "model");
	const struct config config = config_read(part);
	struct output *out = output_open(c.output, "tokens");
	int32_t *id = xalloc(n, sizeof *id);
	const struct execution execution = { .compute_type = compute_type,
		.rows = 1,	/* one token of each sequence */
		.cache = cache_use(&config, part, &kv) };

	if (config.bos < 0)
		die("%s: /config: has no bos_token_id, with which a sequence begins", part_name(part));
	sample_tokens(part, &config, &execution, windows_ctx(ctx, config.positions), temperature, seed, n,
		id);
	progress_clear();
	write_tokens(out, part, &config, n, id);
	output_close(out);
	part_close(part);
	config_free(&config);
	free(id);
	return 0;
}
