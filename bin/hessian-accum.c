/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hessian-accum -- what the linear layers of a model are fed, as Hessians
 *
 *	hessian = Σ x xᵀ over calibration tokens, count, absmax = max |x|,
 *	mean_abs = mean |x|
 *
 * of a model run over windows of tokens, or of activations from a file; or the
 * sum of several Hessian files, made by separate jobs with --shard.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "forward/accumulate.h"
#include "forward/calibrate.h"
#include "forward/forward.h"
#include "model/share.h"
#include "num/linalg.h"

static const struct tool tool = {
	.name = "hessian-accum",
	.brief = "Hessians of a model's linear layers over calibration tokens",
	.operands = "[MODEL | ACTIVATIONS | HESSIAN...]",
	.max_operands = SIZE_MAX,
	.about = "Runs a model over windows of token ids and writes <layer>/hessian = sum of x x^T, count, "
		"absmax and mean_abs; layers that share an input share one Hessian. A file of activations, "
		"<layer>/input, is taken as it is. Several Hessian files are summed in the order given.",
	.examples = "  hessian-accum --tokens calib.h5 --ctx 256 model.h5 -o hess.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --shard 1/2 model.h5 -o one.h5\n"
		"  hessian-accum --tokens calib.h5 --ctx 256 --shard 2/2 model.h5 -o two.h5\n"
		"  hessian-accum one.h5 two.h5 -o both.h5",
};

/* What the command line says. */
struct settings {
	const char *tokens;
	struct accumulate_cut cut;
	enum windows_convention convention;
	enum compute_type compute_type;
	bool force_tokens;
	size_t memory, stride;
	struct selection layers;
};

static void of_model(const struct settings *set, struct filter *f)
{
	struct image *file = image_open(set->tokens, "tokens");
	struct config config = config_read(f->image);
	struct tokens tokens = tokens_read(file, f->image, config.vocab, set->force_tokens, set->cut.limit);
	struct windows windows = windows_cut(image_name(file), &tokens, set->convention,
		windows_ctx(set->cut.ctx, config.positions), set->stride);

	if (windows.modalities > 1)
		die("%s: /modality: holds other tokens than text; Hessians by modality are not made yet",
			set->tokens);
	calibrate_check(&config, &set->layers, input_name(f->in));
	config.compute_type = set->compute_type;
	windows_shard(&windows, set->cut.shard);
	struct forward *run = forward_open(&config, &windows, set->memory);

	model_filter(f, calibrate_part, &(struct calibrate){ run, &set->layers, file, &set->cut.shard });
	forward_close(run);
	windows_free(&windows);
	config_free(&config);
	image_close(file);
}

/* Options against the kind of the input. */
static void check(const struct settings *set, const struct image *image)
{
	const bool model = !strcmp(image_kind(image), "model"), sum = !strcmp(image_kind(image), "hessian");

	option_idle(4, (struct option_idle[]){
		{ !model, "convention stride compute-type force-tokens memory", "no model is run" },
		{ sum && set->cut.shard.n == 1, "shard", "1/1 is all" },
		{ sum, "ctx limit", "Hessian files are summed whole" },
		STRIDE_IDLE(set->convention) });
	if (model && !set->tokens)
		misuse("--tokens FILE is expected for a model");
	if (!model && set->tokens)
		misuse("--tokens goes with a model; %s is of kind %s", image_name(image), image_kind(image));
	if (set->cut.shard.n > 1 && sum)
		misuse("--shard goes with a model or activations; Hessian files are summed whole");
	shard_say(&set->cut.shard);
}

int main(int argc, char *argv[])
{
	struct settings set;
	const struct option_row rows[] = {
		{ 't', "tokens", OPTION_FILE(&set.tokens), "FILE", "token ids of the calibration text" },
		OPTION_CTX(&set.cut.ctx),
		OPTION_CONVENTION(&set.convention),
		OPTION_STRIDE(&set.stride),
		OPTION_LIMIT(&set.cut.limit),
		OPTION_SHARD(&set.cut.shard),
		OPTION_COMPUTE_TYPE(&set.compute_type),
		OPTION_FORCE_TOKENS(&set.force_tokens),
		OPTION_MEMORY(&set.memory),
		OPTION_LAYERS(&set.layers),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);
	struct filter *file = xalloc(c.operands, sizeof *file);

	linalg_init();
	for (size_t i = 0; i < c.operands; i++)
		file[i] = filter_open(c.operand[i],
			c.operands > 1 ? "hessian" : "model|activations|hessian", NULL, NULL);
	if (!strcmp(image_kind(file->image), "hessian"))
		share_sort(c.operands, file);
	check(&set, file->image);
	file->out = output_open(c.output, "hessian");
	if (!strcmp(image_kind(file->image), "model"))
		of_model(&set, file);
	else {
		set.cut.ctx = windows_ctx(set.cut.ctx, 0);
		accumulate_files(c.operands, file, &set.layers, &set.cut);
	}
	for (size_t i = 0; i < c.operands; i++)
		filter_close(&file[i]);
	free(file);
	selection_free(&set.layers);
	return 0;
}
