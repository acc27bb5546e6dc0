/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pattern.h -- patterns of paths
 *
 * "/a/b" matches that path, "/a/#" the children of /a whose names are numbers, and "*" everything.
 */
#ifndef IO_PATTERN_H
#define IO_PATTERN_H
#include <stddef.h>

struct pattern {
	enum pattern_kind { PATTERN_PATH, PATTERN_NUMBERED, PATTERN_ALL } kind;
	size_t length;
	const char *path;	/* borrowed, `length` bytes: "/a/b"; "/a" for "/a/#"; "" for "*" */
};

/* MATCH_LEADS: the path is above a possible match ("/a" for "/a/#"). MATCH_WITHIN: the path is a match or
 * below one ("/a/3", "/a/3/c"). */
enum pattern_match { MATCH_NONE, MATCH_LEADS, MATCH_WITHIN };

/* Parses a NULL-terminated list (NULL: an empty one); the caller frees the result. */
struct pattern *pattern_list(const char *const text[], size_t *n);
/* *number: the first digit of the match in path; its digits end at a slash or at the end of path. Unchanged
 * if the match has no number. */
enum pattern_match pattern_match(const struct pattern *p, const char *path, const char **number);
#endif
