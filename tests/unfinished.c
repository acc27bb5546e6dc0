/* SPDX-License-Identifier: GPL-3.0-or-later */
/* unfinished.c -- unfinished files and folders are removed when a program ends; finished ones stay */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/unfinished.h"

enum { NAME = 64 };
static char scratch[NAME];

/* "SCRATCH/name"; free() it. */
static char *at(const char *name)
{
	return xformat("%s/%s", scratch, name);
}

static bool there(const char *name)
{
	char *path = at(name);
	struct stat st;
	const bool y = !lstat(path, &st);

	free(path);
	return y;
}

/* A folder "one" with a file that is renamed to "b", the file "two"; `done` of them are finished. */
static void make(const char *done)
{
	char *folder = at("one.XXXXXX"), *file = at("two.XXXXXX"), *a, *b, *name;

	if (!unfinished_folder(folder) || unfinished_temporary(file) < 0)
		exit(9);
	a = xformat("%s/a", folder), b = xformat("%s/b", folder);
	if (unfinished_create(a) < 0 || unfinished_create(a) >= 0 || !unfinished_rename(a, b) ||
	    unfinished_rename(a, b))
		exit(9);
	name = at("one");
	if (strstr(done, "one") && (rename(folder, name) || (unfinished_done(folder), 0)))
		exit(9);
	name = at("two");
	if (strstr(done, "two") && (rename(file, name) || (unfinished_done(file), 0)))
		exit(9);
}

/* The files left by a program that creates these and ends by the signal, or by die() if it is 0. */
static void check(const char *done, int signal)
{
	char *name = at("one/b");
	int status;

	if (!fork()) {
		close(2);
		make(done);
		if (signal)
			raise(signal);
		die("it ends");
	}
	wait(&status);
	assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, signal);
	if (!signal)
		assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(there("one/b"), strstr(done, "one") != NULL);
	assert_int_equal(there("two"), strstr(done, "two") != NULL);
	unlink(name);
	free(name);
	name = at("one"), rmdir(name), free(name);
	name = at("two"), unlink(name), free(name);
	assert_int_equal(rmdir(scratch), 0);	/* it is empty */
	assert_int_equal(mkdir(scratch, 0700), 0);
}

static void ends(void **state)
{
	static const char *const done[] = { "", "one", "two", "one two" };

	(void)state;
	for (size_t i = 0; i < sizeof done / sizeof *done; i++) {
		check(done[i], 0);
		check(done[i], SIGTERM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ends) };
	int failed;

	cmocka_set_message_output(CM_OUTPUT_TAP);
	strcpy(scratch, "/tmp/unfinished.XXXXXX");
	if (!mkdtemp(scratch))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(scratch);
	return failed;
}
