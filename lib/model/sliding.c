/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sliding.c -- see sliding.h */
#include "model/sliding.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/key.h"
#include "model/stack.h"

enum { FIRST_WINDOWED = 28 };	/* max_window_layers if absent */

/* Reads layer_types: for each block whether it has the window; NULL if absent. "attention" is an older
 * name. */
static bool *parse_types(const struct stack *s, const struct keys *k)
{
	const json_t *types = key_get(k->json, "layer_types");
	bool *slides;

	if (!types)
		return NULL;
	if (json_array_size(types) != s->blocks)
		die("%s: /config: 'layer_types' must be a list of %zu kinds, one a block", k->file,
			s->blocks);
	slides = xalloc(s->blocks, sizeof *slides);
	for (size_t i = 0; i < s->blocks; i++) {
		const char *kind = json_string_value(json_array_get(types, i));

		slides[i] = kind && !strcmp(kind, "sliding_attention");
		if (!kind || (!slides[i] && strcmp(kind, "full_attention") && strcmp(kind, "attention")))
			die("%s: /config: 'layer_types': block %zu is '%s', "
				"expected full_attention or sliding_attention", k->file, i,
				kind ? kind : "");
	}
	return slides;
}

/* Reads the blocks of an encoder that attend within windows of the image: all but those of a list. */
static bool *parse_grid(const struct stack *s, const struct keys *k)
{
	const json_t *list = json_object_get(k->json, "fullatt_block_indexes");
	bool *slides = xalloc(s->blocks, sizeof *slides);

	if (list && !json_is_array(list))
		die("%s: /config: 'fullatt_block_indexes' must be a list of blocks", k->file);
	memset(slides, true, s->blocks * sizeof *slides);
	for (const int *i = s->arch->absent.whole; !list && *i >= 0; i++)
		if ((size_t)*i < s->blocks)
			slides[*i] = false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_int_t n = json_integer_value(json_array_get(list, i));

		if (!json_is_integer(json_array_get(list, i)))
			die("%s: /config: 'fullatt_block_indexes' must hold whole numbers", k->file);
		if (n >= 0 && n < (json_int_t)s->blocks)
			slides[n] = false;
	}
	return slides;
}

/* Whether the class has a window at all, by its kind and other keys. */
static bool has_window(const struct keys *k)
{
	const struct architecture *a = k->arch;
	const json_t *window = json_object_get(k->json, "sliding_window");
	const enum sliding_kind kind = a->sliding_kind;

	if (kind == SLIDING_NONE || (window ? json_is_null(window) : !a->absent.window))
		return false;
	return kind == SLIDING_WHOLE || kind == SLIDING_ALL || kind == SLIDING_PATTERN ||
		key_bool(k, "use_sliding_window", false);
}

/* Chooses the blocks with a window if there is no layer_types; NULL if all blocks are alike. */
static bool *place_windows(const struct stack *s, const struct keys *k, json_int_t first)
{
	const struct architecture *a = s->arch;
	const enum sliding_kind kind = a->sliding_kind;
	const bool some = (kind == SLIDING_LATE || kind == SLIDING_EVEN) && s->sliding_window;
	size_t every = a->absent.pattern;
	bool *slides;

	if (!some && kind != SLIDING_PATTERN)
		return NULL;
	if (a->pattern_key)
		every = key_size(k, a->pattern_key, every, 0, SIZE_MAX >> 1);
	slides = xalloc(s->blocks, sizeof *slides);
	for (size_t i = 0; i < s->blocks; i++)
		slides[i] = kind == SLIDING_LATE ? (json_int_t)i >= first :
			kind == SLIDING_EVEN ? i % 2 == 0 && (json_int_t)i < first : (i + 1) % every;
	return slides;
}

void sliding_parse(struct stack *s, const struct keys *k)
{
	enum sliding_kind kind = s->arch->sliding_kind;
	const json_t *first = json_object_get(k->json, "max_window_layers");
	const bool some = kind == SLIDING_LATE || kind == SLIDING_EVEN;
	const json_int_t from = first && json_is_integer(first) ? json_integer_value(first) : FIRST_WINDOWED;

	if (kind == SLIDING_GRID) {
		s->slides = parse_grid(s, k);
		return;
	}
	if (has_window(k))
		s->sliding_window = key_size(k, "sliding_window", s->arch->absent.window, 0, SIZE_MAX >> 1);
	if (some && first && !json_is_integer(first))
		die("%s: /config: 'max_window_layers' must be a whole number", k->file);
	s->slides = parse_types(s, k);
	if (kind == SLIDING_WHOLE || kind == SLIDING_SWITCHED) {
		free(s->slides);
		s->slides = NULL;
	}
	if (!s->slides)
		s->slides = place_windows(s, k, from);
	for (size_t i = 0; s->slides && kind != SLIDING_NONE && !s->sliding_window && i < s->blocks; i++)
		if (s->slides[i])
			die("%s: /config: block %zu is of kind 'sliding_attention', "
				"but there is no 'sliding_window'", k->file, i);
}
