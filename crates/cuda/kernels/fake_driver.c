// A driver, a compiler and cublasLt in one library, for tests without a card. It computes, by this
// processor, and fails as a test says. Nothing of it is in a shipped build.
//
// A test copies the library into a folder of its own, once for each of the three names. Each copy
// reads the file `script` beside it, whose lines are a function, a number of calls that succeed,
// and the status of those after them. A line may also set a number below, such as `driver 12080 0`.
//
// With WITH_HEADERS, NVIDIA's own headers declare the functions before they are defined here, so
// that a compiler notices any difference (tests/test_device_kernels.py).

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_HEADERS
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>
#else
typedef int CUresult, CUdevice, nvrtcResult, cublasStatus_t, cublasComputeType_t, cudaDataType_t;
typedef int CUdevice_attribute, cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t;
typedef int cublasLtMatmulPreferenceAttributes_t;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent, *nvrtcProgram;
typedef void *cublasLtHandle_t, *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cudaStream_t;
typedef void *cublasLtMatmulPreference_t;
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

#include "simulated.c"

// Addresses on the card are those of this process with one bit changed, so that neither can be used
// for the other.
#define CARD (1ull << 60)

static struct line {
    char name[64];
    long after, status;
} script[32];
static int lines;
static long number(const char *name, long otherwise)
{
    for (int i = 0; i < lines; i++) {
        if (strcmp(script[i].name, name) == 0) return script[i].after;
    }
    return otherwise;
}

__attribute__((constructor)) static void read_script(void)
{
    Dl_info here;
    char path[4096];
    if (!dladdr((void *)read_script, &here) || strlen(here.dli_fname) > 4000) return;
    strcpy(path, here.dli_fname);
    char *slash = strrchr(path, '/');
    if (!slash) return;
    strcpy(slash + 1, "script");
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (lines < 32 && fscanf(file, "%63s %ld %ld", script[lines].name, &script[lines].after,
                                &script[lines].status) == 3) {
        lines++;
    }
    fclose(file);
}

// Returns the status that the script gives a call.
static long status_of(const char *name)
{
    for (int i = 0; i < lines; i++) {
        if (strcmp(script[i].name, name) == 0 && script[i].after-- <= 0) return script[i].status;
    }
    return 0;
}

#define MAY_FAIL                                                                     \
    do {                                                                             \
        long status = status_of(__func__);                                           \
        if (status) return status;                                                   \
    } while (0)

// Every other function of this library has the name of one of NVIDIA's.
#ifdef WITH_HEADERS
#define VERSIONED(name) name
#else
#define VERSIONED(name) name##_v2
#endif
#define UNUSED(x) (void)(x)

// Contexts are current in a thread, the last one that was pushed. Besides the card's own there is
// one that stands for another library's.
#define OF_THE_CARD ((CUcontext)(CARD | 7))
#define OF_ANOTHER ((CUcontext)(CARD | 8))
static _Thread_local CUcontext pushed[16];
static _Thread_local int depth;

#define MAY_FAIL_IN_CONTEXT                                                          \
    MAY_FAIL;                                                                        \
    if (depth == 0 || pushed[depth - 1] != OF_THE_CARD) return 201

CUresult cuInit(unsigned int flags) { UNUSED(flags); MAY_FAIL; return 0; }
CUresult cuDriverGetVersion(int *version)
{
    MAY_FAIL;
    *version = number("driver", 13000);
    return 0;
}
CUresult cuDeviceGetCount(int *count) { MAY_FAIL; *count = number("cards", 1); return 0; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { MAY_FAIL; *device = ordinal; return 0; }

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    MAY_FAIL;
    snprintf(name, len, "Fake card %d", (int)device);
    return 0;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    UNUSED(device);
    MAY_FAIL;
    if (attribute != 75 && attribute != 76) return 1;
    *value = attribute == 75 ? number("major", 9) : number("minor", 0);
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    UNUSED(device);
    MAY_FAIL;
    *context = OF_THE_CARD;
    return 0;
}

static size_t used;

// What is still allocated in the end is an error, as on no other driver.
CUresult VERSIONED(cuDevicePrimaryCtxRelease)(CUdevice device)
{
    UNUSED(device);
    MAY_FAIL;
    if (used) {
        fprintf(stderr, "fake driver: %zu bytes were left\n", used);
        abort();
    }
    if (depth && pushed[depth - 1] == OF_THE_CARD) {
        fprintf(stderr, "fake driver: a context was released that is current\n");
        abort();
    }
    return 0;
}

