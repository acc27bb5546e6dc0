/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * part.h -- HDF5 trees as files and as streams of parts
 *
 * On disk a tree is one HDF5 file. On a pipe it is a sequence of small HDF5 files, each with one part of
 * the tree. The length in the superblock of a part marks its end. The root attributes `part` and `parts`
 * number the parts. A reader receives parts in both cases: the layout cuts a file into parts.
 *
 * Calling sequence of a filter:
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
 * A tool that needs random access to a second input uses part_open(). Bad data are a fatal error of the
 * form "FILE: PATH: what is wrong".
 */
#ifndef IO_PART_H
#define IO_PART_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/tensor.h"

enum { TREE_DEPTH = 32 };	/* nested groups; deeper ones are refused */

struct part;			/* a part of a tree; valid until the next input_next() */
struct input;
struct output;

/*
 * How a file is cut into parts: a NULL-terminated list of path patterns (pattern.h) in the order of the
 * stream. "/model/layers/#" makes a part of each numbered child, in natural order. "*", which comes last,
 * matches the rest. Part 0 is always the root: its attributes and its datasets.
 *
 * `config` is the text of /config, or NULL. The function returns NULL if the whole tree is one part. The
 * caller frees the list.
 */
typedef const char **part_layout(const char *config);

/* --- reading --- */
/* Opens an input. path NULL or "-": standard input. kind: the expected ptq_kind, or several,
 * "model|hessian"; NULL: any HDF5 file. layout NULL: the tree is one part. */
struct input *input_open(const char *path, part_layout *layout, const char *kind);
struct part *input_next(struct input *in);	/* NULL after the last part; fatal error on a cut stream */
/* Advances `in` to the part with the number of `first`, a part of another input. now: the last part of `in`;
 * part 0 is read already. Another number of parts is a fatal error. */
struct part *input_matching(struct input *in, struct part *now, const struct part *first);
void input_close(struct input *in);
const char *input_name(const struct input *in);
bool input_whole(const struct input *in);	/* one file, not a stream; after the first input_next() */

/* Opens a whole tree at once, for a second input or one that is read several times. A pipe is first copied
 * to a temporary file. */
struct part *part_open(const char *path, const char *kind);
void part_close(struct part *part);
/* Releases the memory of the data read from a part_open(). Views stay valid: the data are read again. */
void part_drop(const struct part *part);

const char *part_name(const struct part *part);	/* for messages */
size_t part_index(const struct part *part), part_count(const struct part *part);
const char *part_kind(const struct part *part);
char *part_config(const struct part *part);		/* text of /config, or NULL; the caller frees it */
/* The text of a string dataset, or NULL if the dataset is absent; the caller frees it. */
char *part_string(const struct part *part, const char *path);
/* The n texts of a string dataset; part_free_names() them. Fatal error if it is absent or another. */
char **part_strings(const struct part *part, const char *path, size_t n);
bool part_has(const struct part *part, const char *path);

/* Calls visit for every path of a group that contains a dataset, in natural order. */
void part_groups(const struct part *part, void (*visit)(void *arg, const char *group), void *arg);
/* The names of the members of a group, and after a slash those of its attributes: { "codes", "/storage" };
 * their number in *n. part_free_names() them. */
char **part_names(const struct part *part, const char *group, size_t *n);
void part_free_names(char **name, size_t n);
/* Calls visit for every dataset, in natural order, with its type (tensor_name(); "string", or "other" for
 * types that tensors do not have) and its extents; rank -1: it has no elements. Data are not read. */
void part_datasets(const struct part *part, void (*visit)(void *arg, const char *path, const char *type,
	int rank, const size_t dim[]), void *arg);
/* Calls visit for every attribute of the root, by name. text: its value if it is one string, or the digits of
 * an integer that a double may not hold, else NULL. number: its value if it is one number, else NaN. */
void part_attributes(const struct part *part, void (*visit)(void *arg, const char *name, const char *text,
	double number), void *arg);
/* The path at which an earlier part has the same data (a tied head), or NULL; the caller frees it. */
char *part_tied(const struct part *part, const char *path);
/* The first path of this group or dataset in the part, if hard links give it several; the caller frees it. */
char *part_same(const struct part *part, const char *path);

/*
 * An attribute of a group or dataset ("/": the root). Fatal error if it has another type. part_text()
 * returns NULL if the attribute is absent; the caller frees the text. part_number() returns `default_value`
 * if it is absent.
 */
