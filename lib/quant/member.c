/* SPDX-License-Identifier: GPL-3.0-or-later */
/* member.c -- see member.h */
#include "quant/member.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/code_form.h"
#include "num/hadamard.h"
#include "quant/pack.h"

#define AT(field) offsetof(struct linear, field)

static bool has_zero_point(const struct linear *l)
{
	return l->storage.asymmetric;
}

static bool has_scales(const struct linear *l)
{
	return !code_has_scales(&l->storage);
}

static bool has_compute(const struct linear *l)
{
	return l->compute.kind;
}

static bool has_static_scale(const struct linear *l)
{
	return linear_rounds(l) && l->input.mode != INPUT_DYNAMIC_TOKEN;
}

static bool is_dynamic(const struct linear *l)
{
	return l->input.mode == INPUT_DYNAMIC_TOKEN;
}

static bool has_divided_scales(const struct linear *l)
{
	return scale_kinds[l->storage.scales].divided;
}

/* Whether a byte of the codes is not one column. Then the file stores the number of columns. */
static bool has_other_columns(const struct linear *l)
{
	return code_form(&l->storage)->columns > 1 || code_bytes(&l->storage) > 1;
}

static bool has_tall_tiles(const struct linear *l)
{
	return code_form(&l->storage)->rows > 1;
}

/* Rows of codes, and bytes of a row. 0: the extent of the layer, if a code is a byte for one row or
 * column. */
static size_t codes_extent(const struct member *m, const struct linear *l, int i)
{
	const struct format *f = &l->storage;

	(void)m;
	if (i == 0)
		return has_tall_tiles(l) ? code_rows(f, l->out) : 0;
	return has_other_columns(l) ? code_columns(f, l->in) : 0;
}

static size_t packed_extent(const struct member *m, const struct linear *l, int i)
{
	const struct format *f = &l->storage;

	return i == 0 ? codes_extent(m, l, 0) : pack_words(f->bits, code_columns(f, l->in));
}

static size_t level_extent(const struct member *m, const struct linear *l, int i)
{
	const struct level_block b = level_extents(m->level, l);

	return i == 0 ? b.rows : b.columns;
}

static double type_bits(const struct linear *l)
{
	return (l->weight_type == HALF_NONE ? 32 : 16) * (double)l->out * (double)l->in;
}

static double codes_bits(const struct linear *l)
{
	return code_bits(&l->storage, l->out, l->in);
}

static double single_bits(const struct linear *l)
{
	(void)l;
	return 32;
}

static double sign_bits(const struct linear *l)
{
	(void)l;
	return 1;
}

static double split_bits(const struct linear *l)
{
	return l->split_scale ? 8 : 16;
}

static double index_bits(const struct linear *l)
{
	return ceil(log2((double)l->groups));
}

static bool is_finite(size_t n, const void *x, enum half_type type, char why[MEMBER_WHY])
{
	if (half_finite(n, x, type))
		return true;
	snprintf(why, MEMBER_WHY, "holds infinite or undefined numbers (NaN)");
	return false;
}

static bool finite_weight(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	return is_finite(n, x, l->weight_type, why);
}

static bool finite_term(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	(void)l;
	return is_finite(n, x, HALF_NONE, why);
}

static bool positive(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const float *scale = x;

	(void)l;
	for (size_t i = 0; i < n; i++)
		if (!(scale[i] > 0) || isinf(scale[i])) {
			snprintf(why, MEMBER_WHY, "holds %g, expected positive scales", (double)scale[i]);
			return false;
		}
	return true;
}

static bool own_scales(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	struct format own;

	(void)n, (void)x;
	if (!format_parse(&own, l->storage.name) || format_scales(&own, l->storage.scales))
		return true;
	snprintf(why, MEMBER_WHY, "is %s, the scales of %s are %s", scale_types[l->storage.scales], own.name,
		scale_types[own.scales]);
	return false;
}

