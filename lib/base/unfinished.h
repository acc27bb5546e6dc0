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
 * If the program ends before unfinished_done(), the file is removed, except after SIGKILL. Signals are
 * blocked between the creation of a file and its entry in the list. On failure these functions return -1 or
 * false, and errno has the reason.
 */
#ifndef BASE_UNFINISHED_H
#define BASE_UNFINISHED_H
#include <stdbool.h>

/* Create a file for reading and writing, or a folder; the first two return a descriptor. A template ends with
 * XXXXXX, which is replaced. */
int unfinished_temporary(char *template);
int unfinished_create(const char *path);
bool unfinished_folder(char *template);
/* Renames a file; it is still unfinished, under its new name. */
bool unfinished_rename(const char *from, const char *to);
/* The file or folder of this path, with its contents, is no longer removed. */
void unfinished_done(const char *path);
#endif