char *part_text(const struct part *part, const char *path, const char *name);
double part_number(const struct part *part, const char *path, const char *name, double default_value);
/* The histories of the root, "NAME\nTEXT\n" each, in ascending order of their names; the caller frees the
 * text. */
char *part_histories(const struct part *part);

/*
 * Returns a dataset as a borrowed view, without a copy if type and layout allow.
 *
 * type: the expected type. Big-endian and chunked data are converted, and so are integers and f32 or f64
 * numbers of another width if their values fit. Floats instead of integers are an error. TENSOR_ANY: f32,
 * f16, bf16 and integers have their stored type, f64 becomes f32. rank: the number of dimensions, -1 for
 * any. dim: the extents, 0 for any; NULL: any.
 *
 * part_tensor() ends with a fatal error if the dataset is absent, part_find() returns false.
 */
struct tensor part_tensor(const struct part *part, const char *path, enum tensor_type type,
	int rank, const size_t dim[]);
bool part_find(const struct part *part, const char *path, enum tensor_type type,
	int rank, const size_t dim[], struct tensor *t);	/* false if the object does not exist */
/* part_find() without the data, which are not read: t->data is NULL. */
bool part_shape(const struct part *part, const char *path, enum tensor_type type,
	int rank, const size_t dim[], struct tensor *t);
/* Adds memory of xalloc() to the memory that is freed with the part; returns it. */
void *part_keep(const struct part *part, void *p);

/* --- writing --- */
/*
 * Opens an output. path NULL or "-": standard output; /dev/fd/N, /dev/stdout and so on: that descriptor. A
 * descriptor receives a stream, or one file if it is a regular file at its start. Nothing is written to it
 * before output_start(). Fatal error at once if the output cannot be written.
 */
struct output *output_open(const char *path, const char *kind);
/* For tools that print a text on standard output; called when all inputs are open. Fatal error if standard
 * output cannot be written. Wrong usage if `path` (-o, or NULL) is standard output, too. */
void output_stdout_check(const char *path);
/* Begins the part with the number of `from`, a part of the input. Part 0 gets the history: the line of this
 * command, then the history of `from`. */
void output_begin(struct output *out, const struct part *from);
/* Begins a part without an input part. */
void output_start(struct output *out, size_t part, size_t parts);
void output_end(struct output *out);		/* completes and writes the part */
void output_close(struct output *out);		/* syncs the complete result and gives it its name */
/* Copies a part unchanged, instead of begin ... end. From a stream to a stream every part except part 0 is
 * copied byte for byte. */
void output_pass(struct output *out, const struct part *part);

/* Write datasets and make the groups above them: numbers, one text, n texts. */
void output_write(struct output *out, const char *path, struct tensor t);
void output_string(struct output *out, const char *path, const char *text);
void output_strings(struct output *out, const char *path, size_t n, const char *const text[n]);
/* Write attributes; an earlier one of this name is replaced. */
void output_text(struct output *out, const char *path, const char *name, const char *value);
void output_number(struct output *out, const char *path, const char *name, double value);
void output_integer(struct output *out, const char *path, const char *name, int64_t value);
/* Removes an attribute, if it exists. */
void output_drop(struct output *out, const char *path, const char *name);
/* Makes a hard link to `same`, an object of this part. */
void output_link(struct output *out, const char *path, const char *same);
/* Writes data that an earlier part has as `same`: in a file as a hard link, on a stream as a copy with the
 * attribute tied_to. */
void output_tied(struct output *out, const char *path, struct tensor t, const char *same);
/* Writes the history of another input as root attribute history:<input>, or its digest if it is a file
 * without a history, and the histories of its inputs as history:<input>:<theirs>. Called between begin and
 * end of part 0. */
void output_history(struct output *out, const char *input, const struct part *from);

/* Copies an object with its attributes and all objects below it; hard links within the part stay links.
 * skip: names of members and attributes to leave out, NULL-terminated, or NULL. */
void output_copy(struct output *out, const struct part *from, const char *path, const char *const skip[]);
/* Copies the attributes of an object of `from` that the output's object of this path does not have yet. */
void output_attributes(struct output *out, const struct part *from, const char *path);
/* Copies all objects of the part `from` that are not yet written under their paths, except the groups in
 * `except` (NULL-terminated paths, or NULL). */
void output_rest(struct output *out, const struct part *from, const char *const except[]);
#endif
