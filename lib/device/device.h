/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * device.h -- a device with memory of its own, on which a model runs, is calibrated and is quantized
 *
 * A device is a module, a shared object that device_open() loads. Its entry point is ptq_device(). Without a
 * device (NULL) all of this is done by the processor. The result differs from the processor's by the order
 * of sums. lib/cuda is the module for GPUs of NVIDIA.
 *
 * Pointers named `x`, `y`, `w` and so on are to memory of the device unless a comment says "host". They are
 * addresses: the host may add to them, and does not read or write them. Work is done in the order of calls,
 * and download() waits for it. An error of the device ends the program with a message (device_host.fail).
 *
 * Matrices are row-major, of floats unless their type is given. C++ compilers read this header too.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of numbers of a matrix; E4M3: bytes of FP8. */
enum device_type { DEVICE_F32, DEVICE_BF16, DEVICE_F16, DEVICE_INT8, DEVICE_E4M3 };

/* Rows of `parts` vectors of n numbers, which follow each other: at x + row·stride + part·n. */
struct device_rows { size_t rows, parts, n, stride; };

/* A norm of vectors, as in forward/norm.h. shift may be NULL. */
struct device_norm { bool layer; double eps; const float *gain, *shift; };

/* Rotary positions of the first 2·half channels of each head (forward/rotary.h). */
struct device_rope {
	size_t rows, stride, heads, head_dim, half;
	bool interleaved;
	const float *cosine, *sine;	/* [positions][half] */
	const uint8_t *axis;		/* [half], or NULL */
	const int32_t *position;	/* [rows][axes] */
	size_t axes;
};

/* Attention of the tokens of a sequence (forward/attention.h). A row of x contains queries, keys, values. */
struct device_attention {
	size_t heads, kv_heads, head_dim;
	float scale, cap;		/* cap 0: none */
	size_t window;			/* 0: none */
	size_t rows, stride;		/* of x; y has heads · head_dim columns */
	const int32_t *index;		/* [rows], or NULL: 0, 1, 2, ... */
};

/* The values of a number format: number i is the nearest for edge[i - 1] ≤ x < edge[i]. */
struct device_format {
	int n;				/* values */
	double edge[256];
	float value[256];
	uint8_t code[256];
	float max;			/* divides a dynamic range */
	bool integers;			/* the values are all integers between the first and the last */
	bool floats;			/* or all floats up to the last, with these bits of mantissa: */
	int mantissa, bias;
	bool away;			/* ties of both are rounded away from zero */
};

/* Rounding of inputs: x becomes s·nearest(x / s). */
struct device_rounding {
	const struct device_format *format;	/* host */
	float scale;			/* static; 0: clip·max |x| / max of the row */
	float clip;
};

/* y += x wᵀ or y = x wᵀ, for x[m][k] and w[n][k]. In bf16, x is rounded to bf16. */
struct device_product {
	size_t m, n, k, stride;		/* stride: of y */
	enum device_type type;		/* of w: f32 or bf16 */
	float *y;
	const float *x;
	const void *w;
	bool add;
};

/*
 * y += s tᵀ ∘ x wᵀ, or y = ..., for bytes x[m][k] with a scale s of each row, and w[n][k] with scales t.
 * Bytes of integers are added exactly. Products of FP8 are added by the hardware in parts of 128 columns,
 * with at least 13 bits of the largest term, and the parts in float. k and n are multiples of 16.
 */
struct device_bytes {
	size_t m, n, k, stride;
	enum device_type type;		/* int8 or e4m3 */
	float *y;
	const void *x, *w;
	const float *row, *column;	/* s [m], t [n] */
	bool add;
};

/* The number of a code: code - offset; a float with this mantissa and bias; table[code]. */
enum device_code { DEVICE_INTEGER, DEVICE_FLOAT, DEVICE_TABLE };

/*
 * y += x ŵᵀ or y = x ŵᵀ, for x[m][in] and packed codes (quant/pack.h) of ŵ[out][in]:
 *	ŵ = (number of the code - zero) · scale
 * A scale and a zero belong to `group` columns, a multiple of 32; 0: to a row. Sums are in float, x is not
 * rounded.
 *
 * With a branch, b ax is added to each row: ax[m][rank] is the product of x and A (FBQuant, section 4.3).
 */
