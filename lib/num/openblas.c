/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * openblas.c -- set-up of OpenBLAS: kernels, threads and buffers; linalg_init() of linalg.h
 *
 * OpenBLAS (0.3.21, blas_memory_alloc()) allocates a buffer for each of its threads when it is loaded, and
 * one for each concurrent call. Without enough memory it retries forever. So memory is checked before that,
 * also before its initialization: .preinit_array of a program runs before the constructors of any library.
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

enum { BUFFERS = 64 };				/* maximum threads of the Debian build */
static const size_t BUFFER = (128 << 20) + 4096;	/* bytes, for the largest kernels */

/* Functions of OpenBLAS that are not in its header. The last two exist only in builds that select kernels. */
void *blas_memory_alloc(int position) __attribute__((weak));
void blas_memory_free(void *buffer) __attribute__((weak));
void gotoblas_dynamic_init(void) __attribute__((weak));
void gotoblas_dynamic_quit(void) __attribute__((weak));

/* Value of the first variable with a number above 0, in the order of OpenBLAS; else 0. */
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

/* Makes OpenBLAS allocate its buffers now, one for each of our threads. Fatal error if memory is short. */
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
 * OpenBLAS recognizes processors by model number, and uses its oldest kernels on processors newer than itself
 * (0.3.21 on a Xeon of 2023: a fifth of the speed). This function selects kernels by the features of the
 * processor, unless OPENBLAS_CORETYPE is set.
 */
static void select_kernels(void)
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

	select_kernels();
	assert(openblas_get_parallel() == 2 && "OpenBLAS is the OpenMP build (libopenblas0-openmp)");
	openblas_set_num_threads(1);
	allocate_buffers();
	memory_stack();
	if ((wrong = trial_failed()))
		cpu_refuse_kernels(wrong, openblas_get_corename());
}
