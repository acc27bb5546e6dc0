/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * branch.c -- see branch.h
 *
 * A method is a plan: which update is first, the norm in which the branch is fitted, which iterate is kept.
 * Only FBQuant has a separate optimizer (feedback.c). The updates are in branch_state.c.
 */
#include "branch/branch.h"
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/cut.h"
#include "base/size.h"
#include "base/thread.h"
#include "branch/branch_private.h"
#include "branch/feedback.h"
#include "num/svd.h"

enum { ROUNDS = 5 };

struct branch_plan {
	bool feedback;			/* FBQuant; the other members are unused */
	bool branch_first;		/* the branch is updated before the main path */
	bool weighted;			/* SVD_r in the norm of H */
	double ridge;			/* on H, relative to its mean diagonal; only with `weighted` */
	bool min;			/* the iterate of the smallest loss is kept, not the last one */
	bool both;			/* losses are computed after each update, not only the second */
	bool early;			/* stop when the loss rises */
	bool damped;			/* losses and Q include the ridge; branch_rounds() for a format */
	bool exact;			/* final codes are of W - B A in double, if Q is plain RTN */
};

static const struct branch_plan
	feedback = { .feedback = true },
	plain = { .weighted = false },
	absorbing = { .branch_first = true, .min = true, .early = true, .exact = true },
	weighted = { .branch_first = true, .weighted = true, .ridge = 0.01, .min = true, .both = true,
		.damped = true },
	/* For EoRA, H has negative eigenvalues only by rounding. A ridge of that size makes H positive. */
	projected = { .weighted = true, .ridge = 0x1p-24 };

/* ROW(suffix of its constant, name, other members) */
#define METHODS(ROW) \
	ROW(FBQUANT, "fbquant", .descends = true, .compensate = COMPENSATE_NONE, .steps = 400, \
		.plan = &feedback) \
	ROW(LOWRANK, "lowrank", .compensate = COMPENSATE_NONE, .steps = 1, .plan = &plain) \
	ROW(SVDQUANT, "svdquant", .compensate = COMPENSATE_NONE, .steps = 100, .plan = &absorbing) \
	ROW(LOFTQ, "loftq", .compensate = COMPENSATE_NONE, .steps = 5, .plan = &plain) \
	ROW(CALDERA, "caldera", .compensate = COMPENSATE_BOTH, .steps = 20, .plan = &weighted) \
	ROW(EORA, "eora", .compensate = COMPENSATE_NONE, .steps = 1, .plan = &projected)

#define METHOD(which, label, ...) [BRANCH_##which] = { .name = label, __VA_ARGS__ },
#define NAME(which, label, ...) [BRANCH_##which] = label,
const struct branch_method branch_methods[] = { METHODS(METHOD) { NULL } };
const char *const branch_names[] = { METHODS(NAME) NULL };

static void cut_codes(struct codes *c, const struct solver *how, size_t rows, size_t columns, char *base,
	size_t *at)
{
	*c = solver_codes(how, rows, columns);
	codes_lay_out(c, cut(base, at, codes_lay_out(c, NULL), 1));
}

static void cut_factors(struct state *s, struct factors *f, char *base, size_t *at)
{
	f->a = cut(base, at, s->r * s->n, sizeof *f->a);
	f->b = cut(base, at, s->m * s->r, sizeof *f->b);
	if (s->in_format) {
		cut_codes(&f->code_a, &s->factor, s->r, s->n, base, at);
		cut_codes(&f->code_b, &s->factor, s->m, s->r, base, at);
	}
}

static struct svd fit_of(const struct state *s)
{
	return (struct svd){ .m = s->m, .n = s->n, .r = s->r, .e = s->residue,
		.h = s->weighted ? s->l->h : NULL, .ridge = s->ridge, .seed = s->set->seed,
		.name = s->l->name, .a = s->now.a, .b = s->now.b };
}

static struct feedback feedback_of(const struct state *s)
{
	const struct branch_settings *set = s->set;

	return (struct feedback){ .storage = s->main.storage, .group = set->main.group, .rank = s->r,
		.steps = s->steps, .rate = set->rate, .sigma = set->sigma, .every = max(set->every, 1),
		.patience = set->patience, .seed = set->seed, .on_loss = set->on_loss, .arg = set->arg };
}

