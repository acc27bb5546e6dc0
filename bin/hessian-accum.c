/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian-accum -- what the linear layers of a model are fed, as Hessians
 *
 *	hessian = Σ x xᵀ over calibration tokens, count, absmax = max |x|,
 *	mean_abs = mean |x|
 *
 * of a model run over windows of tokens, or of activations from a file; or the
 * sum of several Hessian files, made by separate jobs with --shard. SPEC 4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"
#include "base/option.h"
#include "base/progress.h"
#include "io/image.h"
#include "forward/calibrate.h"
#include "forward/forward.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "hessian-accum",
	.brief = "Hessians of a model's linear layers over calibration tokens",
	.operands = "[MODEL | ACTIVATIONS | HESSIAN...]",
	.max_operands = SIZE_MAX,
	.about = "Runs a model over windows of token ids and writes <layer>/hessian = sum of x x^T, count, absmax and mean_abs; "
		"layers that share an input share one Hessian. A file of activations, <layer>/input, is taken as it is. Several "
		"Hessian files are summed in the order given.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --shard 1/2 model.h5 -o one.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --shard 2/2 model.h5 -o two.h5\n"
		"  hessian-accum one.h5 two.h5 -o both.h5",
};

static const char *tokens_path, *shard_text = "1/1";
static size_t ctx, limit, memory = (size_t)512 << 20, shard, shards;
static int convention, compute_type;
static bool force_tokens;
static struct selection layers;
enum { SHARDS = 1000000 };

static const struct option_row rows[] = {
	{ 't', "tokens", OPTION_FILE, &tokens_path, "FILE", .help = "token ids of the calibration text" },
	OPTION_CTX(&ctx),
	OPTION_CONVENTION(&convention),
	OPTION_LIMIT(&limit),
	{ 0, "shard", OPTION_TEXT, &shard_text, "I/N", .help = "only windows I, I + N, ..., counted from 1" },
	OPTION_COMPUTE_TYPE(&compute_type),
	OPTION_FORCE_TOKENS(&force_tokens),
	OPTION_MEMORY(&memory),
	OPTION_LAYERS(&layers),
	{ .type = OPTION_END },
};

static void of_model(struct output *out, struct input *in, struct image *image)
{
	struct image *file = image_open(tokens_path, "tokens");
	struct config config = config_read(image);
	struct tokens tokens = tokens_read(file, image, config.vocab, force_tokens, limit);
	struct windows windows = windows_cut(image_name(file), &tokens, convention, windows_ctx(ctx, config.positions));

	calibrate_check(&config, &layers, input_name(in));
	config.compute_type = (enum compute_type)compute_type;
	windows_shard(&windows, shard, shards);
	struct forward *run = forward_open(&config, &windows, memory);

	for (; image; image = input_next(in)) {
		output_begin(out, image);
		if (!image_part(image)) {
			output_copy(out, image, "/config", NULL);
			output_history(out, "tokens", file);
		}
		calibrate_part(out, run, image, &layers);
		output_end(out);
	}
	forward_close(run);
	windows_free(&windows);
	config_free(&config);
	image_close(file);
}

int main(int argc, char *argv[])
{
	size_t n;
	const char **operand = option_parse(argc, argv, &tool, rows, &n);
	const char *end = number_size(shard_text, &shard);

	linalg_init();
	end = end && *end == '/' ? number_size(end + 1, &shards) : NULL;
	if (!end || *end || !shard || shard > shards || shards > SHARDS)
		misuse("--shard: '%s' is not I/N with 1 <= I <= N <= %d", shard_text, SHARDS);

	struct input **in = xalloc(n, sizeof(struct input *));
	struct image **image = xalloc(n, sizeof(struct image *));

	for (size_t i = 0; i < n; i++) {
		in[i] = input_open(operand[i], model_layout, n > 1 ? "hessian" : "model|activations|hessian");
		image[i] = input_next(in[i]);
	}
	const bool model = !strcmp(image_kind(image[0]), "model"), sum = !strcmp(image_kind(image[0]), "hessian");

	option_idle(3, (struct option_idle[]){ { !model, "convention compute-type force-tokens memory", "no model is run" },
		{ sum && shards == 1, "shard", "1/1 is all" }, { sum, "ctx limit", "Hessian files are summed whole" } });
	if (model && !tokens_path)
		misuse("--tokens FILE is wanted for a model");
	if (!model && tokens_path)
		misuse("--tokens goes with a model; %s is of kind %s", input_name(in[0]), image_kind(image[0]));
	if (shards > 1 && sum)
		misuse("--shard goes with a model or activations; Hessian files are summed whole");

	struct output *out = output_open(output_path, "hessian");

	if (model)
		of_model(out, in[0], image[0]);
	else
		calibrate_files(out, n, in, image, &layers,
			&(struct calibrate_cut){ windows_ctx(ctx, 0), limit, shard, shards });
	progress_clear();
	output_close(out);
	for (size_t i = 0; i < n; i++)
		input_close(in[i]);
	free(in);
	free(image);
	return 0;
}
