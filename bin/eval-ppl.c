/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * eval-ppl -- perplexity of a model on a text
 *
 * Runs the model over windows of tokens, block by block as it streams in, and
 * prints over all targets
 *	nll = mean of -log p(target),	ppl = exp(nll)
 *	nll_se = √((mean nll² - mean² nll) / (n - 1))
 *	bits_per_byte = Σ nll / (ln 2 · bytes of the targets)
 * Conventions of cutting a text: SPEC section 10.
 */
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "base/progress.h"
#include "base/table.h"
#include "eval/perplexity.h"
#include "io/image.h"
#include "model/forward.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "eval-ppl",
	.brief = "perplexity of a model on a text",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Cuts the token ids of a text into windows, runs the model over all of them, and prints the mean negative "
		"log-likelihood of the targets in nats, its standard error, the perplexity, and the bits a byte where the "
		"tokens file knows how long each token's text is. -o writes the likelihood of every target beside them.",
	.examples = "  eval-ppl --tokens test.h5 model.h5\n"
		"  dpq-run --compensate none model.h5 | eval-ppl --tokens test.h5 --ctx 512 --convention bos",
};

/* Everything the command line says. */
static struct {
	const char *tokens;
	size_t ctx, limit, memory;
	int convention;
	bool json;
} set = { .memory = (size_t)512 << 20 };

static const struct option_row rows[] = {
	{ 't', "tokens", OPTION_FILE, &set.tokens, "FILE", "token ids of the text", NULL, NULL, false },
	{ 'c', "ctx", OPTION_SIZE, &set.ctx, "N", "ids a window (default: the model's positions, at most 2048)", NULL, NULL, false },
	{ 0, "convention", OPTION_CHOICE, &set.convention, "NAME", "how the text is cut into windows", windows_conventions, NULL, false },
	{ 0, "limit", OPTION_SIZE, &set.limit, "N", "only the first N ids (0: all)", NULL, NULL, false },
	{ 0, "memory", OPTION_SIZE, &set.memory, "BYTES", "hidden states beyond this go to a file in $TMPDIR", NULL, NULL, true },
	{ 0, "json", OPTION_BOOL, &set.json, NULL, "print one JSON object", NULL, NULL, true },
	{ 0, NULL, OPTION_END, NULL, NULL, NULL, NULL, NULL, false },
};

enum { NUMBERS = 5 };

/* Begun while the first part of the model, which has its history, is at hand. */
static struct output *begin_record(const struct image *model, const struct image *tokens)
{
	struct output *out = output_open(output_path, "result");

	output_start(out, 0, 1);
	output_history(out, "model", model);
	output_history(out, "tokens", tokens);
	return out;
}

static void write_record(struct output *out, size_t n, const struct answer answer[n], size_t targets, double nll[targets])
{
	output_write(out, "/nll_of_target", tensor_1d(TENSOR_F64, nll, targets));
	for (size_t i = 0; i < n; i++) {
		char *path = xformat("/%s", answer[i].name);
		double value = answer[i].value;

		output_write(out, path, tensor_1d(TENSOR_F64, &value, 1));
		free(path);
	}
	output_end(out);
	output_close(out);
}

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
	struct forward *run = forward_open(&config, &windows, set.memory);
	struct output *out = output_path ? begin_record(image, file) : NULL;
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
	const struct answer answer[NUMBERS] = { { "tokens", (double)p.tokens, 0 }, { "nll", p.nll, 9 },
		{ "nll_se", p.nll_se, 4 }, { "ppl", p.ppl, 8 }, { "bits_per_byte", p.bits_per_byte, 8 } };
	size_t numbers = isnan(p.bits_per_byte) ? NUMBERS - 1 : NUMBERS;

	if (out)
		write_record(out, numbers, answer, windows.targets, nll);
	table_answer(numbers, answer, set.json);
	input_close(in);
	image_close(file);
	forward_close(run);
	windows_free(&windows);
	config_free(&config);
	free(nll);
	return 0;
}
