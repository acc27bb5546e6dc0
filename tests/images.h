/* SPDX-License-Identifier: GPL-3.0-or-later */
/* images.h -- tests/images/reference.h5: results of Pillow and transformers for images */
#ifndef TESTS_IMAGES_H
#define TESTS_IMAGES_H
#include <jansson.h>
#include <stdlib.h>
#include "io/part.h"

struct reference {
	struct part *part;
	struct tensor bytes;
	json_t *index;
};

static inline struct reference reference_open(void)
{
	struct reference r = { .part = part_open("tests/images/reference.h5", NULL) };
	struct tensor text = part_tensor(r.part, "/index", TENSOR_U8, 1, NULL);

	r.bytes = part_tensor(r.part, "/bytes", TENSOR_U8, 1, NULL);
	r.index = json_loadb(text.data, text.dim[0], 0, NULL);
	if (!r.index)
		abort();
	return r;
}

static inline void reference_close(struct reference *r)
{
	json_decref(r->index);
	part_close(r->part);
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

/* The image of an entry. */
static inline const uint8_t *reference_image(const struct reference *r, const json_t *entry, size_t *h,
	size_t *w)
{
	const char *name = json_string_value(json_object_get(entry, "from"));

	return reference_bytes(r, json_object_get(json_object_get(r->index, "pictures"), name), h, w);
}
#endif
