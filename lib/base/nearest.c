/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nearest.c -- see nearest.h */
#include "base/nearest.h"
#include <ctype.h>
#include <string.h>

int nearest_distance(const char *a, const char *b)
{
	enum { MOST = 31 };
	int row[MOST + 1];

	for (int j = 0; j <= MOST; j++)
		row[j] = j;
	for (int i = 0; i < MOST && a[i]; i++) {
		int before = row[0]++;

		for (int j = 0; j < MOST && b[j]; j++) {
			int change = before + (tolower((unsigned char)a[i]) != b[j]);
			int shorter = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;

			before = row[j + 1];
			row[j + 1] = change < shorter ? change : shorter;
		}
	}
	return row[strnlen(b, MOST)];
}
