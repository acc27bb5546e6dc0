/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_target.c -- see gguf_target.h */
#include "export/gguf_target.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "export/export_codes.h"
#include "export/folder_target.h"
#include "export/ggml_encode.h"
#include "import/gguf_chat.h"
#include "import/gguf_layout.h"
#include "import/gguf_metadata.h"
#include "import/gguf_output.h"
#include "import/gguf_said.h"

enum { NUMBER = 24 };		/* max digits of the number of a block or expert */

/* A tensor of all experts: its offset, the bytes of one expert, the number of experts written. */
struct experts { char *name; size_t at, bytes, n; uint32_t type; };

/* Quantized weights that are written plainly: the unsupported feature, their number, the first one. */
struct plain { const char *why; size_t n; char *first; };

struct gguf_file {
	struct gguf_output *out;
	const struct gguf_row *row;
	struct gguf_sizes sizes;
	size_t blocks;
	struct experts *experts;
	size_t stacks;
	struct plain *plain;
	size_t plains;
};

/* The name in GGUF of a tensor of transformers, its row, and the number of its expert. */
struct name { char *gguf; const struct gguf_name *row; size_t expert; };

/* Reads the digits of the name that match a mark of the pattern, and advances *s. */
static bool match_number(const char **s, char number[NUMBER])
{
	size_t n = 0;

	while (isdigit((unsigned char)**s) && n + 1 < NUMBER)
		number[n++] = *(*s)++;
	number[n] = 0;
	return n;
}

/* Whether the first n bytes of the name, without its member, match the pattern; block, expert: their
 * digits. */
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

/* "blk.0.attn_q.weight" for "model.layers.0.self_attn.q_proj.weight"; a name without a row is a fatal
 * error. */
static struct name name_of(const struct export *e, const char *hf)
{
	const struct gguf_file *r = e->data;
	const char *member = strrchr(hf, '.');
	char block[NUMBER] = "", expert[NUMBER] = "";
	const struct gguf_name *row = r->row->names;

	while (row->gguf && !match(row->hf, hf, (size_t)(member - hf), block, expert))
		row++;
	if (!row->gguf)
		die("%s: %s: GGUF's %s has no such tensor", e->from, hf, r->row->name);

	const char *mark = strchr(row->gguf, '#');
	const int before = (int)(mark ? mark - row->gguf : 0);

	return (struct name){ mark ? xformat("%.*s%s%s%s", before, row->gguf, block, mark + 1, member) :
		xformat("%s%s", row->gguf, member), row, strtoul(expert, NULL, 10) };
}

/* Rows of `bytes` bytes, from the order of transformers to that of the file; frees x if the orders differ. */
static char *stored_order(const struct gguf_file *r, const struct gguf_layout *l, size_t rows, size_t bytes,
	char *x)
{
	char *y = l->rows == GGUF_ROWS_AS_IS ? x : xalloc(rows, bytes);

	for (size_t i = 0; y != x && i < rows; i++)
		memcpy(y + bytes * gguf_layout_row(l, &r->sizes, rows, i), x + bytes * i, bytes);
	if (y != x)
		free(x);
	return y;
}

/* The offset in the file, in a separate tensor or in a tensor of all experts. */
static size_t place_of(struct export *e, const struct name *name, uint32_t type, int rank, const size_t dim[],
	size_t bytes)
{
	struct gguf_file *r = e->data;
	const size_t all[] = { r->sizes.experts, dim[0], rank > 1 ? dim[1] : 0 };
	struct experts *x = r->experts;

	if (!strchr(name->row->hf, '@'))
		return gguf_add(r->out, name->gguf, type, rank, dim, bytes);
	if (name->expert >= r->sizes.experts)
		die("%s: %s: has a weight of expert %zu, the model has %zu experts", e->from, name->gguf,
			name->expert, r->sizes.experts);
	while (x < r->experts + r->stacks && strcmp(x->name, name->gguf))
		x++;
	if (x == r->experts + r->stacks) {
		const size_t at = gguf_add(r->out, name->gguf, type, 3, all, bytes * r->sizes.experts);

		r->experts = xgrow(r->experts, r->stacks + 1, sizeof *r->experts);
		x = r->experts + r->stacks++;
		*x = (struct experts){ xformat("%s", name->gguf), at, bytes, 0, type };
	}
	if (x->type != type)
		die("%s: %s: expert %zu has weights of another format than earlier experts; GGUF has one "
			"type for all experts", e->from, name->gguf, name->expert);
	if (x->bytes != bytes)
		die("%s: %s: expert %zu has %zu bytes of weights, earlier experts have %zu", e->from,
			name->gguf, name->expert, bytes, x->bytes);
	x->n++;
	return x->at + name->expert * bytes;
}

