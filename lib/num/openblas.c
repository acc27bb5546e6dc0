/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * openblas.c -- OpenBLAS as the tools need it, its kernels, threads and buffers: linalg_init() of linalg.h
 *
 * Where there is no memory, OpenBLAS (0.3.21, blas_memory_alloc()) asks for a buffer again and again
 * without end: one for each of its threads when it is loaded, and one for each call that runs at the same
 * time. So memory is checked first, also before its initialization: .preinit_array of a program runs before
 * the constructors of any library.
 *
 * Source: OpenBLAS 0.3.21, driver/others/memory.c; System V ABI, "Initialization and Termination
 * Functions".
 */
#include <assert.h>
#include <cblas.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"
#include "num/trial.h"

enum { BUFFERS = 64 };				/* a Debian build has no more threads */
static const size_t BUFFER = (128 << 20) + 4096;	/* of the largest kernels */

/* Of OpenBLAS, not in its header; the latter two where it was built to choose among kernels. */
void *blas_memory_alloc(int position) __attribute__((weak));
void blas_memory_free(void *buffer) __attribute__((weak));
void gotoblas_dynamic_init(void) __attribute__((weak));
void gotoblas_dynamic_quit(void) __attribute__((weak));

/* The first of the variables that holds a number above 0, in the order of OpenBLAS; else 0. */
static size_t threads_asked(char *env[])
{
	static const char *const names[] = { "OPENBLAS_NUM_THREADS=", "GOTO_NUM_THREADS=",
		"OMP_NUM_THREADS=" };

	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		for (char **e = env; *e; e++)
			if (!strncmp(*e, names[k], strlen(names[k])) && atoi(*e + strlen(names[k])) > 0)
				return (size_t)atoi(*e + strlen(names[k]));
	return 0;
}

static void before_openblas(int argc, char *argv[], char *env[])
{
	size_t n = threads_asked(env), processors = 1;
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof set, &set))
		processors = (size_t)CPU_COUNT(&set);
	if (argc && strrchr(argv[0], '/'))
		program = strrchr(argv[0], '/') + 1;
	memory_check(min(n ? n : processors, min(processors, BUFFERS)), BUFFER, "OpenBLAS");
}

__attribute__((section(".preinit_array"), used))
static void (*const run_before_openblas)(int argc, char *argv[], char *env[]) = before_openblas;

/* Makes OpenBLAS allocate its buffers now, one for each of our threads; dies without the memory. */
static void allocate_buffers(void)
{
	size_t n = min((size_t)threads, BUFFERS);
	void *buffer[BUFFERS];

	memory_check(n, BUFFER, "OpenBLAS");
	if (!blas_memory_alloc || !blas_memory_free)
		return;
	for (size_t i = 0; i < n; i++)
		buffer[i] = blas_memory_alloc(0);
	while (n)
		blas_memory_free(buffer[--n]);
}

/*
 * OpenBLAS knows processors by their model number, and gives those that are newer than itself its oldest
 * kernels (0.3.21 on a Xeon of 2023: a fifth of the speed). It is told what the processor can do, unless
 * the user has.
 */
static void wake_kernels(void)
{
	static const char *const fits[][4] = {
		[CPU_PLAIN] = { NULL }, [CPU_AVX2] = { "Haswell", "Zen", "Excavator", NULL },
		[CPU_AVX512] = { "SkylakeX", "Cooperlake", "SapphireRapids", NULL },
	};
	const char *core = openblas_get_corename(), *const *fit = fits[cpu_widest];

	if (!*fit || !gotoblas_dynamic_init || !gotoblas_dynamic_quit || getenv("OPENBLAS_CORETYPE"))
		return;
	for (const char *const *f = fit; *f; f++)
		if (!strcasecmp(*f, core))
			return;
	xsetenv("OPENBLAS_CORETYPE", *fit);
	gotoblas_dynamic_quit();
	gotoblas_dynamic_init();
}

void linalg_init(void)
{
	const char *wrong;

	wake_kernels();
	assert(openblas_get_parallel() == 2 && "OpenBLAS is the OpenMP build (libopenblas0-openmp)");
	openblas_set_num_threads(1);
	allocate_buffers();
	memory_stack();
	if ((wrong = trial_wrong()))
		cpu_distrust(wrong, openblas_get_corename());
}
