/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pattern.h -- patterns of paths: "/a/b", what has this path; "/a/#", the children of /a whose names are numbers;
 * "*", everything
 */
#ifndef IO_PATTERN_H
#define IO_PATTERN_H
#include <stddef.h>

struct pattern {
	enum pattern_kind { PATTERN_PATH, PATTERN_NUMBERED, PATTERN_ALL } kind;
	size_t length;
	const char *path;	/* length bytes of the caller's text: "/a/b"; "/a", the group of the numbers; "" */
};

/* A path can lead to what the pattern matches ("/a"), or be a match or below one ("/a/3", "/a/3/c"). */
enum pattern_match { MATCH_NONE, MATCH_LEADS, MATCH_WITHIN };

struct pattern pattern_parse(const char *text);
/* number: where the digits of the match begin in path, up to its end or to a slash; untouched unless there are such. */
enum pattern_match pattern_match(const struct pattern *p, const char *path, const char **number);
#endif
