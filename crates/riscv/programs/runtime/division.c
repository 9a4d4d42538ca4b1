/* Quotients of __int128, bit by bit: which steps are done does not depend on the numbers, so that secrets are divided
 * as everything else is. gcc has these functions in a library of its own, clang has none. */
typedef unsigned __int128 wide;

wide __udivti3(wide left, wide right);
wide __umodti3(wide left, wide right);
__int128 __divti3(__int128 left, __int128 right);
__int128 __modti3(__int128 left, __int128 right);

/* The quotient, and what remains. */
static wide divided(wide left, wide right, wide *rest) {
    wide quotient = 0, remaining = 0;
    for (int at = 127; at >= 0; at--) {
        /* What is shifted out counts too. */
        int beyond = (int)(remaining >> 127);
        remaining = remaining << 1 | (left >> at & 1);
        int fits = beyond | (remaining >= right);
        remaining -= fits ? right : 0;
        quotient = quotient << 1 | (unsigned)fits;
    }
    *rest = remaining;
    return quotient;
}

__attribute__((weak)) wide __udivti3(wide left, wide right) {
    wide rest;
    return divided(left, right, &rest);
}

__attribute__((weak)) wide __umodti3(wide left, wide right) {
    wide rest;
    divided(left, right, &rest);
    return rest;
}

static wide size_of(__int128 value) { return value < 0 ? -(wide)value : (wide)value; }

__attribute__((weak)) __int128 __divti3(__int128 left, __int128 right) {
    wide rest, quotient = divided(size_of(left), size_of(right), &rest);
    return (__int128)((left < 0) != (right < 0) ? -quotient : quotient);
}

__attribute__((weak)) __int128 __modti3(__int128 left, __int128 right) {
    wide rest;
    divided(size_of(left), size_of(right), &rest);
    return (__int128)(left < 0 ? -rest : rest);
}
