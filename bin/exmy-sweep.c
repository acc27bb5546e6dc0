/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * exmy-sweep -- compute the error of number formats against sigma
 *
 *	error(sigma) = E[(x - x̂)²],  x ~ N(0, sigma²) truncated to [-1, 1],
 *
 * or x uniform in [-1, 1], with the grid scaled to the same range. The error is exact, from Gaussian partial
 * moments, and on request also sampled. Also the sigma of the largest lead of each format and the sigma where
 * two formats change order. With a model: the sigma of its channels, by layer, and the error of each format
 * on its weights. FPE2M2 figures 3, 9, appendix B.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "eval/sweep.h"
#include "eval/sweep_plot.h"
#include "model/setting.h"

static const struct tool tool = {
	.name = "exmy-sweep",
	.brief = "compute the error of number formats against sigma",
	.operands = "[MODEL]",
	.max_operands = 1,
	.optional = true,
	.about = "Computes the mean squared error of number formats on Gaussian weights of each "
		"sigma, or on uniform weights. Weights are scaled so that the largest is 1. With a "
		"MODEL (- for standard input) also computes the sigma of its output channels and "
		"the error of each format on them. Writes a file of kind sweep; --tsv prints one of "
		"its tables instead.",
	.examples = "  exmy-sweep --formats int5,e1m3,e2m2,e3m1 --tsv\n  exmy-sweep --tsv --table crossover\n"
		"  exmy-sweep --formats int4,e2m1,nf4 --plot errors.svg -o sweep.h5 model.h5",
};

static const char *const densities[] = { "gauss", "uniform", NULL };

/* Values of the options. */
struct settings {
	const char *formats, *sigmas, *plot, *band;
	size_t samples, seed;
	double low, high;		/* band */
	enum sweep_table table;
	bool uniform, ties_away, tsv, json;
	struct selection layers;
};

static bool prints(const struct settings *set)
{
	return set->tsv || set->json;
}

/* Whether a table is printed that compares formats over all sigmas. */
static bool compares(const struct settings *set)
{
	return prints(set) && (set->table == SWEEP_BEST || set->table == SWEEP_CROSSOVER);
}

static void check_sweep(struct settings *set, const struct command *c)
{
	const bool model = c->operands > 0, of_model = set->table >= SWEEP_LAYER;
	const bool one_table = prints(set) && !c->output && !set->plot;

	option_without_effect(9, (struct option_without_effect[]){
		{ set->uniform, "sigma", "--density uniform" },
		{ one_table && set->table != SWEEP_CURVE, "sigma monte-carlo seed",
			"only --table curve has it" },
		{ one_table && (of_model || set->table == SWEEP_VALUES), "density",
			"only --table curve has it" },
		{ one_table && set->table == SWEEP_LAYER, "formats ties", "--table layer has no format" },
		{ !model, "layers", "no MODEL" },
		{ !set->samples, "seed", "no --monte-carlo" },
		{ !model && !set->plot, "band", "neither MODEL nor --plot" },
		{ !prints(set), "table", "neither --tsv nor --json" },
		{ set->json, "tsv", "--json" } });
	if (prints(set) && of_model && !model)
		misuse("--table %s needs a MODEL", sweep_tables[set->table]);
	if (set->uniform && set->plot)
		misuse("--density uniform has one sigma, --plot draws curves over it");
	if (set->uniform && compares(set))
		misuse("--density uniform has one sigma, --table %s searches for one",
			sweep_tables[set->table]);
	if (set->plot && c->output && !strcmp(set->plot, c->output))
		misuse("--plot and -o are both %s", set->plot);
	sweep_band(set->band, &set->low, &set->high);
}

/* --sigma, or the one point of a uniform density; free() it. */
static double *sigmas_of(const struct settings *set, size_t *points)
{
	double *sigma = sweep_sigmas(set->uniform ? "1" : set->sigmas, points);

	if (set->uniform)
		*sigma = INFINITY;
	return sigma;
}

/* Writes all tables to the file, one to standard output, curves to the plot. out may be NULL. */
static void give(const struct settings *set, const struct sweep *s, struct output *out, struct plot *plot)
{
	for (size_t i = 0; out && i < SWEEP_TABLES; i++)
		table_put(&s->table[i], out, sweep_tables[i]);
	if (prints(set))
		table_print(&s->table[set->table], set->json);
	if (plot->pipe)
		sweep_plot(plot, s);
}

int main(int argc, char *argv[])
{
	struct settings set;
	size_t points;
	const struct option_row rows[] = {
		{ 0, "formats", OPTION_TEXT(&set.formats), "LIST", "formats, separated by commas",
			.default_value = "e1m2,e2m1,e3m0,e1m3,e2m2,e3m1,e4m0,e1m4,e2m3,e3m2,e4m1" },
		{ 0, "sigma", OPTION_TEXT(&set.sigmas), "LIST",
			"LOW:HIGH:STEP or a,b,...", .default_value = "0.02:0.5:0.01" },
		{ 0, "density", OPTION_EITHER(&set.uniform, densities), NULL, "density of the weights",
			.default_value = "gauss" },
		OPTION_TIES(&set.ties_away),
		{ 0, "monte-carlo", OPTION_SIZE(&set.samples), "N",
			"also sample N weights per point", .max = 1 << 30 },
		OPTION_SEED(&set.seed),
		OPTION_LAYERS(&set.layers),
		{ 0, "tsv", OPTION_BOOL(&set.tsv), NULL,
			"print a table, do not write a file", .neutral = true },
		{ 0, "json", OPTION_BOOL(&set.json), NULL, "print a table as JSON", .neutral = true },
		{ 0, "table", OPTION_ENUM(enum sweep_table, &set.table, sweep_tables), NULL,
			"table that is printed", .default_value = "curve", .neutral = true },
		{ 0, "plot", OPTION_FILE(&set.plot), "FILE", "draw the curves (.svg, .png, .pdf)",
			.neutral = true },
		{ 0, "band", OPTION_TEXT(&set.band), "LOW:HIGH",
			"sigmas of typical models", .default_value = "0.12:0.28" },
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	check_sweep(&set, &c);
	struct sweep s = sweep_begin(set.formats, set.ties_away, set.low, set.high, &set.layers);
	double *sigma = sigmas_of(&set, &points);
	struct filter f = c.operands ? filter_open(c.operand[0], "model", NULL, NULL) :
		(struct filter){ .in = NULL };

	filter_config(&f);
	if (prints(&set))
		output_stdout_check(c.output);
	struct output *out = prints(&set) && !c.output ? NULL : output_open(c.output, "sweep");
	struct plot plot = set.plot ? plot_open(set.plot) : (struct plot){ .pipe = NULL };

	if (out)
		output_start(out, 0, 1);
	if (out && f.part)
		output_history(out, "model", f.part);
	if (out || set.plot || set.table < SWEEP_VALUES)
		sweep_gauss(&s, points, sigma, set.samples, set.seed, out || compares(&set));
	model_filter(&f, sweep_part, &s);
	if (f.in)
		sweep_end(&s, input_name(f.in));
	give(&set, &s, out, &plot);
	if (out) {
		output_end(out);
		output_close(out);
	}
	filter_close(&f);
	free(sigma);
	sweep_free(&s);
	selection_free(&set.layers);
	return 0;
}