static bool scales_of_type(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const struct scale_kind *t = &scale_kinds[l->storage.scales];
	const float *scale = x;

	if (t->units && !l->compute.kind) {
		snprintf(why, MEMBER_WHY, "multiplies scale8 (scale_dtype %s), but attribute compute "
			"names no format", scale_types[l->storage.scales]);
		return false;
	}
	for (size_t i = 0; i < n && l->storage.scales != SCALE_F32; i++)
		if (scale[i] > 0 && !isinf(scale[i]) && scale_nearest(t, scale[i]) != scale[i]) {
			snprintf(why, MEMBER_WHY, "holds %.9g, which is not a number of %s, the attribute "
				"scale_dtype or the type for %s", (double)scale[i],
				scale_types[l->storage.scales], l->storage.name);
			return false;
		}
	return positive(l, n, x, why);
}

/* Whether no scale divided by it overflows or becomes zero in float. */
static bool divisor(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const struct scale_kind *t = &scale_kinds[l->storage.scales];
	const float d = *(const float *)x;

	if (!positive(l, n, x, why))
		return false;
	if (!isinf((float)t->max / d) && (float)t->min / d > 0)
		return true;
	snprintf(why, MEMBER_WHY, "is %g, by which scales overflow or become zero", (double)d);
	return false;
}

/* Index of the first invalid code of a row; the number of codes of a row: all are valid. */
static size_t first_invalid(const struct linear *l, size_t row)
{
	const struct format *f = &l->storage;
	const size_t bytes = code_bytes(f), codes = code_columns(f, l->in) / bytes;
	const size_t at_once = l->packed ? LINEAR_COLUMNS : codes;	/* a packed code is a byte */
	uint8_t unpacked[LINEAR_COLUMNS];

	for (size_t i = 0, k; i < codes; i += at_once) {
		const size_t n = min(codes - i, at_once);

		k = code_first_invalid(f, n, linear_codes(l, row, i * bytes, n * bytes, unpacked));
		if (k < n)
			return i + k;
	}
	return codes;
}

static void name_code(const struct linear *l, size_t row, char why[MEMBER_WHY])
{
	const size_t k = first_invalid(l, row), bytes = code_bytes(&l->storage), from = k / 32 * 32;
	uint8_t unpacked[32];

	if (bytes > 1)
		snprintf(why, MEMBER_WHY, "holds in row %zu, at byte %zu, a code that is not valid in "
			"%s", row, k * bytes, l->storage.name);
	else
		snprintf(why, MEMBER_WHY, "holds code %u, which is not valid in %s",
			linear_codes(l, row, from, k - from + 1, unpacked)[k - from], l->storage.name);
}

/* Whether every code is valid: within the bits and the codebook of the format, and not NaN. */
static bool codes_of_format(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const struct format *f = &l->storage;
	const size_t rows = code_rows(f, l->out), codes = code_columns(f, l->in) / code_bytes(f);
	size_t row = rows;

	(void)n, (void)x;
	if (code_is_any(f, l->packed))
		return true;
	#pragma omp parallel for num_threads(threads_for(rows)) schedule(static) reduction(min:row) \
		if (l->out * l->in > 1 << 19)
	for (size_t i = 0; i < rows; i++)
		if (first_invalid(l, i) < codes)
			row = min(row, i);
	if (row < rows)
		name_code(l, row, why);
	return row == rows;
}

/* Zero points must be codes of the format, since packed products rely on a small code - zero. */
static bool zeros_of_format(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const uint8_t *zero = x;
	unsigned max = 0;

	for (size_t i = 0; i < n; i++)
		max = zero[i] > max ? zero[i] : max;
	if ((float)max > l->storage.max)
		snprintf(why, MEMBER_WHY, "holds zero point %u, the largest code of %s is %g", max,
			l->storage.name, (double)l->storage.max);
	return (float)max <= l->storage.max;
}

static bool groups_of_layer(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const int32_t *group = x;

	for (size_t i = 0; i < n; i++)
		if (group[i] < 0 || (size_t)group[i] >= l->groups) {
			snprintf(why, MEMBER_WHY, "column %zu is in group %d of %zu", i, group[i], l->groups);
			return false;
		}
	return true;
}

