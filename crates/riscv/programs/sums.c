/* A program that reads and writes files: the sum of each place of two files, and what stdio and the heap do. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tacit.h>

static size_t read_all(const char *name, uint32_t **values) {
    FILE *file = fopen(name, "rb");
    if (!file) {
        fprintf(stderr, "there is no file %s\n", name);
        exit(3);
    }
    fseek(file, 0, SEEK_END);
    size_t count = (size_t)ftell(file) / sizeof **values;
    rewind(file);
    *values = malloc(count * sizeof **values);
    assert(*values);
    /* In two pieces, of which the first ends within a value. */
    size_t size = count * sizeof **values, half = size / 2 | 1;
    half = half < size ? half : size;
    assert(fread(*values, 1, half, file) == half);
    assert(fread((char *)*values + half, 1, size - half, file) == size - half);
    assert(fgetc(file) == EOF && feof(file) && !fclose(file));
    return count;
}

int main(int count, char **arguments) {
    uint32_t *x, *y, total = 0;
    size_t n = read_all("x", &x), m = read_all("data/y", &y);
    n = n < m ? n : m;
    FILE *sums = fopen("sums", "wb");
    assert(sums);
    for (size_t at = 0; at < n; at++) {
        uint32_t sum = x[at] + y[at];
        total += sum;
        fwrite(&sum, sizeof sum, 1, sums);
    }
    fclose(sums);
    printf("%zu sums, %d arguments:", n, count - 1);
    for (int at = 1; at < count; at++) printf(" %-4s|%4ld|%#x", arguments[at], atol(arguments[at]), at);
    printf("\n");
    if (count > 1 && !strcmp(arguments[1], "print")) fwrite(&total, sizeof total, 1, stdout);
    if (count > 1 && !strcmp(arguments[1], "reveal")) printf("%u\n", (unsigned)tacit_reveal(total));
    if (count > 1 && !strcmp(arguments[1], "abort")) assert(!"wanted");
    if (count > 1 && !strcmp(arguments[1], "digits")) printf("%u\n", (unsigned)total);
    FILE *sum = fopen("total", "wb");
    if (sum) {
        fwrite(&total, sizeof total, 1, sum);
        fclose(sum);
    }
    free(x);
    free(y);
    return count > 1 ? atoi(arguments[1]) : 0;
}
