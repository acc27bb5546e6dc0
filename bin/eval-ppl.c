/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * eval-ppl -- perplexity of a model on a text
 *
 * Runs the model over windows of tokens, block by block as it streams in, and
 * prints over all targets
 *	nll = mean of -log p(target),	ppl = exp(nll)
 *	nll_se = √((mean nll² - mean² nll) / (n - 1))
 *	bits_per_byte = Σ nll / (ln 2 · bytes of the targets)
 * and, paired with an earlier record token by token, the mean difference and its standard error.
 * Conventions of cutting a text: SPEC section 10.
 */
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "base/table.h"
#include "eval/perplexity.h"
#include "eval/record.h"
#include "io/image.h"
#include "model/forward.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "eval-ppl",
	.brief = "perplexity of a model on a text",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Cuts the tokens of a text into windows, runs the model over all of them, and prints the mean negative\n"
		"log-likelihood of the targets in nats, its standard error, the perplexity, and bits a byte where the\n"
		"tokens file knows the length of the text. -o keeps the likelihood of every target.",
	.examples = "  eval-ppl --tokens test.h5 --ctx 256 --convention bos model.h5 -o plain.h5\n"
		"  dpq-run -q --compensate none model.h5 |\n"
		"    eval-ppl --tokens test.h5 --ctx 256 --convention bos --paired plain.h5",
};

/* Everything the command line says. */
static struct {
	const char *tokens, *paired;
	size_t ctx, limit, memory;
	int convention, compute_type;
	bool json;
} set = { .memory = (size_t)512 << 20 };

static const struct option_row rows[] = {
	{ 't', "tokens", OPTION_FILE, &set.tokens, "FILE", "token ids of the text", NULL, NULL, false },
	{ 'c', "ctx", OPTION_SIZE, &set.ctx, "N", "ids a window (default: the model's positions, at most 2048)", NULL, NULL, false },
	{ 0, "convention", OPTION_CHOICE, &set.convention, "NAME", "how the text is cut into windows", windows_conventions, NULL, false },
	{ 0, "limit", OPTION_SIZE, &set.limit, "N", "only the first N ids (0: all)", NULL, NULL, false },
	{ 0, "paired", OPTION_FILE, &set.paired, "FILE", "differences from an earlier record (-o) over the same tokens", NULL, NULL, false },
	{ 0, "compute-type", OPTION_CHOICE, &set.compute_type, "NAME", "arithmetic of the linear products", compute_types, NULL, false },
	{ 0, "memory", OPTION_SIZE, &set.memory, "BYTES", "hidden states beyond this go to a file in $TMPDIR", NULL, NULL, true },
	{ 0, "json", OPTION_BOOL, &set.json, NULL, "print one JSON object", NULL, NULL, true },
	{ 0, NULL, OPTION_END, NULL, NULL, NULL, NULL, NULL, false },
};

int main(int argc, char *argv[])
{
	size_t operands;
	const char **operand = option_parse(argc, argv, &tool, rows, &operands);

	linalg_init();
	if (!set.tokens)
		misuse("--tokens FILE is wanted");

	struct image *file = image_open(set.tokens, "tokens");
	struct input *in = input_open(operand[0], model_layout, "model");
	struct image *image = input_next(in);
	struct config config = config_read(image);
	struct tokens tokens = tokens_read(file, config.vocab, set.limit);
	size_t ctx = windows_ctx(set.ctx, config.positions);
	struct windows windows = windows_cut(image_name(file), &tokens, set.convention, ctx);

	config.compute_type = (enum compute_type)set.compute_type;
	struct forward *run = forward_open(&config, &windows, set.memory);
	struct output *out = record_open(output_path, image, file);
	double *nll = xalloc(windows.targets, sizeof *nll);
	bool scored = false;

	for (; image; image = input_next(in)) {
		if (!forward_part(run, image, NULL))
			continue;
		struct head head = head_read(image, &config, false);

		forward_score(run, &head, nll);
		head_free(&head);
		scored = true;
	}
	if (!scored)
		die("%s: %s: is missing; the model has no head", input_name(in), config.arch->final_norm);
	progress_clear();

	struct perplexity p = perplexity_of(windows.targets, nll, windows.bytes);
	struct answer answer[] = { { "tokens", (double)p.tokens, 0 }, { "nll", p.nll, 9 }, { "nll_se", p.nll_se, 4 },
		{ "ppl", p.ppl, 8 }, { "bits_per_byte", p.bits_per_byte, 8 }, { 0 }, { 0 } };
	size_t numbers = isnan(p.bits_per_byte) ? 4 : 5;

	if (set.paired) {
		struct paired d = record_paired(set.paired, &windows, nll);

		answer[numbers++] = (struct answer){ "paired_delta", d.delta, 6 };
		answer[numbers++] = (struct answer){ "paired_delta_se", d.delta_se, 4 };
	}
	record_write(out, numbers, answer, &windows, nll);
	table_answer(numbers, answer, set.json);
	input_close(in);
	image_close(file);
	forward_close(run);
	windows_free(&windows);
	config_free(&config);
	free(nll);
	return 0;
}