/* Bytes of the workspace of functions that run at different times. */
static size_t scratch_bytes(const struct state *s, const struct branch_plan *plan)
{
	const struct linear a = { .out = s->r, .in = s->n }, b = { .out = s->m, .in = s->r };
	struct solver_layer of[] = {
		{ .weight = s->l->weight, .settings = &s->main, .h = s->l->h },
		{ .weight = &a, .settings = &s->factor }, { .weight = &b, .settings = &s->factor },
	};
	const struct feedback f = feedback_of(s);
	const struct feedback_layer fed = { .weight = s->l->weight, .settings = &f };
	const struct svd fit = fit_of(s);
	size_t bytes = plan->feedback ? feedback_workspace(&fed) : svd_workspace(&fit);

	if (!s->l->main && !plan->feedback)
		bytes = max(bytes, solver_workspace(1, &of[0]));
	for (size_t i = 1; s->in_format && i < 3; i++)
		bytes = max(bytes, solver_workspace(1, &of[i]));
	return max(bytes, CHUNK * s->n * (sizeof(double) + sizeof(float)));
}

/* Fills *s and divides the workspace at `base`; returns its size. base NULL: for the size only. */
static size_t lay_out(struct state *s, const struct branch_method *method, const struct branch_layer *layer,
	char *base)
{
	const struct branch_settings *set = layer->settings;
	const struct branch_plan *plan = method->plan;
	size_t at = 0;

	*s = (struct state){ .l = layer, .set = set, .m = layer->weight->out, .n = layer->weight->in,
		.r = set->rank, .main = set->main, .factor = { .storage = set->storage, .group = set->group,
		.compensate = COMPENSATE_NONE, .search = SEARCH_MINMAX, .no_error = true },
		.weighted = plan->weighted, .in_format = set->storage.kind };
	s->steps = set->steps && method->steps > 1 ? set->steps : method->steps;
	s->main.no_error = true;
	s->rounds = plan->damped && s->in_format ? ROUNDS : 0;
	cut_factors(s, &s->now, base, &at);
	if (s->rounds) {
		cut_factors(s, &s->pair, base, &at);
		s->ah = cut(base, &at, s->r * s->n, sizeof *s->ah);
		s->thin = cut(base, &at, s->r * max(s->m, s->n), sizeof *s->thin);
		s->right = cut(base, &at, s->r * max(s->m, s->n), sizeof *s->right);
		s->gram = cut(base, &at, s->r * s->r, sizeof *s->gram);
	}
	if (!layer->main)
		cut_codes(&s->now.main, &s->main, s->m, s->n, base, &at);
	s->residue = cut(base, &at, s->m * s->n, sizeof *s->residue);
	s->panel = cut(base, &at, (size_t)threads * 2 * CHUNK * s->n, sizeof *s->panel);
	s->sum = cut(base, &at, ceil_div(s->m, CHUNK), sizeof *s->sum);
	s->scratch = cut(base, &at, scratch_bytes(s, plan), 1);
	return at;
}

size_t branch_workspace(const struct branch_method *method, const struct branch_layer *layer)
{
	struct state s;

	return lay_out(&s, method, layer, NULL);
}

/* Checks that W, H and a given main path are finite. */
static enum status check_matrices(const struct state *s, size_t *index)
{
	const float *h = s->l->h;

	for (size_t i = 0; i < s->m; i++)
		for (int main = 0; main < (s->l->main ? 2 : 1); main++) {
			*index = i;
			linear_weight(main ? s->l->main : s->l->weight, i, 1, (float (*)[s->n])s->panel);
			if (!half_finite(s->n, s->panel, HALF_NONE))
				return main ? STATUS_BAD_MAIN : STATUS_BAD_WEIGHT;
		}
	for (size_t i = 0; h && i < s->n; i++) {
		*index = i;
		if (h[i * s->n + i] < 0)
			return STATUS_BAD_DIAGONAL;
		if (!half_finite(s->n, h + i * s->n, HALF_NONE))
			return STATUS_BAD_HESSIAN;
	}
	*index = 0;
	return STATUS_DONE;
}

/* Sets the ridge of the plan, and the damping with which the solver adds the same number to live columns. */
static void damp(struct state *s, const struct branch_plan *plan)
{
	double sum = 0;
	size_t live = 0;

	for (size_t i = 0; s->l->h && i < s->n; i++) {
		const double d = (double)s->l->h[i * s->n + i];

		sum += d, live += d > 0;
	}
	s->ridge = plan->weighted ? plan->ridge * sum / (double)s->n : 0;
	s->add = plan->damped ? s->ridge : 0;
	if (plan->damped && live)
		s->main.damp = plan->ridge * (double)live / (double)s->n;
}

/* Computes the scale of the tensor from the range of the residue. */
static void scale_tensor(const struct state *s, struct format *f)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < s->m * s->n; i++)
		low = fmin(low, (double)s->residue[i]), high = fmax(high, (double)s->residue[i]);
	format_tensor(f, low, high);
}

