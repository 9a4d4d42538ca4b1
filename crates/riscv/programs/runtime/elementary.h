/* Between the parts of the runtime: what functions of floats share. */
#ifndef TACIT_ELEMENTARY_H
#define TACIT_ELEMENTARY_H
#include "system.h"

/* A number as a sum of two floats, of which the second is below half a unit of the first (Dekker 1971). */
struct tacit_pair {
    double high, low;
};

static inline struct tacit_pair tacit_sum(double larger, double smaller) {
    double high = larger + smaller;
    return (struct tacit_pair){high, smaller - (high - larger)};
}

static inline struct tacit_pair tacit_product(double left, double right) {
    double high = left * right;
    return (struct tacit_pair){high, __builtin_fma(left, right, -high)};
}

static inline struct tacit_pair tacit_times(struct tacit_pair left, struct tacit_pair right) {
    struct tacit_pair product = tacit_product(left.high, right.high);
    double low = product.low + (left.high * right.low + left.low * right.high);
    return tacit_sum(product.high, low);
}

/* The first number is not smaller than the second. */
static inline struct tacit_pair tacit_plus(struct tacit_pair larger, struct tacit_pair smaller) {
    struct tacit_pair sum = tacit_sum(larger.high, smaller.high);
    return tacit_sum(sum.high, sum.low + (larger.low + smaller.low));
}

/* Of a number: whether it is secret, so that its bits are not there to be taken; whether it then is within a range that
 * is known; and how many bits it has behind its point. On other systems none is secret. */
struct tacit_form {
    int is_secret, is_ranged;
    long fraction;
};

static inline struct tacit_form tacit_form(double value) {
    long told = tacit_call(TACIT_FORM, (long)&value, 0, 0);
    if (told <= 0) return (struct tacit_form){0, 0, 0};
    int is_ranged = told < 2560;
    return (struct tacit_form){1, is_ranged, told - (is_ranged ? 1024 : 4096)};
}

static inline int tacit_is_secret(double value) { return tacit_form(value).is_secret; }

/* Behind the question whether a number is secret: no compiler takes its bits before that. Functions that take bits are
 * not inlined, so that no secret is held as bits either. */
#define TACIT_KNOWN(value) __asm__ volatile("" : "+f"(value))
#define TACIT_APART __attribute__((noinline))

/* A secret number as one of which nothing is known, of the usual form. */
static inline double tacit_any_range(double value) {
    tacit_call(TACIT_ANY_RANGE, (long)&value, 0, 0);
    return value;
}

/* c[0] + c[1]x + ... of few terms, in as few steps in sequence as there are powers of two among their degrees. */
static inline double tacit_polynomial(const double *of, int terms, double x) {
    double sums[16], power = x;
    for (int at = 0; at < terms; at++) sums[at] = of[at];
    for (; terms > 1; terms = (terms + 1) / 2) {
        for (int at = 0; at < (terms + 1) / 2; at++)
            sums[at] = 2 * at + 1 < terms ? sums[2 * at] + sums[2 * at + 1] * power : sums[2 * at];
        if (terms > 2) power *= power;
    }
    return sums[0];
}

/* A power of e, of a number that everybody knows. */
double tacit_exp(struct tacit_pair of);

#endif
