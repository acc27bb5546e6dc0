/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scratch.h -- temporary files, which are removed when they are closed */
#ifndef BASE_SCRATCH_H
#define BASE_SCRATCH_H
/* Descriptor of a new file without a name in $TMPDIR (default /var/tmp), open for reading and writing. Fatal
 * error if it cannot be created. */
int scratch_file(void);
const char *scratch_folder(void);	/* its folder, for messages */
#endif
