/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer_branch.h -- functions of the quantizers with a low-rank branch (branch/branch.h); see quantizer.h
 */
#ifndef TRANSFORM_QUANTIZER_BRANCH_H
#define TRANSFORM_QUANTIZER_BRANCH_H
#include "transform/quantizer.h"

enum { BRANCH_SHARE = 32 };		/* the default rank is 1/32 of a layer's inputs: 128 of 4096 */

extern const struct report_table branch_table;

void branch_check(const struct method *m, const char *file, const char *path, size_t out, size_t in);
void branch_begin(struct quantized *t);
size_t branch_bytes(size_t n, struct quantized *const t[n]);
void branch_make(size_t n, struct quantized *const t[n], void *workspace);
void branch_view(struct quantized *t);
void branch_values(const struct quantized *t, double value[]);
void branch_check_result(const struct quantized *t, bool *warned);
void branch_free(struct quantized *t);
#endif
