/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dialect.h -- a pattern in Oniguruma's syntax as PCRE2 spells it */
#ifndef TEXT_DIALECT_H
#define TEXT_DIALECT_H

/* free() it. name: of the file, for messages. Dies on what regex.h says is refused, with the offset. */
char *dialect_translate(const char *name, const char *pattern);
#endif
