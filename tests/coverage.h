/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * coverage.h -- included before every file of a build with COVERAGE=1, so that counts are written at _exit()
 *
 * Errors end a program by _exit(). Counts are not written if the file is not writable, as for another user.
 *
 * Calls of libgcov must not be made to fail, since libgcov crashes without memory. tests/fault/shim.c is told
 * before, at exit, by a destructor. It runs before the destructor of libgcov, since it has no priority.
 */
#include <gcov.h>
#include <unistd.h>
__attribute__((weak)) void shim_end(void);
__attribute__((destructor)) static void before_counts(void)
{
	if (shim_end)
		shim_end();
}
#define _exit(status) (access(COUNTS, W_OK) ? (void)0 : (before_counts(), __gcov_dump()), _exit(status))
