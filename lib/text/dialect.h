/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dialect.h -- translates a pattern from Oniguruma's syntax to PCRE2's */
#ifndef TEXT_DIALECT_H
#define TEXT_DIALECT_H

/* The caller frees the result. name: the file's name, for messages. Fatal error, with the offset, on syntax
 * that is not supported (regex.h). */
char *dialect_translate(const char *name, const char *pattern);
#endif
