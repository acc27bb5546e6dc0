/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * exmy-sweep -- the error of number formats against the spread of the weights
 *
 *	error(sigma) = E[(x - x̂)²],  x ~ N(0, sigma²) truncated to [-1, 1],
 * the grid scaled to the same range: exact, from Gaussian partial moments, and by
 * sampling on request; the sigma where each format is at its best, and those
 * where two change order. With a model: the sigma of its channels, layer by
 * layer, and each format's error on the real weights. FPE2M2 figures 3 and 9.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "base/plot.h"
#include "eval/sweep.h"

static const struct tool tool = {
	.name = "exmy-sweep",
	.brief = "the error of number formats against the spread of the weights",
	.operands = "[MODEL]",
	.max_operands = 1,
	.optional = true,
	.about = "Computes the mean squared error of number formats on Gaussian weights of each sigma, all scaled so that the\n"
		"largest weight is 1. With a MODEL (- for standard input) also the sigma of its output channels and the error\n"
		"of each format on them. Writes a file of kind sweep; --tsv prints one of its tables instead.",
	.examples = "  exmy-sweep --formats int5,e1m3,e2m2,e3m1 --tsv\n  exmy-sweep --tsv --table crossover\n"
		"  exmy-sweep --formats int4,e2m1,nf4 --plot errors.svg -o sweep.h5 model.h5",
};

enum { CURVE, BEST, CROSSOVER, LAYER, ERROR };
static const char *const tables[] = { [CURVE] = "curve", [BEST] = "best", [CROSSOVER] = "crossover", [LAYER] = "layer", [ERROR] = "error", NULL };

int main(int argc, char *argv[])
{
	const char *formats = "e1m2,e2m1,e3m0,e1m3,e2m2,e3m1,e4m0,e1m4,e2m3,e3m2,e4m1", *sigmas = "0.02:0.5:0.01", *plot_path = NULL;
	const char *band = "0.12:0.28";
	size_t samples = 0, points, n;
	int table = 0, tie = 0;
	struct selection layers = { 0 };
	bool tsv = false, json = false, has_config = false;
	double low, high;
	const struct option_row rows[] = {
		{ 0, "formats", OPTION_TEXT, &formats, "LIST", .help = "formats, separated by commas" },
		{ 0, "sigma", OPTION_TEXT, &sigmas, "LIST", .help = "LOW:HIGH:STEP, or numbers separated by commas" },
		{ 0, "ties", OPTION_CHOICE, &tie, NULL, .help = "where a weight halfway between two values goes", .choices = format_tie_names },
		{ 0, "monte-carlo", OPTION_SIZE, &samples, "N", .help = "also by sampling N weights for each point", .most = 1 << 30 },
		OPTION_SEED,
		OPTION_LAYERS(&layers),
		{ 0, "tsv", OPTION_BOOL, &tsv, NULL, .help = "print a table instead of writing a file to standard output", .neutral = true },
		{ 0, "json", OPTION_BOOL, &json, NULL, .help = "print the table as JSON", .neutral = true },
		{ 0, "table", OPTION_CHOICE, &table, NULL, .help = "which table is printed", .choices = tables, .neutral = true },
		{ 0, "plot", OPTION_FILE, &plot_path, "FILE", .help = "draw the curves (.svg, .png, .pdf)", .neutral = true },
		{ 0, "band", OPTION_TEXT, &band, "LOW:HIGH", .help = "sigmas of models: shaded in the plot, channels counted" },
		{ .type = OPTION_END },
	};
	const char **operand = option_parse(argc, argv, &tool, rows, &n);
	const bool model = n > 0, print = tsv || json, of_model = table == LAYER || table == ERROR;

	option_idle(5, (struct option_idle[]){ { !model, "layers", "no MODEL" }, { !samples, "seed", "no --monte-carlo" },
		{ !model && !plot_path, "band", "neither MODEL nor --plot" }, { !print, "table", "neither --tsv nor --json" },
		{ json, "tsv", "--json" } });
	if (print && of_model && !model)
		misuse("--table %s is of a MODEL, and none is named", tables[table]);
	if (plot_path && output_path && !strcmp(plot_path, output_path))
		misuse("--plot and -o are both %s", plot_path);
	sweep_band(band, &low, &high);
	struct sweep s = sweep_begin(formats, tie, low, high, &layers);
	double *sigma = sweep_sigmas(sigmas, &points);
	struct input *in = model ? input_open(operand[0], model_layout, "model") : NULL;
	struct image *image = in ? input_next(in) : NULL;
	struct config config = { 0 };

	if (image && (has_config = image_has(image, "/config")))
		config = config_read(image);
	if (print)
		output_answer(output_path);
	struct output *out = print && !output_path ? NULL : output_open(output_path, "sweep");
	struct plot plot = plot_path ? plot_open(plot_path) : (struct plot){ .pipe = NULL };

	if (out) {
		output_start(out, 0, 1);
		if (image)
			output_history(out, "model", image);
	}
	sweep_gauss(&s, points, sigma, samples, seed);
	for (; image; image = input_next(in))
		sweep_part(&s, image, has_config ? &config : NULL);
	if (in)
		sweep_end(&s, input_name(in));

	const struct table *all[] = { [CURVE] = &s.curve, [BEST] = &s.best, [CROSSOVER] = &s.crossover, [LAYER] = &s.layer, [ERROR] = &s.error };

	for (size_t i = 0; out && i < sizeof all / sizeof *all; i++)
		table_put(all[i], out, tables[i]);
	if (print)
		table_print(all[table], json);
	if (plot.pipe)
		sweep_plot(&s, &plot);
	if (out) {
		output_end(out);
		output_close(out);
	}
	if (in)
		input_close(in);
	if (has_config)
		config_free(&config);
	free(sigma);
	sweep_free(&s);
	return 0;
}