CUresult VERSIONED(cuCtxPushCurrent)(CUcontext context)
{
    MAY_FAIL;
    if (context != OF_THE_CARD && context != OF_ANOTHER) return 201;
    if (depth == 16) abort();
    pushed[depth++] = context;
    return 0;
}

CUresult VERSIONED(cuCtxPopCurrent)(CUcontext *context)
{
    MAY_FAIL;
    if (depth == 0) return 201;
    *context = pushed[--depth];
    return 0;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    MAY_FAIL;
    *context = depth ? pushed[depth - 1] : NULL;
    return 0;
}

CUresult VERSIONED(cuMemGetInfo)(size_t *free_bytes, size_t *total)
{
    MAY_FAIL_IN_CONTEXT;
    *total = number("memory", 1l << 30);
    *free_bytes = *total - used;
    return 0;
}

// Each block is preceded by its length.
static void *block(size_t bytes)
{
    char *made = aligned_alloc(256, (bytes + 256 + 255) / 256 * 256);
    *(size_t *)made = bytes;
    memset(made + 256, 0xa5, bytes);
    return made + 256;
}

// Blocks that are not zero when they are freed are an error, as on no other driver.
static size_t free_block(char *content)
{
    const size_t bytes = *(size_t *)(content - 256);
    for (size_t i = 0; i < bytes; i++) {
        if (content[i]) {
            fprintf(stderr, "fake driver: memory was freed that had not been wiped\n");
            abort();
        }
    }
    free(content - 256);
    return bytes;
}

CUresult VERSIONED(cuMemAlloc)(CUdeviceptr *address, size_t bytes)
{
    MAY_FAIL_IN_CONTEXT;
    if (used + bytes > (size_t)number("memory", 1l << 30)) return 2;
    used += bytes;
    *address = (uintptr_t)block(bytes) ^ CARD;
    return 0;
}

CUresult VERSIONED(cuMemFree)(CUdeviceptr address)
{
    MAY_FAIL_IN_CONTEXT;
    used -= free_block((char *)(uintptr_t)(address ^ CARD));
    return 0;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    MAY_FAIL_IN_CONTEXT;
    if (flags) return 1;
    *memory = block(bytes);
    return 0;
}

CUresult cuMemFreeHost(void *memory) { MAY_FAIL_IN_CONTEXT; free_block(memory); return 0; }

CUresult VERSIONED(cuMemcpyHtoDAsync)(CUdeviceptr to, const void *from, size_t bytes,
                                      CUstream stream)
{
    MAY_FAIL_IN_CONTEXT;
    if (!stream) return 400;
    memcpy((void *)(uintptr_t)(to ^ CARD), from, bytes);
    return 0;
}

CUresult VERSIONED(cuMemcpyDtoHAsync)(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    MAY_FAIL_IN_CONTEXT;
    if (!stream) return 400;
    memcpy(to, (void *)(uintptr_t)(from ^ CARD), bytes);
    return 0;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    MAY_FAIL_IN_CONTEXT;
    if (!stream) return 400;
    memset((void *)(uintptr_t)(to ^ CARD), value, bytes);
    return 0;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    MAY_FAIL_IN_CONTEXT;
    if (strncmp(image, "fake cubin of sm_", 17)) return 200;
    *module = (CUmodule)(CARD | 9);
    return 0;
}

CUresult cuModuleUnload(CUmodule module)
{
    MAY_FAIL_IN_CONTEXT;
    return module == (CUmodule)(CARD | 9) ? 0 : 400;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    MAY_FAIL_IN_CONTEXT;
    if (module != (CUmodule)(CARD | 9)) return 400;
    if (strcmp(name, "decompose") && strcmp(name, "recompose")) return 500;
    *function = (CUfunction)(uintptr_t)(strcmp(name, "decompose") ? 2 : 1);
    return 0;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int x, unsigned int y, unsigned int z,
                        unsigned int threads, unsigned int ty, unsigned int tz, unsigned int shared,
                        CUstream stream, void **arguments, void **extra)
{
    MAY_FAIL_IN_CONTEXT;
    if (y * z * ty * tz != 1 || shared || extra || !stream) return 1;
    word copy[28];
    const int kernel = (int)(uintptr_t)f - 1;
    memcpy(copy, arguments[0], kernel ? sizeof(struct recompose) : sizeof(struct decompose));
    copy[0] ^= CARD;
    copy[kernel ? 1 : 16] ^= CARD;
    tacit_cuda_simulated(kernel, copy, x, threads, 0);
    return 0;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    MAY_FAIL_IN_CONTEXT;
    if (flags != 1) return 1;
    *stream = malloc(1);
    return 0;
}