struct device_packed {
	size_t m, out, in, stride;	/* stride: of y; in: less than 2^26 */
	int bits;			/* 2, 3, 4, 5, 6, 8 */
	enum device_code code;
	int offset;			/* integer: 0 to 2^bits - 1; with zeros: 0 */
	int mantissa, bias;		/* float: bits of mantissa */
	const float *table;		/* [1 << bits] */
	size_t group;
	float *y;
	const float *x;
	const uint32_t *packed;		/* [out][words of a row], from a multiple of 16 bytes */
	const float *scale;		/* [out][groups] */
	const uint8_t *zero;		/* [out][groups], or NULL */
	bool add;
	size_t rank;			/* 0: no branch */
	enum device_type type;		/* of b: f32 or bf16 */
	const void *b;			/* [out][rank] */
	const float *ax;
};

/* Sums over the inputs of a layer (calib/moments.h). */
struct device_moments {
	size_t in;
	double *sum, *absolute, *fourth;	/* sum [in][in], NULL: not summed */
	float *absmax;
	int64_t *histogram;
	int bins, shift, first;			/* of the histogram (calib/histogram.h) */
};

/* How weights are coded (num/format.h), and how scales are rounded (num/scale_type.h). */
struct device_storage {
	const struct device_format *values;	/* of the device; NULL: integers */
	uint8_t minus;			/* the code of numbers below 0 that are rounded to 0 */
	bool asymmetric, away;		/* of integers */
	float max;
	bool rounds, power;		/* scales are rounded, to numbers of the following type */
	double least, step, most;	/* least and most: of any scales */
	float divisor;
};

/* A span of columns (solver/solver.c): its positions first .. last - 1, and Uᵀ of it. */
struct device_span {
	size_t first, last;
	float *v;			/* [last - first]², lower triangle */
	double *work;			/* as many; scratch of inverse() */
};

/* R of solver/factor.h, for the damping lambda. */
struct device_factor {
	size_t n, live;
	const float *h;			/* [n][n] */
	const int32_t *column;		/* [live] position → column */
	double mean, lambda;
	float *r, *work;		/* [live][live] R in the upper triangle; scratch */
};

enum { DEVICE_BLOCK = 64 };		/* largest number of columns of a block */

/*
 * The quantization of m rows. Matrices are transposed: a column, position or group is m numbers. Layers that
 * share H and settings differ in the members from scale8 on, and in `storage.divisor`.
 */
struct device_solve {
	size_t m, n, live;
	struct device_storage storage;
	const struct device_format *compute;	/* NULL: none */
	bool round_first, of_storage;	/* of_storage: the error of storage is compensated */
	float saturate;
	const int32_t *column, *group;	/* [n] position → column, group */
	const int32_t *member;		/* [live] positions, by group */
	const double *factor;		/* [steps] of the range of a group; steps 1: no search */
	size_t steps;
	double near;			/* losses that differ by less, relatively, are computed in double */
	const float *r;			/* [live][live] */

	const float *scale8;		/* [1]; NULL: 1 */
	float *w;			/* [n] by column: weights; once coded, W - Ŵ */
	float *e;			/* [live] by position: w/s₈ - target */
	float *d, *d_before;		/* [widest span] compensation by earlier blocks; scratch */
	float *b;			/* [DEVICE_BLOCK] errors of a block, divided by their pivots */
	uint8_t *code;			/* [n] by column */
	float *scale;			/* [groups] */
	uint8_t *zero;			/* [groups] */
	double *cost, *square, *error;	/* [1] Σ b², Σ e², Σ (w - ŵ)² */
	float *x;			/* [largest group] */
	double *low, *high, *loss;	/* [1], [1], [steps] */
};

enum { DEVICE_SYLVESTER = 32768 };	/* largest order of rotate() without a matrix */

struct device {
	const char *name;		/* of the hardware */

	/* Memory, in bytes. pin() makes copies from and to memory of the host faster. */
	void *(*allocate)(size_t bytes);
	void (*release)(void *x);
	void (*clear)(void *x, size_t bytes);
	void (*upload)(void *x, const void *host, size_t bytes);
	void (*download)(void *host, const void *x, size_t bytes);
	void (*pin)(void *host, size_t bytes);
	void (*unpin)(void *host);

