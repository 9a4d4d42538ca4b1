/* Floats in decimal, exactly: every float is a whole number of some power of two, and has an end in decimal. */
#include "decimal.h"
#include <string.h>

/* Limbs of nine digits: of the greatest float before the point, and of the least behind it. */
enum { BASE = 1000000000, BEFORE = 35, BEHIND = 125, LIMBS = BEFORE + BEHIND };

/* m·2^exponent, the point behind the first BEFORE limbs. */
static void spread(uint32_t *limbs, uint64_t mantissa, int exponent) {
    memset(limbs, 0, LIMBS * sizeof limbs[0]);
    for (int at = BEFORE; mantissa; mantissa /= BASE) limbs[--at] = (uint32_t)(mantissa % BASE);
    for (int shift; exponent > 0; exponent -= shift) {
        shift = exponent < 29 ? exponent : 29;
        uint64_t carry = 0;
        for (int at = BEFORE; at-- > 0;) {
            carry += (uint64_t)limbs[at] << shift;
            limbs[at] = (uint32_t)(carry % BASE);
            carry /= BASE;
        }
    }
    /* Nine digits are divided by 2^9 without a rest. */
    for (int shift; exponent < 0; exponent += shift) {
        shift = -exponent < 9 ? -exponent : 9;
        uint32_t rest = 0, one = BASE >> shift;
        for (int at = 0; at < LIMBS; at++) {
            uint32_t limb = limbs[at];
            limbs[at] = (limb >> shift) + rest * one;
            rest = limb & ((1U << shift) - 1);
        }
    }
}

int tacit_decimal(struct tacit_decimal *to, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 52) & 0x7ff;
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    to->negative = (int)(bits >> 63);
    if (exponent == 0x7ff) return mantissa ? 2 : 1;
    uint32_t limbs[LIMBS];
    spread(limbs, exponent ? mantissa | (uint64_t)1 << 52 : mantissa, (exponent ? exponent : 1) - 1075);
    for (int at = 0; at < LIMBS; at++)
        for (int digit = 9; digit-- > 0; limbs[at] /= 10) to->digits[9 * at + digit] = (char)('0' + limbs[at] % 10);
    to->point = 9 * BEFORE;
    to->end = 9 * LIMBS;
    to->first = 0;
    while (to->first < to->end && to->digits[to->first] == '0') to->first++;
    return 0;
}

/* To the nearest, and of two to that with an even digit. */
void tacit_round(struct tacit_decimal *of, int end) {
    if (end < 0) end = 0;
    if (end >= of->end) return;
    int up = of->digits[end] > '5', at = end;
    if (of->digits[end] == '5') {
        int rest = end + 1;
        while (rest < of->end && of->digits[rest] == '0') rest++;
        up = rest < of->end || (end > 0 && (of->digits[end - 1] & 1));
    }
    memset(of->digits + end, '0', (size_t)(of->end - end));
    while (up && at > 0) {
        at--;
        up = of->digits[at] == '9';
        of->digits[at] = up ? '0' : (char)(of->digits[at] + 1);
    }
    of->first = 0;
    while (of->first < of->end && of->digits[of->first] == '0') of->first++;
}