static bool columns_once(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const int32_t *column = x;

	if (!n)
		snprintf(why, MEMBER_WHY, "is empty, expected columns, or no such member");
	for (size_t i = 0; i < n; i++)
		if (column[i] < 0 || (size_t)column[i] >= l->in || (i && column[i] <= column[i - 1])) {
			snprintf(why, MEMBER_WHY, "holds %d at %zu, expected columns below %zu, ascending",
				column[i], i, l->in);
			return false;
		}
	return n;
}

static bool one_or_all(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	if (n == 1 || n == l->out)
		return positive(l, n, x, why);
	snprintf(why, MEMBER_WHY, "has %zu values, expected 1 or %zu", n, l->out);
	return false;
}

static bool one_a_modality(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const bool tensor = l->input.mode == INPUT_STATIC_TENSOR;

	if (n && (n == 1 || !tensor))
		return positive(l, n, x, why);
	snprintf(why, MEMBER_WHY, "has %zu values, expected %s", n, tensor ? "1" : "one per modality");
	return false;
}

/* Numbers are rounded to this format without parameters, so it must not have a zero point or scales of
 * groups. */
static bool rounds_alone(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const struct format *f = x;

	(void)l, (void)n;
	if (f->kind && !format_has_grid(f))
		snprintf(why, MEMBER_WHY, "is '%s', which has no grid, expected a format with one", f->name);
	else if (f->asymmetric || f->group)
		snprintf(why, MEMBER_WHY, "is '%s', which has %s, expected a format without", f->name,
			f->asymmetric ? "a zero point" : "scales of groups");
	else
		return true;
	return false;
}

/* Whether a Hadamard matrix of this order divides n; n 0: not known yet. */
static bool is_order(size_t order, size_t n, const char *what, char why[MEMBER_WHY])
{
	struct hadamard h;

	if (!n || hadamard_choose(&h, n, order))
		return true;
	snprintf(why, MEMBER_WHY, "is %zu, expected the order of a Hadamard matrix that divides %zu %s, "
		"such as %zu", order, n, what, hadamard_block(n));
	return false;
}

static bool order_of_inputs(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	(void)n;
	return is_order(*(const size_t *)x, l->in, "columns", why);
}

static bool order_of_outputs(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	(void)n;
	return is_order(*(const size_t *)x, l->out, "rows", why);
}

static bool are_signs(const struct linear *l, size_t n, const void *x, char why[MEMBER_WHY])
{
	const int8_t *sign = x;

	(void)l;
	for (size_t i = 0; i < n; i++)
		if (sign[i] != 1 && sign[i] != -1) {
			snprintf(why, MEMBER_WHY, "holds %d at %zu, expected 1 or -1", sign[i], i);
			return false;
		}
	return true;
}

const char *const input_modes[] = {
	[INPUT_STATIC_TENSOR] = "static-tensor", [INPUT_DYNAMIC_TOKEN] = "dynamic-token",
	[INPUT_STATIC_MODALITY] = "static-modality", NULL
};

static bool may_be_packed(const struct linear *l)
{
	return code_packs(&l->storage);
}

static const char not_packed[] = "codes of the storage format are whole bytes";
static const char not_tall[] = "a code of the storage format belongs to one row";
static const char no_other[] = "a code of the storage format is one byte for one column";
static const char in_codes[] = "codes of the storage format contain their scales";
static const char no_zero[] = "the storage format has no zero point";
static const char not_divided[] = "scale_dtype is not e4m3fn";
static const char no_compute[] = "attribute compute names no format";
static const char no_mode[] = "no attribute act_mode specifies the rounding of inputs";
static const char no_dynamic[] = "attribute act_mode is not dynamic-token";
static const char no_static[] = "attribute act_mode names no static scale";