/* Writes numbers, whose rows are in the order of transformers; frees x. */
static void put_plain(struct export *e, const struct name *name, enum half_type dtype, int rank,
	const size_t dim[], float *x)
{
	static const enum ggml_id types[] = { [HALF_NONE] = GGML_F32, [HALF_F16] = GGML_F16,
		[HALF_BF16] = GGML_BF16 };
	struct gguf_file *r = e->data;
	const size_t rows = dim[0], columns = rank > 1 ? dim[1] : 1, bytes = columns * half_size(dtype);
	const struct gguf_layout *l = &gguf_layouts[name->row->layout];
	const bool one = l->one_row && rows == 1;
	char *y;

	if (l->f32)
		dtype = HALF_NONE;
	for (size_t i = 0; l->plus != 0 && i < rows * columns; i++)
		x[i] += l->plus;
	y = folder_narrow(e, name->gguf, dtype, rows * columns, x);
	if (y != (char *)x)
		free(x);
	y = stored_order(r, l, rows, bytes, y);
	gguf_write(r->out, place_of(e, name, types[dtype], one ? 1 : rank, dim + one, rows * bytes), y,
		rows * bytes);
	free(y);
}

/* The type of the layers' codes; NULL: they are written plainly, with *why from ggml_for(). Different types
 * are a fatal error. */
static const struct ggml_type *blocks_of(const struct export *e, const struct export_weight *w,
	const char **why)
{
	const bool q8 = e->options.blocks == BLOCKS_Q8_0;
	const struct ggml_type *type = NULL;

	*why = NULL;
	if (e->options.blocks == BLOCKS_NONE)
		return NULL;
	for (size_t i = 0; i < w->n; i++) {
		const struct linear *l = &w->layer[i].linear;
		const struct ggml_type *own = ggml_for(l, q8, why);

		if (l->group_index && !l->weight && !ggml_groups_fit(l))
			die("%s: %s: its groups are not neighbouring columns, as blocks of 32 need; dpq-run "
				"--reorder none or gar makes such groups, --blocks none writes it plainly",
				e->from, w->layer[i].path);
		if (i && own != type)
			die("%s: %s: is of another format than %s, and GGUF has one tensor for both; "
				"--blocks q8_0 or none may give both one type", e->from, w->layer[i].path,
				w->layer->path);
		type = own;
	}
	return type;
}

/* The sum of the squares of all weights. */
static double squares(const struct export_weight *w)
{
	float *x = export_dense(w);
	double sum = 0;

	for (size_t i = 0; i < w->rows * w->columns; i++)
		sum += (double)x[i] * (double)x[i];
	free(x);
	return sum;
}

/* Options that avoid the rounding, besides --blocks none and --allow-rounding, each with a comma. */
static const char *other_scales(const struct format *f, bool product)
{
	if (f->group)
		return "";	/* the format fixes the type of scales */
	if (!product)
		return "dpq-run --scale-dtype f16, ";
	return f->bits > 4 ? "dpq-run --scale-dtype f16 --scale-bits 6, --blocks q8_0, " :
		"dpq-run --scale-dtype f16 --scale-bits 7, --blocks q8_0, ";
}

/* Refuses scales that are rounded, or reports the change. */
static void check_rounding(const struct export *e, const struct export_weight *w,
	const struct ggml_type *type, const struct ggml_rounding r[w->rows])
{
	static const struct report_column columns[] = { { "change", REPORT_MAX } };
	static const struct report_table table = { columns, 1, NULL };
	const bool product = type->minimum;
	struct ggml_rounding all = { 0 };
	double sum, change;

	for (size_t i = 0; i < w->rows; i++) {
		all.blocks += r[i].blocks, all.overflows += r[i].overflows;
		all.error += r[i].error;
	}
	if (!all.blocks)
		return;
	if (all.overflows)
		die("%s: %s: has scales beyond the range of f16, as %s needs; --blocks none writes it "
			"plainly", e->from, w->layer->path, type->name);
	if (!e->options.allow_rounding)
		die("%s: %s: %zu blocks of %s would have a scale%s that f16 rounds; expected one of: "
			"%s--blocks none, --allow-rounding", e->from, w->layer->path, all.blocks, type->name,
			product ? " or zero point times scale" : "",
			other_scales(&w->layer->linear.storage, product));
	sum = squares(w);
	change = sum > 0 ? sqrt(all.error / sum) : 0;
	report_row(e->options.report, &table, w->name, &change);
}

static void count_plain(struct gguf_file *r, const char *why, const char *name)
{
	struct plain *p = r->plain;

	while (p < r->plain + r->plains && strcmp(p->why, why))
		p++;
	if (p == r->plain + r->plains) {
		r->plain = xgrow(r->plain, r->plains + 1, sizeof *r->plain);
		p = r->plain + r->plains++;
		*p = (struct plain){ why, 0, xformat("%s", name) };
	}
	p->n++;
}

