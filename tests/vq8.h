/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vq8.h -- vector quantizers for tests: one code for 8 weights
 *
 *	vq8	6 bits, 2 rows by 4 columns: the number of an entry, below 60
 *	vq16	16 bits, low byte first, 8 rows by 1 column: k + 250 l, with the first half of entry k and the
 *		second half of entry l
 *
 * The objects of two tables are compiled again with this file included first (Makefile: VQ8). They get two
 * further rows: the formats, and their quantizers. No other file of lib depends on them. tests/vq8.t runs the
 * tools.
 */
#ifndef TESTS_VQ8_H
#define TESTS_VQ8_H
#include <stdbool.h>
#include <stddef.h>

#define MORE_KINDS(ROW) ROW("vq8", "vq8", .fill = vq8_fill, .form = &vq8_form) \
	ROW("vq16", "vq16", .fill = vq16_fill, .form = &vq16_form)
#define BY_VQ8 .max_layers = 1, .report = { &table, &table_experts }, .begin = vq8_begin, \
	.workspace = vq8_workspace, .run = vq8_run, .view = view, .values = vq8_values, .free = vq8_free, \
	.without_effect = { true, \
		"compensate scale-search round-first group-view static-groups scale8 order " \
		"reorder key damp", "a codebook" }
#define MORE_QUANTIZERS { "vq8", .form = &vq8_form, BY_VQ8 }, { "vq16", .form = &vq16_form, BY_VQ8 },

struct format;
struct quantized;
extern const struct code_form vq8_form, vq16_form;
bool vq8_fill(struct format *f);
bool vq16_fill(struct format *f);
void vq8_begin(struct quantized *t);
size_t vq8_workspace(size_t n, struct quantized *const t[n]);
void vq8_run(size_t n, struct quantized *const t[n], void *workspace);
void vq8_values(const struct quantized *t, double value[]);
void vq8_free(struct quantized *t);
#endif
