/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_making_private.h -- a config.json that is being made: what gguf_config.c and gguf_rope.c share */
#ifndef IMPORT_GGUF_MAKING_PRIVATE_H
#define IMPORT_GGUF_MAKING_PRIVATE_H
#include <jansson.h>
#include <stdbool.h>
#include "import/gguf.h"
#include "import/gguf_config_private.h"
#include "import/gguf_table.h"

/* What is being made, and of what. */
struct gguf_making {
	const struct gguf *g;
	const char *path;
	const struct gguf_row *row;
	struct gguf_sizes sizes;
	json_t *config;
};

/* The first key of the row of that kind, or NULL; "ARCHITECTURE.key" of it, free() it. */
const struct gguf_key *gguf_key_of(const struct gguf_making *m, enum gguf_kind kind);
char *gguf_full_key(const struct gguf_making *m, const struct gguf_key *k);
/* Values by their kind, of the first key of it that is there; false: none is, and *v stays. A size is not
 * negative. */
bool gguf_size_of(const struct gguf_making *m, enum gguf_kind kind, size_t *v);
bool gguf_real_of(const struct gguf_making *m, enum gguf_kind kind, double *v);

void gguf_put(const struct gguf_making *m, const char *ours, json_t *v);
/* The shortest decimal that rounds to the float32; v, if it is none. */
double gguf_shortest(double v);

/* gguf_rope.c: a key of the row, into config.json. */
void gguf_put_theta(const struct gguf_making *m, const struct gguf_key *k);
void gguf_put_rotated(const struct gguf_making *m, const struct gguf_key *k);
void gguf_put_scaling(const struct gguf_making *m, const struct gguf_key *k);
#endif
