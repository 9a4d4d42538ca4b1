/* What is done to all elements of arrays, to be measured. */
#include <stdint.h>
#include "runtime/tacit.h"

void products(const uint64_t *x, const uint64_t *y, uint64_t *z, uint64_t count) {
    for (uint64_t at = 0; at < count; at++) z[at] = x[at] * y[at];
}

/* The same by instructions on vectors. */
void vector_products(const uint64_t *x, const uint64_t *y, uint64_t *z, uint64_t count) {
    for (uint64_t done; count > 0; count -= done, x += done, y += done, z += done)
        __asm__ volatile(
            "vsetvli %0, %4, e64, m8, ta, ma\n"
            "vle64.v v0, (%1)\n"
            "vle64.v v8, (%2)\n"
            "vmul.vv v16, v0, v8\n"
            "vse64.v v16, (%3)\n"
            : "=&r"(done)
            : "r"(x), "r"(y), "r"(z), "r"(count)
            : "memory");
}

/* Sums bit by bit. */
void bits(const uint64_t *x, const uint64_t *y, uint64_t *z, uint64_t count) {
    for (uint64_t at = 0; at < count; at++) z[at] = (x[at] + y[at]) & ~(uint64_t)1;
}

/* What differs bit by bit, as numbers. */
void numbers(const uint64_t *x, const uint64_t *y, uint64_t *z, uint64_t count) {
    for (uint64_t at = 0; at < count; at++) z[at] = (x[at] ^ y[at]) * 3;
}

void quotients(const uint64_t *x, const uint64_t *y, uint64_t *z, uint64_t count) {
    for (uint64_t at = 0; at < count; at++) z[at] = x[at] / y[at];
}

void short_quotients(const int32_t *x, const int32_t *y, int32_t *z, uint64_t count) {
    for (uint64_t at = 0; at < count; at++) z[at] = x[at] / y[at];
}

/* Which of two is less, of numbers from -128 to 127. */
void lesser(const int64_t *x, const int64_t *y, uint64_t *z, uint64_t count) {
    for (uint64_t at = 0; at < count; at++) {
        int64_t one = (int64_t)tacit_range(x[at], -128, 127), other = (int64_t)tacit_range(y[at], -128, 127);
        z[at] = one < other;
    }
}

void _start(void) {}
