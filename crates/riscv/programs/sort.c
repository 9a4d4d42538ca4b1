/* Numbers in order, by Batcher's merge exchange (Knuth 5.2.2, algorithm M): which are compared depends on how many
 * there are alone. */
#include <stdint.h>
#include <stdio.h>

enum { MOST = 1024 };

static void order(int32_t *x, int32_t *y) {
    int32_t lesser = *x < *y ? *x : *y, greater = *x < *y ? *y : *x;
    *x = lesser;
    *y = greater;
}

static void sort(int32_t *values, size_t count) {
    size_t first = 1;
    while (2 * first < count) first *= 2;
    for (size_t p = first; p > 0; p /= 2) {
        size_t rest = 0, apart = p;
        for (size_t q = first;; q /= 2) {
            for (size_t at = 0; at + apart < count; at++)
                if ((at & p) == rest) order(&values[at], &values[at + apart]);
            if (q == p) break;
            apart = q - p;
            rest = p;
        }
    }
}

int main(void) {
    static int32_t values[MOST];
    FILE *file = fopen("values", "rb"), *sorted = fopen("sorted", "wb");
    size_t count = file ? fread(values, sizeof values[0], MOST, file) : 0;
    sort(values, count);
    fwrite(values, sizeof values[0], count, sorted);
    fclose(sorted);
    return 0;
}
