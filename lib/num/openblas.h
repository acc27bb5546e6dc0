/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * openblas.h -- the memory that OpenBLAS takes for itself
 */
#ifndef NUM_OPENBLAS_H
#define NUM_OPENBLAS_H
/* Lets OpenBLAS have its buffers now, one for each of our threads; dies if they cannot be had. */
void openblas_buffers(void);
#endif
