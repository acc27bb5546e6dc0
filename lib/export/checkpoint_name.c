/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint_name.c -- see checkpoint_name.h */
#include "export/checkpoint_name.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

/* Replaces `from` at the beginning of the name by `to`. Frees the name if it is replaced. */
static char *begin_with(char *name, const char *from, const char *to)
{
	char *other;

	if (strncmp(name, from, strlen(from)))
		return name;
	other = xformat("%s%s", to, name + strlen(from));
	free(name);
	return other;
}

/* Vision-language classes have the same names for all language models. */
static char *with_common_stem(const struct config *c, char *name)
{
	const char *embedding = c->arch->embedding + 1;
	char *stem = xformat("%.*s.", (int)strcspn(embedding, "/"), embedding);
	char *head = xformat("%s.", c->arch->head + 1);

	name = begin_with(begin_with(name, stem, "model."), head, "lm_head.");
	free(stem), free(head);
	return name;
}

char *checkpoint_name(const struct config *c, const char *path)
{
	const struct multimodal *m = c->vision.class;
	char *name = xformat("%s", path + 1);

	for (char *p = name; *p; p++)
		*p = *p == '/' ? '.' : *p;
	if (!m)
		return name;
	name = with_common_stem(c, name);
	for (const struct rename_row *r = m->written; r->from; r++)
		if (!strncmp(name, r->from, strlen(r->from)))
			return begin_with(name, r->from, r->to);
	return name;
}
