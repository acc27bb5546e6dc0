/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * format.c -- the kinds of number formats, their names and values; see format.h
 *
 * Sources: DPQ eq. 1, 3; FPE2M2 section 3.1; QLoRA (Dettmers et al., 2023), appendix E; OCP Microscaling
 * Formats (MX) 1.0, section 5.3.3.
 */
#include "num/format.h"
#include <ctype.h>
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/nearest.h"
#include "num/e8p.h"
#include "num/format_private.h"
#include "num/gguf_block.h"
#include "num/trellis.h"

static bool int_fill(struct format *f)
{
	const int half = 1 << (f->n - 1);

	f->bits = f->n;
	f->max = half - 1;
	f->integers = true;
	for (int c = 0; c < 2 * half - 1; c++)
		f->grid[c] = c - (half - 1);
	f->code_last = (uint8_t)(2 * half - 2);
	return true;
}

static bool uint_fill(struct format *f)
{
	f->bits = f->n;
	f->max = (1 << f->n) - 1;
	f->integers = true;
	for (int c = 0; c < 1 << f->n; c++)
		f->grid[c] = c;
	return true;
}

static bool float_fill(struct format *f)
{
	f->bits = 1 + f->x + f->y;
	for (int c = 0; c < 1 << (f->bits - 1); c++) {
		int e = c >> f->y, m = c & ((1 << f->y) - 1);
		double v = e ? ldexp((1 << f->y) + m, e - f->bias - f->y) : ldexp(m, 1 - f->bias - f->y);

		if (v > f->max)
			break;
		f->grid[c] = (float)v;
		f->grid[c | 1 << (f->bits - 1)] = c || f->kind->keeps_zero ? (float)-v : 0;
	}
	return true;
}

static bool hardware_fill(struct format *f)
{
	f->x = f->kind->x;
	f->y = f->kind->y;
	f->bias = f->kind->bias;
	f->max = f->kind->max;
	float_fill(f);
	f->code_mask = 0x7f;		/* codes above the largest value are infinity and NaN */
	for (f->code_last = 0; f->grid[f->code_last] < f->max; f->code_last++)
		;
	return true;
}

/* FPE2M2 section 3.1: bias 0, and every code is a finite number. */
static bool exmy_fill(struct format *f)
{
	if (f->x + f->y < 1 || f->x + f->y > 7 || f->x > 6)
		return false;
	f->bias = 0;
	f->max = (float)ldexp((f->x ? 2 << f->y : 1 << f->y) - 1, (f->x ? (1 << f->x) - 1 : 1) - f->y);
	return float_fill(f);
}

/* E2M1 with bias 1 */
static bool fp4_fill(struct format *f)
{
	f->x = 2;
	f->y = f->bias = 1;
	f->max = 6;
	return float_fill(f);
}

/* Sets the smallest x above each code. */
static void quantile_edges(struct format *f)
{
	const int n = 1 << f->bits;

	for (int c = 0; c + 1 < n; c++) {
		double middle = ((double)f->grid[c] + f->grid[c + 1]) / 2;
		bool tie_goes_up = f->away ? middle > 0 : c % 2;

		f->edge[c] = tie_goes_up ? middle : nextafter(middle, INFINITY);
	}
}

static bool quantile_fill(struct format *f)
{
	const int half = 1 << (f->n - 1);
	const double o = ((1 - 0.5 / (2 * half - 1)) + (1 - 0.25 / half)) / 2;
	const double max = gsl_cdf_ugaussian_Pinv(o);

	f->bits = f->n;
	f->max = 1;
	for (int i = 0; i < half; i++)		/* `half` positive values, one less negative */
		f->grid[2 * half - 1 - i] = (float)(gsl_cdf_ugaussian_Pinv(o + (0.5 - o) * i / half) / max);
	for (int i = 0; i + 1 < half; i++)
		f->grid[i] = (float)(-gsl_cdf_ugaussian_Pinv(o + (0.5 - o) * i / (half - 1)) / max);
	quantile_edges(f);
	return true;
}

#define FP4 .fill = fp4_fill, .codec = &codec_floats
#define HARDWARE .fill = hardware_fill, .codec = &codec_floats, .keeps_zero = true
#define TRELLIS .form = &trellis_form, .group = -1
#define E8P .fill = e8p_fill, .form = &e8p_form, .group = -1
#define BLOCKS .fill = gguf_block_fill, .group = -1