CUresult VERSIONED(cuStreamDestroy)(CUstream stream)
{
    MAY_FAIL_IN_CONTEXT;
    free(stream);
    return 0;
}

CUresult cuStreamSynchronize(CUstream stream) { MAY_FAIL_IN_CONTEXT; return stream ? 0 : 400; }

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    MAY_FAIL_IN_CONTEXT;
    return stream && event && !flags ? 0 : 400;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    MAY_FAIL_IN_CONTEXT;
    if (flags != 2) return 1;
    *event = malloc(1);
    return 0;
}

CUresult VERSIONED(cuEventDestroy)(CUevent event) { MAY_FAIL_IN_CONTEXT; free(event); return 0; }
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    MAY_FAIL_IN_CONTEXT;
    return event && stream ? 0 : 400;
}
CUresult cuEventSynchronize(CUevent event) { MAY_FAIL_IN_CONTEXT; return event ? 0 : 400; }

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OF_A_TEST";
    return 0;
}

// NVRTC

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    MAY_FAIL;
    *major = number("nvrtc", 13);
    *minor = 0;
    return 0;
}

static char compiled[64];

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                               int headers, const char *const *header_sources,
                               const char *const *header_names)
{
    MAY_FAIL;
    if (!strstr(source, "KERNEL decompose(") || strcmp(name, "tacit.cu")) return 3;
    if (headers || header_sources || header_names) return 3;
    *program = (nvrtcProgram)compiled;
    return 0;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int options, const char *const *option)
{
    MAY_FAIL;
    const char *prefix = "--gpu-architecture=";
    if (options != 1 || strncmp(option[0], prefix, strlen(prefix))) return 5;
    snprintf((char *)program, sizeof compiled, "fake cubin of %s", option[0] + strlen(prefix));
    return 0;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) { MAY_FAIL; *program = NULL; return 0; }

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    UNUSED(program);
    MAY_FAIL;
    *size = sizeof compiled;
    return 0;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    MAY_FAIL;
    memcpy(cubin, (char *)program, sizeof compiled);
    return 0;
}

static const char log_text[] = "tacit.cu(1): error: of a test\n";

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    UNUSED(program);
    *size = sizeof log_text;
    return 0;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *text)
{
    UNUSED(program);
    memcpy(text, log_text, sizeof log_text);
    return 0;
}

// cublasLt

struct description {
    int kinds[2];
    int32_t is_left_transposed, count;
    uint64_t rows, columns;
    int64_t leading, stride;
    uint64_t workspace;
    uint32_t alignments[4];
};

static void *description(void) { return calloc(1, sizeof(struct description)); }

