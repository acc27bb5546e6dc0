/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cpu.c -- see cpu.h */
#include "base/cpu.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/error.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { AMX = CPU_AVX512 + 1 };
static const char *const names[] = { [CPU_PLAIN] = "plain", [CPU_AVX2] = "avx2", [CPU_AVX512] = "avx512",
	[AMX] = "amx" };
enum { NAMES = sizeof names / sizeof *names };

enum cpu cpu, cpu_widest;
bool cpu_amx, cpu_bf16, cpu_half, cpu_dot;
static int widest, wanted = -1;		/* indices of `names`; NAMES: an unknown name */

#if defined __x86_64__ && defined __linux__
/* On Linux a process must request the registers of tiles before it uses them
 * (Documentation/arch/x86/xstate.rst). */
static bool has_amx(void)
{
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
	const unsigned bits = 1u << 22 | 1u << 24 | 1u << 25;	/* AMX-BF16, AMX-TILE, AMX-INT8 */
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bits) == bits &&
		!syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
}
#else
static bool has_amx(void)
{
	return false;
}
#endif

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
	widest = cpu_widest == CPU_AVX512 && has_amx() ? AMX : (int)cpu_widest;
	if (name && *name)
		for (wanted = 0; wanted < NAMES && strcmp(names[wanted], name); wanted++)
			;
	cpu = wanted >= 0 && wanted < (int)cpu_widest ? (enum cpu)wanted : cpu_widest;
	cpu_amx = widest == AMX && (wanted < 0 || wanted == AMX);
#ifdef __x86_64__
	/* On Intel's processors the two products of a pair take the time of four fused products. */
	cpu_bf16 = cpu == CPU_AVX512 && __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
	/* Not every compiler supports F16C in __builtin_cpu_supports(). */
	cpu_half = __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
	cpu_dot = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
#endif
}

void cpu_check(void)
{
	if (wanted == NAMES)
		misuse("PTQ_CPU: '%s' is not one of plain, avx2, avx512, amx", getenv("PTQ_CPU"));
	if (wanted > widest)
		misuse("PTQ_CPU: this processor does not support %s, only %s", names[wanted], names[widest]);
}

_Noreturn void cpu_refuse_kernels(const char *call, const char *kernels)
{
	const bool has_others = cpu_widest >= CPU_AVX2 && strcasecmp(kernels, "Haswell") &&
		strcasecmp(kernels, "Zen");

	die("OpenBLAS multiplies wrongly on this processor: %s of its kernels %s; set OPENBLAS_CORETYPE=%s "
		"in the environment", call, kernels, has_others ? "Haswell" : "Prescott");
}

const char *cpu_name(void)
{
	return names[cpu_amx ? AMX : (int)cpu];
}
