/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * setting.h -- types of option values that several tools share: formats, groups, texts
 *
 * An invalid value is wrong usage; the message names the option.
 */
#ifndef MODEL_SETTING_H
#define MODEL_SETTING_H
#include "base/option.h"
#include "model/cache_format.h"
#include "num/format.h"

/* Warns if a format is easily mistaken for a hardware FP8 format. */
void setting_hint(const struct format *f, const char *option);

/* Value: const char *, valid UTF-8 and not empty; NULL if the option is not given. */
#define OPTION_UTF8(var)		OPTION_PARSED(const char *, var, setting_utf8)
void setting_utf8(void *to, const char *option, const char *text);

/* Value: struct format. Except for OPTION_STORAGE, the format has a grid. OR_NONE: "none" is a format with
 * kind NULL. */
#define OPTION_FORMAT(var)		OPTION_PARSED(struct format, var, setting_format)
#define OPTION_FORMAT_OR_NONE(var)	OPTION_PARSED(struct format, var, setting_format_or_none)
#define OPTION_STORAGE(var)		OPTION_PARSED(struct format, var, setting_storage)
void setting_storage(void *format, const char *option, const char *text);
void setting_format(void *format, const char *option, const char *text);
void setting_format_or_none(void *format, const char *option, const char *text);

/* Value: struct cache_format, all zero if the option is not given; G is from 1 to LINEAR_MAX. */
#define OPTION_KV_FORMAT(var) { 0, "kv-format", OPTION_PARSED(struct cache_format, var, setting_kv_format), \
	"FORMAT[:G]", "format of keys and values (default: the model's)", \
	.form = setting_kv_form }
/* Parses the attribute of a file, which is never "none"; returns whether it is valid. */
bool setting_kv_parse(struct cache_format *f, const char *text);
void setting_kv_format(void *format, const char *option, const char *text);
char *setting_kv_form(const void *format);

/* Value: bool, for format_ties(). */
#define OPTION_TIES(var) { 0, "ties", OPTION_EITHER(var, format_tie_names), NULL, \
	"rounding halfway between two values", .default_value = "even" }

/* Value: long, the columns that share a scale; 0 for "channel", -1 for "tensor". */
#define OPTION_GROUP(var) { 'g', "group", OPTION_PARSED(long, var, setting_group), "G|channel|tensor", \
	"columns that share a scale", .default_value = "128", .form = setting_group_form }
void setting_group(void *group, const char *option, const char *text);
char *setting_group_form(const void *group);
#endif
