/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * setting.h -- options of kinds that several tools have: formats, groups
 *
 * A word that means nothing ends the program as a misuse, naming the option.
 */
#ifndef MODEL_SETTING_H
#define MODEL_SETTING_H
#include "base/option.h"
#include "model/cache_format.h"
#include "num/format.h"

/* Warns where a format is easily taken for FP8 of hardware. */
void setting_hint(const struct format *f, const char *option);

/* struct format, which has a grid, but for OPTION_STORAGE; with OR_NONE "none" is one whose kind is NULL. */
#define OPTION_FORMAT(var)		OPTION_PARSED(struct format, var, setting_format)
#define OPTION_FORMAT_OR_NONE(var)	OPTION_PARSED(struct format, var, setting_format_or_none)
#define OPTION_STORAGE(var)		OPTION_PARSED(struct format, var, setting_storage)
void setting_storage(void *format, const char *option, const char *text);
void setting_format(void *format, const char *option, const char *text);
void setting_format_or_none(void *format, const char *option, const char *text);

/* struct cache_format, all zero where the option is not given; G from 1 to LINEAR_MAX */
#define OPTION_KV_FORMAT(var) { 0, "kv-format", OPTION_PARSED(struct cache_format, var, setting_kv_format), \
	"FORMAT[:G]", "round keys and values, a scale for G channels of a head, or none " \
	"(default: the model's)", .form = setting_kv_form }
/* Parses the attribute of a file, which is never "none"; returns whether it is valid. */
bool setting_kv_parse(struct cache_format *f, const char *text);
void setting_kv_format(void *format, const char *option, const char *text);
char *setting_kv_form(const void *format);

/* bool, for format_ties() */
#define OPTION_TIES(var) { 0, "ties", OPTION_EITHER(var, format_tie_names), NULL, \
	"where a weight halfway between two values goes", .otherwise = "even" }

/* long: columns that share a scale, or 0 for "channel", -1 for "tensor" */
#define OPTION_GROUP(var) { 'g', "group", OPTION_PARSED(long, var, setting_group), "G|channel|tensor", \
	"columns that share a scale", .otherwise = "128" }
void setting_group(void *group, const char *option, const char *text);
#endif
