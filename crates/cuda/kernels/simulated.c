// The kernels on the simulated device: thread after thread, in either order.

#include "device.h"
#include "decompose.cu"
#include "recompose.cu"

#define FOR_EACH_THREAD(call)                                                        \
    for (unsigned int block = 0; block < blocks; block++) {                          \
        blockIdx.x = is_backwards ? blocks - 1 - block : block;                      \
        for (unsigned int thread = 0; thread < threads; thread++) {                  \
            threadIdx.x = is_backwards ? threads - 1 - thread : thread;              \
            call;                                                                    \
        }                                                                            \
    }

// Runs a kernel, by its place in launch.rs. Returns the size of its structure, which the caller
// compares with its own.
unsigned long tacit_cuda_simulated(int kernel, const void *parameters, unsigned int blocks,
                                   unsigned int threads, int is_backwards)
{
    blockDim.x = threads;
    switch (kernel) {
    case 0: {
        const struct decompose *p = parameters;
        FOR_EACH_THREAD(decompose(*p))
        return sizeof *p;
    }
    case 1: {
        const struct recompose *p = parameters;
        FOR_EACH_THREAD(recompose(*p))
        return sizeof *p;
    }
    default:
        return 0;
    }
}
