/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trial.h -- a test of the BLAS functions that the tools use, on this processor
 *
 * The matrices have integers so small that each product, quotient and sum is an integer that float
 * represents. So any order of a sum gives the same result, and a difference from the product in double is an
 * error.
 */
#ifndef NUM_TRIAL_H
#define NUM_TRIAL_H

const char *trial_failed(void);		/* name of the first function with a wrong result; NULL: none */
#endif
