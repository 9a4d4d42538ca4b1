/* Powers, logarithms, and what is made of them. Numbers that everybody knows have results within three units of the last
 * place. Secret ones are fixed-point numbers: their results are as exact as docs/riscv.md says, and there are no
 * infinities and NaNs. A program that has a function of such a name itself keeps it. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "elementary.h"
#include "tacit.h"

#pragma weak exp
#pragma weak exp2
#pragma weak expm1
#pragma weak log
#pragma weak log2
#pragma weak log10
#pragma weak log1p
#pragma weak pow
#pragma weak sinh
#pragma weak cosh
#pragma weak tanh
#pragma weak asinh
#pragma weak acosh
#pragma weak atanh
#pragma weak cbrt
#pragma weak hypot
#pragma weak fmod
#pragma weak ldexp
#pragma weak scalbn
#pragma weak frexp
#pragma weak modf
#pragma weak fdim
#pragma weak fma
#pragma weak nearbyint
#pragma weak lrint
#pragma weak lround
#pragma weak llround

#define COUNT(of) (int)(sizeof(of) / sizeof *(of))

/* ln 2 with 20 bits that are 0 at its end, so that products by whole numbers are exact, and the rest of it. */
#define LN2_HIGH 0x1.62e42fefp-1
#define LN2_LOW 0x1.473de6af278edp-34
static const struct tacit_pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const struct tacit_pair one_by_ln2 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
static const struct tacit_pair one_by_ln10 = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

static TACIT_APART uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static double of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* 2^power, from 2^-1022 to 2^1023. */
static double two_to(long power) { return of_bits((uint64_t)(power + 1023) << 52); }

double ldexp(double value, int power) {
    for (; power > 1023; power -= 1023) {
        if (value == 0 || value - value != 0) return value;
        value *= two_to(1023);
        if (power > 4096) power = 4096;
    }
    /* What is below the least normal number is reached by the last step alone, so it is rounded once. */
    for (; power < -1022; power += 969) {
        if (value == 0 || value - value != 0) return value;
        value *= two_to(-969);
        if (power < -4096) power = -4096;
    }
    return value * two_to(power);
}

double scalbn(double value, int power) { return ldexp(value, power); }

/* e^r - 1 for |r| up to 0.35. */
static double near_zero(double r) {
    static const double terms[] = {1. / 2,         1. / 6,          1. / 24,         1. / 120,     1. / 720,
                                   1. / 5040,      1. / 40320,      1. / 362880,     1. / 3628800, 1. / 39916800,
                                   1. / 479001600, 1. / 6227020800, 1. / 87178291200};
    return r * r * tacit_polynomial(terms, COUNT(terms), r);
}

double tacit_exp(struct tacit_pair of) {
    if (of.high > 709.79) return HUGE_VAL;
    if (of.high < -745.2) return 0;
    if (of.high != of.high) return of.high;
    double whole = rint(of.high * M_LOG2E);
    double rest = fma(-whole, LN2_HIGH, of.high);
    double low = fma(-whole, LN2_LOW, of.low);
    double r = rest + low;
    struct tacit_pair result = tacit_sum(1, r);
    double small = result.low + ((rest - r) + low) + near_zero(r);
    return ldexp(result.high + small, (int)whole);
}

/* The logarithm of m·2^power, where m is a number near 1 and a part that is far smaller. */
static struct tacit_pair logarithm(struct tacit_pair m, long power) {
    double f = m.high - 1;
    struct tacit_pair divisor = tacit_sum(2, f);
    divisor.low += m.low;
    /* s = f / (2 + f); log m = 2 (s + s³/3 + s⁵/5 + ...). */
    struct tacit_pair s;
    s.high = f / divisor.high;
    s.low = (fma(-s.high, divisor.high, f) + m.low - s.high * divisor.low) / divisor.high;
    static const double terms[] = {2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21, 2. / 23};
    static const struct tacit_pair two_thirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
    struct tacit_pair square = tacit_times(s, s), cube = tacit_times(square, s);
    double further = square.high * cube.high * tacit_polynomial(terms, COUNT(terms), square.high);
    struct tacit_pair all = tacit_plus(tacit_times(cube, two_thirds), (struct tacit_pair){further, 0});
    all = tacit_plus((struct tacit_pair){2 * s.high, 2 * s.low}, all);
    struct tacit_pair whole = tacit_sum(power * LN2_HIGH, power * LN2_LOW);
    return power ? tacit_plus(whole, all) : all;
}

