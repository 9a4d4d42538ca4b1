// What the kernels are written in: the part of CUDA that is also C. NVRTC compiles them for cards,
// and a C compiler for the simulated device (simulated.c), which needs no other tools.
//
// Every kernel takes one structure by value. All fields have 8 bytes, so that its layout is the
// same for every compiler. launch.rs declares the same structures.
//
// No kernel branches on the words that it is given, or indexes by them.

typedef unsigned long long word;
typedef long long integer;

#ifdef __CUDACC_RTC__

#define KERNEL extern "C" __global__ void
#define STORE_16(to, values)                                                         \
    (*(uint4 *)(to) = make_uint4(values[0], values[1], values[2], values[3]))

#else

#define KERNEL static void
#define STORE_16(to, values) __builtin_memcpy(to, values, 16)

struct index {
    unsigned int x;
};
static _Thread_local struct index blockIdx, blockDim, threadIdx;

#endif

// The index of this thread among all of a launch.
#define THREAD ((integer)blockIdx.x * blockDim.x + threadIdx.x)
