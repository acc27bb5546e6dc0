/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vq8.h -- a quantizer of vectors that only tests know: a code of 6 bits for 8 weights, 2 rows by 4 columns
 *
 * Objects of the two tables are compiled again with this file in front (Makefile: VQ8), and have a row more:
 * the format vq8, and the quantizer that makes its codes. No other file knows it. tests/vq8.t runs the tools.
 */
#ifndef TESTS_VQ8_H
#define TESTS_VQ8_H
#include <stdbool.h>
#include <stddef.h>

#define MORE_KINDS(ROW) ROW("vq8", "vq8", .fill = vq8_fill, .form = &vq8_form)
#define MORE_QUANTIZERS { "vq8", .form = &vq8_form, .max_layers = 1, .report = { &table, &table_experts }, \
	.begin = vq8_begin, .workspace = vq8_workspace, .run = vq8_run, .view = view, .values = vq8_values, \
	.free = vq8_free },

struct format;
struct quantized;
extern const struct code_form vq8_form;
bool vq8_fill(struct format *f);
void vq8_begin(struct quantized *t);
size_t vq8_workspace(size_t n, struct quantized *const t[n]);
void vq8_run(size_t n, struct quantized *const t[n], void *workspace);
void vq8_values(const struct quantized *t, double value[]);
void vq8_free(struct quantized *t);
#endif
