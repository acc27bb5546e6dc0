/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_layout.c -- the table of layouts; see gguf_layout.h */
#include "import/gguf_layout.h"

const struct gguf_layout gguf_layouts[GGUF_LAYOUTS] = {
	[GGUF_AS_IS] = { .plus = 0 },
	[GGUF_TRANSPOSED] = { .transposed = true },
	[GGUF_PAIRS_Q] = { .rows = GGUF_ROWS_PAIRS },
	[GGUF_PAIRS_K] = { .rows = GGUF_ROWS_PAIRS, .of_keys = true },
	[GGUF_SPLIT_QKV] = { .rows = GGUF_ROWS_SPLIT_QKV },
	[GGUF_PLUS_ONE] = { .plus = 1 },
	[GGUF_ONE_ROW] = { .one_row = true, .f32 = true },
	[GGUF_ROUTER] = { .f32 = true },
};

size_t gguf_layout_heads(const struct gguf_layout *l, const struct gguf_sizes *sizes)
{
	return l->of_keys ? sizes->kv_heads : sizes->heads;
}

bool gguf_layout_fits(const struct gguf_layout *l, const struct gguf_sizes *sizes, size_t rows)
{
	const size_t heads = gguf_layout_heads(l, sizes), parts = l->rows == GGUF_ROWS_SPLIT_QKV ? 3 : 2;

	return l->rows == GGUF_ROWS_AS_IS ||
		(heads && heads <= rows && rows % heads == 0 && rows / heads % parts == 0);
}

size_t gguf_layout_row(const struct gguf_layout *l, const struct gguf_sizes *sizes, size_t rows, size_t i)
{
	const size_t heads = gguf_layout_heads(l, sizes);
	size_t each;

	switch (l->rows) {
	case GGUF_ROWS_PAIRS:
		each = rows / heads;
		return i / each * each + i % each % (each / 2) * 2 + i % each / (each / 2);
	case GGUF_ROWS_SPLIT_QKV:
		each = rows / heads / 3;
		return i / each % 3 * (rows / 3) + i / each / 3 * each + i % each;
	default:
		return i;
	}
}
