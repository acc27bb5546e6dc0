/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * case.h -- the name of the current case when a C test with a loop fails
 *
 * CASE("%s %s", model, format) in a loop names the case. If an assertion fails or the test crashes, the last
 * name is printed to standard error. A test begins without a name. Include it after cmocka.h.
 */
#ifndef CASE_H
#define CASE_H
#include <stdio.h>

static char case_name[256];

#define CASE(...) ((void)snprintf(case_name, sizeof case_name, __VA_ARGS__))

/* cmocka calls this in place of a test; *state points to the test. */
static inline void case_run(void **state)
{
	void (*const *const test)(void **) = *state;
	void *none = NULL;

	case_name[0] = 0;
	(*test)(&none);
	case_name[0] = 0;		/* not reached if the test fails */
}

static inline int case_end(void **state)
{
	(void)state;
	if (*case_name)
		fprintf(stderr, "# the case: %s\n", case_name);
	return 0;
}

#undef cmocka_unit_test
#define cmocka_unit_test(f) { #f, case_run, NULL, case_end, &(void (*[1])(void **)){ f } }
#endif
