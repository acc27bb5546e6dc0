/* SPDX-License-Identifier: GPL-3.0-or-later */
/* target.c -- the table of targets; see target.h */
#include "export/target.h"
#include "export/compressed_target.h"
#include "export/folder_target.h"
#include "export/gguf_target.h"
#include "export/gptq_target.h"

static const struct target *const targets[] = { &hf_target, &compressed_target, &gptq_target,
	&gguf_target };
enum { KINDS = sizeof targets / sizeof *targets };
const char *const export_blocks_names[] = { "auto", "q8_0", "none", NULL };

const struct target *target_at(size_t i)
{
	return i < KINDS ? targets[i] : NULL;
}

const char *const *target_names(void)
{
	static const char *name[KINDS + 1];

	for (size_t i = 0; i < KINDS; i++)
		name[i] = targets[i]->name;
	return name;
}

const char *const *target_meanings(void)
{
	static const char *meaning[KINDS + 1];

	for (size_t i = 0; i < KINDS; i++)
		meaning[i] = targets[i]->what;
	return meaning;
}
