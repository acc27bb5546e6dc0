/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * image.h -- HDF5 trees as files and as streams of images
 *
 * On disk a tree is one HDF5 file. On a pipe it is a sequence of small HDF5
 * files ("images"), each a part of the tree, framed by the length in its
 * superblock and numbered by the root attributes `part` and `parts`. A reader
 * sees parts in both cases: a file is cut along its layout. A tool is a loop
 *
 *	struct input *in = input_open(path, model_layout, "model");
 *	struct output *out = output_open(path, "model");
 *	struct image *image;
 *
 *	while ((image = input_next(in))) {
 *		output_begin(out, image);
 *		... output_write(), output_copy() ...
 *		output_end(out);
 *	}
 *	output_close(out);
 *	input_close(in);
 *
 * Every function dies with "FILE: PATH: what is wrong" on bad data.
 */
#ifndef IO_IMAGE_H
#define IO_IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/tensor.h"

enum { IMAGE_DEPTH = 32 };	/* groups inside each other, more are taken for damage */

struct image;			/* one part of a tree; valid until the next input_next() */
struct input;
struct output;

/*
 * How a file is cut into parts: path patterns in stream order, NULL-terminated.
 * "/model/layers/#" stands for one part a numbered child, in natural order;
 * "*", last, takes whatever no other pattern takes. Part 0 is always the root:
 * its attributes and its datasets. `config` is the text of /config or NULL; a
 * layout function returns NULL for "one part holds everything".
 */
typedef const char *const *image_layout(const char *config);

/* --- reading --- */
/* path NULL or "-": standard input. kind: the ptq_kind wanted, several separated by '|', or NULL for any
 * HDF5 file. layout NULL: the tree as one part. */
struct input *input_open(const char *path, image_layout *layout, const char *kind);
struct image *input_next(struct input *in);	/* NULL after the last part; dies on a cut stream */
void input_close(struct input *in);
const char *input_name(const struct input *in);

/* A second input, or one that is needed again and again: the whole tree at once, spooled when it is a pipe. */
struct image *image_open(const char *path, const char *kind);
void image_close(struct image *image);
/* Of an image_open(): gives the memory of what was looked at back. Views stay valid, and are read from the file again. */
void image_drop(const struct image *image);

const char *image_name(const struct image *image);	/* for messages */
size_t image_part(const struct image *image), image_parts(const struct image *image);
const char *image_kind(const struct image *image);
char *image_config(const struct image *image);		/* text of /config, or NULL; free() it */
char *image_string(const struct image *image, const char *path);	/* a string dataset, or NULL; free() it */
bool image_has(const struct image *image, const char *path);

/* Calls visit for every group below the part that has a member dataset, in natural order, once a path. */
void image_groups(const struct image *image, void (*visit)(void *arg, const char *group), void *arg);
/* The path under which the same group was met first in this part (hard links), or the path itself; free() it. */
char *image_same(const struct image *image, const char *group);

/* Attributes of a group or dataset ("/" is the root), which die where they are of another type. Text: NULL if absent,
 * free() it. Number: absent gives `otherwise`. */
char *image_text(const struct image *image, const char *path, const char *name);
double image_number(const struct image *image, const char *path, const char *name, double otherwise);

/*
 * A dataset as a borrowed view; no copy where type and layout allow. type:
 * what the caller wants; TENSOR_ANY takes f32, f16, bf16 or an integer type as
 * it is stored; otherwise the data must be of that type (f64, big-endian or
 * chunked data is converted; a float where an integer is wanted is an error).
 * rank: dimensions wanted, -1 for any; dim: extents wanted, 0 for any; NULL: any.
 */
struct tensor image_tensor(const struct image *image, const char *path, enum tensor_type type,
	int rank, const size_t dim[]);
bool image_find(const struct image *image, const char *path, enum tensor_type type,
	int rank, const size_t dim[], struct tensor *t);	/* false if there is no such object */
/* Memory of xalloc() that is freed with what the image has converted; returns it. */
void *image_keep(const struct image *image, void *p);

/* --- writing --- */
/*
 * path NULL or "-": standard output; /dev/fd/N and its like: descriptor N. Such a one gets a stream, or one file
 * where it is a regular file at its start; nothing is written to it before output_start(). Dies at once if nothing
 * could be written there.
 */
struct output *output_open(const char *path, const char *kind);
/* For tools whose answer is text on standard output, when all inputs are open: dies if it cannot go there, misuse if
 * `path` (-o, may be NULL) is there too. */
void output_answer(const char *path);
/* The same part of the result as `from` is of the input. Part 0 gets the history: this command's line before from's. */
void output_begin(struct output *out, const struct image *from);
/* A part of a tree that starts here. */
void output_start(struct output *out, size_t part, size_t parts);
void output_end(struct output *out);		/* the part is whole: write it */
void output_close(struct output *out);		/* the result is whole: sync, give it its name */
/* Part as it came, byte for byte between two streams; instead of begin ... end. Not for part 0. */
void output_pass(struct output *out, const struct image *image);

void output_write(struct output *out, const char *path, struct tensor t);	/* makes the groups on the way */
void output_string(struct output *out, const char *path, const char *text);	/* a dataset */
void output_strings(struct output *out, const char *path, size_t n, const char *const text[n]);	/* a dataset [n] */
void output_text(struct output *out, const char *path, const char *name, const char *value);	/* an attribute */
void output_number(struct output *out, const char *path, const char *name, double value);
void output_integer(struct output *out, const char *path, const char *name, int64_t value);
void output_link(struct output *out, const char *path, const char *same);	/* hard link to an object of this part */
/* Data that an earlier part has under `same`: a hard link in a file, on a stream a copy with the attribute tied_to. */
void output_tied(struct output *out, const char *path, struct tensor t, const char *same);
/* History of another input, as root attribute history:<input>, and of its own other inputs, as
 * history:<input>:<theirs>; call between begin and end of part 0. */
void output_history(struct output *out, const char *input, const struct image *from);

/* Copy an object with everything below and its attributes; hard links within the part stay links. skip: names of
 * direct members and attributes to leave out, NULL-terminated, or NULL. */
void output_copy(struct output *out, const struct image *from, const char *path, const char *const skip[]);
/* Copy whatever of the part `from` has not been written yet under its path. Groups listed in `except`
 * (NULL-terminated paths, or NULL) are left out whole. */
void output_rest(struct output *out, const struct image *from, const char *const except[]);
#endif
