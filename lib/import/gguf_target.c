/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_target.c -- see gguf_target.h */
#include "import/gguf_target.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "import/folder_target.h"
#include "import/ggml_encode.h"
#include "import/gguf_layout_private.h"
#include "import/gguf_metadata_private.h"
#include "import/gguf_output.h"
#include "import/gguf_said_private.h"

enum { NUMBER = 24 };		/* of the digits of a block or expert, at most */

/* A tensor of all experts: where its bytes are, and how many of them came. */
struct experts { char *name; size_t at, bytes, n; uint32_t type; };

struct result {
	struct gguf_output *out;
	const struct gguf_row *row;
	struct gguf_sizes sizes;
	size_t blocks;
	struct experts *experts;
	size_t stacks;
};

/* A name of transformers in GGUF: of which row, of which expert. */
struct name { char *theirs; const struct gguf_name *row; size_t expert; };

/* Where digits of the name stand for a mark of the pattern; *s goes behind them. */
static bool match_number(const char **s, char number[NUMBER])
{
	size_t n = 0;

	while (isdigit((unsigned char)**s) && n + 1 < NUMBER)
		number[n++] = *(*s)++;
	number[n] = 0;
	return n;
}

/* Whether the name, without its member, is of the row; block: digits, as the expert's number. */
static bool match(const char *pattern, const char *name, size_t n, char block[NUMBER], char expert[NUMBER])
{
	const char *end = name + n;

	for (; *pattern; pattern++) {
		if (*pattern == '#' || *pattern == '@') {
			if (!match_number(&name, *pattern == '#' ? block : expert))
				return false;
		} else if (name == end || *name++ != *pattern)
			return false;
	}
	return name == end;
}

/* "blk.0.attn_q.weight" of "model.layers.0.self_attn.q_proj.weight"; dies where there is none. */
static struct name name_of(const struct export *e, const char *ours)
{
	const struct result *r = e->data;
	const char *member = strrchr(ours, '.');
	char block[NUMBER] = "", expert[NUMBER] = "";
	const struct gguf_name *row = r->row->names;

	while (row->theirs && !match(row->ours, ours, (size_t)(member - ours), block, expert))
		row++;
	if (!row->theirs)
		die("%s: %s: GGUF's %s has no such tensor", e->from, ours, r->row->name);

	const char *mark = strchr(row->theirs, '#');
	const int before = (int)(mark ? mark - row->theirs : 0);

	return (struct name){ mark ? xformat("%.*s%s%s%s", before, row->theirs, block, mark + 1, member) :
		xformat("%s%s", row->theirs, member), row, strtoul(expert, NULL, 10) };
}

/* Rows of so many bytes in transformers' order, as the file has them; frees x. */
static char *stored_order(const struct result *r, const struct gguf_layout *l, size_t rows, size_t bytes,
	char *x)
{
	char *y = l->rows == GGUF_ROWS_AS_IS ? x : xalloc(rows, bytes);

	for (size_t i = 0; y != x && i < rows; i++)
		memcpy(y + bytes * gguf_layout_row(l, &r->sizes, rows, i), x + bytes * i, bytes);
	if (y != x)
		free(x);
	return y;
}

/* Its bytes in the file: of a tensor of its own, or of one of all experts. */
static size_t place_of(struct export *e, const struct name *name, uint32_t type, int rank, const size_t dim[],
	size_t bytes)
{
	struct result *r = e->data;
	const size_t all[] = { r->sizes.experts, dim[0], rank > 1 ? dim[1] : 0 };
	struct experts *x = r->experts;

	if (!strchr(name->row->ours, '@'))
		return gguf_add(r->out, name->theirs, type, rank, dim, bytes);
	while (x < r->experts + r->stacks && strcmp(x->name, name->theirs))
		x++;
	if (x == r->experts + r->stacks) {
		const size_t at = gguf_add(r->out, name->theirs, type, 3, all, bytes * r->sizes.experts);

		r->experts = xgrow(r->experts, r->stacks + 1, sizeof *r->experts);
		x = r->experts + r->stacks++;
		*x = (struct experts){ xformat("%s", name->theirs), at, bytes, 0, type };
	}
	if (x->type != type)
		die("%s: %s: expert %zu has weights of another format than those before it; GGUF has one "
			"type for all experts", e->from, name->theirs, name->expert);
	x->n++;
	return x->at + name->expert * bytes;
}

