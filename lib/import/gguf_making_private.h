/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_making_private.h -- construction of a config.json, shared by gguf_config.c and gguf_rope.c */
#ifndef IMPORT_GGUF_MAKING_PRIVATE_H
#define IMPORT_GGUF_MAKING_PRIVATE_H
#include <jansson.h>
#include <stdbool.h>
#include "import/gguf.h"
#include "import/gguf_config_private.h"
#include "import/gguf_table.h"

/* The config.json under construction and its inputs. */
struct gguf_config_builder {
	const struct gguf *g;
	const char *path;
	const struct gguf_row *row;
	struct gguf_sizes sizes;
	json_t *config;
};

/* The first key of the kind in the row, or NULL; the text "ARCHITECTURE.key" of a key, free() it. */
const struct gguf_key *gguf_key_of(const struct gguf_config_builder *m, enum gguf_kind kind);
char *gguf_full_key(const struct gguf_config_builder *m, const struct gguf_key *k);
/* The value of the first key of the kind that the file has. False: the file has none, *v is unchanged. A
 * negative size is a fatal error. */
bool gguf_size_of(const struct gguf_config_builder *m, enum gguf_kind kind, size_t *v);
bool gguf_real_of(const struct gguf_config_builder *m, enum gguf_kind kind, double *v);

void gguf_put(const struct gguf_config_builder *m, const char *hf, json_t *v);
/* The shortest decimal that rounds to the float32 v; v itself if it is not a float32. */
double gguf_shortest(double v);

/* gguf_rope.c: writes a key of the row into config.json. */
void gguf_put_theta(const struct gguf_config_builder *m, const struct gguf_key *k);
void gguf_put_rotated(const struct gguf_config_builder *m, const struct gguf_key *k);
void gguf_put_scaling(const struct gguf_config_builder *m, const struct gguf_key *k);
#endif
