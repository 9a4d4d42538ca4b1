/* Tables that are read and written at secret places, for the tests. */
#include <stdint.h>
#include "runtime/tacit.h"

/* A byte of each byte. */
#define ONE(n) (uint8_t)((n) * (n) + 3 * (n) + 1)
#define FOUR(n) ONE(n), ONE(n + 1), ONE(n + 2), ONE(n + 3)
#define SIXTEEN(n) FOUR(n), FOUR(n + 4), FOUR(n + 8), FOUR(n + 12)
#define MANY(n) SIXTEEN(n), SIXTEEN(n + 16), SIXTEEN(n + 32), SIXTEEN(n + 48)
TACIT_OBLIVIOUS static const uint8_t box[256] = {MANY(0), MANY(64), MANY(128), MANY(192)};

TACIT_OBLIVIOUS uint64_t sorted[64];
TACIT_OBLIVIOUS uint16_t counts[16];

uint64_t look_up(uint64_t place) { return box[place & 255]; }

/* How many of the sorted words are not greater than a key; the last of them never counts. */
uint64_t search(uint64_t key, const uint64_t *words) {
    for (int at = 0; at < 64; at++) sorted[at] = words[at];
    uint64_t found = 0;
    for (uint64_t step = 32; step > 0; step /= 2)
        if (sorted[found + step - 1] <= key) found += step;
    return found;
}

/* How often each of sixteen values is among words; where they are left. */
const uint16_t *count(const uint64_t *words, uint64_t number) {
    for (uint64_t at = 0; at < number; at++) counts[words[at] & 15]++;
    return counts;
}

void _start(void) {}