/* The logarithm of a number above 0 that is not infinite. */
static TACIT_APART struct tacit_pair log_of(double value) {
    long power = 0;
    if (value < 0x1p-1022) {
        value *= 0x1p54;
        power = -54;
    }
    uint64_t bits = bits_of(value);
    /* From the root of a half to that of two. */
    uint64_t above = bits - 0x3fe6a09e667f3bcd;
    power += (int64_t)above >> 52;
    uint64_t whole = (uint64_t)((int64_t)above >> 52) << 52;
    return logarithm((struct tacit_pair){of_bits(bits - whole), 0}, power);
}

/* What logarithms are of numbers that have none, or are infinite; whether this is one. */
static int is_unusual(double value, double *result) {
    if (value > 0 && value < HUGE_VAL) return 0;
    *result = value == 0 ? -HUGE_VAL : value < 0 ? NAN : value;
    return 1;
}

/* Secret numbers. */

/* 2^x for |x| up to 30; beyond that, as for 30. Powers below and above 1 have tables of their own, so that small ones
 * are as exact as their scale. If nothing is known of x, nothing is of the result. */
static double secret_exp2(double x, int is_ranged) {
    static const double terms[] = {1,
                                   0.693147180546,
                                   0.240226512136,
                                   0.0555041094122,
                                   0.00961802560287,
                                   0.00133334505594,
                                   0.000154697320018,
                                   1.53100814069e-05};
    static const double below[] = {0x1p-30, 0x1p-29, 0x1p-28, 0x1p-27, 0x1p-26, 0x1p-25, 0x1p-24, 0x1p-23,
                                   0x1p-22, 0x1p-21, 0x1p-20, 0x1p-19, 0x1p-18, 0x1p-17, 0x1p-16, 0x1p-15,
                                   0x1p-14, 0x1p-13, 0x1p-12, 0x1p-11, 0x1p-10, 0x1p-9,  0x1p-8,  0x1p-7,
                                   0x1p-6,  0x1p-5,  0x1p-4,  0x1p-3,  0x1p-2,  0x1p-1,  1};
    static const double above[] = {1,      0x1p1,  0x1p2,  0x1p3,  0x1p4,  0x1p5,  0x1p6,  0x1p7,  0x1p8,  0x1p9,
                                   0x1p10, 0x1p11, 0x1p12, 0x1p13, 0x1p14, 0x1p15, 0x1p16, 0x1p17, 0x1p18, 0x1p19,
                                   0x1p20, 0x1p21, 0x1p22, 0x1p23, 0x1p24, 0x1p25, 0x1p26, 0x1p27, 0x1p28, 0x1p29};
    /* Of a range that leaves no fraction, the bounds here would be no numbers. */
    if (tacit_form(x).fraction < 0) x = tacit_any_range(x);
    x = fmin(fmax(x, -30), 29);
    long whole = (long)floor(x + 0.5);
    double rest = tacit_polynomial(terms, COUNT(terms), tacit_real_range(x - whole, -0.51, 0.51));
    whole = (long)tacit_range(whole, -30, 29);
    long low = whole < 0 ? whole : 0, high = whole < 0 ? 0 : whole;
    double small = rest * below[tacit_range(low + 30, 0, 30)], large = rest * above[tacit_range(high, 0, 29)];
    /* Two products, each of its own scale: a compiler would make one of them, of the tables' choice. */
    __asm__("" : "+f"(small), "+f"(large));
    double result = whole < 0 ? small : large;
    return is_ranged ? result : tacit_any_range(result);
}

