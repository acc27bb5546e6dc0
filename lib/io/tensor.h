/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tensor.h -- a typed n-dimensional view, in row-major order, of borrowed memory */
#ifndef IO_TENSOR_H
#define IO_TENSOR_H
#include <stddef.h>
#include <stdint.h>

enum { TENSOR_RANK = 5 };

enum tensor_type {
	TENSOR_ANY, TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_F64,
	TENSOR_U8, TENSOR_I8, TENSOR_U16, TENSOR_I16, TENSOR_U32, TENSOR_I32, TENSOR_U64, TENSOR_I64,
	TENSOR_TYPES
};

struct tensor {
	enum tensor_type type;
	int rank;		/* 0: a scalar */
	size_t dim[TENSOR_RANK];
	void *data;		/* borrowed */
};

size_t tensor_size(enum tensor_type type);	/* bytes per element */
const char *tensor_name(enum tensor_type type);	/* "f32" */
size_t tensor_count(const struct tensor *t);	/* number of elements */

struct tensor tensor_of(enum tensor_type type, void *data, int rank, const size_t dim[]);
struct tensor tensor_1d(enum tensor_type type, void *data, size_t n);
struct tensor tensor_2d(enum tensor_type type, void *data, size_t m, size_t n);
#endif
