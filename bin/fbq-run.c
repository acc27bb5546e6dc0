/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fbq-run -- quantize weights with a low-rank branch (FBQuant and others)
 *
 *	W_F = Q(W - B A) + B A minimizes tr((W - W_F) H (W - W_F)ᵀ) over A and B	(FBQuant eq. 11-19)
 *
 * Other methods fit B A to the error of quantization (branch/branch.h).
 */
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "branch/feedback.h"
#include "calib/hessian.h"
#include "model/basis.h"
#include "num/linalg.h"
#include "transform/quantize.h"

static const struct tool tool = {
	.name = "fbq-run",
	.brief = "quantize weights with a low-rank branch (FBQuant and others)",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Replaces the weight of every linear layer by codes, scales and zero points, and "
		"adds a low-rank branch B A that compensates the error. With --reference the input "
		"is a quantized model, and it keeps its codes.",
	.examples = "  fbq-run --hessian hess.h5 --layers '*/0/*' --rank 16 --steps 50 \\\n"
		"    model.h5 -o fbq.h5\n"
		"  fbq-run --hessian hess.h5 --layers '*/0/*' --method caldera --steps 4 \\\n"
		"    model.h5 -o caldera.h5\n"
		"  dpq-run -q --hessian hess.h5 --layers '*/0/*' model.h5 -o gptq.h5\n"
		"  fbq-run --hessian hess.h5 --layers '*/0/*' --method eora \\\n"
		"    --reference model.h5 gptq.h5 -o eora.h5",
};

struct settings {
	const char *hessian, *reference;
	unsigned method;
	bool resume, force_basis;
	struct selection layers;
	struct method_options options;
	struct branch_format format;
	size_t seed;
};

/* Whether the search, which has a default here, the rotation, or another option of the storage is given. */
static bool given(const void *unused, const char *option)
{
	return !strcmp(option, "scale-search") ||
		(!strcmp(option, "layer-rotation") && option_has_effect(option)) ||
		method_storage_given(unused, option);
}

/* The method of all layers. */
static struct method check_fbq(struct settings *set)
{
	const struct quantizer *z = quantizer_named(branch_names[set->method]);
	struct branch_settings *b = &set->options.method.branch;
	enum search *search = &set->options.method.solver.search;
	struct method m;

	option_without_effect(4, (struct option_without_effect[]){ z->without_effect,
		{ !z->branch->descends, "lr init-sigma", "a method that does not descend" },
		{ z->branch->steps == 1, "steps", "a method of one step" },
		{ set->reference != NULL, "storage group scale-dtype scale-bits scale-search ties "
			"layer-rotation", "--reference: the codes stay, and their rotation" } });
	if (set->reference && !z->keeps_main)
		misuse("--method %s computes codes; --reference requires %s", z->name,
			quantizer_keepers());
	b->storage = set->format.format;
	b->group = set->format.group;
	b->type = set->format.type;
	b->seed = set->seed;
	set->options.method.solver.compensate = z->branch->compensate;
	set->options.method.quantizer = z;
	if (!option_has_effect("scale-search"))
		*search = SEARCH_MINMAX;
	m = method_make(&set->options, given, NULL);
	if (method_needs_hessian(&m) && !set->hessian)
		misuse("--hessian FILE is needed for --%s %s (hessian-accum makes it)",
			z->needs_hessian ? "method" : "scale-search",
			z->needs_hessian ? z->name : searches[*search]);
	if (m.solver.group < 0 && z->branch->descends)
		misuse("--group: is tensor, expected a number or channel for --method %s", z->name);
	return m;
}

static void run_fbq(struct quantize *q, const struct settings *set, const struct command *c,
	struct report *report)
{
	struct filter f;

	q->seed = set->seed;
	q->source = moments_of_files(&q->files);
	f = set->resume ? filter_resume(c->operand[0], "model", c->output, "model", report) :
		filter_open(c->operand[0], "model", c->output, "model");
	f.report = report;
	f.finished = quantize_finished;
	filter_config(&f);
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(basis_match(3,
		(const struct part *[]){ q->files.hessian, q->reference, f.part }, set->force_basis)));
	quantize_check_layers(q, &f);
	model_filter(&f, quantize_part, q);
	quantize_end(q, input_name(f.in));
	filter_close(&f);
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct settings set = { .options.method.branch = {
		.every = FEEDBACK_EVERY, .patience = FEEDBACK_PATIENCE } };
	struct branch_settings *b = &set.options.method.branch;
	struct quantize q = { .layers = &set.layers };
	struct plan plan;
	struct method m;
	const struct option_row rows[] = {
		{ 0, "hessian", OPTION_FILE(&set.hessian), "FILE",
			"Hessians of the layers, from hessian-accum" },
		{ 0, "method", OPTION_CHOICE(&set.method, branch_names), NULL,
			"method that fits the branch",
			.default_value = "fbquant" },
		{ 0, "reference", OPTION_FILE(&set.reference), "MODEL",
			"original of a quantized input; keep its codes" },
		METHOD_STORAGE_OPTIONS(&set.options, OPTION_FORMAT, scale_types_single),
		{ 0, "scale-search", OPTION_CHOICE(&set.options.method.solver.search, searches), NULL,
			"how the scale of a group is chosen",
			.default_value = "minmax" },
		OPTION_TIES(&set.options.ties_away),
		{ 0, "layer-rotation", OPTION_EITHER(&set.options.two_sided, method_rotations), NULL,
			"rotate each layer, and its branch", .default_value = "none" },
		{ .type = OPTION_HEADING, .help = "The branch" },
		{ 'r', "rank", OPTION_SIZE(&b->rank), "R",
			"rank of the branch (default: inputs/32)", .min = 1, .max = 1 << 20 },
		OPTION_BRANCH_FORMAT(&set.format),
		{ 0, "steps", OPTION_SIZE(&b->steps), "N",
			"steps or rounds (default: the method's)", .min = 1, .max = 1 << 20 },
		{ 0, "lr", OPTION_REAL(&b->rate), "RATE",
			"learning rate of Adam",
			.default_value = "0.002", .min = 1e-9, .max = 1 },
		{ 0, "init-sigma", OPTION_REAL(&b->sigma), "SIGMA",
			"sigma of the initial A", .min = 0, .max = 1e6 },
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
	m = check_fbq(&set);
	plan = plan_single(&m);
	q.plan = &plan;
	linalg_init();
	q.files.hessian = set.hessian ? hessian_open(set.hessian) : NULL;
	q.reference = set.reference ? part_open(set.reference, "model") : NULL;
	run_fbq(&q, &set, &c, &report);
	if (q.reference)
		part_close(q.reference);
	if (q.files.hessian)
		part_close(q.files.hessian);
	plan_free(&plan);
	selection_free(&set.layers);
	return 0;
}
