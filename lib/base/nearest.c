/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nearest.c -- see nearest.h */
#include "base/nearest.h"
#include <ctype.h>
#include <string.h>

int nearest_distance(const char *word, const char *known)
{
	enum { MAX = 31 };
	int row[MAX + 1];	/* [j]: distance of the letters of word so far from the first j of known */

	for (int j = 0; j <= MAX; j++)
		row[j] = j;
	for (int i = 0; i < MAX && word[i]; i++) {
		int before = row[0]++;

		for (int j = 0; j < MAX && known[j]; j++) {
			int change = before + (tolower((unsigned char)word[i]) != known[j]);
			int shorter = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;

			before = row[j + 1];
			row[j + 1] = change < shorter ? change : shorter;
		}
	}
	return row[strnlen(known, MAX)];
}