const struct member members[] = {	/* in the order of writing */
	{ "weight", MEMBER_FLOAT, MEMBER_WEIGHT, FORM_PLAIN, AT(weight), .half = AT(weight_type),
		.rank = 2, .extent = { AT(out), AT(in) }, .is_valid = finite_weight, .bits = type_bits },
	{ "packed", MEMBER_U32, MEMBER_WEIGHT, FORM_PACKED, AT(packed),
		.is_allowed = may_be_packed, .absent_because = not_packed, .rank = 2, .extent = { AT(out) },
		.follows = packed_extent, .is_valid = codes_of_format, .bits = codes_bits },
	{ "columns", MEMBER_SIZE, MEMBER_PARAMETER, FORM_PACKED, AT(in), .of = "packed",
		.min = 1, .max = LINEAR_MAX, .meaning = "the number of packed columns" },
	{ "rows", MEMBER_SIZE, MEMBER_PARAMETER, FORM_PACKED, AT(out), .of = "packed",
		.is_allowed = has_tall_tiles, .absent_because = not_tall, .min = 1, .max = LINEAR_MAX,
		.meaning = "the number of rows of the layer" },
	{ "codes", MEMBER_U8, MEMBER_WEIGHT, FORM_CODES, AT(codes), .rank = 2,
		.extent = { AT(out), AT(in) }, .follows = codes_extent, .is_valid = codes_of_format,
		.bits = codes_bits },
	{ "columns", MEMBER_SIZE, MEMBER_PARAMETER, FORM_CODES, AT(in), .of = "codes",
		.is_allowed = has_other_columns, .absent_because = no_other, .min = 1, .max = LINEAR_MAX,
		.meaning = "the number of columns of the layer" },
	{ "rows", MEMBER_SIZE, MEMBER_PARAMETER, FORM_CODES, AT(out), .of = "codes",
		.is_allowed = has_tall_tiles, .absent_because = not_tall, .min = 1, .max = LINEAR_MAX,
		.meaning = "the number of rows of the layer" },
	{ "scale", MEMBER_F32, MEMBER_PARAMETER, FORM_QUANTIZED, AT(scale),
		.level = &levels[LEVEL_SCALES], .is_allowed = has_scales, .absent_because = in_codes,
		.rank = 2, .follows = level_extent, .is_valid = scales_of_type },
	{ "scale_tensor", MEMBER_F32, MEMBER_PARAMETER, FORM_QUANTIZED, AT(scale_tensor),
		.level = &levels[LEVEL_TENSOR], .is_allowed = has_divided_scales,
		.absent_because = not_divided, .rank = 1, .follows = level_extent, .is_valid = divisor },
	{ "zero", MEMBER_U8, MEMBER_PARAMETER, FORM_QUANTIZED, AT(zero), .is_allowed = has_zero_point,
		.absent_because = no_zero, .level = &levels[LEVEL_ZEROS], .rank = 2, .follows = level_extent,
		.is_valid = zeros_of_format },
	{ "group_index", MEMBER_I32, MEMBER_PARAMETER, FORM_QUANTIZED, AT(group_index), .optional = true,
		.is_allowed = has_scales, .absent_because = in_codes,
		.rank = 1, .extent = { AT(in) }, .is_valid = groups_of_layer, .bits = index_bits },
	{ "storage", MEMBER_FORMAT, MEMBER_PARAMETER, FORM_QUANTIZED, .view = AT(storage) },
	{ "scale_dtype", MEMBER_WORD, MEMBER_PARAMETER, FORM_QUANTIZED, .view = AT(storage.scales),
		.optional = true, .is_allowed = has_scales, .absent_because = in_codes, .words = scale_types,
		.meaning = "f32, bf16, f16, e8m0, e4m3fn, u8", .is_valid = own_scales },
	{ "group", MEMBER_LONG, MEMBER_PARAMETER, FORM_QUANTIZED, AT(group),
		.is_allowed = has_scales, .absent_because = in_codes, .min = -1,
		.max = LINEAR_MAX, .meaning = "-1 (tensor), 0 (channel) or the columns of a group" },
	{ "bits", MEMBER_INT, MEMBER_PARAMETER, FORM_QUANTIZED, AT(storage.bits), .optional = true,
		.min = 1, .max = INT_MAX,	/* read after storage: must be the bits of the format */
		.meaning = "the width of the storage format" },
	{ "compute", MEMBER_FORMAT, MEMBER_PARAMETER, FORM_QUANTIZED, AT(compute), .optional = true,
		.is_valid = rounds_alone },
	{ "scale8", MEMBER_F32, MEMBER_PARAMETER, FORM_QUANTIZED, AT(scale8), .is_allowed = has_compute,
		.absent_because = no_compute, .level = &levels[LEVEL_SCALES8], .rank = 1,
		.extent = { AT(scales8) }, .is_valid = one_or_all },
	{ "saturate", MEMBER_REAL, MEMBER_PARAMETER, FORM_QUANTIZED, AT(saturate), .optional = true,
		.is_allowed = has_compute, .absent_because = no_compute, .max = FLT_MAX,
		.meaning = "a number from 0 on" },
	{ "bias", MEMBER_WIDE, MEMBER_TERM, FORM_ANY, AT(bias), .optional = true, .rank = 1,
		.extent = { AT(out) }, .is_valid = finite_term },
	{ "act_format", MEMBER_FORMAT, MEMBER_PARAMETER, FORM_ANY, AT(input.format),
		.is_allowed = linear_rounds, .absent_because = no_mode, .is_valid = rounds_alone },
	{ "act_mode", MEMBER_WORD, MEMBER_PARAMETER, FORM_ANY, AT(input.mode), .optional = true,
		.words = input_modes, .meaning = "static-tensor, dynamic-token, static-modality" },
	{ "act_scale", MEMBER_F32, MEMBER_PARAMETER, FORM_ANY, AT(input.scale),
		.is_allowed = has_static_scale, .absent_because = no_static, .rank = 1,
		.extent = { AT(input.modalities) }, .is_valid = one_a_modality },
	{ "act_clip", MEMBER_REAL, MEMBER_PARAMETER, FORM_ANY, AT(input.clip), .optional = true,
		.is_allowed = is_dynamic, .absent_because = no_dynamic, .min = LINEAR_CLIP_MIN, .max = 1,
		.meaning = "the part of a token's largest input that is not clipped, 1/64 to 1" },
	{ "input_signs", MEMBER_I8, MEMBER_PARAMETER, FORM_ANY, AT(rotation_in.signs), .optional = true,
		.rank = 1, .extent = { AT(in) }, .is_valid = are_signs, .bits = sign_bits },
	{ "online_hadamard", MEMBER_SIZE, MEMBER_PARAMETER, FORM_ANY, AT(rotation_in.hadamard),
		.optional = true, .min = 1, .max = LINEAR_MAX, .meaning = "the order of a Hadamard matrix",
		.is_valid = order_of_inputs },
	{ "output_hadamard", MEMBER_SIZE, MEMBER_PARAMETER, FORM_ANY, AT(rotation_out.hadamard),
		.optional = true, .min = 1, .max = LINEAR_MAX, .meaning = "the order of a Hadamard matrix",
		.is_valid = order_of_outputs },
	{ "output_signs", MEMBER_I8, MEMBER_PARAMETER, FORM_ANY, AT(rotation_out.signs), .optional = true,
		.rank = 1, .extent = { AT(out) }, .is_valid = are_signs, .bits = sign_bits },
	{ "split_index", MEMBER_I32, MEMBER_PARAMETER, FORM_ANY, AT(split_index), .optional = true,
		.requires = "split_weight", .rank = 1, .extent = { AT(splits) }, .is_valid = columns_once,
		.bits = single_bits },
	{ "split_scale", MEMBER_F32, MEMBER_PARAMETER, FORM_ANY, AT(split_scale), .optional = true,
		.requires = "split_index", .rank = 1, .extent = { AT(splits) }, .is_valid = positive,
		.bits = single_bits },
	{ "split_weight", MEMBER_SHORT, MEMBER_PARAMETER, FORM_ANY, AT(split_weight),
		.scaled = AT(split_scale), .optional = true, .rank = 2, .requires = "split_index",
		.extent = { AT(out), AT(splits) }, .is_valid = finite_term, .bits = split_bits },
	{ "branch_a", MEMBER_LINEAR, MEMBER_PARAMETER, FORM_ANY, AT(branch_a), .optional = true,
		.requires = "branch_b", .rank = 2, .extent = { AT(rank), AT(in) } },
	{ "branch_b", MEMBER_LINEAR, MEMBER_PARAMETER, FORM_ANY, AT(branch_b), .optional = true,
		.requires = "branch_a", .rank = 2, .extent = { AT(out), AT(rank) } },
	{ 0 }
};

