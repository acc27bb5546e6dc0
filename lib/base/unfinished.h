/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unfinished.h -- files and folders that are removed unless they are finished
 *
 *	char path[] = "folder/.ptq.XXXXXX";
 *	int fd = unfinished_temporary(path);
 *
 *	... write(fd), rename(path, "folder/result") ...
 *	unfinished_done(path);
 *
 * However the program ends before that, except by SIGKILL, the file is removed. No signal comes between a
 * file and its entry in the list. These functions say by their result that something failed, and errno why.
 */
#ifndef BASE_UNFINISHED_H
#define BASE_UNFINISHED_H
#include <stdbool.h>

/* A new file, for reading and writing: its descriptor, or -1. A template ends with XXXXXX, which are
 * replaced. */
int unfinished_temporary(char *template);
int unfinished_create(const char *path);
bool unfinished_folder(char *template);
/* The file is removed under its new name. */
bool unfinished_rename(const char *from, const char *to);
/* What has this path stays; if it is a folder, what is in it, too. */
void unfinished_done(const char *path);
#endif