#ifndef MORE_KINDS	/* rows of a test (tests/vq8.h) */
#define MORE_KINDS(ROW)
#endif
/* ROW(name, list of its formats, other members): with a grid, and with codes of several weights */
#define GRIDS(ROW) \
	ROW("int#", "int2..int8", .min = 2, .fill = int_fill, .codec = &codec_integers) \
	ROW("uint#", "uint1..uint8", .min = 1, .fill = uint_fill, .codec = &codec_integers, \
		.asymmetric = true) \
	ROW("e#m#", "e<x>m<y> (1 <= x + y <= 7, x <= 6)", .fill = exmy_fill, .codec = &codec_floats) \
	ROW("nf#", "nf2..nf8", .min = 2, .fill = quantile_fill, .codec = &codec_quantiles, \
		.ties = quantile_edges) \
	ROW("mxfp4", "mxfp4", FP4, .scales = SCALE_E8M0, .group = 32) \
	ROW("nvfp4", "nvfp4", FP4, .scales = SCALE_E4M3FN, .group = 16) \
	ROW("e4m3fn", "e4m3fn", HARDWARE, .x = 4, .y = 3, .bias = 7, .max = 448) \
	ROW("e4m3ieee", "e4m3ieee", HARDWARE, .x = 4, .y = 3, .bias = 7, .max = 240) \
	ROW("e5m2ieee", "e5m2ieee", HARDWARE, .x = 5, .y = 2, .bias = 15, .max = 57344)
#define FORMS(ROW) \
	ROW("e8p", "e8p", E8P) \
	ROW("e8p#", "e8p3, e8p4", E8P, .min = 3) \
	ROW("1mad#", "1mad1..1mad4", TRELLIS, .fill = trellis_fill_1mad) \
	ROW("1mad#-#", "1mad<k>-<L> (L from 10 to 16)", TRELLIS, .fill = trellis_fill_1mad) \
	ROW("3inst#", "3inst1..3inst4", TRELLIS, .fill = trellis_fill_3inst) \
	ROW("3inst#-#", "3inst<k>-<L>", TRELLIS, .fill = trellis_fill_3inst) \
	ROW("q#_k", "q4_k, q5_k, q6_k", BLOCKS, .form = &gguf_block_256_form) \
	ROW("iq4_nl", "iq4_nl", BLOCKS, .form = &gguf_block_32_form) \
	MORE_KINDS(ROW)

#define KIND(n, list, ...) { .name = n, __VA_ARGS__ },
static const struct format_kind kinds[] = { GRIDS(KIND) FORMS(KIND) };
#define LIST(n, list, ...) ", " list

const char *format_list(bool grids)
{
	static const char all[] = GRIDS(LIST) FORMS(LIST), with_grid[] = GRIDS(LIST);

	return (grids ? with_grid : all) + 2;
}

/* Matches a whole name and stores the number at each '#'. */
static bool match(const char *pattern, const char *name, int number[2])
{
	for (; *pattern; pattern++) {
		if (*pattern != '#') {
			if (tolower((unsigned char)*name++) != *pattern)
				return false;
			continue;
		}
		if (!isdigit((unsigned char)*name) || (*name == '0' && isdigit((unsigned char)name[1])))
			return false;
		for (*number = 0; isdigit((unsigned char)*name); name++)
			if ((*number = *number * 10 + *name - '0') > 99)
				return false;
		number++;
	}
	return !*name;
}

/* The largest power of two that divides all values; 0: none. */
static float unit_of(const struct format *f)
{
	float unit = 0x1p32f;

	for (size_t c = 0; c < sizeof f->grid / sizeof *f->grid; c++) {
		if (!isfinite(f->grid[c]))
			return 0;
		while (fmodf(f->grid[c], unit) != 0)
			unit /= 2;
	}
	return unit;
}

float format_unit(const struct format *f, float max)
{
	return f->kind && f->max <= max * f->unit ? f->unit : 0;
}

bool format_parse(struct format *f, const char *name)
{
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		int number[2] = { 0, 0 };
		size_t i;

		if (!match(kinds[k].name, name, number))
			continue;
		*f = (struct format){ .kind = &kinds[k], .asymmetric = kinds[k].asymmetric,
			.form = kinds[k].form, .scales = kinds[k].scales, .group = kinds[k].group,
			.divisor = 1 };
		f->n = f->x = number[0];
		f->y = number[1];
		for (i = 0; name[i] && i + 1 < sizeof f->name; i++)
			f->name[i] = (char)tolower((unsigned char)name[i]);
		if ((kinds[k].min && (f->n < kinds[k].min || f->n > 8)) || !kinds[k].fill(f))
			continue;
		f->code_mask = f->code_mask ? f->code_mask : 0xff;
		if (!f->code_last)
			f->code_last = (uint8_t)(f->bits < 8 ? (1 << f->bits) - 1 : 0xff);
		f->unit = format_has_grid(f) ? unit_of(f) : 0;
		return true;
	}
	*f = (struct format){ .bits = 0 };
	return false;
}

