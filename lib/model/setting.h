/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * setting.h -- words that several options take: formats, groups
 *
 * Each ends the program as a misuse, naming the option, where the word means nothing.
 */
#ifndef MODEL_SETTING_H
#define MODEL_SETTING_H
#include "num/format.h"

void setting_format(struct format *f, const char *option, const char *name);
/* Warns where a format is easily taken for FP8 of hardware. */
void setting_hint(const struct format *f, const char *option);
long setting_group(const char *text);		/* columns, or 0 for "channel", -1 for "tensor" */
#endif