static double secret_log(double x, long fraction) {
    static const double terms[] = {0.405465108214,    0.666666666233,   -0.222222252418,  0.0987654802231,
                                   -0.0493813242146,  0.0263359288797,  -0.0146552362405, 0.00838152807895,
                                   -0.00470281177874, 0.00275842192987, -0.00231785468791, 0.00144611242486};
    uint64_t word = (uint64_t)(long)ldexp(x, (int)fraction);
    long above = __builtin_clzl(word);
    /* From 1 to 2, with 40 bits behind the point. */
    double m = (double)tacit_range((word << above) >> 23, 1L << 40, (1L << 41) - 1) * 0x1p-40;
    return tacit_polynomial(terms, COUNT(terms), m - 1.5) + (63 - fraction - above) * M_LN2;
}

double exp(double x) {
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) return secret_exp2(x * M_LOG2E, form.is_ranged);
    TACIT_KNOWN(x);
    return tacit_exp((struct tacit_pair){x, 0});
}

double exp2(double x) {
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) return secret_exp2(x, form.is_ranged);
    TACIT_KNOWN(x);
    if (!(x < 1024 && x > -1076)) return x > 0 ? HUGE_VAL : x < 0 ? 0 : x;
    double whole = rint(x);
    return ldexp(tacit_exp(tacit_times(ln2, (struct tacit_pair){x - whole, 0})), (int)whole);
}

double expm1(double x) {
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) return secret_exp2(x * M_LOG2E, form.is_ranged) - 1;
    TACIT_KNOWN(x);
    if (x > -0.35 && x < 0.35) return x == 0 ? x : x + near_zero(x);
    return tacit_exp((struct tacit_pair){x, 0}) - 1;
}

double log(double x) {
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) return secret_log(x, form.fraction);
    TACIT_KNOWN(x);
    double result;
    return is_unusual(x, &result) ? result : log_of(x).high;
}

double log2(double x) {
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) return secret_log(x, form.fraction) * M_LOG2E;
    TACIT_KNOWN(x);
    double result;
    return is_unusual(x, &result) ? result : tacit_times(log_of(x), one_by_ln2).high;
}

double log10(double x) {
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) return secret_log(x, form.fraction) * M_LOG10E;
    TACIT_KNOWN(x);
    double result;
    return is_unusual(x, &result) ? result : tacit_times(log_of(x), one_by_ln10).high;
}

double log1p(double x) {
    if (tacit_is_secret(x)) return log(1 + x);
    TACIT_KNOWN(x);
    double result;
    if (x == 0) return x;
    if (is_unusual(1 + x, &result)) return result;
    struct tacit_pair sum = fabs(x) < 1 ? tacit_sum(1, x) : tacit_sum(x, 1);
    if (x > -0.25 && x < 0.4) return logarithm(sum, 0).high;
    struct tacit_pair of = log_of(sum.high);
    return of.high + (of.low + sum.low / sum.high);
}

/* e^|x| / 2, for numbers of which e^|x| is too large. */
static double half_exp(double x) {
    if (x - x != 0) return x * x;
    return tacit_exp(tacit_plus((struct tacit_pair){fabs(x), 0}, (struct tacit_pair){-ln2.high, -ln2.low}));
}

/* A power whose exponent everybody knows and is whole: by squares. */
static double whole_power(double base, long exponent) {
    double result = 1, square = base;
    for (unsigned long left = exponent < 0 ? -exponent : exponent; left; left >>= 1) {
        if (left & 1) result = result == 1 ? square : result * square;
        if (left > 1) square *= square;
    }
    return exponent < 0 ? 1 / result : result;
}

static double secret_power(double base, double exponent) {
    struct tacit_form of_base = tacit_form(base), of_exponent = tacit_form(exponent);
    double half = of_exponent.is_secret ? 0.1 : exponent + exponent;
    if (half == rint(half) && fabs(half) < 128) {
        long twice = (long)half;
        double whole = whole_power(base, twice / 2);
        return twice % 2 == 0 ? whole : twice > 0 ? whole * sqrt(base) : whole / sqrt(base);
    }
    int is_ranged = (of_base.is_ranged || !of_base.is_secret) && (of_exponent.is_ranged || !of_exponent.is_secret);
    double power = secret_exp2(exponent * log2(base), is_ranged);
    return base > 0 ? power : 0;
}

