/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tree.h -- an open image as a tree: the struct behind image.h, the members of groups in natural order, and
 * objects that have several names (hard links)
 */
#ifndef IO_TREE_H
#define IO_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/hdf5.h"
#include "io/image.h"

/* An object with several names: where it is, and the name and the part under which it was met first. */
struct link { haddr_t address; char *path; size_t part; };
struct links { struct link *item; size_t n; };

void links_add(struct links *l, haddr_t address, const char *path, size_t part);
void links_free(struct links *l);

struct image {
	const char *name;		/* of the file, for messages */
	const unsigned char *base;	/* the HDF5 image */
	size_t length;
	hid_t file;
	size_t part, parts;
	bool framed;			/* the image is this part and nothing else */
	char **member;			/* objects of the part: each with all that is below it */
	size_t members;
	struct group { char *path; haddr_t address; struct image *owner; } *group;
	size_t groups;
	bool listed;			/* group[] is filled */
	struct links *links;		/* of this part and earlier ones; NULL: a framed image has none */
	void **copy;			/* converted data */
	size_t copies;
	struct image *also;		/* the next image, where a stream in a file is opened as a whole */
};

/* Paths of a group's members in natural order; dies on links that are not hard. tree_free_paths() them. */
char **tree_children(const struct image *image, const char *path, size_t *n);
void tree_free_paths(char **path, size_t n);
H5O_info_t tree_info(const struct image *image, const char *path);	/* dies if there is no such object */

/* In input.c: the stream in the first `length` bytes of a file that is open, and stays so; `lead` bytes
 * before each image are none of it. */
struct input *input_of_file(const char *name, int fd, size_t length, size_t lead, const char *kind);
/* A stream that is read from a file as from a pipe, image by image as they are there; the file stays open. */
struct input *input_of_stream(const char *name, int fd, const char *kind);

/* In parts.c: how a whole file is cut: the objects of each part, each with all that is below it. */
struct part_list {
	size_t parts;
	struct part { size_t n; char **path; } *part;
};
struct part_list part_list_make(const struct image *image, image_layout *layout);	/* NULL: one part */
void part_list_free(struct part_list *list);

void tree_note_links(struct image *image);	/* adds the part's hard links to image->links */
void tree_forget(struct image *image);		/* frees what was converted and listed */
#endif
