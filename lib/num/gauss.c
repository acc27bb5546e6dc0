/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gauss.c -- see gauss.h
 *
 * Let a and b be the edges of a cell divided by σ, φ the density and M0 = Φ(b) - Φ(a). The moments of the
 * cell are M1 = σ(φ(a) - φ(b)) and M2 = σ²(M0 + aφ(a) - bφ(b)). Cells on the right of 0 are mirrored, so
 * that M0 is a difference of small tails. In narrow cells far from 0, the moments cancel. There the integral
 * is computed by Gauss-Legendre quadrature: the density is smooth, or negligible against the density of the
 * cells before. Minima and crossovers are bracketed on a grid of log σ, then refined by GSL.
 */
#include "num/gauss.h"
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_min.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include "base/random.h"

/* Steps of the grid; maximum iterations of GSL; samples that are rounded at a time. */
enum { STEPS = 400, ROUNDS = 100, SAMPLES = 256 };
enum { POINTS = 20 };			/* of the Gauss-Legendre quadrature */
static const double CLOSE = 1e-10, CANCELLED = 0x1p-10;
/* Errors have 12 digits. Where the errors of two formats differ by less, as for small σ, where all weights
 * are rounded to 0, neither is better. */
static const double NOISE = 1e-12;

/* The scale of the range [-1, 1]. It is not rounded to float; if scales have a narrower type, it is rounded
 * to that. */
static double scale_of(const struct format *f, double fitted)
{
	const struct scale_kind t = format_scale_kind(f);

	if (!format_rounds_scales(f))
		return (f->asymmetric ? 2 : 1) / (double)f->max;
	return (double)scale_nearest(&t, fitted * (double)f->divisor) / (double)f->divisor;
}

struct gauss gauss_of(const struct format *f)
{
	struct gauss g = { .n = 0 };
	double all[256] = { 0 }, exact;
	float scale;
	uint8_t zero = 0;

	format_fit(f, &scale, &zero, -1, 1);
	exact = scale_of(f, (double)scale);
	for (int c = 0; c < 1 << f->bits; c++)
		all[c] = ((double)f->grid[c] - (f->asymmetric ? zero : 0)) * exact;
	gsl_sort(all, 1, (size_t)1 << f->bits);
	for (int c = 0; c < 1 << f->bits; c++)
		if (!c || all[c] > g.value[g.n - 1])
			g.value[g.n++] = all[c];
	g.edge[0] = -1;
	for (size_t i = 1; i < g.n; i++)
		g.edge[i] = fmin(fmax((g.value[i - 1] + g.value[i]) / 2, -1), 1);
	g.edge[g.n] = 1;
	return g;
}

/* ∫ (x - v)² p(x) dx from a to b, with p the density of N(0, σ²), as a sum of positive terms. */
static double integral_of(double a, double b, double v, double sigma)
{
	gsl_integration_glfixed_table *t = gsl_integration_glfixed_table_alloc(POINTS);
	double sum = 0, x, weight;

	for (size_t i = 0; t && i < POINTS; i++) {
		gsl_integration_glfixed_point(a, b, i, &x, &weight, t);
		sum += weight * (x - v) * (x - v) * gsl_ran_ugaussian_pdf(x / sigma) / sigma;
	}
	gsl_integration_glfixed_table_free(t);
	return t ? sum : NAN;
}

/* The same integral from moments, or by integral_of() if the moments cancel; not normalized. */
static double cell(double a, double b, double v, double sigma)
{
	double m0, m1, m2, p, q, sum;

	if (b <= a)
		return 0;
	if (isinf(sigma))
		return ((b - v) * (b - v) * (b - v) - (a - v) * (a - v) * (a - v)) / 3;
	if (a + b > 0)
		return cell(-b, -a, -v, sigma);
	p = gsl_ran_ugaussian_pdf(a / sigma);
	q = gsl_ran_ugaussian_pdf(b / sigma);
	m0 = gsl_cdf_ugaussian_P(b / sigma) - gsl_cdf_ugaussian_P(a / sigma);
	m1 = sigma * (p - q);
	m2 = sigma * sigma * (m0 + a / sigma * p - b / sigma * q);
	sum = m2 - 2 * v * m1 + v * v * m0;
	return sum > CANCELLED * (sigma * sigma + v * v) * gsl_cdf_ugaussian_P(b / sigma) ? sum :
		integral_of(a, b, v, sigma);
}

static double mass(double sigma)
{
	return isinf(sigma) ? 2 : 1 - 2 * gsl_cdf_ugaussian_P(-1 / sigma);
}