bool format_has_grid(const struct format *f)
{
	return f->kind->codec;
}

const char *const format_tie_names[] = { "even", "away", NULL };

void format_ties(struct format *f, bool away)
{
	f->away = away;
	if (f->kind->ties)
		f->kind->ties(f);
}

bool format_scales(struct format *f, enum scale_type type)
{
	if (f->kind->scales && f->kind->scales != type)
		return false;
	f->scales = type;
	return true;
}

struct scale_kind format_scale_kind(const struct format *f)
{
	return scale_kind_of(f->scales, f->scale_bits);
}

bool format_rounds_scales(const struct format *f)
{
	return f->scales != SCALE_F32 || f->scale_bits;
}

void format_tensor(struct format *f, double min, double max)
{
	const struct scale_kind t = format_scale_kind(f);
	const double range = f->asymmetric ? fmax(max, 0) - fmin(min, 0) : fmax(fabs(min), fabs(max));

	f->divisor = t.divided && range > 0 ? (float)fmin(t.max * (double)f->max / range, FLT_MAX) : 1;
}

float format_scale(const struct format *f, double s)
{
	const struct scale_kind t = format_scale_kind(f);

	return format_rounds_scales(f) ? scale_nearest(&t, s * f->divisor) / f->divisor : (float)s;
}

void format_store(const struct format *f, size_t n, float scale[n])
{
	const struct scale_kind t = format_scale_kind(f);

	for (size_t i = 0; t.divided && i < n; i++)
		scale[i] = scale_nearest(&t, (double)scale[i] * f->divisor);
}

/* Names of formats in other toolkits, and the closest format. */
static const char *const synonyms[][2] = {
	{ "fp8", "e4m3fn" }, { "float8", "e4m3fn" }, { "float8_e4m3fn", "e4m3fn" }, { "fp8_e4m3", "e4m3fn" },
	{ "e4m3fnuz", "e4m3fn" }, { "fp8_e5m2", "e5m2ieee" }, { "float8_e5m2", "e5m2ieee" },
	{ "fp4", "e2m1" }, { "mxfp8", "e4m3fn" }, { "mxfp6", "e2m3" }, { "fp6", "e2m3" },
	{ "int1", "uint1" }, { "q4_0", "int4" }, { "q4_1", "uint4" }, { "q5_0", "int5" }, { "q5_1", "uint5" },
	{ "q8_0", "int8" },
};

const char *format_hint(const struct format *f)
{
	return !strcmp(f->name, "e4m3") ? "e4m3fn" : !strcmp(f->name, "e5m2") ? "e5m2ieee" : NULL;
}

/* The i-th name of the pattern, i < 100; false if no format has it. */
static bool candidate_of(const char *pattern, int i, struct format *f, int number[2])
{
	const bool one = strchr(pattern, '#') == strrchr(pattern, '#');
	char name[24] = "";
	size_t at = 0, used = 0;

	number[0] = one ? i % 10 : i / 10, number[1] = one ? 0 : i % 10;
	for (const char *c = pattern; *c; c++)
		name[at++] = *c == '#' ? (char)('0' + number[used++]) : *c;
	return format_parse(f, name);
}

/* The format of a family with the nearest numbers. With two numbers, only if the distance is at most 2. */
static char *closest_of_family(const char *pattern, const int number[2])
{
	const bool one = strchr(pattern, '#') == strrchr(pattern, '#');
	struct format f, best = { .bits = 0 };
	int min = one ? INT_MAX : 3, has[2];

	for (int i = 0; i < 100; i++) {
		if (!candidate_of(pattern, i, &f, has))
			continue;
		has[0] = abs(has[0] - number[0]) + (one ? 0 : abs(has[1] - number[1]));
		if (has[0] < min) {
			min = has[0];
			best = f;
		}
	}
	return best.kind ? strdup(best.name) : NULL;
}

char *format_closest(const char *name)
{
	struct format f, best = { .bits = 0 };
	int min = INT_MAX, number[2] = { 0 };
	bool several = false;

	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (!strcasecmp(synonyms[i][0], name))
			return strdup(synonyms[i][1]);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (match(kinds[k].name, name, number))
			return closest_of_family(kinds[k].name, number);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (int i = 0; i < (strchr(kinds[k].name, '#') ? 100 : 1); i++) {
			const int far = candidate_of(kinds[k].name, i, &f, number) ?
				nearest_distance(name, f.name) : INT_MAX;

			several = far >= min && (several || (far == min && strcmp(f.name, best.name)));
			if (far < min) {
				min = far;
				best = f;
			}
		}
	/* Only a near name, and no other name as near: int is equally near to seven. */
	return 2 * min < (int)strlen(name) && !several ? strdup(best.name) : NULL;
}
