/* The mean of numbers, of each list that is given, and how far they are from it on average. */
#include <stdio.h>

static double mean(const double *values, size_t count) {
    double sum = 0;
    for (size_t at = 0; at < count; at++) sum += values[at];
    return sum / (double)count;
}

int main(void) {
    static double values[1024];
    FILE *file = fopen("values", "rb"), *out = fopen("means", "wb");
    size_t count = file ? fread(values, sizeof values[0], 1024, file) : 0;
    if (count == 0) return 1;
    double middle = mean(values, count);
    for (size_t at = 0; at < count; at++) values[at] = values[at] < middle ? middle - values[at] : values[at] - middle;
    double results[2] = {middle, mean(values, count)};
    fwrite(results, sizeof results[0], 2, out);
    fclose(out);
    return 0;
}