static void warn_plain(const struct export *e, const struct gguf_file *r)
{
	char *list = xformat("%s", "");

	for (size_t i = 0; i < r->plains; i++) {
		const struct plain *p = &r->plain[i];
		char *longer = xformat("%s%s%zu with %s (%s%s)", list, i ? ", " : "", p->n, p->why, p->first,
			p->n > 1 ? " and others" : "");

		free(list);
		free(p->first);
		list = longer;
	}
	if (r->plains)
		warn("%s: quantized weights without a type of blocks are written plainly: %s", e->to, list);
	free(list);
}

static void put_blocks(struct export *e, const struct name *name, const struct export_weight *w,
	const struct ggml_type *type)
{
	struct gguf_file *r = e->data;
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
	struct gguf_file *r = e->data;
	const char *json = e->text[TEXT_TOKENIZER];
	char *why = json ? gguf_put_tokenizer(r->out, e->to, e->text, e->config) : NULL;

	if (!json || why)
		gguf_put_text(r->out, GGUF_TOKENIZER, "none");
	if (why) {
		gguf_put_text(r->out, GGUF_TOKENIZER_JSON, json);
		warn("%s: tokenizer.ggml.model: none: GGUF cannot express the tokenizer: %s; it is stored as "
			"tokenizer.json, which llama.cpp does not read: pass token ids to llama.cpp", e->to,
			why);
	}
	gguf_put_chat(r->out, e->to, e->text);
	free(why);
}

static void begin(struct export *e)
{
	struct gguf_file *r = e->data = xalloc(1, sizeof *r);
	const struct stack *s = config_last(e->config);
	size_t room = 0;

	r->row = gguf_row_for(e->config, e->from);
	r->sizes = (struct gguf_sizes){ s->heads, s->kv_heads, s->head_dim, s->experts };
	r->blocks = s->blocks;
	r->out = gguf_create(e->to);
	gguf_put_config(r->out, r->row, e->config);
	put_tokenizer(e);
	for (const struct gguf_name *n = r->row->names; n->gguf; n++)
		room += 2 * (strchr(n->gguf, '#') ? r->blocks : 1) *
			gguf_entry_bytes(strlen(n->gguf) + NUMBER, 3);
	gguf_reserve_table(r->out, room + GGUF_ROPE_TENSORS * gguf_entry_bytes(2 * NUMBER, 1));
	gguf_put_rope(r->out, r->row, e->config);
	gguf_check_config(r->out, r->row, e->config, e->from);
}

static void weight(struct export *e, const struct export_weight *w)
{
	const struct gguf_file *r = e->data;
	char *whole = xformat("%s.weight", w->name);
	struct name name = name_of(e, whole);
	const bool vector = gguf_layouts[name.row->layout].one_row;
	const char *why;
	const struct ggml_type *type = blocks_of(e, w, &why);

	folder_check_inputs(e, w);
	if (r->row->head == GGUF_HEAD_TIED && export_is_head(e, w))
		die("%s: %s: is a head apart from the embedding, as in a rotated model; llama.cpp uses the "
			"embedding as the head of a %s; --to hf writes it", e->from, w->layer->path,
			config_class(e->config));
	if (why || (type && vector))
		count_plain(e->data, why ? why : "one row, a vector in GGUF", w->name);
	if (type && !vector)
		put_blocks(e, &name, w, type);
	else
		put_plain(e, &name, e->options.dtype, 2,
			(size_t []){ w->rows, w->columns }, export_dense(w));
	free(whole);
	free(name.gguf);
}

static void tensor(struct export *e, const char *hf, const struct tensor *t)
{
	const size_t n = tensor_count(t);
	struct name name = name_of(e, hf);
	float *x = xalloc(n, sizeof *x);

	half_widen(n, x, t->data, tensor_half(t->type));
	put_plain(e, &name, HALF_NONE, t->rank, t->dim, x);
	free(name.gguf);
}

static void end(struct export *e)
{
	struct gguf_file *r = e->data;

	if (r->row->head == GGUF_HEAD_OWN && e->tied)
		die("%s: its head is the embedding, llama.cpp needs a separate head for a %s; --to hf writes "
			"it", e->from, config_class(e->config));
	for (size_t i = 0; i < r->stacks; i++) {
		if (r->experts[i].n != r->sizes.experts)
			die("%s: %s: has %zu of %zu experts, expected all", e->from, r->experts[i].name,
				r->experts[i].n, r->sizes.experts);
		free(r->experts[i].name);
	}
	gguf_finish(r->out);
	warn_plain(e, r);
	free(r->experts);
	free(r->plain);
	free(r);
}

const struct target gguf_target = { "gguf", "a GGUF file, for llama.cpp",
	"skip-compute unify-scales file-size", begin, weight, tensor, end };
