/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pattern.h -- patterns of paths: "/a/b" matches that path, "/a/#" the children of /a whose names are
 * numbers, and "*" everything
 */
#ifndef IO_PATTERN_H
#define IO_PATTERN_H
#include <stddef.h>

struct pattern {
	enum pattern_kind { PATTERN_PATH, PATTERN_NUMBERED, PATTERN_ALL } kind;
	size_t length;
	const char *path;	/* length bytes of the caller's text: "/a/b"; "/a", the group of "/a/#"; "" */
};

/* A path can lead to what the pattern matches ("/a"), or be a match or below one ("/a/3", "/a/3/c"). */
enum pattern_match { MATCH_NONE, MATCH_LEADS, MATCH_WITHIN };

/* The patterns of a NULL-terminated list, or of none (NULL); free() them. */
struct pattern *pattern_list(const char *const text[], size_t *n);
/* number: where the digits of the match begin in path (up to its end or a slash); left alone if there are
 * none. */
enum pattern_match pattern_match(const struct pattern *p, const char *path, const char **number);
#endif
