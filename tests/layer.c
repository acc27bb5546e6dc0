/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer -- the table of members: an additional row is read, written, left out of copies and counted */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "case.h"
#include "io/part.h"
#include "model/layer.h"
#include "quant/member.h"

enum { OUT = 6, IN = 40, GROUPS = 2, ROWS = 64 };

/* A layer with two further members: a dataset with an extent from the file, and an attribute. */
struct tilted {
	struct linear linear;
	const float *tilt;		/* [out][tilts] */
	size_t tilts;
	float lean;
};

static double tilt_bits(const struct linear *l)
{
	(void)l;
	return 16;
}

static bool leans(const struct linear *l)
{
	return l->storage.asymmetric;
}

static struct member rows[ROWS];

static int make_rows(void **unused)
{
	size_t n = 0;

	(void)unused;
	for (; members[n].name; n++)
		rows[n] = members[n];
	assert_true(n + 3 <= ROWS);
	rows[n++] = (struct member){ "tilt", MEMBER_F32, MEMBER_PARAMETER, FORM_ANY, .optional = true,
		.view = offsetof(struct tilted, tilt), .bits = tilt_bits, .rank = 2,
		.extent = { offsetof(struct linear, out), offsetof(struct tilted, tilts) } };
	rows[n++] = (struct member){ "lean", MEMBER_REAL, MEMBER_PARAMETER, FORM_QUANTIZED,
		offsetof(struct tilted, lean), .max = 10, .meaning = "from 0 to 10", .is_allowed = leans,
		.absent_because = "the layer is upright" };
	return 0;
}

static uint8_t codes[OUT * IN], zero[OUT * GROUPS];
static float scale[OUT * GROUPS], tilt[2][OUT * 3], bias[OUT];

static struct tilted make(const char *storage)
{
	struct tilted y = { .linear = { .out = OUT, .in = IN, .codes = codes, .scale = scale, .bias = bias,
		.group = 32, .groups = GROUPS }, .tilt = tilt[0], .tilts = 3, .lean = 2.5f };

	assert_true(format_parse(&y.linear.storage, storage));
	for (size_t i = 0; i < OUT * IN; i++)
		codes[i] = (uint8_t)(i % 16);
	for (size_t i = 0; i < OUT * GROUPS; i++)
		scale[i] = 1 + (float)i, zero[i] = (uint8_t)(i % 16);
	for (size_t i = 0; i < OUT * 3; i++)
		tilt[0][i] = (float)i, tilt[1][i] = -(float)i;
	if (y.linear.storage.asymmetric)
		y.linear.zero = zero;
	return y;
}

/* A file with the layer /a/b equal to l; from: with the other members of that file's group. */
static struct part *written(const struct tilted *l, const struct part *from)
{
	char path[] = "/tmp/ptq-layer-XXXXXX";
	struct output *out;
	struct part *part;

	close(mkstemp(path));
	out = output_open(path, "model");
	output_start(out, 0, 1);
	layer_write_members(out, from, "/a/b", rows, &l->linear);
	if (!from) {
		output_write(out, "/a/b/memo", tensor_1d(TENSOR_F32, tilt[0], 4));
		output_number(out, "/a/b", "mood", 7);
	}
	output_end(out);
	output_close(out);
	part = part_open(path, "model");
	unlink(path);
	return part;
}

static void a_row_is_a_member(void **unused)
{
	struct tilted first = make("uint4"), second = first, y = { 0 }, z = { 0 };
	struct part *a = written(&first, NULL), *b;
	struct layer plain;

	(void)unused;
	layer_read_members(a, "/a/b", rows, &y.linear);
	assert_true(y.tilts == 3 && y.lean == first.lean && y.linear.out == OUT && y.linear.in == IN);
	assert_memory_equal(y.tilt, tilt[0], sizeof tilt[0]);
	assert_memory_equal(y.linear.codes, codes, sizeof codes);
	assert_memory_equal(y.linear.bias, bias, sizeof bias);

	second.tilt = tilt[1];		/* old members are left out; objects without a row are copied */
	second.tilts = 2;
	second.lean = 0.5f;
	b = written(&second, a);
	layer_read_members(b, "/a/b", rows, &z.linear);
	assert_true(z.tilts == 2 && z.lean == second.lean);
	assert_memory_equal(z.tilt, tilt[1], OUT * 2 * sizeof(float));
	assert_memory_equal(z.linear.bias, bias, sizeof bias);
	assert_true(part_has(b, "/a/b/memo") && part_number(b, "/a/b", "mood", 0) == 7);

	assert_true(member_bits(rows, &y.linear) == member_bits(members, &y.linear) + 16 * 3. / IN);
	assert_true(member_bits(rows, &z.linear) == member_bits(members, &z.linear) + 16 * 2. / IN);

	plain = layer_read(b, "/a/b", OUT, IN);		/* a reader without the row ignores it */
	assert_memory_equal(plain.linear.codes, codes, sizeof codes);
	layer_free(&plain);
	part_close(a);
	part_close(b);
}

/* Rows specify when a member is present. */
static void conditions(void **unused)
{
	struct tilted l = make("int5"), y = { 0 };
	struct part *part;

	(void)unused;
	l.tilt = NULL;
	part = written(&l, NULL);
	assert_false(part_has(part, "/a/b/tilt") || part_has(part, "/a/b/zero"));
	assert_true(part_number(part, "/a/b", "lean", -1) == -1);
	layer_read_members(part, "/a/b", rows, &y.linear);
	assert_true(!y.tilt && !y.linear.zero && y.lean == 0);
	assert_true(member_bits(rows, &y.linear) == member_bits(members, &y.linear));
	part_close(part);
}

