/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * case.h -- which case of a loop a C test is at when it fails
 *
 * CASE("%s %s", model, format) in a loop names it. Where an assertion fails, or the test crashes, standard
 * error has the last name. A test begins without one. Include it after cmocka.h.
 */
#ifndef CASE_H
#define CASE_H
#include <stdio.h>

static char case_name[256];

#define CASE(...) ((void)snprintf(case_name, sizeof case_name, __VA_ARGS__))

/* What cmocka calls in place of a test; *state points to the test. */
static inline void case_run(void **state)
{
	void (*const *const test)(void **) = *state;
	void *none = NULL;

	case_name[0] = 0;
	(*test)(&none);
	case_name[0] = 0;		/* a test that fails does not get here */
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
