/* What two parties have in common, as it is found in the clear: of two sorted lists, each without a number twice, the
 * lesser of both fronts is passed. Where the function goes on depends on the numbers, so that all learn how the lists
 * lie to each other: it is run with --open-branch merge. */
#include <stdint.h>
#include <stdio.h>

enum { MOST = 1024 };

static uint64_t a[MOST], b[MOST], both[MOST];

static size_t read_all(const char *name, uint64_t *values) {
    FILE *file = fopen(name, "rb");
    size_t count = file ? fread(values, sizeof *values, MOST, file) : 0;
    if (file) fclose(file);
    return count;
}

__attribute__((noinline)) static size_t merge(size_t of_a, size_t of_b) {
    size_t i = 0, j = 0, found = 0;
    while (i < of_a && j < of_b) {
        if (a[i] == b[j]) {
            both[found++] = a[i++];
            j++;
        } else if (a[i] < b[j]) {
            i++;
        } else {
            j++;
        }
    }
    return found;
}

int main(void) {
    size_t of_a = read_all("a", a), of_b = read_all("b", b), found = merge(of_a, of_b);
    FILE *common = fopen("common", "wb");
    fwrite(both, sizeof *both, found, common);
    fclose(common);
    return 0;
}