/* The layer below equals what was written, plain or quantized. */
static void same_branch(const struct member *m, const struct linear *l, const struct linear *y)
{
	const struct linear *a, *b;

	memcpy(&a, (const char *)l + m->view, sizeof a);
	memcpy(&b, (const char *)y + m->view, sizeof b);
	assert_true(a->out == b->out && a->in == b->in && y->rank == 2);
	assert_true(a->weight_type == b->weight_type && !a->codes == !b->codes);
	if (a->weight)
		assert_memory_equal(a->weight, b->weight, 2 * a->out * a->in);
	else
		assert_memory_equal(a->codes, b->codes, a->out * a->in);
}

/* Reading returns the written struct linear; seen: the rows that were present. */
static void back(enum input_mode mode, bool seen[ROWS])
{
	static const uint16_t halves[2 * IN];
	const struct linear a_of_branch = { .out = 2, .in = IN, .weight = halves, .weight_type = HALF_F16 };
	struct tilted below = make("int5");
	struct linear b_of_branch = below.linear;
	static const int32_t index[IN];
	static int8_t signs[IN + OUT];
	static const float ones[OUT] = { 1, 1, 1, 1, 1, 1 }, divisor = 26.88f;
	struct tilted l = make("uint4"), y = { 0 };
	struct part *part;
	double bits;

	for (size_t i = 0; i < IN + OUT; i++)
		signs[i] = i % 3 ? 1 : -1;
	assert_true(format_scales(&l.linear.storage, SCALE_E4M3FN));
	l.linear.scale_tensor = &divisor;
	l.linear.group_index = index;
	l.linear.scale8 = ones;
	l.linear.scales8 = OUT;
	l.linear.saturate = 224;
	l.linear.rotation_in = (struct linear_rotation){ signs, 20 };
	l.linear.rotation_out = (struct linear_rotation){ signs, 2 };
	l.linear.splits = 1;
	l.linear.split_index = index;
	l.linear.split_weight = l.linear.split_scale = ones;
	b_of_branch.in = 2, b_of_branch.group = 0, b_of_branch.groups = 1, b_of_branch.bias = NULL;
	l.linear.rank = 2, l.linear.branch_a = &a_of_branch, l.linear.branch_b = &b_of_branch;
	l.linear.input.mode = mode;
	if (mode == INPUT_DYNAMIC_TOKEN)
		l.linear.input.clip = 0.75f;
	else
		l.linear.input.scale = ones, l.linear.input.modalities = 2;
	assert_true(format_parse(&l.linear.compute, "e4m3ieee") && format_parse(&l.linear.input.format,
		"e4m3fn"));
	part = written(&l, NULL);
	layer_read_members(part, "/a/b", rows, &y.linear);
	for (const struct member *m = rows; m->name; m++) {
		CASE("%s", m->name);
		const bool there = member_is_present(m, &l.linear, FORM_CODES);
		size_t dim[2] = { 0 }, n = 1;
		const char *a, *b;

		assert_int_equal(there, member_is_present(m, &y.linear, FORM_CODES));
		seen[m - rows] |= there;
		if (there && m->type == MEMBER_LINEAR)
			same_branch(m, &l.linear, &y.linear);
		if (!there || !member_is_dataset(m))
			continue;
		memcpy(&a, (const char *)&l + m->view, sizeof a);
		memcpy(&b, (const char *)&y + m->view, sizeof b);
		for (int i = member_extents(m, &l.linear, dim); i > 0; i--)
			n *= dim[i - 1];
		assert_memory_equal(a, b, n * (m->type == MEMBER_U8 || m->type == MEMBER_I8 ? 1 : 4));
	}
	assert_true(!strcmp(y.linear.compute.name, "e4m3ieee") && !strcmp(y.linear.input.format.name,
		"e4m3fn"));
	assert_true(y.linear.storage.scales == SCALE_E4M3FN);
	assert_true(y.linear.rotation_in.hadamard == 20 && y.linear.rotation_out.hadamard == 2);
	assert_true(y.linear.saturate == 224 && y.linear.group == 32 &&
		y.linear.input.mode == mode && y.linear.input.clip == l.linear.input.clip);
	bits = member_bits(members, &l.linear);
	/* halves of A; codes of 5 bits and one scale per row of B */
	l.linear.branch_a = l.linear.branch_b = NULL;
	assert_true(fabs(bits - member_bits(members, &l.linear) - (16. * 2 * IN + OUT * (5. * 2 + 32)) /
		(OUT * IN)) < 1e-9);
	part_close(part);
}

/* Every row of the table occurs in one of two layers: a scale is static or per token. */
static void every_row(void **unused)
{
	bool seen[ROWS] = { false };

	(void)unused;
	back(INPUT_STATIC_MODALITY, seen);
	back(INPUT_DYNAMIC_TOKEN, seen);
	for (const struct member *m = rows; m->name; m++)
		if (!m->of)	/* a code of the two layers is of one weight: extents are those of codes */
			assert_int_equal(seen[m - rows], (m->forms & FORM_CODES) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_a_member), cmocka_unit_test(conditions),
			cmocka_unit_test(every_row),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_rows, NULL);
}
