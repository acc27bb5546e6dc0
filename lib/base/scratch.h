/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scratch.h -- temporary files, which disappear when they are closed */
#ifndef BASE_SCRATCH_H
#define BASE_SCRATCH_H
/* A new file without a name in $TMPDIR (default /var/tmp), open for reading and writing; dies if it cannot
 * be made. */
int scratch_file(void);
const char *scratch_folder(void);	/* for messages */
#endif
