/* What two parties have in common, and nothing else: whose lists are sorted, each without a number twice. The lists
 * are merged by a network, neighbours are compared, and what is common moves to the front in order. Numbers are
 * above 0: what is left of the output is 0. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tacit.h>

static uint64_t *read_all(const char *name, size_t *count) {
    FILE *file = fopen(name, "rb");
    if (!file) {
        fprintf(stderr, "there is no file %s\n", name);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file) / sizeof(uint64_t);
    rewind(file);
    uint64_t *values = malloc(*count * sizeof *values + 8);
    *count = fread(values, sizeof *values, *count, file);
    fclose(file);
    return values;
}

/* The lesser to the front. */
static void order(uint64_t *x, uint64_t *y) {
    uint64_t less = *y < *x, lower = tacit_select(less, *y, *x);
    *y ^= *x ^ lower;
    *x = lower;
}

/* What rises and then falls is sorted: Batcher's bitonic merge, of a power of two. */
static void merge(uint64_t *values, size_t count) {
    for (size_t apart = count / 2; apart > 0; apart /= 2)
        for (size_t at = 0; at < count; at++)
            if (!(at & apart)) order(&values[at], &values[at + apart]);
}

/* Moves what is not 0 to the front, each by as many places as zeros stand before it: one bit of that number after
 * another, so that no two come to one place (Goodrich 2011). */
static void compact(uint64_t *values, uint64_t *moves, size_t count) {
    for (size_t step = 1, bit = 0; step < count; step *= 2, bit++) {
        for (size_t at = 0; at < count; at++) {
            uint64_t goes = moves[at] >> bit & 1, mask = tacit_select(goes, UINT64_MAX, 0);
            uint64_t value = values[at] & mask, move = moves[at] & mask;
            values[at] ^= value;
            moves[at] ^= move;
            if (at < step) continue;
            values[at - step] ^= value;
            moves[at - step] ^= move;
        }
    }
}

int main(void) {
    size_t of_a, of_b, count = 2;
    uint64_t *a = read_all("a", &of_a), *b = read_all("b", &of_b);
    while (count < of_a + of_b) count *= 2;
    uint64_t *all = calloc(count, sizeof *all), *moves = calloc(count, sizeof *moves);
    /* Zeros, one list upward, and the other downward. */
    for (size_t at = 0; at < of_b; at++) all[at] = b[of_b - 1 - at];
    for (size_t at = 0; at < of_a; at++) all[count - of_a + at] = a[at];
    merge(all, count);
    /* Behind the zeros. */
    uint64_t *both = all + (count - of_a - of_b), before = 0;
    count = of_a + of_b;
    for (size_t at = 0; at < count; at++) {
        uint64_t common = at + 1 < count ? both[at] == both[at + 1] : 0;
        both[at] = tacit_select(common, both[at], 0);
        moves[at] = tacit_select(common, before, 0);
        before += 1 - common;
    }
    compact(both, moves, count);
    size_t most = of_a < of_b ? of_a : of_b;
    FILE *common = fopen("common", "wb");
    fwrite(both, sizeof *both, most, common);
    fclose(common);
    printf("%zu and %zu\n", of_a, of_b);
    return 0;
}
