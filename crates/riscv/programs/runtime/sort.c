/* Elements in order. */
#include <stdint.h>
#include <stdlib.h>

/* A program that has a function of such a name itself keeps it. */
#pragma weak qsort
#pragma weak bsearch

typedef int order(const void *, const void *);

/* Words where elements are such, since a word that is cut costs what its bytes do. */
static void exchange(char *one, char *other, size_t size) {
    if ((((uintptr_t)one | (uintptr_t)other | size) & 7) == 0) {
        for (size_t at = 0; at < size; at += 8) {
            uint64_t *left = (uint64_t *)(one + at), *right = (uint64_t *)(other + at), kept = *left;
            *left = *right;
            *right = kept;
        }
    } else if ((((uintptr_t)one | (uintptr_t)other | size) & 3) == 0) {
        for (size_t at = 0; at < size; at += 4) {
            uint32_t *left = (uint32_t *)(one + at), *right = (uint32_t *)(other + at), kept = *left;
            *left = *right;
            *right = kept;
        }
    } else {
        for (size_t at = 0; at < size; at++) {
            char kept = one[at];
            one[at] = other[at];
            other[at] = kept;
        }
    }
}

/* Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M): for any number of
 * elements, comparisons that are known beforehand. */
void qsort(void *elements, size_t count, size_t size, order *compare) {
    char *first = elements;
    if (count < 2) return;
    size_t top = 1;
    while (top < count - top) top *= 2;
    for (size_t step = top; step > 0; step /= 2) {
        size_t distance = step, which = 0;
        for (size_t half = top;; half /= 2) {
            for (size_t at = 0; at + distance < count; at++) {
                if ((at & step) != which) continue;
                char *one = first + at * size, *other = one + distance * size;
                if (compare(one, other) > 0) exchange(one, other, size);
            }
            if (half == step) break;
            distance = half - step;
            which = step;
        }
    }
}

void *bsearch(const void *wanted, const void *elements, size_t count, size_t size, order *compare) {
    const char *first = elements;
    while (count > 0) {
        const char *middle = first + count / 2 * size;
        int found = compare(wanted, middle);
        if (found == 0) return (void *)middle;
        if (found > 0) {
            first = middle + size;
            count -= count / 2 + 1;
        } else {
            count /= 2;
        }
    }
    return NULL;
}