/* Numbers of floats in the dtype, as bytes; frees x. */
static char *narrow(const struct export *e, const char *name, enum half_type dtype, size_t n, float *x)
{
	uint16_t *y;

	if (dtype == HALF_NONE)
		return (char *)x;
	y = xalloc(n, sizeof *y);
	half_narrow(n, y, x, dtype);
	if (!half_finite(n, y, dtype))
		die("%s: %s: has a number beyond those of f16, expected --dtype bf16 or f32", e->from, name);
	free(x);
	return (char *)y;
}

/* Writes rows of numbers by rows of transformers; frees x. */
static void put_plain(struct export *e, const struct name *name, enum half_type dtype, int rank,
	const size_t dim[], float *x)
{
	static const uint32_t types[] = { [HALF_NONE] = 0, [HALF_F16] = 1, [HALF_BF16] = 30 };
	struct result *r = e->data;
	const size_t rows = dim[0], columns = rank > 1 ? dim[1] : 1, bytes = columns * half_size(dtype);
	const struct gguf_layout *l = &gguf_layouts[name->row->layout];
	const bool one = l->one_row && rows == 1;
	char *y;

	for (size_t i = 0; l->plus != 0 && i < rows * columns; i++)
		x[i] += l->plus;
	y = stored_order(r, l, rows, bytes,
		narrow(e, name->theirs, dtype, rows * columns, x));
	gguf_write(r->out, place_of(e, name, types[dtype], one ? 1 : rank, dim + one, rows * bytes), y,
		rows * bytes);
	free(y);
}

/* The type of the layers' codes; NULL: they are written plainly. Dies where they would be of several. */
static const struct ggml_type *blocks_of(const struct export *e, const struct export_weight *w)
{
	const bool q8 = e->options.blocks == BLOCKS_Q8_0;
	const struct ggml_type *type = NULL;

	if (e->options.blocks == BLOCKS_NONE)
		return NULL;
	for (size_t i = 0; i < w->n; i++) {
		const struct linear *l = &w->layer[i].linear;
		const struct ggml_type *own = ggml_for(l, q8);

		if (l->group_index && !l->weight && !ggml_groups_fit(l))
			die("%s: %s: its groups are no neighbouring columns, which blocks of 32 cannot say; "
				"dpq-run --order none or gar gives others, --blocks none writes it plainly",
				e->from, w->layer[i].path);
		if (i && own != type)
			die("%s: %s: is of another format than %s, and GGUF has one tensor for both; "
				"--blocks q8_0 or none may give both one type", e->from, w->layer[i].path,
				w->layer->path);
		type = own;
	}
	return type;
}

/* Refuses scales that are rounded, or says what it cost. */
static void check_rounding(const struct export *e, const struct export_weight *w,
	const struct ggml_type *type, const struct ggml_rounding r[w->rows])
{
	static const struct report_column columns[] = { { "change", REPORT_MAX } };
	static const struct report_table table = { columns, 1, NULL };
	struct ggml_rounding all = { 0 };
	const struct format *f = &w->layer->linear.storage;
	const bool product = ggml_has_minimum(type);
	double change;

	for (size_t i = 0; i < w->rows; i++) {
		all.blocks += r[i].blocks, all.beyond += r[i].beyond;
		all.error += r[i].error, all.sum += r[i].sum;
	}
	if (all.beyond)
		die("%s: %s: has scales beyond those of f16, which %s has; --blocks none writes it plainly",
			e->from, w->layer->path, type->name);
	if (all.blocks && !e->options.allow_rounding)
		die("%s: %s: %zu blocks of %s would have a scale%s that f16 rounds; %s%s, --blocks none "
			"or --allow-rounding", e->from, w->layer->path, all.blocks, type->name,
			product ? " or zero point times scale" : "",
			!product ? "dpq-run --scale-dtype f16 gives scales that it does not" : f->bits > 4 ?
			"dpq-run --scale-dtype f16 --scale-bits 6 gives some that it does not" :
			"dpq-run --scale-dtype f16 --scale-bits 7 gives some that it does not",
			product ? ", --blocks q8_0 has no such product" : "");
	change = all.sum > 0 ? sqrt(all.error / all.sum) : 0;
	if (all.blocks)
		report_row(e->options.report, &table, w->name, &change);
}

