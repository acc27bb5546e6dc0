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
#include "base/option.h"
#include "base/progress.h"
#include "io/image.h"
#include "model/calibrate.h"
#include "model/forward.h"
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

static const struct option_row rows[] = {
	{ 't', "tokens", OPTION_FILE, &tokens_path, "FILE", "token ids of the calibration text", NULL, NULL, false },
	{ 'c', "ctx", OPTION_SIZE, &ctx, "N", "ids a window (default: the model's positions, at most 2048)", NULL, NULL, false },
	{ 0, "convention", OPTION_CHOICE, &convention, "NAME", "how the text is cut into windows", windows_conventions, NULL, false },
	{ 0, "limit", OPTION_SIZE, &limit, "N", "only the first N ids (0: all)", NULL, NULL, false },
	{ 0, "shard", OPTION_TEXT, &shard_text, "I/N", "only windows I, I + N, ..., counted from 1", NULL, NULL, false },
	{ 0, "compute-type", OPTION_CHOICE, &compute_type, "NAME", "arithmetic of the linear products", compute_types, NULL, false },
	{ 0, "memory", OPTION_SIZE, &memory, "BYTES", "hidden states beyond this go to a file in $TMPDIR", NULL, NULL, true },
	OPTION_LAYERS,
	{ 0, NULL, OPTION_END, NULL, NULL, NULL, NULL, NULL, false },
};

static void of_model(struct output *out, struct input *in, struct image *image)
{
	struct image *file = image_open(tokens_path, "tokens");
	struct config config = config_read(image);
	struct tokens tokens = tokens_read(file, config.vocab, limit);
	struct windows windows = windows_cut(image_name(file), &tokens, convention, windows_ctx(ctx, config.positions));

	config.compute_type = (enum compute_type)compute_type;
	windows_shard(&windows, shard, shards);
	struct forward *run = forward_open(&config, &windows, memory);

	for (; image; image = input_next(in)) {
		output_begin(out, image);
		if (!image_part(image)) {
			output_copy(out, image, "/config", NULL);
			output_history(out, "tokens", file);
		}
		calibrate_part(out, run, image);
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
	char end;

	linalg_init();
	if (sscanf(shard_text, "%zu/%zu%c", &shard, &shards, &end) != 2 || strchr(shard_text, '-') || !shard || shard > shards)
		misuse("--shard: '%s' is not I/N with 1 <= I <= N", shard_text);

	struct input **in = xalloc(n, sizeof(struct input *));
	struct image **image = xalloc(n, sizeof(struct image *));

	for (size_t i = 0; i < n; i++) {
		in[i] = input_open(operand[i], model_layout, n > 1 ? "hessian" : "model|activations|hessian");
		image[i] = input_next(in[i]);
	}
	bool model = !strcmp(image_kind(image[0]), "model");

	if (model && !tokens_path)
		misuse("--tokens FILE is wanted for a model");
	if (!model && tokens_path)
		misuse("--tokens goes with a model; %s is of kind %s", input_name(in[0]), image_kind(image[0]));
	if (!model && compute_type)
		misuse("--compute-type goes with a model; activations are taken as they are");
	if (shards > 1 && !strcmp(image_kind(image[0]), "hessian"))
		misuse("--shard goes with a model or activations; Hessian files are summed whole");

	struct output *out = output_open(output_path, "hessian");

	if (model)
		of_model(out, in[0], image[0]);
	else
		calibrate_files(out, n, in, image, &(struct calibrate_cut){ windows_ctx(ctx, 0), limit, shard, shards });
	progress_clear();
	output_close(out);
	for (size_t i = 0; i < n; i++)
		input_close(in[i]);
	free(in);
	free(image);
	return 0;
}
