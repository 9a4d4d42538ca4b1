/* What a network of two layers says of an input: numbers of fixed point with 16 fraction bits, negative ones 0
 * between the layers. It is told how many inputs, inner numbers and outputs there are. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRACTION = 16 };

static int32_t *read_all(const char *name, size_t count) {
    FILE *file = fopen(name, "rb");
    int32_t *values = malloc(count * sizeof *values);
    if (!file || !values || fread(values, sizeof *values, count, file) != count) {
        fprintf(stderr, "%s has not %zu numbers\n", name, count);
        exit(1);
    }
    fclose(file);
    return values;
}

/* Weights of each output after each other, and behind all weights what is added. */
static void layer(const int32_t *weights, const int32_t *x, size_t inputs, int32_t *y, size_t outputs) {
    for (size_t at = 0; at < outputs; at++) {
        int64_t sum = (int64_t)weights[inputs * outputs + at] << FRACTION;
        for (size_t from = 0; from < inputs; from++) sum += (int64_t)weights[inputs * at + from] * x[from];
        y[at] = (int32_t)(sum >> FRACTION);
    }
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    size_t inputs = strtoul(arguments[1], NULL, 10), inner = strtoul(arguments[2], NULL, 10);
    size_t outputs = strtoul(arguments[3], NULL, 10);
    int32_t *x = read_all("input", inputs);
    int32_t *first = read_all("first", (inputs + 1) * inner), *second = read_all("second", (inner + 1) * outputs);
    int32_t *hidden = malloc(inner * sizeof *hidden), *y = malloc(outputs * sizeof *y);
    layer(first, x, inputs, hidden, inner);
    for (size_t at = 0; at < inner; at++) hidden[at] = hidden[at] < 0 ? 0 : hidden[at];
    layer(second, hidden, inner, y, outputs);
    FILE *out = fopen("output", "wb");
    fwrite(y, sizeof *y, outputs, out);
    fclose(out);
    return 0;
}
