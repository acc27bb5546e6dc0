/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cpu.c -- see cpu.h */
#include "base/cpu.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif

static const char *const names[] = { [CPU_PLAIN] = "plain", [CPU_AVX2] = "avx2", [CPU_AVX512] = "avx512" };
enum { CPUS = sizeof names / sizeof *names };

enum cpu cpu, cpu_widest;
bool cpu_bf16, cpu_half, cpu_dot;
static int wanted = -1;			/* CPUS: no such name */

__attribute__((constructor))
static void cpu_init(void)
{
	const char *name = getenv("PTQ_CPU");

#ifdef __x86_64__
	unsigned a, b, c, d;

	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		cpu_widest = CPU_AVX2;
	if (cpu_widest && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
		cpu_widest = CPU_AVX512;
#endif
	cpu = cpu_widest;
	if (name && *name)
		for (wanted = 0; wanted < CPUS && strcmp(names[wanted], name); wanted++)
			;
	if (wanted >= 0 && wanted <= (int)cpu_widest)
		cpu = (enum cpu)wanted;
#ifdef __x86_64__
	/* Intel's does the two products of a pair in the time of four fused ones. */
	cpu_bf16 = cpu == CPU_AVX512 && __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
	/* Not every compiler's __builtin_cpu_supports() knows F16C. */
	cpu_half = __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
	cpu_dot = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
#endif
}

void cpu_check(void)
{
	if (wanted == CPUS)
		misuse("PTQ_CPU: '%s' is none of plain, avx2, avx512", getenv("PTQ_CPU"));
	if (wanted > (int)cpu_widest)
		misuse("PTQ_CPU: this processor has no %s, only %s", names[wanted], names[cpu_widest]);
}
