/* Every instruction of F and D on edges and numbers between them, in each rounding mode: a digest of results and
 * flags. A processor or an emulator of RISC-V that is known to be right says what they must be. */
#include <stdint.h>

static const uint64_t doubles[] = {
    0, 0x8000000000000000, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
    0x8010000000000001, 0x3cb0000000000000, 0x3fe0000000000000, 0xbfe0000000000000,
    0x3fefffffffffffff, 0x3ff0000000000000, 0x3ff0000000000001, 0xbff8000000000000,
    0x4004000000000000, 0x40091eb851eb851f, 0x41dfffffffc00000, 0x41e0000000000000,
    0xc1e0000000200000, 0x41efffffffe00000, 0x43dfffffffffffff, 0x43e0000000000000,
    0xc3e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff0000000000001, 0x7ff8000000000000, 0xfff8000000000123,
    0x380fffffffffffff, 0x380fffffe0000000, 0xb69fffffffffffff, 0x47efffffe0000000,
    0x47efffffefffffff, 0x47effffff0000000, 0x1ff0000000000001, 0x2010000000000000,
    0x9ff7ffffffffffff, 0x5fe123456789abcd};

#define BOXED(bits) (0xffffffff00000000 | bits)
static const uint64_t singles[] = {
    BOXED(0), BOXED(0x80000000), BOXED(1), BOXED(0x80000001), BOXED(0x007fffff),
    BOXED(0x00800000), BOXED(0x80800001), BOXED(0x34000000), BOXED(0x3f000000),
    BOXED(0xbf000000), BOXED(0x3f7fffff), BOXED(0x3f800000), BOXED(0x3f800001),
    BOXED(0xbfc00000), BOXED(0x40200000), BOXED(0x4048f5c3), BOXED(0x4effffff),
    BOXED(0x4f000000), BOXED(0xcf000001), BOXED(0x4f7fffff), BOXED(0x5effffff),
    BOXED(0x5f000000), BOXED(0xdf000000), BOXED(0x5f800000), BOXED(0x7f7fffff),
    BOXED(0x7f800000), BOXED(0xff800000), BOXED(0x7f800001), BOXED(0x7fc00000),
    BOXED(0xffc00123), BOXED(0x1f800001), BOXED(0x20000000), BOXED(0x9fbfffff),
    0x3f800000, 0xfffffffe3f800000};

#define COUNT(values) (sizeof(values) / sizeof(values[0]))

/* As FNV-1a, a word at a time, with its upper bits brought down. */
static inline uint64_t taken(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15;
    return digest ^ digest >> 32;
}

#define CARRIED_OUT(TEXT, A, B, C, MODE, RESULT, FLAGS)                                                            \
    __asm__ volatile("fsrm %[mode]\n fsflags zero\n fmv.d.x ft0, %[a]\n fmv.d.x ft1, %[b]\n fmv.d.x ft2, %[c]\n"   \
                     TEXT "\n frflags %[flags]"                                                                    \
                     : [result] "=&r"(RESULT), [flags] "=&r"(FLAGS)                                                \
                     : [mode] "r"(MODE), [a] "r"(A), [b] "r"(B), [c] "r"(C)                                        \
                     : "ft0", "ft1", "ft2", "ft3")

/* On so many of the values for each operand. */
#define FUNCTION(NAME, VALUES, OF_B, OF_C, TEXT)                                                                   \
    uint64_t NAME(void) {                                                                                          \
        uint64_t digest = 0xcbf29ce484222325;                                                                      \
        for (uint64_t mode = 0; mode < 5; mode++)                                                                  \
            for (uint64_t a = 0; a < COUNT(VALUES); a++)                                                           \
                for (uint64_t b = 0; b < OF_B; b++)                                                                \
                    for (uint64_t c = 0; c < OF_C; c++) {                                                          \
                        uint64_t result, flags;                                                                    \
                        CARRIED_OUT(TEXT, VALUES[a], VALUES[b], VALUES[c], mode, result, flags);                   \
                        digest = taken(taken(digest, result), flags);                                              \
                    }                                                                                              \
        return digest;                                                                                             \
    }

#define TO_FLOAT "\n fmv.x.d %[result], ft3"
#define UNARY(NAME, VALUES, TEXT) FUNCTION(NAME, VALUES, 1, 1, TEXT)
#define BINARY(NAME, VALUES, TEXT) FUNCTION(NAME, VALUES, COUNT(VALUES), 1, TEXT)
#define TERNARY(NAME, VALUES, TEXT) FUNCTION(NAME, VALUES, COUNT(VALUES), COUNT(VALUES), TEXT)

