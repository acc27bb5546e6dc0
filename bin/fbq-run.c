/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fbq-run -- quantize the weights of a model and give each a low-rank branch: FBQuant and others
 *
 *	W_F = Q(W - B A) + B A minimizes tr((W - W_F) H (W - W_F)ᵀ) over A and B	(FBQuant eq. 11-19)
 *
 * or B A is fitted to what quantization leaves of W, as other methods do (branch/branch.h).
 */
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "branch/feedback.h"
#include "model/basis.h"
#include "num/linalg.h"
#include "transform/attach.h"
#include "transform/method.h"

static const struct tool tool = {
	.name = "fbq-run",
	.brief = "quantize the weights of a model beside low-rank branches: FBQuant and others",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the weight of every linear layer by codes, scales and zero points, and adds a "
		"branch B A of low rank that makes good what they lose. With --reference the input is "
		"quantized already, by any tool, and keeps its codes.",
	.examples = "  fbq-run --hessian hess.h5 --layers '*/0/*' --rank 16 --steps 50 model.h5 -o fbq.h5\n"
		"  fbq-run --hessian hess.h5 --layers '*/0/*' --method caldera --steps 4 model.h5 "
		"-o caldera.h5\n"
		"  dpq-run -q --hessian hess.h5 --layers '*/0/*' model.h5 -o gptq.h5\n"
		"  fbq-run --hessian hess.h5 --layers '*/0/*' --method eora --reference model.h5 gptq.h5 "
		"-o eora.h5",
};

struct settings {
	const char *hessian, *reference;
	unsigned method;
	bool resume, force_basis;
	struct selection layers;
	struct method_options options;
	struct attach_format format;
	size_t seed;
};

static void check(struct settings *set, struct attach *a)
{
	const struct branch_method *m = a->method = &branch_methods[set->method];

	option_idle(3, (struct option_idle[]){
		{ !m->descends, "lr init-sigma", "a method that does not descend" },
		{ m->steps == 1, "steps", "a method of one step" },
		{ set->reference != NULL, "storage group scale-dtype ties",
			"--reference: the codes stay" } });
	if (option_given("rank") && !a->settings.rank)
		misuse("--rank: expected a number from 1 on, not 0");
	if (option_given("steps") && !a->settings.steps)
		misuse("--steps: expected a number from 1 on, not 0");
	if (m->needs_hessian && !set->hessian)
		misuse("--hessian FILE is needed for --method %s (hessian-accum makes it)", m->name);
	if (set->reference && !m->takes_main)
		misuse("--method %s makes codes of its own; --reference goes with %s", m->name,
			attach_takers());
	set->options.said.solver.compensate = m->compensate;
	a->settings.main = method_make(&set->options, method_storage_given, NULL).solver;
	a->settings.main.search = SEARCH_MINMAX;
	if (a->settings.main.group < 0 && m->descends)
		misuse("--group tensor: --method %s takes ranges of rows or of groups", m->name);
	a->settings.storage = set->format.format;
	a->settings.group = set->format.group;
	a->settings.type = set->format.type;
	a->settings.seed = set->seed;
}

static void run(struct attach *a, const struct settings *set, const struct command *c,
	struct report *report)
{
	struct moments_files files = { .hessian = set->hessian ? part_open(set->hessian, "hessian") : NULL };
	struct filter f;

	a->source = moments_of_files(&files);
	a->hessian = files.hessian;
	a->reference = set->reference ? part_open(set->reference, "model") : NULL;
	f = set->resume ? filter_resume(c->operand[0], "model", c->output, "model", report) :
		filter_open(c->operand[0], "model", c->output, "model");
	f.report = report;
	f.finished = attach_finished;
	filter_config(&f);
	option_idle(1, &(struct option_idle)BASIS_IDLE(basis_match(3,
		(const struct part *[]){ a->hessian, a->reference, f.part }, set->force_basis)));
	attach_check(a, &f);
	model_filter(&f, attach_part, a);
	attach_end(a, input_name(f.in));
	filter_close(&f);
	if (a->reference)
		part_close(a->reference);
	if (files.hessian)
		part_close(files.hessian);
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct settings set = { 0 };
	struct attach a = { .layers = &set.layers, .settings = {
		.every = FEEDBACK_EVERY, .patience = FEEDBACK_PATIENCE } };
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&set.hessian), "FILE",
			"Hessians of the layers, from hessian-accum" },
		{ 0, "method", OPTION_CHOICE(&set.method, branch_names), NULL,
			"what the branch is fitted to, and how",
			.otherwise = "fbquant" },
		{ 0, "reference", OPTION_FILE(&set.reference), "MODEL",
			"the weights before those of the input were quantized: codes stay" },
		METHOD_STORAGE_OPTIONS(&set.options),
		OPTION_TIES(&set.options.ties_away),
		{ .type = OPTION_HEADING, .help = "The branch" },
		{ 'r', "rank", OPTION_SIZE(&a.settings.rank), "R",
			"its rank (default: a 32nd of a layer's inputs)" },
		OPTION_BRANCH_FORMAT(&set.format),
		{ 0, "steps", OPTION_SIZE(&a.settings.steps), "N",
			"steps or rounds (default: the method's)" },
		{ 0, "lr", OPTION_REAL(&a.settings.rate), "RATE",
			"of Adam's first step; it falls to 0 in a line",
			.otherwise = "0.002", .min = 1e-9, .max = 1 },
		{ 0, "init-sigma", OPTION_REAL(&a.settings.sigma), "SIGMA",
			"standard deviation of A at the start (default: 1/(4 sqrt(inputs)))",
			.min = 0, .max = 1e6 },
		OPTION_SEED(&set.seed),
		{ .type = OPTION_HEADING, .help = "Layers" },
		OPTION_LAYERS(&set.layers),
		OPTION_FORCE_BASIS(&set.force_basis),
		OPTION_RESUME(&set.resume),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	report_open(&report);
	check(&set, &a);
	linalg_init();
	run(&a, &set, &c, &report);
	selection_free(&set.layers);
	return 0;
}