	/* Activations. y may be x. */
	void (*norm)(const struct device_norm *f, struct device_rows r, float *y, const float *x);
	/* y[m][stride] += x[m][n], or y = x with `replace` */
	void (*add)(size_t m, size_t n, size_t stride, float *y, const float *x, bool replace);
	void (*add_bias)(size_t m, size_t n, size_t stride, float *y, const float *bias);
	void (*multiply_signs)(size_t m, size_t n, float *x, const int8_t *sign);
	/* activation: enum activation (model/activation_names.h); as mlp_activate() */
	void (*activate)(int activation, size_t m, size_t n, size_t stride, float *y, const float *x);
	void (*rope)(const struct device_rope *r, float *x);
	void (*attention)(const struct device_attention *a, float *y, const float *x);
	void (*round)(const struct device_rounding *r, size_t m, size_t n, float *y, const float *x);
	/* round() as bytes nearest(x / s) and the scale s of each row. If a row has a NaN, its s is NaN. */
	void (*quantize)(const struct device_rounding *r, size_t m, size_t n, void *bytes,
		enum device_type type, float *scale, const float *x);
	/* y[m][n]: of each row of x[m][stride], `order` numbers at a time are multiplied by the square matrix
	 * h. y is not x. h NULL: Sylvester's matrix / √order; order is a power of two of at most
	 * DEVICE_SYLVESTER. */
	void (*rotate)(size_t m, size_t n, size_t stride, size_t order, float *y, const float *x,
		const float *h);

	/* Products. convert(): n numbers of a type to another type. Floats become bytes if they are exact. */
	void (*convert)(size_t n, void *y, enum device_type to, const void *x, enum device_type from);
	void (*product)(const struct device_product *p);
	void (*bytes)(const struct device_bytes *p);
	void (*packed)(const struct device_packed *p);	/* made for few rows of x */

	/* Adds `rows` rows of x, which are one window: x, or x rounded to bf16. */
	void (*moments)(const struct device_moments *s, enum device_type type, size_t rows, const float *x);
	/* y = the upper triangle of a sum [n][n], as a symmetric matrix of floats. */
	void (*symmetric)(size_t n, float *y, const double *sum);

	/*
	 * Solver. transpose(): y[n][stride] from x[m][n]. transpose_codes(): y[m][n] from x[n][m]. ranges():
	 * of 0 and the live columns of each row; low is NaN if a weight is not finite. factor() returns 0, or
	 * the number (from 1) of the first pivot that is not positive.
	 */
	void (*transpose)(size_t m, size_t n, size_t stride, float *y, const float *x);
	void (*transpose_codes)(size_t m, size_t n, uint8_t *y, const uint8_t *x);
	void (*ranges)(const struct device_solve *s, float *low, float *high);
	size_t (*factor)(const struct device_factor *f);
	/* v of n spans of at most `widest` columns; span: an array on the device. */
	void (*inverse)(size_t live, const float *r, size_t n, const struct device_span *span, size_t widest);
	/* Scale and zero of a group: of the n columns from member[from] on, compensated by d of the span.
	 * span NULL: not compensated. */
	void (*fit)(const struct device_solve *s, const struct device_span *span, size_t group, size_t from,
		size_t n);
	/* Sets d of a span, from all columns before the span. */
	void (*span)(const struct device_solve *s, const struct device_span *span);
	/* Codes the columns first .. last - 1 of a span, and updates d of the rest of it. */
	void (*block)(const struct device_solve *s, const struct device_span *span, size_t first,
		size_t last);
	/* Codes the dead columns. */
	void (*dead)(const struct device_solve *s);
	/* sum[l] = x H xᵀ for each of m rows x, for a transposed x[n][m] and a symmetric h[n][n]. */
	void (*quadratic)(size_t m, size_t n, double *sum, const float *x, const float *h);

	/* For benchmarks. A copy inside the memory, of a multiple of 16 bytes. */
	void (*copy)(void *y, const void *x, size_t bytes);
	/* stop() waits for the calls since start(), and returns their seconds on the device. They begin
	 * `later` seconds after start(), when all of them are in the queue. */
	void (*start)(double later);
	double (*stop)(void);
};

/* What a module receives. */
struct device_host {
	const char *version;		/* of this program: a module of another version is refused */
	void (*fail)(const char *format, ...);	/* does not return */
	const char *file;		/* of the module, until ptq_device() returns */
};

/* The entry point of a module. NULL: there is no such device. */
#ifdef __cplusplus
extern "C"
#endif
const struct device *ptq_device(const struct device_host *host);
#endif