#define ALL(X, VALUES)                                                                                             \
    BINARY(add_##X, VALUES, "fadd." #X " ft3, ft0, ft1" TO_FLOAT)                                                  \
    BINARY(subtract_##X, VALUES, "fsub." #X " ft3, ft0, ft1" TO_FLOAT)                                             \
    BINARY(multiply_##X, VALUES, "fmul." #X " ft3, ft0, ft1" TO_FLOAT)                                             \
    BINARY(divide_##X, VALUES, "fdiv." #X " ft3, ft0, ft1" TO_FLOAT)                                               \
    UNARY(root_##X, VALUES, "fsqrt." #X " ft3, ft0" TO_FLOAT)                                                      \
    TERNARY(fused_add_##X, VALUES, "fmadd." #X " ft3, ft0, ft1, ft2" TO_FLOAT)                                     \
    TERNARY(fused_subtract_##X, VALUES, "fmsub." #X " ft3, ft0, ft1, ft2" TO_FLOAT)                                \
    TERNARY(negated_subtract_##X, VALUES, "fnmsub." #X " ft3, ft0, ft1, ft2" TO_FLOAT)                             \
    TERNARY(negated_add_##X, VALUES, "fnmadd." #X " ft3, ft0, ft1, ft2" TO_FLOAT)                                  \
    BINARY(sign_##X, VALUES, "fsgnj." #X " ft3, ft0, ft1" TO_FLOAT)                                                \
    BINARY(sign_negated_##X, VALUES, "fsgnjn." #X " ft3, ft0, ft1" TO_FLOAT)                                       \
    BINARY(sign_times_##X, VALUES, "fsgnjx." #X " ft3, ft0, ft1" TO_FLOAT)                                         \
    BINARY(minimum_##X, VALUES, "fmin." #X " ft3, ft0, ft1" TO_FLOAT)                                              \
    BINARY(maximum_##X, VALUES, "fmax." #X " ft3, ft0, ft1" TO_FLOAT)                                              \
    BINARY(equal_##X, VALUES, "feq." #X " %[result], ft0, ft1")                                                    \
    BINARY(less_##X, VALUES, "flt." #X " %[result], ft0, ft1")                                                     \
    BINARY(less_or_equal_##X, VALUES, "fle." #X " %[result], ft0, ft1")                                            \
    UNARY(class_##X, VALUES, "fclass." #X " %[result], ft0")                                                       \
    UNARY(to_word_##X, VALUES, "fcvt.w." #X " %[result], ft0")                                                     \
    UNARY(to_unsigned_word_##X, VALUES, "fcvt.wu." #X " %[result], ft0")                                           \
    UNARY(to_long_##X, VALUES, "fcvt.l." #X " %[result], ft0")                                                     \
    UNARY(to_unsigned_long_##X, VALUES, "fcvt.lu." #X " %[result], ft0")                                           \
    UNARY(from_word_##X, VALUES, "fcvt." #X ".w ft3, %[a]" TO_FLOAT)                                               \
    UNARY(from_unsigned_word_##X, VALUES, "fcvt." #X ".wu ft3, %[a]" TO_FLOAT)                                     \
    UNARY(from_long_##X, VALUES, "fcvt." #X ".l ft3, %[a]" TO_FLOAT)                                               \
    UNARY(from_unsigned_long_##X, VALUES, "fcvt." #X ".lu ft3, %[a]" TO_FLOAT)

ALL(s, singles)
ALL(d, doubles)
UNARY(to_single, doubles, "fcvt.s.d ft3, ft0" TO_FLOAT)
UNARY(to_double, singles, "fcvt.d.s ft3, ft0" TO_FLOAT)
UNARY(from_half_bits, doubles, "fmv.w.x ft3, %[a]" TO_FLOAT)
UNARY(to_half_bits, doubles, "fmv.x.w %[result], ft0")

static void written(const char *name, uint64_t length, uint64_t digest) {
    char line[64];
    for (uint64_t at = 0; at < length; at++) line[at] = name[at];
    line[length] = ' ';
    for (uint64_t digit = 0; digit < 16; digit++) line[length + 1 + digit] = "0123456789abcdef"[digest >> (60 - 4 * digit) & 15];
    line[length + 17] = '\n';
    register uint64_t file __asm__("a0") = 1;
    register const char *text __asm__("a1") = line;
    register uint64_t size __asm__("a2") = length + 18;
    register uint64_t number __asm__("a7") = 64;
    __asm__ volatile("ecall" : "+r"(file) : "r"(text), "r"(size), "r"(number) : "memory");
}

#define SHOWN(NAME) written(#NAME, sizeof(#NAME) - 1, NAME());
#define ALL_SHOWN(X)                                                                                               \
    SHOWN(add_##X) SHOWN(subtract_##X) SHOWN(multiply_##X) SHOWN(divide_##X) SHOWN(root_##X)                       \
    SHOWN(fused_add_##X) SHOWN(fused_subtract_##X) SHOWN(negated_subtract_##X) SHOWN(negated_add_##X)              \
    SHOWN(sign_##X) SHOWN(sign_negated_##X) SHOWN(sign_times_##X) SHOWN(minimum_##X) SHOWN(maximum_##X)            \
    SHOWN(equal_##X) SHOWN(less_##X) SHOWN(less_or_equal_##X) SHOWN(class_##X)                                     \
    SHOWN(to_word_##X) SHOWN(to_unsigned_word_##X) SHOWN(to_long_##X) SHOWN(to_unsigned_long_##X)                  \
    SHOWN(from_word_##X) SHOWN(from_unsigned_word_##X) SHOWN(from_long_##X) SHOWN(from_unsigned_long_##X)

void _start(void) {
    ALL_SHOWN(s)
    ALL_SHOWN(d)
    SHOWN(to_single) SHOWN(to_double) SHOWN(from_half_bits) SHOWN(to_half_bits)
    register uint64_t status __asm__("a0") = 0;
    register uint64_t number __asm__("a7") = 93;
    __asm__ volatile("ecall" : : "r"(number), "r"(status));
    __builtin_unreachable();
}
