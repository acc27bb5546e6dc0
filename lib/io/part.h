/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * part.h -- HDF5 trees as files and as streams of parts
 *
 * On disk a tree is one HDF5 file. On a pipe it is a sequence of small HDF5 files, each of which holds a
 * part of the tree; the length in its superblock says where it ends, and the root attributes `part` and
 * `parts` number it. A reader sees parts in both cases: a file is cut by its layout. A tool is a loop
 *
 *	struct input *in = input_open(path, model_layout, "model");
 *	struct output *out = output_open(path, "model");
 *	struct part *part;
 *
 *	while ((part = input_next(in))) {
 *		output_begin(out, part);
 *		... output_write(), output_copy() ...
 *		output_end(out);
 *	}
 *	output_close(out);
 *	input_close(in);
 *
 * Every function dies with "FILE: PATH: what is wrong" on bad data.
 */
#ifndef IO_PART_H
#define IO_PART_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/tensor.h"

enum { TREE_DEPTH = 32 };	/* groups within each other; more are refused */

struct part;			/* a part of a tree; valid until the next input_next() */
struct input;
struct output;

/*
 * How a file is cut into parts: patterns of paths (pattern.h) in the order of the stream, NULL-terminated.
 * "/model/layers/#" makes a part of each numbered child, in natural order; "*", last, is everything else.
 * Part 0 is always the root: its attributes and its datasets. `config` is the text of /config or NULL; a
 * layout function returns NULL if one part holds everything; the caller frees the list.
 */
typedef const char **part_layout(const char *config);

/* --- reading --- */
/* path NULL or "-": standard input. kind: the ptq_kind that is expected, or several, "model|hessian";
 * NULL: any HDF5 file. layout NULL: the tree is one part. */
struct input *input_open(const char *path, part_layout *layout, const char *kind);
struct part *input_next(struct input *in);	/* NULL after the last part; dies on a cut stream */
void input_close(struct input *in);
const char *input_name(const struct input *in);

/* Opens the whole tree at once: a second input, or one that is read again and again; a pipe is spooled. */
struct part *part_open(const char *path, const char *kind);
void part_close(struct part *part);
/* Gives back the memory of what was read from a part_open(). Views stay valid, they are read again. */
void part_drop(const struct part *part);

const char *part_name(const struct part *part);	/* for messages */
size_t part_index(const struct part *part), part_count(const struct part *part);
const char *part_kind(const struct part *part);
char *part_config(const struct part *part);		/* text of /config, or NULL; free() it */
/* The text of a string dataset, or NULL if there is no such dataset; free() it. */
char *part_string(const struct part *part, const char *path);
bool part_has(const struct part *part, const char *path);

/* Calls visit for every group of the part that has a dataset in it, in natural order, once for each path. */
void part_groups(const struct part *part, void (*visit)(void *arg, const char *group), void *arg);
/* The path of an earlier part that has the same data (a tied head); NULL: there is none. free() it. */
char *part_tied(const struct part *part, const char *path);
/* The first path in this part of the same group, which hard links give several; free() it. */
char *part_same(const struct part *part, const char *group);

/* An attribute of a group or dataset; "/" is the root. Dies if it has another type. Text: NULL if there is
 * none; free() it. Number: `otherwise` if there is none. */
char *part_text(const struct part *part, const char *path, const char *name);
double part_number(const struct part *part, const char *path, const char *name, double otherwise);
/* The histories of the root, "NAME\nTEXT\n" each, in ascending order of their names; free() it. */
char *part_histories(const struct part *part);

/*
 * A dataset as a borrowed view; no copy where type and layout allow. type: the type that is expected;
 * TENSOR_ANY takes f32, f16, bf16 or an integer type as it is stored; otherwise the data must be of that
 * type (f64, big-endian or chunked data is converted; a float in place of an integer is an error). rank:
 * the number of dimensions, -1 for any; dim: extents, 0 for any; NULL: any.
 */
struct tensor part_tensor(const struct part *part, const char *path, enum tensor_type type,
	int rank, const size_t dim[]);
bool part_find(const struct part *part, const char *path, enum tensor_type type,
	int rank, const size_t dim[], struct tensor *t);	/* false if there is no such object */
/* Memory of xalloc() that is freed with what the part has converted; returns it. */
void *part_keep(const struct part *part, void *p);

/* --- writing --- */
/*
 * path NULL or "-": standard output; /dev/fd/N, /dev/stdout and so on: that descriptor. A descriptor gets a
 * stream, or one file if it is a regular file at its start; nothing is written to it before output_start().
 * Dies at once if nothing could be written there.
 */
struct output *output_open(const char *path, const char *kind);
/* For tools whose answer is text on standard output, when all inputs are open: dies if that cannot be
 * written; misuse if `path` (-o, or NULL) is standard output too. */
void output_answer(const char *path);
/* Begins the part that `from` is of the input. Part 0 gets the history: the line of this command before
 * from's. */
void output_begin(struct output *out, const struct part *from);
/* Begins a part of a tree that has no such input. */
void output_start(struct output *out, size_t part, size_t parts);
void output_end(struct output *out);		/* writes the part, which is whole */
void output_close(struct output *out);		/* syncs the result, which is whole, and gives it its name */
/* Writes a part as it came, in place of begin ... end: between two streams byte for byte, except for part
 * 0. */
void output_pass(struct output *out, const struct part *part);

/* Datasets, with the groups on the way: numbers, a text, n texts. */
void output_write(struct output *out, const char *path, struct tensor t);
void output_string(struct output *out, const char *path, const char *text);
void output_strings(struct output *out, const char *path, size_t n, const char *const text[n]);
/* Attributes; an earlier one of this name is replaced. */
void output_text(struct output *out, const char *path, const char *name, const char *value);
void output_number(struct output *out, const char *path, const char *name, double value);
void output_integer(struct output *out, const char *path, const char *name, int64_t value);
/* Removes an attribute, if it is there. */
void output_drop(struct output *out, const char *path, const char *name);
/* A hard link to `same`, an object of this part. */
void output_link(struct output *out, const char *path, const char *same);
/* Data that an earlier part has as `same`: in a file a hard link, on a stream a copy with the attribute
 * tied_to. */
void output_tied(struct output *out, const char *path, struct tensor t, const char *same);
/* History of another input, as root attribute history:<input>, and of its own other inputs, as
 * history:<input>:<theirs>; call between begin and end of part 0. */
void output_history(struct output *out, const char *input, const struct part *from);

/* Copies an object with its attributes and all that is below it; hard links within the part stay links.
 * skip: names of members and attributes that are left out, NULL-terminated, or NULL. */
void output_copy(struct output *out, const struct part *from, const char *path, const char *const skip[]);
/* Copies the attributes of an object of `from` that ours of this path, which is there, does not have yet. */
void output_attributes(struct output *out, const struct part *from, const char *path);
/* Copies all of the part `from` that has not been written yet under its path, but for the groups of `except`
 * (NULL-terminated paths, or NULL). */
void output_rest(struct output *out, const struct part *from, const char *const except[]);
#endif
