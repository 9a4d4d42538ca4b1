/* Small programs over arrays, for the tests: what loops, branches, calls, bytes and halves of words do. */
#include <stdint.h>

uint64_t mean(const uint64_t *values, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += values[at];
    return sum / count;
}

uint64_t greatest(const int64_t *values, uint64_t count) {
    int64_t best = values[0];
    for (uint64_t at = 1; at < count; at++)
        if (values[at] > best) best = values[at];
    return best;
}

/* Insertion sort. */
void sort(uint32_t *values, uint64_t count) {
    for (uint64_t end = 1; end < count; end++) {
        uint32_t moved = values[end];
        uint64_t at = end;
        for (; at > 0 && values[at - 1] > moved; at--) values[at] = values[at - 1];
        values[at] = moved;
    }
}

/* The remainder of CRC-32 (ISO 3309), bit by bit. */
uint64_t checksum(const uint8_t *bytes, uint64_t count) {
    uint32_t rest = 0xffffffff;
    for (uint64_t at = 0; at < count; at++) {
        rest ^= bytes[at];
        for (int bit = 0; bit < 8; bit++) rest = rest >> 1 ^ (0xedb88320 & -(rest & 1));
    }
    return (uint32_t)~rest;
}

/* Exponential, by recursion. */
uint64_t fibonacci(uint64_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

void reverse(char *text, uint64_t length) {
    for (uint64_t at = 0; at < length / 2; at++) {
        char kept = text[at];
        text[at] = text[length - 1 - at];
        text[length - 1 - at] = kept;
    }
}

/* Chains of choices: the greatest by a branch, the least by an instruction, and where the greatest is. */
int64_t highest(const int64_t *values, uint64_t count) {
    int64_t best = values[0];
    for (uint64_t at = 1; at < count; at++)
        if (values[at] > best) {
            __asm__ volatile("");
            best = values[at];
        }
    return best;
}

uint64_t least(const uint64_t *values, uint64_t count) {
    uint64_t best = UINT64_MAX;
    for (uint64_t at = 0; at < count; at++) best = values[at] < best ? values[at] : best;
    return best;
}

uint64_t place(const int64_t *values, uint64_t count) {
    uint64_t best = 0;
    int64_t most = values[0];
    for (uint64_t at = 1; at < count; at++)
        if (values[at] > most) {
            __asm__ volatile("");
            most = values[at];
            best = at;
        }
    return best;
}

void _start(void) {
    uint64_t result = fibonacci(7);
    register uint64_t status __asm__("a0") = result;
    register uint64_t number __asm__("a7") = 93;
    __asm__ volatile("ecall" : : "r"(number), "r"(status));
    __builtin_unreachable();
}
