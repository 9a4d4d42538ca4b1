/* Functions on floats of ranges that are said: for the tests. */
#include "runtime/tacit.h"

double squares(const double *values, uint64_t count) {
    double sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += values[at] * values[at];
    return sum;
}

float squares_short(const float *values, uint64_t count) {
    float sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += values[at] * values[at];
    return sum;
}

double products(const double *x, const double *y, uint64_t count) {
    double sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += x[at] * y[at];
    return sum;
}

/* Mean, variance, deviation, least, greatest, how many are above the mean, and that as an integer. */
void summary(const double *values, uint64_t count, double *out) {
    double sum = 0, apart = 0, above = 0;
    double least = values[0], most = values[0];
    for (uint64_t at = 0; at < count; at++) {
        sum += values[at];
        least = values[at] < least ? values[at] : least;
        most = values[at] > most ? values[at] : most;
    }
    double mean = sum / count;
    for (uint64_t at = 0; at < count; at++) {
        apart += (values[at] - mean) * (values[at] - mean);
        above += values[at] > mean;
    }
    out[0] = mean, out[1] = apart / count, out[2] = __builtin_sqrt(apart / count);
    out[3] = least, out[4] = most, out[5] = above, out[6] = (double)(int64_t)mean;
}

/* The same of integers that become floats. */
double squares_of_integers(const int64_t *values, uint64_t count) {
    double sum = 0;
    for (uint64_t at = 0; at < count; at++) sum += (double)values[at] * (double)values[at];
    return sum;
}

int64_t whole_squares(const double *values, uint64_t count) {
    return (int64_t)squares(values, count);
}

/* A quotient by what may be 0 but for what is said of it, and without that. */
double share_of(const double *values, uint64_t count, double least) {
    double all = squares(values, count), first = values[0] * values[0];
    if (least > 0) all = tacit_real_range(all, least, 1e24);
    return first / all;
}

/* What is known meets what is not. */
double beside(const double *known, const double *other, uint64_t count) {
    double sum = squares(known, count);
    return sum + other[0];
}

double beside_said(const double *known, const double *other, uint64_t count) {
    double sum = squares(known, count);
    return sum + tacit_real_range(other[0], -1000, 1000);
}

double between(const double *values, double least, double most) {
    return tacit_real_range(values[0], least, most);
}

/* The equations of least squares: what columns are by each other and by y, of which the sums come last. */
void equations(const double *x, const double *y, uint64_t rows, uint64_t columns, double *out) {
    for (uint64_t i = 0; i < columns; i++)
        for (uint64_t j = 0; j <= columns; j++) {
            double sum = 0;
            for (uint64_t at = 0; at < rows; at++)
                sum += x[at * columns + i] * (j < columns ? x[at * columns + j] : y[at]);
            out[i * (columns + 1) + j] = sum;
        }
}

/* Goes on by what it opens. */
double opened(const double *values, uint64_t count) {
    double sum = squares(values, count);
    return tacit_reveal(sum > 1000) ? sum : 0;
}

double branched(const double *values, uint64_t count) {
    double sum = squares(values, count);
    if (sum > 1000) values++;
    return values[0];
}

/* A product of floats, and one of integers around it. */
void multiplied(const int64_t *x, const int64_t *y, const int64_t *by, uint64_t count, int64_t *out) {
    for (uint64_t at = 0; at < count; at++) out[at] = (int64_t)((double)x[at] * (double)y[at]) * by[at];
}

double least_of(const double *values, uint64_t count) {
    double least = values[0];
    for (uint64_t at = 0; at < count; at++) least = values[at] < least ? values[at] : least;
    return least;
}

int64_t half_of(const int64_t *values, int64_t least, int64_t most) {
    return tacit_range(values[0], least, most) >> 1;
}

double square_of_said(const double *values, double least, double most) {
    double value = tacit_real_range(values[0], least, most);
    return value * value;
}

/* Leaves what is public besides. */
double square_beside(const double *values, double *out) {
    out[0] = 7;
    return values[0] * values[0];
}

void _start(void) {}
