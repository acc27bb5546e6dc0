/* SPDX-License-Identifier: GPL-3.0-or-later */
/* library.cu -- CUDA's runtime, cuBLAS and cuSOLVER; see library.h */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>
#include "cuda/gpu.h"
#include "cuda/growing.h"
#include "cuda/library.h"

static struct {
	const struct device_host *host;
	cublasHandle_t blas;
	cublasLtHandle_t bytes;
	void *bytes_work;
	cusolverDnHandle_t solver;
	struct cudaDeviceProp properties;
	char name[320];
	int *info;			/* of cuSOLVER */
} gpu;

void gpu_check(cudaError_t error, const char *what)
{
	if (error == cudaErrorMemoryAllocation)
		gpu.host->fail("%s: the memory of the GPU (%zu MiB) is full: %s", gpu.name,
			gpu.properties.totalGlobalMem >> 20, what);
	if (error)
		gpu.host->fail("%s: %s: %s", gpu.name, what, cudaGetErrorString(error));
}

static void check_blas(cublasStatus_t status, const char *what)
{
	if (status)
		gpu.host->fail("%s: %s: %s", gpu.name, what, cublasGetStatusString(status));
}

static void check_solver(cusolverStatus_t status, const char *what)
{
	if (status)
		gpu.host->fail("%s: %s: status %d of cuSOLVER", gpu.name, what, (int)status);
}

const char *library_open(const struct device_host *host)
{
	int count = 0, version = 0;

	gpu.host = host;
	if (cudaGetDeviceCount(&count) || !count)
		return NULL;
	gpu_check(cudaGetDeviceProperties(&gpu.properties, 0), "properties");
	cudaRuntimeGetVersion(&version);
	snprintf(gpu.name, sizeof gpu.name, "%s, CUDA %d.%d", gpu.properties.name, version / 1000,
		version % 1000 / 10);
	check_blas(cublasCreate(&gpu.blas), "cuBLAS");
	check_blas(cublasSetMathMode(gpu.blas, CUBLAS_DEFAULT_MATH), "cuBLAS");	/* no TF32 */
	return gpu.name;
}

void *library_allocate(size_t bytes)
{
	void *x = NULL;

	gpu_check(cudaMalloc(&x, bytes ? bytes : 1), "allocation");
	return x;
}

void library_release(void *x)
{
	gpu_check(cudaFree(x), "release");
}

void library_clear(void *x, size_t bytes)
{
	gpu_check(cudaMemsetAsync(x, 0, bytes), "clear");
}

void library_upload(void *x, const void *host, size_t bytes)
{
	gpu_check(cudaMemcpy(x, host, bytes, cudaMemcpyHostToDevice), "upload");
}

void library_download(void *host, const void *x, size_t bytes)
{
	gpu_check(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost), "download");
}

/* Pages that cannot be pinned stay as they are: copies are slower, not wrong. */
void library_pin(void *host, size_t bytes)
{
	if (cudaHostRegister(host, bytes, cudaHostRegisterDefault))
		cudaGetLastError();
}

void library_unpin(void *host)
{
	if (cudaHostUnregister(host))
		cudaGetLastError();
}

/* cuBLAS is column-major: it computes cᵀ = op(b)ᵀ op(a)ᵀ. */
void library_gemm(const struct gemm *g)
{
	const cudaDataType type = g->type == DEVICE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
	const cublasOperation_t of_a = g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t of_b = g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;

	if (!g->m || !g->n)
		return;
	if (g->batch > 1)
		check_blas(cublasGemmStridedBatchedEx(gpu.blas, of_b, of_a, (int)g->n, (int)g->m, (int)g->k,
			&g->alpha, g->b, type, (int)g->ldb, (long long)g->step_b, g->a, type, (int)g->lda,
			(long long)g->step_a, &g->beta, g->c, CUDA_R_32F, (int)g->ldc,
			(long long)g->step_c, (int)g->batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
			"product");
	else
		check_blas(cublasGemmEx(gpu.blas, of_b, of_a, (int)g->n, (int)g->m, (int)g->k, &g->alpha,
			g->b, type, (int)g->ldb, g->a, type, (int)g->lda, &g->beta, g->c, CUDA_R_32F,
			(int)g->ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), "product");
}

/* cᵀ = b aᵀ, column-major: the only order in which FP8 units multiply. Without fast sums, partial sums leave
 * the unit every 128 columns. */
void library_gemm_bytes(const struct gemm_bytes *g)
{
	enum { WORK = 32 << 20 };
	const bool integers = g->type == DEVICE_INT8;
	const cudaDataType_t type = integers ? CUDA_R_8I : CUDA_R_8F_E4M3;
	const cudaDataType_t out = integers ? CUDA_R_32I : CUDA_R_32F;
	const cublasOperation_t transposed = CUBLAS_OP_T;
	const float one = 1, zero = 0;
	const int32_t whole = 1, nothing = 0;
	const int8_t fast = 0;
	cublasLtMatmulDesc_t how;
	cublasLtMatrixLayout_t a, b, c;

	if (!gpu.bytes) {
		check_blas(cublasLtCreate(&gpu.bytes), "cuBLASLt");
		gpu.bytes_work = library_allocate(WORK);
	}
	check_blas(cublasLtMatmulDescCreate(&how, integers ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F, out),
		"product of bytes");
	cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
	if (!integers)
		cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
	cublasLtMatrixLayoutCreate(&a, type, g->k, g->n, (int64_t)g->k);
	cublasLtMatrixLayoutCreate(&b, type, g->k, g->m, (int64_t)g->k);
	cublasLtMatrixLayoutCreate(&c, out, g->n, g->m, (int64_t)g->n);
	check_blas(cublasLtMatmul(gpu.bytes, how, integers ? (const void *)&whole : &one, g->b, a, g->a, b,
		integers ? (const void *)&nothing : &zero, g->c, c, g->c, c, NULL, gpu.bytes_work, WORK, 0),
		"product of bytes");
	cublasLtMatrixLayoutDestroy(a), cublasLtMatrixLayoutDestroy(b), cublasLtMatrixLayoutDestroy(c);
	cublasLtMatmulDescDestroy(how);
}

/* The lower triangle of a row-major matrix is the upper one of a column-major matrix: a = Uᵀ U, U = Lᵀ. */
size_t library_cholesky(size_t n, float *a)
{
	static struct growing work;
	int numbers = 0, info = 0;

	if (!gpu.solver) {
		check_solver(cusolverDnCreate(&gpu.solver), "cuSOLVER");
		gpu.info = (int *)library_allocate(sizeof *gpu.info);
	}
	check_solver(cusolverDnSpotrf_bufferSize(gpu.solver, CUBLAS_FILL_MODE_UPPER, (int)n, a, (int)n,
		&numbers), "factor");
	check_solver(cusolverDnSpotrf(gpu.solver, CUBLAS_FILL_MODE_UPPER, (int)n, a, (int)n,
		(float *)growing_of(&work, (size_t)numbers * sizeof(float)), numbers, gpu.info), "factor");
	library_download(&info, gpu.info, sizeof info);
	return info > 0 ? (size_t)info : 0;
}
