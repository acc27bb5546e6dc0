/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scratch.c -- see scratch.h */
#include "base/scratch.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/error.h"

const char *scratch_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder ? folder : "/var/tmp";
}

int scratch_file(void)
{
	char *path = xformat("%s/ptqtools.XXXXXX", scratch_folder());
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		die("%s: cannot create a temporary file (set TMPDIR to another folder):", scratch_folder());
	unlink(path);
	free(path);
	return fd;
}