bool member_is_dataset(const struct member *m)
{
	return m->type <= MEMBER_SHORT;
}

bool member_is_attribute(const struct member *m)
{
	return m->type > MEMBER_LINEAR;
}

const void *member_field(const struct linear *l, size_t offset)
{
	return (const char *)l + offset;
}

void *member_fill(struct linear *l, size_t offset)
{
	return (char *)l + offset;
}

double member_number(const struct member *m, const struct linear *l)
{
	const void *x = member_field(l, m->view);

	switch (m->type) {
	case MEMBER_INT:	return *(const int *)x;
	case MEMBER_LONG:	return (double)*(const long *)x;
	case MEMBER_SIZE:	return (double)*(const size_t *)x;
	default:		return (double)*(const float *)x;
	}
}

static const void *view_of(const struct member *m, const struct linear *l)
{
	const void *view;

	memcpy(&view, member_field(l, m->view), sizeof view);
	return view;
}

const struct member *member_weight(const struct member rows[], const struct linear *l)
{
	for (const struct member *m = rows; m->name; m++)
		if (m->role == MEMBER_WEIGHT && view_of(m, l))
			return m;
	return NULL;
}

bool member_is_present(const struct member *m, const struct linear *l, int form)
{
	if (!(m->forms & form) || (m->is_allowed && !m->is_allowed(l)))
		return false;
	if (!member_is_attribute(m))
		return view_of(m, l);
	switch (m->type) {	/* a default value is not stored */
	case MEMBER_WORD:	return *(const int *)member_field(l, m->view);
	case MEMBER_SIZE:	return !m->optional || *(const size_t *)member_field(l, m->view);
	case MEMBER_REAL:	return !m->optional || *(const float *)member_field(l, m->view) > 0;
	default:		return true;
	}
}