size_t cublasLtGetCudartVersion(void) { return number("cublas", 13000); }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { MAY_FAIL; *handle = malloc(1); return 0; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { MAY_FAIL; free(handle); return 0; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    MAY_FAIL;
    struct description *d = description();
    d->kinds[0] = compute;
    d->kinds[1] = scale;
    *made = (cublasLtMatmulDesc_t)d;
    return 0;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made)
{
    MAY_FAIL;
    free(made);
    return 0;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    MAY_FAIL;
    if (attribute != 3 || bytes != 4) return 7;
    memcpy(&((struct description *)made)->is_left_transposed, value, 4);
    return 0;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType_t kind,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    MAY_FAIL;
    struct description *d = description();
    d->kinds[0] = kind;
    d->rows = rows;
    d->columns = columns;
    d->leading = leading;
    d->count = 1;
    *made = (cublasLtMatrixLayout_t)d;
    return 0;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made)
{
    MAY_FAIL;
    free(made);
    return 0;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    MAY_FAIL;
    struct description *d = (struct description *)made;
    if (attribute == 5 && bytes == 4) {
        memcpy(&d->count, value, 4);
        return 0;
    }
    if (attribute == 6 && bytes == 8) {
        memcpy(&d->stride, value, 8);
        return 0;
    }
    return 7;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made)
{
    MAY_FAIL;
    struct description *d = description();
    // What cublasLt assumes unless it is told otherwise.
    for (int i = 0; i < 4; i++) d->alignments[i] = 256;
    *made = (cublasLtMatmulPreference_t)d;
    return 0;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made)
{
    MAY_FAIL;
    free(made);
    return 0;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    MAY_FAIL;
    struct description *d = (struct description *)made;
    if (attribute >= 5 && attribute <= 8 && bytes == 4) {
        memcpy(&d->alignments[attribute - 5], value, 4);
        return 0;
    }
    if (attribute != 1 || bytes != 8) return 7;
    memcpy(&d->workspace, value, 8);
    return 0;
}

// Whether the product is one that cublasLt computes with units for bytes: transposed by plain,
// sizes and leading dimensions in fours.
static int is_supported(void *product, const struct description *a, const struct description *b,
                        const struct description *d)
{
    const struct description *p = product;
    const int kinds = p->kinds[0] == 72 && p->kinds[1] == 10 && a->kinds[0] == 3 &&
                      b->kinds[0] == 3 && d->kinds[0] == 10 && p->is_left_transposed == 1;
    const int sizes = a->rows == b->rows && a->columns == d->rows && b->columns == d->columns &&
                      a->leading >= (int64_t)a->rows && b->leading >= (int64_t)b->rows &&
                      d->leading >= (int64_t)d->rows && a->count == b->count &&
                      a->count == d->count;
    const int64_t fours = a->rows | a->columns | a->leading | b->leading | d->leading | a->stride;
    // A grid has at most 65535 blocks along the axis of matrices. Half of that is what is used.
    return kinds && sizes && fours % 4 == 0 && d->count <= 1 << 15;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t results[],
    int *found)
{
    UNUSED(c);
    MAY_FAIL;
    *found = 0;
    if (!handle || most != 1) return 7;
    if (!is_supported(product, (void *)a, (void *)b, (void *)d)) return 15;
    memset(results, 0, sizeof *results);
    results[0].algo.data[3] = 0xa1a1;
    for (int i = 0; i < 4; i++) {
        results[0].algo.data[4 + i] = ((struct description *)preference)->alignments[i];
    }
    results[0].workspaceSize = ((struct description *)preference)->workspace;
    *found = number("algorithms", 1);
    return 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t of_a,
                              const void *b,
                              cublasLtMatrixLayout_t of_b, const void *beta, const void *c,
                              cublasLtMatrixLayout_t of_c, void *d, cublasLtMatrixLayout_t of_d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    MAY_FAIL;
    const struct description *da = (void *)of_a, *db = (void *)of_b, *dd = (void *)of_d;
    if (!handle || !stream || c != d || of_c != of_d || algorithm->data[3] != 0xa1a1) return 7;
    if (!is_supported(product, da, db, dd)) return 15;
    if (*(const int *)alpha != 1 || *(const int *)beta != 0) return 7;
    // Algorithms fail, or worse, on pointers that are aligned to less than they were chosen for.
    const void *pointers[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        if (((uintptr_t)pointers[i] ^ CARD) % algorithm->data[4 + i]) return 14;
    }
    memset((void *)((uintptr_t)workspace ^ CARD), 0x5a, workspace_bytes);
    const signed char *left = (void *)((uintptr_t)a ^ CARD), *right = (void *)((uintptr_t)b ^ CARD);
    int32_t *sums = (void *)((uintptr_t)d ^ CARD);
    for (int item = 0; item < dd->count; item++) {
        for (uint64_t column = 0; column < dd->columns; column++) {
            for (uint64_t row = 0; row < dd->rows; row++) {
                const signed char *x = left + item * da->stride + row * da->leading;
                const signed char *y = right + item * db->stride + column * db->leading;
                int32_t sum = 0;
                for (uint64_t k = 0; k < da->rows; k++) sum += x[k] * y[k];
                sums[item * dd->stride + column * dd->leading + row] = sum;
            }
        }
    }
    if (status_of("wrong")) sums[0] ^= 2;
    return 0;
}
