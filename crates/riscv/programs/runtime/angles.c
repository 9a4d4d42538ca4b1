/* Angles. Numbers that everybody knows have results within three units of the last place, also of angles that are far from
 * 0. Secret ones are fixed-point numbers. A program that has a function of such a name itself keeps it. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "elementary.h"
#include "tacit.h"

#pragma weak sin
#pragma weak cos
#pragma weak tan
#pragma weak asin
#pragma weak acos
#pragma weak atan
#pragma weak atan2

#define COUNT(of) (int)(sizeof(of) / sizeof *(of))

static const struct tacit_pair quarter = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

/* 2/π: 1280 bits behind the point. */
static const uint64_t two_by_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

/* 64 bits of 2/π from the one that is worth 2^-(1 + from). */
static uint64_t bits_from(long from) {
    if (from < 0) return from <= -64 ? 0 : two_by_pi[0] >> -from;
    uint64_t first = two_by_pi[from / 64], next = two_by_pi[from / 64 + 1];
    return from % 64 ? first << from % 64 | next >> (64 - from % 64) : first;
}

/* The whole quarter turns in an angle, of which only the last two bits count, and what is left: at most half a one. */
static long reduced(double x, struct tacit_pair *rest) {
    if (fabs(x) < 0x1p19) {
        double whole = rint(x * 0x1.45f306dc9c883p-1);
        struct tacit_pair left = {x, 0};
        /* Three parts of π/2, of which the products by two are exact. */
        left.high = fma(-whole, 0x1.921fb544p+0, x);
        struct tacit_pair second = tacit_product(-whole, 0x1.0b4611a6p-34);
        struct tacit_pair sum = fabs(left.high) > fabs(second.high) ? tacit_sum(left.high, second.high)
                                                                    : tacit_sum(second.high, left.high);
        sum.low += second.low - whole * 0x1.3198a2e037073p-69;
        *rest = tacit_sum(sum.high, sum.low);
        return (long)whole;
    }
    /* x = m·2^power. What of m·2/π is worth 4 and more does not matter (Payne and Hanek 1983). */
    uint64_t bits;
    memcpy(&bits, &x, 8);
    long power = (long)(bits >> 52 & 0x7ff) - 1075;
    uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
    long from = power - 2;
    unsigned __int128 high = (unsigned __int128)m * bits_from(from) << 64;
    high += (unsigned __int128)m * bits_from(from + 64);
    high += (unsigned __int128)m * bits_from(from + 128) >> 64;
    /* Now 2 bits of whole quarters, and 126 behind the point. */
    long whole = (long)(high >> 126);
    __int128 behind = (__int128)(high << 2);
    whole += behind < 0;
    int is_negative = behind < 0;
    unsigned __int128 size = is_negative ? -(unsigned __int128)behind : (unsigned __int128)behind;
    uint64_t upper = (uint64_t)(size >> 64);
    double top = (double)(upper & ~0x7ffULL), low = (double)(upper & 0x7ff);
    struct tacit_pair part = tacit_sum(top * 0x1p-64, low * 0x1p-64 + (double)(uint64_t)size * 0x1p-128);
    part = tacit_times(part, quarter);
    if (is_negative) part = (struct tacit_pair){-part.high, -part.low};
    if (x < 0) {
        part = (struct tacit_pair){-part.high, -part.low};
        whole = -whole;
    }
    *rest = part;
    return whole;
}

/* Of at most an eighth of a turn. */
static double sine(struct tacit_pair r) {
    static const double terms[] = {-1. / 6,        1. / 120,         -1. / 5040,        1. / 362880,
                                   -1. / 39916800, 1. / 6227020800., -1. / 1307674368000., 1. / 355687428096000.};
    double square = r.high * r.high;
    double small = r.low * (1 - square / 2) + square * r.high * tacit_polynomial(terms, COUNT(terms), square);
    return r.high + small;
}