double pow(double base, double exponent) {
    if (tacit_is_secret(base) || tacit_is_secret(exponent)) return secret_power(base, exponent);
    TACIT_KNOWN(base);
    TACIT_KNOWN(exponent);
    if (exponent == 0 || base == 1) return 1;
    if (base != base || exponent != exponent) return base + exponent;
    int is_whole = fabs(exponent) >= 0x1p53 || exponent == rint(exponent);
    int is_odd = is_whole && fabs(exponent) < 0x1p53 && ((long)exponent & 1);
    double size = fabs(base);
    int is_negative = bits_of(base) >> 63 && is_odd;
    if (base < 0 && !is_whole && size < HUGE_VAL) return NAN;
    double result;
    if (size == 0 || size == HUGE_VAL)
        result = (size == 0) == (exponent < 0) ? HUGE_VAL : 0;
    else if (fabs(exponent) > 0x1p65)
        result = size == 1 ? 1 : (size > 1) == (exponent > 0) ? HUGE_VAL : 0;
    else {
        struct tacit_pair of = log_of(size), product = tacit_product(of.high, exponent);
        product = tacit_sum(product.high, product.low + of.low * exponent);
        result = tacit_exp(product);
    }
    return is_negative ? -result : result;
}

double sinh(double x) {
    if (!tacit_is_secret(x)) {
        if (fabs(x) < 0.35) {
            static const double terms[] = {1. / 6, 1. / 120, 1. / 5040, 1. / 362880, 1. / 39916800, 1. / 6227020800.};
            return x + x * x * x * tacit_polynomial(terms, COUNT(terms), x * x);
        }
        if (fabs(x) > 709) return copysign(half_exp(x), x);
    }
    double power = exp(fabs(x));
    double size = (power - 1 / power) / 2;
    return x < 0 ? -size : size;
}

double cosh(double x) {
    if (!tacit_is_secret(x) && fabs(x) > 709) return half_exp(x);
    double power = exp(fabs(x));
    return (power + 1 / power) / 2;
}

double tanh(double x) {
    if (!tacit_is_secret(x)) {
        if (fabs(x) > 20) return x != x ? x : copysign(1, x);
        double power = expm1(2 * fabs(x));
        return copysign(power / (power + 2), x);
    }
    double power = tacit_real_range(secret_exp2(-2 * M_LOG2E * fabs(x), 1), 0, 1);
    double size = (1 - power) / (1 + power);
    return x < 0 ? -size : size;
}

double asinh(double x) {
    double size = fabs(x);
    if (tacit_is_secret(x)) {
        double result = log(size + sqrt(size * size + 1));
        return x < 0 ? -result : result;
    }
    if (size > 0x1p28) return copysign(log(size) + M_LN2, x);
    return copysign(log1p(size + size * size / (1 + sqrt(size * size + 1))), x);
}

double acosh(double x) {
    if (tacit_is_secret(x)) return log(x + sqrt(x * x - 1));
    TACIT_KNOWN(x);
    if (x < 1) return NAN;
    if (x > 0x1p28) return log(x) + M_LN2;
    return log1p((x - 1) + sqrt((x - 1) * (x + 1)));
}

double atanh(double x) {
    if (tacit_is_secret(x)) return log((1 + x) / (1 - x)) / 2;
    TACIT_KNOWN(x);
    double size = fabs(x);
    return copysign(log1p(2 * size / (1 - size)) / 2, x);
}

double cbrt(double x) {
    double size = fabs(x);
    struct tacit_form form = tacit_form(x);
    if (form.is_secret) {
        double root = secret_exp2(log2(size) / 3, form.is_ranged);
        return x == 0 ? 0 : x < 0 ? -root : root;
    }
    TACIT_KNOWN(x);
    TACIT_KNOWN(size);
    if (!(size > 0 && size < HUGE_VAL)) return x;
    if (size < 0x1p-1022) return cbrt(x * 0x1p54) * 0x1p-18;
    struct tacit_pair of = log_of(size);
    double root = tacit_exp((struct tacit_pair){of.high / 3, 0});
    /* A step of Newton's, with the cube to twice the bits. */
    struct tacit_pair square = tacit_product(root, root), cube = tacit_times(square, (struct tacit_pair){root, 0});
    root -= ((cube.high - size) + cube.low) / (3 * square.high);
    return copysign(root, x);
}

