/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tree.h -- an open part as a tree: the struct of part.h, members of groups, and hard links */
#ifndef IO_TREE_H
#define IO_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/hdf5.h"
#include "io/part.h"

/* An object with several names: its address, and the path and part in which it was found first. */
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
	char kind[32];			/* buffer of part_kind() */
	bool framed;			/* the HDF5 file is this part and nothing else */
	char **member;			/* paths of the part's objects; each includes all objects below it */
	size_t members;
	/* Groups with datasets; and datasets, if they have several links. */
	struct group { char *path; haddr_t address; struct part *owner; bool dataset; } *group;
	size_t groups;
	bool listed;			/* group[] is complete */
	struct links *links;		/* of this part and earlier ones; NULL for a framed part */
	void **copy;			/* converted data, freed with the part */
	size_t copies;
	struct part *also;		/* part_open() of a stream: the next part */
};

/* The paths of a group's members in natural order; free them with tree_free_paths(). All links are hard links
 * (io/probe.h). */
char **tree_children(const struct part *part, const char *path, size_t *n);
void tree_free_paths(char **path, size_t n);
H5O_info_t tree_info(const struct part *part, const char *path);	/* fatal error if it does not exist */

/* In input.c: the stream in the first `length` bytes of an open file, which stays open. `lead` bytes before
 * each part are skipped. */
struct input *input_of_file(const char *name, int fd, size_t length, size_t lead, const char *kind);
/* A stream in an open file that is read like a pipe, part by part; the file stays open. */
struct input *input_of_stream(const char *name, int fd, const char *kind);

/* In part_list.c: the parts of a whole file, as lists of objects. Each object includes all objects below
 * it. */
struct part_list {
	size_t parts;
	struct part_paths { size_t n; char **path; } *part;
};
struct part_list part_list_make(const struct part *part, part_layout *layout);	/* layout NULL: one part */
void part_list_free(struct part_list *list);

void tree_note_links(struct part *part);	/* adds the part's hard links to part->links */
void tree_free_cache(struct part *part);	/* frees the converted data and the list of groups */
#endif
