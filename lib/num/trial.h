/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trial.h -- whether BLAS multiplies rightly on this processor: each of its products that is used, once
 *
 * Of whole numbers so small that each product, quotient and sum in float is one: any order of a sum gives
 * the same, and what differs from the product in double is wrong.
 */
#ifndef NUM_TRIAL_H
#define NUM_TRIAL_H

const char *trial_wrong(void);		/* the first that is wrong, by its name; NULL: none */
#endif