/* Computes the kept codes again, from P = W - B A in double. Returns the result of feedback_codes(). */
static double exact_codes(struct state *s)
{
	const struct branch_layer *l = s->l;
	struct codes *to = &s->kept->main;
	struct feedback f = feedback_of(s);
	const struct feedback_layer fed = { .weight = l->weight, .settings = &f, .a = l->a, .b = l->b };
	double worst = 0;

	branch_residue(s, s->kept, PART_BRANCH);
	scale_tensor(s, &f.storage);
	for (size_t i = 0; i < s->m; i += CHUNK)
		worst = fmax(worst, feedback_codes(&fed, i, min(CHUNK, s->m - i), to->codes + i * s->n,
			to->scale + i * to->groups, to->zero ? to->zero + i * to->groups : NULL,
			(void *)((double *)s->scratch + CHUNK * s->n), s->scratch));
	format_store(&f.storage, to->scales, to->scale);
	to->scale_tensor = f.storage.divisor;
	return worst;
}

static bool run_feedback(struct state *s, double whole, struct branch_report *y)
{
	struct feedback f = feedback_of(s);
	struct feedback_layer fed = { .weight = s->l->weight, .settings = &f, .name = s->l->name,
		.h = s->l->h, .whole = whole, .a = s->now.a, .b = s->now.b };

	branch_residue(s, NULL, 0);
	scale_tensor(s, &f.storage);	/* from W: the range of W - B A hardly differs */
	feedback_run(&fed, s->scratch);
	y->start = fed.report.start, y->best = fed.report.best, y->steps = fed.report.steps;
	y->halved = fed.report.halved;
	y->status = branch_store(s);
	branch_copy(s, s->kept, &s->now, false);
	return !y->status;
}

static enum status update(struct state *s, bool branch, bool first)
{
	struct svd fit = fit_of(s);

	if (!branch)
		return branch_main(s, first);
	s->begun = !first;
	branch_residue(s, &s->now, first ? 0 : PART_MAIN);
	if (!svd_run(&fit, s->scratch))
		return STATUS_NO_CONVERGENCE;
	return s->rounds ? branch_rounds(s) : branch_store(s);
}

static bool run_plan(struct state *s, const struct branch_plan *plan, double whole, struct branch_report *y)
{
	const size_t steps = s->l->main ? 1 : s->steps;
	double best = INFINITY, loss = NAN;

	memset(s->now.a, 0, s->r * s->n * sizeof *s->now.a);
	memset(s->now.b, 0, s->m * s->r * sizeof *s->now.b);
	for (size_t t = 1; t <= steps; t++) {
		y->steps = t;
		for (int u = 0; u < 2; u++) {
			const bool branch = (u == 0) == plan->branch_first, last = t == steps && u == 1;
			const bool measured = plan->min && (u == 1 || (plan->both && t > 1));
			struct loss now;

			y->status = update(s, branch, t == 1 && u == 0);
			if (y->status)
				return false;
			if (measured || (t == 1 && !branch)) {
				now = branch_loss(s, &s->now, PART_MAIN | PART_BRANCH);
				y->start = t == 1 && !branch ? now.plain / whole : y->start;
				loss = now.plain + s->add * now.square;
			}
			if (measured ? !(loss >= best) : last && !plan->min) {
				best = loss, y->best = t;
				branch_copy(s, s->kept, &s->now, true);
			} else if (measured && plan->early)
				return true;
		}
	}
	return true;
}

void branch_run(const struct branch_method *method, struct branch_layer *layer, void *workspace)
{
	const struct branch_plan *plan = method->plan;
	const double begin = omp_get_wtime();
	struct branch_report *y = &layer->report;
	struct factors kept = { layer->a, layer->b, layer->code_a, layer->code_b, layer->codes };
	struct state s;
	double whole;
	bool done;

	*y = (struct branch_report){ .start = NAN, .loss = NAN, .bound = NAN };
	lay_out(&s, method, layer, workspace);
	s.kept = &kept;
	y->status = check_matrices(&s, &y->index);
	if (y->status)
		return;
	damp(&s, plan);
	whole = branch_loss(&s, NULL, 0).plain;
	s.index = &y->index;
	done = plan->feedback ? run_feedback(&s, whole, y) : run_plan(&s, plan, whole, y);
	if (!done)
		return;
	if (plan->feedback || (plan->exact && s.main.compensate == COMPENSATE_NONE &&
		s.main.search == SEARCH_MINMAX && s.main.group >= 0))
		y->bound = exact_codes(&s);
	layer->code_a = kept.code_a, layer->code_b = kept.code_b, layer->codes = kept.main;
	y->loss = branch_loss(&s, &kept, PART_MAIN | PART_BRANCH).plain / whole;
	y->seconds = omp_get_wtime() - begin;
}
