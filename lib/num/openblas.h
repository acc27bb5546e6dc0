/* SPDX-License-Identifier: GPL-3.0-or-later */
/* openblas.h -- the buffers that OpenBLAS allocates */
#ifndef NUM_OPENBLAS_H
#define NUM_OPENBLAS_H
/* Makes OpenBLAS allocate its buffers now, one for each of our threads; dies without the memory. */
void openblas_buffers(void);
#endif
