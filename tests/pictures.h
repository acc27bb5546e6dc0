/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pictures.h -- tests/pictures/reference.h5: what Pillow and transformers make of pictures */
#ifndef TESTS_PICTURES_H
#define TESTS_PICTURES_H
#include <jansson.h>
#include <stdlib.h>
#include "io/image.h"

struct reference {
	struct image *image;
	struct tensor bytes;
	json_t *index;
};

static inline struct reference reference_open(void)
{
	struct reference r = { .image = image_open("tests/pictures/reference.h5", NULL) };
	struct tensor text = image_tensor(r.image, "/index", TENSOR_U8, 1, NULL);

	r.bytes = image_tensor(r.image, "/bytes", TENSOR_U8, 1, NULL);
	r.index = json_loadb(text.data, text.dim[0], 0, NULL);
	if (!r.index)
		abort();
	return r;
}

static inline void reference_close(struct reference *r)
{
	json_decref(r->index);
	image_close(r->image);
}

static inline size_t reference_size(const json_t *entry, const char *key)
{
	return (size_t)json_integer_value(json_object_get(entry, key));
}

/* The bytes [h, w, 3] of an entry. */
static inline const uint8_t *reference_bytes(const struct reference *r, const json_t *entry, size_t *h,
	size_t *w)
{
	*h = reference_size(entry, "h"), *w = reference_size(entry, "w");
	return (const uint8_t *)r->bytes.data + reference_size(entry, "at");
}

/* The picture that an entry is made of. */
static inline const uint8_t *reference_picture(const struct reference *r, const json_t *entry, size_t *h,
	size_t *w)
{
	const char *name = json_string_value(json_object_get(entry, "from"));

	return reference_bytes(r, json_object_get(json_object_get(r->index, "pictures"), name), h, w);
}
#endif
