/* What two parties have in common, as one writes it down first: each number of one list is compared with each of the
 * other. In the place of what only one has there is 0. */
#include <stdint.h>
#include <stdio.h>

enum { MOST = 1024 };

static uint64_t a[MOST], b[MOST];

static size_t read_all(const char *name, uint64_t *values) {
    FILE *file = fopen(name, "rb");
    size_t count = file ? fread(values, sizeof *values, MOST, file) : 0;
    if (file) fclose(file);
    return count;
}

int main(void) {
    size_t of_a = read_all("a", a), of_b = read_all("b", b);
    FILE *common = fopen("common", "wb");
    for (size_t i = 0; i < of_a; i++) {
        uint64_t found = 0;
        for (size_t j = 0; j < of_b; j++)
            if (a[i] == b[j]) found = a[i];
        fwrite(&found, sizeof found, 1, common);
    }
    fclose(common);
    return 0;
}