static double cosine(struct tacit_pair r) {
    static const double terms[] = {1. / 24,         -1. / 720,        1. / 40320,        -1. / 3628800,
                                   1. / 479001600., -1. / 87178291200., 1. / 20922789888000.};
    struct tacit_pair half = tacit_product(r.high, r.high);
    struct tacit_pair sum = tacit_sum(1, -half.high / 2);
    double square = half.high;
    double small = sum.low - half.low / 2 - r.high * r.low + square * square * tacit_polynomial(terms, COUNT(terms), square);
    return sum.high + small;
}

/* Secret numbers: a sine so many quarters ahead. */
static double secret_sine(double x, long ahead) {
    static const double of_sine[] = {0.999999999996, -0.166666666316, 0.00833332878317, -0.000198392023507,
                                     2.71734643022e-06};
    static const double of_cosine[] = {1,
                                       -0.499999999994,
                                       0.0416666665439,
                                       -0.00138888803918,
                                       2.4798928323e-05,
                                       -2.71733970921e-07};
    long whole = (long)floor(x * M_2_PI + 0.5);
    double r = tacit_real_range(x - whole * M_PI_2, -0.8, 0.8);
    double square = r * r;
    double sine = r * tacit_polynomial(of_sine, COUNT(of_sine), square);
    double cosine = tacit_polynomial(of_cosine, COUNT(of_cosine), square);
    long quarters = (whole + ahead) & 3;
    double size = quarters & 1 ? cosine : sine;
    return quarters & 2 ? -size : size;
}

double sin(double x) {
    if (tacit_is_secret(x)) return secret_sine(x, 0);
    TACIT_KNOWN(x);
    if (x - x != 0) return NAN;
    if (fabs(x) < 0x1p-26) return x;
    struct tacit_pair rest;
    long quarters = reduced(x, &rest);
    double size = quarters & 1 ? cosine(rest) : sine(rest);
    return quarters & 2 ? -size : size;
}

double cos(double x) {
    if (tacit_is_secret(x)) return secret_sine(x, 1);
    TACIT_KNOWN(x);
    if (x - x != 0) return NAN;
    struct tacit_pair rest;
    long quarters = reduced(x, &rest) + 1;
    double size = quarters & 1 ? cosine(rest) : sine(rest);
    return quarters & 2 ? -size : size;
}

double tan(double x) {
    if (tacit_is_secret(x)) return secret_sine(x, 0) / secret_sine(x, 1);
    TACIT_KNOWN(x);
    if (x - x != 0) return NAN;
    if (fabs(x) < 0x1p-26) return x;
    struct tacit_pair rest;
    long quarters = reduced(x, &rest);
    return quarters & 1 ? -cosine(rest) / sine(rest) : sine(rest) / cosine(rest);
}