double hypot(double x, double y) {
    double larger = fmax(fabs(x), fabs(y)), smaller = fmin(fabs(x), fabs(y));
    if (tacit_is_secret(larger)) {
        double part = smaller / larger;
        return larger * sqrt(1 + part * part);
    }
    TACIT_KNOWN(larger);
    if (fabs(x) == HUGE_VAL || fabs(y) == HUGE_VAL) return HUGE_VAL;
    if (x != x || y != y) return x + y;
    if (smaller == 0) return larger;
    int power;
    frexp(larger, &power);
    larger = ldexp(larger, -power), smaller = ldexp(smaller, -power);
    struct tacit_pair one = tacit_product(larger, larger), other = tacit_product(smaller, smaller);
    struct tacit_pair sum = tacit_plus(one, other);
    double root = sqrt(sum.high);
    root += (fma(-root, root, sum.high) + sum.low) / (2 * root);
    return ldexp(root, power);
}

double fmod(double x, double y) {
    double size = fabs(x), by = fabs(y);
    if (tacit_is_secret(x) || tacit_is_secret(y)) {
        /* The quotient is rounded, so it may be one too many or too few. */
        double rest = size - trunc(size / by) * by;
        if (rest < 0) rest += by;
        if (rest >= by) rest -= by;
        return x < 0 ? -rest : rest;
    }
    TACIT_KNOWN(size);
    TACIT_KNOWN(by);
    if (!(size < HUGE_VAL) || !(by > 0)) return NAN;
    if (by == HUGE_VAL) return x;
    while (size >= by) {
        /* The greatest by·2^n that is not above it: the difference is exact. */
        int power, other;
        frexp(size, &power), frexp(by, &other);
        double part = ldexp(by, power - other);
        if (part > size) part = ldexp(by, power - other - 1);
        size -= part;
    }
    return copysign(size, x);
}

double frexp(double value, int *power) {
    *power = 0;
    if (value == 0 || value - value != 0) return value;
    if (fabs(value) < 0x1p-1022) {
        value *= 0x1p54;
        *power = -54;
    }
    uint64_t bits = bits_of(value);
    *power += (int)(bits >> 52 & 0x7ff) - 1022;
    return of_bits((bits & 0x800fffffffffffff) | 0x3fe0000000000000);
}

double modf(double value, double *whole) {
    *whole = trunc(value);
    double rest = value - *whole;
    if (tacit_is_secret(value)) return rest;
    return copysign(value - value != 0 && value == value ? 0 : rest, value);
}

double fdim(double x, double y) { return x > y ? x - y : x <= y ? 0 : x + y; }
double fma(double left, double right, double more) { return __builtin_fma(left, right, more); }
double nearbyint(double value) { return rint(value); }
long lrint(double value) { return (long)rint(value); }
long lround(double value) { return (long)round(value); }
long long llround(double value) { return (long long)round(value); }

#define SINGLE(name)                                                                    \
    __attribute__((weak)) float name##f(float value) { return (float)name(value); }
#define SINGLE_OF_TWO(name)                                                             \
    __attribute__((weak)) float name##f(float left, float right) { return (float)name(left, right); }

SINGLE(exp)
SINGLE(exp2)
SINGLE(expm1)
SINGLE(log)
SINGLE(log2)
SINGLE(log10)
SINGLE(log1p)
SINGLE(sinh)
SINGLE(cosh)
SINGLE(tanh)
SINGLE(cbrt)
SINGLE_OF_TWO(pow)
SINGLE_OF_TWO(hypot)
SINGLE_OF_TWO(fmod)
SINGLE_OF_TWO(fdim)
