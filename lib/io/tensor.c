/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tensor.c -- see tensor.h */
#include "io/tensor.h"

static const struct { const char *name; size_t size; } row[TENSOR_TYPES] = {
	[TENSOR_ANY] = { "any", 0 }, [TENSOR_F32] = { "f32", 4 }, [TENSOR_F16] = { "f16", 2 },
	[TENSOR_BF16] = { "bf16", 2 }, [TENSOR_F64] = { "f64", 8 }, [TENSOR_U8] = { "uint8", 1 },
	[TENSOR_I8] = { "int8", 1 }, [TENSOR_U16] = { "uint16", 2 }, [TENSOR_I16] = { "int16", 2 },
	[TENSOR_U32] = { "uint32", 4 }, [TENSOR_I32] = { "int32", 4 }, [TENSOR_U64] = { "uint64", 8 },
	[TENSOR_I64] = { "int64", 8 },
};

size_t tensor_size(enum tensor_type type)
{
	return row[type].size;
}

const char *tensor_name(enum tensor_type type)
{
	return row[type].name;
}

size_t tensor_count(const struct tensor *t)
{
	size_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= t->dim[i];
	return n;
}

struct tensor tensor_of(enum tensor_type type, void *data, int rank, const size_t dim[])
{
	struct tensor t = { .type = type, .rank = rank, .data = data };

	for (int i = 0; i < rank; i++)
		t.dim[i] = dim[i];
	return t;
}

struct tensor tensor_1d(enum tensor_type type, void *data, size_t n)
{
	return tensor_of(type, data, 1, (size_t[]){ n });
}

struct tensor tensor_2d(enum tensor_type type, void *data, size_t m, size_t n)
{
	return tensor_of(type, data, 2, (size_t[]){ m, n });
}
