/* SPDX-License-Identifier: GPL-3.0-or-later */
/* standard.c -- see standard.h */
#include "base/standard.h"
#include <fcntl.h>
#include <unistd.h>

static bool closed[3];

__attribute__((constructor))
static void fill(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0) {
			closed[fd] = true;
			if (open("/", O_RDONLY | O_DIRECTORY) != fd) {	/* must be fd, the lowest free one */
				static const char line[] = "a closed standard descriptor cannot be opened\n";

				if (write(2, line, sizeof line - 1) >= 0)
					_exit(1);
				_exit(1);
			}
		}
}

bool standard_closed(int fd)
{
	return fd >= 0 && fd < 3 && closed[fd];
}