/* The arc of a number from 0 to 1 that is a quotient, by that of the nearest of five and of a small number. */
static struct tacit_pair arc(double dividend, double divisor) {
    static const struct tacit_pair known[] = {{0, 0},
                                              {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                                              {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                                              {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
                                              {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}};
    static const double terms[] = {-1. / 3, 1. / 5, -1. / 7, 1. / 9, -1. / 11, 1. / 13, -1. / 15, 1. / 17};
    long nearest = (long)rint(4 * (dividend / divisor));
    double c = nearest / 4.;
    /* (a/b - c) / (1 + c·a/b) = (a - cb) / (b + ca). */
    struct tacit_pair above = tacit_product(-c, divisor), below = tacit_product(c, dividend);
    above = fabs(above.high) > dividend ? tacit_plus(above, (struct tacit_pair){dividend, 0})
                                        : tacit_plus((struct tacit_pair){dividend, 0}, above);
    below = tacit_plus((struct tacit_pair){divisor, 0}, below);
    double t = above.high / below.high;
    double low = (fma(-t, below.high, above.high) + above.low - t * below.low) / below.high;
    double square = t * t;
    struct tacit_pair sum = nearest ? tacit_sum(known[nearest].high, t) : (struct tacit_pair){t, 0};
    sum.low += low + known[nearest].low + t * square * tacit_polynomial(terms, COUNT(terms), square);
    return tacit_sum(sum.high, sum.low);
}

/* The angle at (x, y), from 0 to half a turn, of y that is not negative. */
static double angle(double y, double x) {
    double size = fabs(x);
    struct tacit_pair of;
    if (y > size) {
        of = arc(size, y);
        of = x < 0 ? tacit_plus(quarter, of) : tacit_plus(quarter, (struct tacit_pair){-of.high, -of.low});
    } else {
        of = arc(y, size);
        if (signbit(x)) {
            struct tacit_pair half = {2 * quarter.high, 2 * quarter.low};
            of = tacit_plus(half, (struct tacit_pair){-of.high, -of.low});
        }
    }
    return of.high + of.low;
}

static double secret_angle(double y, double x) {
    static const double terms[] = {0.999999999939,   -0.333333315182, 0.199999099569,   -0.142839484201,
                                   0.110929847784,   -0.0897905100745, 0.0724228402307, -0.0542153062311,
                                   0.0341334204254,  -0.016055158777,  0.00482722700454, -0.000680497134879};
    double height = fabs(y), width = fabs(x);
    double part = tacit_real_range(fmin(height, width) / fmax(height, width), 0, 1.01);
    double of = part * tacit_polynomial(terms, COUNT(terms), part * part);
    if (height > width) of = M_PI_2 - of;
    if (x < 0) of = M_PI - of;
    return y < 0 ? -of : of;
}

/* As the C standard has it, also of zeros and infinities. */
static TACIT_APART double known_angle(double y, double x) {
    if (x != x || y != y) return x + y;
    double height = fabs(y), size;
    if (height == 0)
        size = signbit(x) ? M_PI : 0;
    else if (x == 0)
        size = M_PI_2;
    else if (height == HUGE_VAL)
        size = fabs(x) < HUGE_VAL ? M_PI_2 : signbit(x) ? 3 * M_PI_4 : M_PI_4;
    else if (fabs(x) == HUGE_VAL)
        size = signbit(x) ? M_PI : 0;
    else {
        /* Products of both must be neither too large nor too small. */
        int power, other;
        frexp(height, &power), frexp(x, &other);
        if (power - other > 100)
            size = M_PI_2;
        else if (power - other < -1080)
            size = signbit(x) ? M_PI : 0;
        else if (power - other < -100 && signbit(x))
            size = M_PI;
        else if (power - other < -100)
            size = height / x;
        else
            size = angle(ldexp(height, -power), ldexp(x, -power));
    }
    return copysign(size, y);
}

double atan2(double y, double x) {
    if (tacit_is_secret(x) || tacit_is_secret(y)) return secret_angle(y, x);
    TACIT_KNOWN(x);
    TACIT_KNOWN(y);
    return known_angle(y, x);
}

double atan(double x) {
    if (tacit_is_secret(x)) return secret_angle(x, 1);
    TACIT_KNOWN(x);
    return fabs(x) < 0x1p-26 ? x : atan2(x, 1);
}

double asin(double x) {
    if (tacit_is_secret(x)) return secret_angle(x, sqrt((1 - x) * (1 + x)));
    TACIT_KNOWN(x);
    return fabs(x) < 0x1p-26 ? x : atan2(x, sqrt((1 - x) * (1 + x)));
}

double acos(double x) {
    if (tacit_is_secret(x)) return secret_angle(sqrt((1 - x) * (1 + x)), x);
    TACIT_KNOWN(x);
    return atan2(sqrt((1 - x) * (1 + x)), x);
}

#define SINGLE(name)                                                                    \
    __attribute__((weak)) float name##f(float value) { return (float)name(value); }

SINGLE(sin)
SINGLE(cos)
SINGLE(tan)
SINGLE(asin)
SINGLE(acos)
SINGLE(atan)
__attribute__((weak)) float atan2f(float y, float x) { return (float)atan2(y, x); }