/* Whether the level has one value, which may be stored with any rank. */
static bool is_one_value(const struct level *v, const struct linear *l)
{
	const struct level_block b = v->block(l);

	return !b.rows && !b.columns;
}

int member_extents(const struct member *m, const struct linear *l, size_t dim[2])
{
	for (int i = 0; i < m->rank; i++) {
		dim[i] = m->follows ? m->follows(m, l, i) : 0;
		if (!dim[i])
			dim[i] = *(const size_t *)member_field(l, m->extent[i]);
	}
	return m->rank == 2 && m->level && is_one_value(m->level, l) ? 0 : m->rank;
}

void member_set_extent(const struct member *m, struct linear *l, int i, size_t extent)
{
	if (!m->follows || !m->follows(m, l, i))
		memcpy(member_fill(l, m->extent[i]), &extent, sizeof extent);
}

/* Stored bits of a member, except a branch. */
static double bits_of(const struct member *m, const struct linear *l)
{
	double bits = m->level ? level_bits(m->level, l) : m->bits ? m->bits(l) : 0;
	size_t dim[2] = { 0 };

	for (int i = m->role == MEMBER_WEIGHT ? 0 : member_extents(m, l, dim); i > 0; i--)
		bits *= (double)dim[i - 1];
	return bits;
}

double member_bits(const struct member rows[], const struct linear *l)
{
	const int form = member_weight(rows, l)->forms;
	double bits = 0;

	for (const struct member *m = rows; m->name; m++) {
		if (!member_is_present(m, l, form))
			continue;
		bits += bits_of(m, l);
		if (m->type == MEMBER_LINEAR) {
			const struct linear *branch = view_of(m, l);

			bits += member_bits(rows, branch) * (double)branch->out * (double)branch->in;
		}
	}
	return bits / ((double)l->out * (double)l->in);
}
