/* SPDX-License-Identifier: GPL-3.0-or-later */
/* json_text.c -- see json_text.h */
#include "import/json_text.h"
#include <stdbool.h>
#include <stdlib.h>

char *json_text(json_t *o)
{
	for (size_t digits = 15; ; digits++) {
		char *text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
		json_t *same = json_loads(text, 0, NULL);
		const bool equal = digits == 17 || json_equal(o, same);

		json_decref(same);
		if (equal)
			return text;
		free(text);
	}
}