double gauss_error(const struct gauss *g, double sigma)
{
	double sum = 0;

	for (size_t i = 0; i < g->n; i++)
		sum += cell(g->edge[i], g->edge[i + 1], g->value[i], sigma);
	return sum / mass(sigma);
}

double gauss_second_moment(double sigma)
{
	return 2 * cell(-1, 0, 0, sigma) / mass(sigma);
}

double gauss_sampled(const struct format *f, double sigma, size_t n, uint64_t seed, double *se)
{
	const struct random_stream r = random_open(seed, f->name);
	double low = gsl_cdf_ugaussian_P(-1 / sigma), sum = 0, squares = 0, x[SAMPLES];
	float scale[SAMPLES], y[SAMPLES];
	uint8_t zero[SAMPLES], code[SAMPLES];

	for (size_t i = 0; i < SAMPLES; i++)
		format_fit(f, &scale[i], &zero[i], -1, 1);
	for (size_t k = 0; k < n; k += SAMPLES) {
		size_t c = n - k < SAMPLES ? n - k : SAMPLES;

		for (size_t i = 0; i < c; i++) {
			const double u = random_uniform(&r, k + i);

			x[i] = isinf(sigma) ? 2 * u - 1 :
				sigma * gsl_cdf_ugaussian_Pinv(low + (1 - 2 * low) * u);
		}
		format_quantize(f, c, code, y, x, scale, zero);
		for (size_t i = 0; i < c; i++) {
			double e = (x[i] - y[i]) * (x[i] - y[i]);

			sum += e;
			squares += e * e;
		}
	}
	*se = sqrt((squares / (double)n - sum / (double)n * (sum / (double)n)) / ((double)n - 1));
	return sum / (double)n;
}

/* GSL reports errors by return values and does not end the program. */
__attribute__((constructor))
static void quiet(void)
{
	gsl_set_error_handler_off();
}

struct rivals { const struct gauss *g, *const *other; size_t others; };

/* Logarithm of the ratio of the format's error to the smallest error of the others, at σ = eᵗ. */
static double excess(double t, void *arg)
{
	const struct rivals *r = arg;
	double min = INFINITY;

	for (size_t i = 0; i < r->others; i++)
		min = fmin(min, gauss_error(r->other[i], exp(t)));
	return log(gauss_error(r->g, exp(t)) / min);
}

double gauss_best(const struct gauss *g, size_t others, const struct gauss *const other[others], double low,
	double high)
{
	const double step = (log(high) - log(low)) / STEPS;
	struct rivals rivals = { g, other, others };
	gsl_function f = { excess, &rivals };
	gsl_min_fminimizer *m;
	double min = INFINITY, best;
	int at = 0;

	for (int i = 0; i <= STEPS; i++) {
		double e = excess(log(low) + i * step, &rivals);

		if (e < min) {
			min = e;
			at = i;
		}
	}
	best = log(low) + at * step;
	m = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
	if (m && at > 0 && at < STEPS && !gsl_min_fminimizer_set(m, &f, best, best - step, best + step)) {
		for (int i = 0; i < ROUNDS && !gsl_min_fminimizer_iterate(m) &&
		     gsl_min_fminimizer_x_upper(m) - gsl_min_fminimizer_x_lower(m) > CLOSE; i++)
			;
		best = gsl_min_fminimizer_x_minimum(m);
	}
	gsl_min_fminimizer_free(m);
	return exp(best);
}

double gauss_crossover(const struct gauss *g, const struct gauss *h, double low, double high)
{
	const double step = (log(high) - log(low)) / STEPS;
	struct rivals rivals = { g, &h, 1 };
	gsl_function f = { excess, &rivals };
	gsl_root_fsolver *s;
	double root = NAN, from = NAN, before = 0;	/* the last point with a sign, and its excess */

	for (int i = 0; i <= STEPS && isnan(root); i++) {
		const double t = log(low) + i * step, now = excess(t, &rivals);

		if (fabs(now) < NOISE)
			continue;
		if (before * now < 0 && (s = gsl_root_fsolver_alloc(gsl_root_fsolver_brent))) {
			gsl_root_fsolver_set(s, &f, from, t);
			for (int k = 0; k < ROUNDS && !gsl_root_fsolver_iterate(s) &&
			     gsl_root_fsolver_x_upper(s) - gsl_root_fsolver_x_lower(s) > CLOSE; k++)
				;
			root = exp(gsl_root_fsolver_root(s));
			gsl_root_fsolver_free(s);
		}
		before = now;
		from = t;
	}
	return root;
}
