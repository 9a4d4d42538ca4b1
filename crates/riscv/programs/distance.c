/* The edit distance of two texts (Wagner and Fischer 1974): how many characters are put in, left out or changed. */
#include <stdint.h>
#include <stdio.h>

enum { MOST = 256 };

static uint8_t x[MOST], y[MOST];

static size_t read_all(const char *name, uint8_t *text) {
    FILE *file = fopen(name, "rb");
    size_t count = file ? fread(text, 1, MOST, file) : 0;
    if (file) fclose(file);
    return count;
}

static uint64_t lesser(uint64_t one, uint64_t other) { return one < other ? one : other; }

int main(void) {
    uint64_t row[MOST + 1];
    size_t of_x = read_all("x", x), of_y = read_all("y", y);
    for (size_t at = 0; at <= of_y; at++) row[at] = at;
    for (size_t i = 0; i < of_x; i++) {
        uint64_t before = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < of_y; j++) {
            uint64_t changed = before + (x[i] != y[j]);
            before = row[j + 1];
            row[j + 1] = lesser(changed, lesser(row[j], before) + 1);
        }
    }
    FILE *out = fopen("distance", "wb");
    fwrite(&row[of_y], sizeof row[0], 1, out);
    fclose(out);
    return 0;
}
