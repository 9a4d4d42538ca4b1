/* Functions of floats, each an instruction or a few. A program that has a function of such a name itself keeps it. */
#include <limits.h>
#include <math.h>

#define ONE(type, name, operation, letter)                                              \
    __attribute__((weak)) type name(type value) {                                       \
        type result;                                                                    \
        __asm__(operation "." letter " %0, %1" : "=f"(result) : "f"(value));            \
        return result;                                                                  \
    }

#define TWO(type, name, operation, letter)                                              \
    __attribute__((weak)) type name(type left, type right) {                            \
        type result;                                                                    \
        __asm__(operation "." letter " %0, %1, %2" : "=f"(result) : "f"(left), "f"(right)); \
        return result;                                                                  \
    }

/* By way of whole numbers; what is none of 64 bits has nothing behind its point. The sign is that of 0 too. */
#define WHOLE(type, name, mode, letter)                                                 \
    __attribute__((weak)) type name(type value) {                                       \
        long whole;                                                                     \
        __asm__("fcvt.l." letter " %0, %1, " mode : "=r"(whole) : "f"(value));          \
        if (whole == LONG_MAX || whole == LONG_MIN) return value;                       \
        type result = (type)whole;                                                      \
        __asm__("fsgnj." letter " %0, %0, %1" : "+f"(result) : "f"(value));             \
        return result;                                                                  \
    }

#define ALL(type, suffix, letter)                                                       \
    ONE(type, fabs##suffix, "fabs", letter)                                             \
    ONE(type, sqrt##suffix, "fsqrt", letter)                                            \
    TWO(type, fmin##suffix, "fmin", letter)                                             \
    TWO(type, fmax##suffix, "fmax", letter)                                             \
    TWO(type, copysign##suffix, "fsgnj", letter)                                        \
    WHOLE(type, floor##suffix, "rdn", letter)                                           \
    WHOLE(type, ceil##suffix, "rup", letter)                                            \
    WHOLE(type, trunc##suffix, "rtz", letter)                                           \
    WHOLE(type, round##suffix, "rmm", letter)                                           \
    WHOLE(type, rint##suffix, "dyn", letter)

ALL(double, , "d")
ALL(float, f, "s")
