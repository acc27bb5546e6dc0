/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hdf5.h -- what the files behind image.h share: HDF5 types, images in memory,
 * trees walked in natural order
 */
#ifndef IO_HDF5_H
#define IO_HDF5_H
#define H5_USE_110_API
#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/replace.h"
#include "io/image.h"

/* Memory that grows without a copy of its pages (mremap): anonymous, or of a file, which grows with it. */
struct buffer { unsigned char *data; size_t room; int fd; const char *name; };	/* name: of the file; NULL: anonymous */
void buffer_grow(struct buffer *b, size_t need);
void buffer_free(struct buffer *b);

/* An object met in an input file that has more than one name. */
struct shared { haddr_t address; char *path; size_t part; };
struct shared_list { struct shared *item; size_t n; };

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
	struct shared_list *shared;	/* links met in earlier parts and this one; framed images have none */
	void **copy;			/* converted data */
	size_t copies;
	struct image *also;		/* a stream in a file, opened as a whole: the next image */
};

struct output {
	char *name;			/* for messages */
	const char *kind;
	int fd;				/* of a stream; -1: one file */
	struct replace named;		/* the one file; path NULL: written where it is, */
	int target;			/* through this descriptor */
	hid_t file;
	struct buffer buffer;		/* the image, or the file */
	size_t part, parts, next;
	bool open;			/* between begin and end */
	char **done;			/* objects copied with something left out */
	size_t dones;
	struct shared_list links;	/* objects of this part with several names: address in `from` */
};

/* What copy.c needs of output.c and the other way round. */
hid_t output_object(struct output *out, const char *path);	/* open; dies if it is not there */
bool output_has(struct output *out, const char *path);
void output_group(struct output *out, const char *path);	/* makes it, and those on the way */
void output_parent(struct output *out, const char *path);	/* makes the group that path stands in */
/* Attributes of an object that its copy does not have yet, but for those in skip (NULL-terminated, or NULL). */
void output_attributes(struct output *out, const struct image *from, const char *path, const char *const skip[]);

void hdf5_init(void);				/* handlers off; types made */
hid_t hdf5_type(enum tensor_type type);		/* little-endian file type, kept open */
/* TENSOR_ANY: none of ours; exact: as hdf5_type has it */
enum tensor_type hdf5_type_of(hid_t type, bool *exact, const char *file, const char *path);
/* What the library answers; a failure is neither no nor absent: they die, naming file and path. */
hid_t hdf5_id(hid_t id, const char *file, const char *path);
bool hdf5_has(hid_t file, const char *path, const char *name);	/* a link, and the folders on the way; name: of the file */
bool hdf5_yes(htri_t answer, const char *file, const char *path);
char *hdf5_join(const char *path, const char *name);	/* "/a" + "b"; free() it */
/* Names of a group's members in natural order; dies on links that are not hard. */
char **hdf5_children(const struct image *image, const char *path, size_t *n);
void hdf5_free_names(char **name, size_t n);
H5O_info_t hdf5_info(const struct image *image, const char *path);	/* dies if there is none */
int natural_compare(const char *a, const char *b);	/* digits compare as numbers */

/* The members of each part of a whole file, by its layout. */
struct part_list { char ***member; size_t *members, parts; };
void part_list_make(struct part_list *plan, const struct image *image, image_layout *layout);
void part_list_free(struct part_list *plan);

void image_all_members(struct image *image);	/* the part is everything below the root */
void image_note_shared(struct image *image);	/* adds the part's links to image->shared */
void image_forget(struct image *image);		/* frees what was converted and listed */

enum { HDF5_HEAD = 56 };	/* bytes that hold any superblock */
/* Length of the image that begins with h, from its superblock; dies on one that cannot be read. */
size_t hdf5_length(const char *name, const unsigned char h[HDF5_HEAD]);

hid_t hdf5_open(const struct image *image);	/* read-only, through memory; negative on failure */
void hdf5_try(const struct image *image);	/* what the library must survive */
void hdf5_try_apart(const struct image *image);	/* in a process of its own; dies if that does */
void hdf5_check(const struct image *image);	/* of an image that is open; dies on strings that lead nowhere */
hid_t hdf5_memory_plist(struct buffer *b);	/* access list: the image in *b */
#endif