static void put_blocks(struct export *e, const struct name *name, const struct export_weight *w,
	const struct ggml_type *type)
{
	struct result *r = e->data;
	const size_t bytes = w->columns / type->length * type->bytes;
	struct ggml_rounding *rounding = xalloc(w->rows, sizeof *rounding);
	char *y = xalloc(w->rows, bytes);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < w->rows; i++) {
		size_t row, layer = export_row(w, i, &row);

		ggml_encode(&w->layer[layer].linear, type, row, (uint8_t *)y + i * bytes, rounding + i);
	}
	check_rounding(e, w, type, rounding);
	free(rounding);
	y = stored_order(r, &gguf_layouts[name->row->layout], w->rows, bytes, y);
	gguf_write(r->out, place_of(e, name, type->id, 2, (size_t []){ w->rows, w->columns },
		w->rows * bytes), y, w->rows * bytes);
	free(y);
}

static void put_tokenizer(struct export *e)
{
	struct result *r = e->data;
	const char *json = e->text[TEXT_TOKENIZER];
	char *why = json ? gguf_put_tokenizer(r->out, e->to, e->text, e->config) : NULL;

	if (!json || why)
		gguf_put_text(r->out, GGUF_TOKENIZER, "none");
	if (why) {
		gguf_put_text(r->out, GGUF_TOKENIZER_JSON, json);
		warn("%s: tokenizer.ggml.model: none: GGUF cannot say the tokenizer: %s; it goes along as "
			"tokenizer.json, which llama.cpp does not read: give it token ids", e->to, why);
	}
	gguf_put_chat(r->out, e->text);
	free(why);
}

static void begin(struct export *e)
{
	struct result *r = e->data = xalloc(1, sizeof *r);
	const struct stack *s = config_last(e->config);
	size_t room = 0;

	r->row = gguf_row_for(e->config, e->from);
	r->sizes = (struct gguf_sizes){ s->heads, s->kv_heads, s->head_dim, s->experts };
	r->blocks = s->blocks;
	r->out = gguf_create(e->to);
	gguf_put_config(r->out, r->row, e->config);
	put_tokenizer(e);
	for (const struct gguf_name *n = r->row->names; n->theirs; n++)
		room += 2 * (strchr(n->theirs, '#') ? r->blocks : 1) *
			gguf_entry_bytes(strlen(n->theirs) + NUMBER, 3);
	gguf_room(r->out, room + GGUF_ROPE_TENSORS * gguf_entry_bytes(2 * NUMBER, 1));
	gguf_put_rope(r->out, r->row, e->config);
	gguf_check_config(r->out, r->row, e->config, e->from);
}

static void weight(struct export *e, const struct export_weight *w)
{
	char *whole = xformat("%s.weight", w->name);
	struct name name = name_of(e, whole);
	const bool router = strstr(name.theirs, "ffn_gate_inp") != NULL;
	const struct ggml_type *type = blocks_of(e, w);

	folder_check_inputs(e, w);
	if (type && !gguf_layouts[name.row->layout].one_row)
		put_blocks(e, &name, w, type);
	else
		put_plain(e, &name, router ? HALF_NONE : e->options.dtype, 2,
			(size_t []){ w->rows, w->columns }, export_dense(w));
	free(whole);
	free(name.theirs);
}

static void tensor(struct export *e, const char *ours, const struct tensor *t)
{
	const size_t n = tensor_count(t);
	struct name name = name_of(e, ours);
	float *x = xalloc(n, sizeof *x);

	half_widen(n, x, t->data, t->type == TENSOR_F16 ? HALF_F16 :
		t->type == TENSOR_BF16 ? HALF_BF16 : HALF_NONE);
	put_plain(e, &name, HALF_NONE, t->rank, t->dim, x);
	free(name.theirs);
}

static void end(struct export *e)
{
	struct result *r = e->data;

	for (size_t i = 0; i < r->stacks; i++) {
		if (r->experts[i].n != r->sizes.experts)
			die("%s: %s: %zu of its %zu experts are there", e->from, r->experts[i].name,
				r->experts[i].n, r->sizes.experts);
		free(r->experts[i].name);
	}
	gguf_finish(r->out);
	free(r->experts);
	free(r);
}

const struct target gguf_target = { "gguf", "a GGUF file, as llama.cpp loads it", begin, weight, tensor, end,
	NULL };
