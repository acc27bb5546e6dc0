/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tree.h -- an open part as a tree: the struct behind part.h, the members of groups in natural order, and
 * objects that have several names (hard links)
 */
#ifndef IO_TREE_H
#define IO_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/hdf5.h"
#include "io/part.h"

/* An object with several names: where it is, and the name and the part under which it was met first. */
struct link { haddr_t address; char *path; size_t part; };
struct links { struct link *item; size_t n; };

void links_add(struct links *l, haddr_t address, const char *path, size_t part);
void links_free(struct links *l);

struct part {
	const char *name;		/* of the file, for messages */
	const unsigned char *base;	/* the HDF5 file in memory */
	size_t length;
	hid_t file;
	size_t part, parts;
	char kind[32];			/* of part_kind() */
	bool framed;			/* the HDF5 file holds this part and nothing else */
	char **member;			/* objects of the part: each with all that is below it */
	size_t members;
	struct group { char *path; haddr_t address; struct part *owner; } *group;
	size_t groups;
	bool listed;			/* group[] is filled */
	struct links *links;		/* of this part and earlier ones; NULL: a framed part has none */
	void **copy;			/* converted data */
	size_t copies;
	struct part *also;		/* the next part, where a stream in a file is opened as a whole */
};

/* Paths of a group's members in natural order; dies on links that are not hard. tree_free_paths() them. */
char **tree_children(const struct part *part, const char *path, size_t *n);
void tree_free_paths(char **path, size_t n);
H5O_info_t tree_info(const struct part *part, const char *path);	/* dies if there is no such object */

/* In input.c: the stream in the first `length` bytes of a file that is open, and stays so; `lead` bytes
 * before each part are none of it. */
struct input *input_of_file(const char *name, int fd, size_t length, size_t lead, const char *kind);
/* A stream that is read from a file as from a pipe, part by part as they are there; the file stays open. */
struct input *input_of_stream(const char *name, int fd, const char *kind);

/* In part_list.c: how a whole file is cut: the objects of each part, each with all that is below it. */
struct part_list {
	size_t parts;
	struct part_paths { size_t n; char **path; } *part;
};
struct part_list part_list_make(const struct part *part, part_layout *layout);	/* NULL: one part */
void part_list_free(struct part_list *list);

void tree_note_links(struct part *part);	/* adds the part's hard links to part->links */
void tree_forget(struct part *part);		/* frees what was converted and listed */
#endif
