/* Small programs over arrays of floats, for the tests: sums, products, quotients, roots, choices, copies, both lengths. */
#include <stdint.h>

struct pair {
    float first, second;
};

double mean(const double *values, uint64_t count) {
    double sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += values[at];
    return sum / count;
}

double deviation(const double *values, uint64_t count) {
    double middle = mean(values, count), sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += (values[at] - middle) * (values[at] - middle);
    return __builtin_sqrt(sum / count);
}

double greatest(const double *values, uint64_t count) {
    double best = -__builtin_inf();
    for (uint64_t at = 0; at < count; at++) best = values[at] > best ? values[at] : best;
    return best;
}

/* Divides all by the greatest magnitude; how many are above a half then. */
uint64_t scaled(double *values, uint64_t count) {
    double most = 0;
    uint64_t large = 0;
    for (uint64_t at = 0; at < count; at++) {
        double size = __builtin_fabs(values[at]);
        if (size > most) most = size;
    }
    for (uint64_t at = 0; at < count; at++) {
        values[at] /= most;
        large += values[at] > 0.5;
    }
    return large;
}

/* The sum of whole parts; each value is turned by its own sign. */
int64_t whole(double *values, uint64_t count) {
    int64_t sum = 0;
    for (uint64_t at = 0; at < count; at++) {
        sum += (int64_t)values[at] + (int32_t)(float)values[at];
        values[at] = __builtin_copysign(0.5 * (double)(int64_t)values[at], -values[at]);
    }
    return sum;
}

/* Pairs are exchanged as words of 64 bits. */
void turn(struct pair *pairs, uint64_t count) {
    for (uint64_t at = 0; at < count / 2; at++) {
        struct pair kept = pairs[at];
        pairs[at] = pairs[count - 1 - at];
        pairs[count - 1 - at] = kept;
    }
}

double weighted(const struct pair *pairs, uint64_t count) {
    float sum = 0;
    for (uint64_t at = 0; at < count; at++) sum = __builtin_fmaf(pairs[at].first, pairs[at].second, sum);
    return sum;
}

/* Floats by value, of both lengths. */
float straight(const float *values, uint64_t count, float factor, double added) {
    float sum = added;
    for (uint64_t at = 0; at < count; at++) sum += values[at] * factor;
    return sum;
}

/* The ninth float is where integers are. */
double ninth(double a, double b, double c, double d, double e, double f, double g, double h, double ninth, int64_t times) {
    return (a + b + c + d + e + f + g + h) * 0 + ninth * times;
}

/* Shorter than a register, without sign and with one. */
uint32_t inverted(uint32_t word) {
    return ~word;
}

int8_t negated(int8_t word) {
    return -word;
}

void _start(void) {}
