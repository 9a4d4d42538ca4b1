/* What a program may say of its secrets. All of it does nothing where there are none: the same program runs in the
 * clear on any system. */
#ifndef TACIT_H
#define TACIT_H
#include <stdint.h>

/* Opens words in memory to all parties: the program then goes on by what they are. A macro, so that the report names
 * the line that it is used in. */
#define tacit_reveal_all(words, count, bytes_each)                                        \
    ({                                                                                    \
        register uint64_t tacit_a0 __asm__("a0") = (uint64_t)(words);                     \
        register uint64_t tacit_a1 __asm__("a1") = (count);                               \
        register uint64_t tacit_a2 __asm__("a2") = (bytes_each);                          \
        register uint64_t tacit_a7 __asm__("a7") = 0x7ac0;                                \
        __asm__ volatile("ecall"                                                          \
                         : "+r"(tacit_a0)                                                 \
                         : "r"(tacit_a1), "r"(tacit_a2), "r"(tacit_a7)                    \
                         : "memory");                                                     \
    })

/* The value of a secret, opened to all parties. */
#define tacit_reveal(secret)                                                              \
    ({                                                                                    \
        uint64_t tacit_word = (uint64_t)(secret);                                         \
        tacit_reveal_all(&tacit_word, 1, sizeof tacit_word);                              \
        tacit_word;                                                                       \
    })

/* The value of a secret that is known to be no less than `least` and no more than `most`, as a number with a sign:
 * comparisons, shifts and conversions of it then take no more bits than that. A secret that is not makes what is
 * computed of it wrong; a number that everybody knows stops the program. */
#define tacit_range(secret, least, most)                                                  \
    ({                                                                                    \
        uint64_t tacit_word = (uint64_t)(secret);                                         \
        register uint64_t tacit_a0 __asm__("a0") = (uint64_t)&tacit_word;                 \
        register uint64_t tacit_a1 __asm__("a1") = (uint64_t)(least);                     \
        register uint64_t tacit_a2 __asm__("a2") = (uint64_t)(most);                      \
        register uint64_t tacit_a7 __asm__("a7") = 0x7ac1;                                \
        __asm__ volatile("ecall"                                                          \
                         : "+r"(tacit_a0)                                                 \
                         : "r"(tacit_a1), "r"(tacit_a2), "r"(tacit_a7)                    \
                         : "memory");                                                     \
        tacit_word;                                                                       \
    })

/* Names what is done from here on, a text of at most 64 bytes: the report says how long was waited for it, in the place
 * of the functions that do it. With "" they count again. */
#define tacit_label(text)                                                                 \
    ({                                                                                    \
        const char *tacit_text = (text);                                                  \
        register uint64_t tacit_a0 __asm__("a0") = (uint64_t)tacit_text;                  \
        register uint64_t tacit_a1 __asm__("a1") = __builtin_strlen(tacit_text);          \
        register uint64_t tacit_a7 __asm__("a7") = 0x7ac2;                                \
        __asm__ volatile("ecall" : "+r"(tacit_a0) : "r"(tacit_a1), "r"(tacit_a7) : "memory"); \
    })

/* Stands in a loop whose exit depends on a secret, and states that it makes at most `most` trips, a number that
 * everybody knows: so many are made, and those after the exit change nothing. If a loop makes more, results are
 * wrong. */
#define TACIT_BOUND(most)                                                                 \
    ({                                                                                    \
        register uint64_t tacit_a0 __asm__("a0") = (uint64_t)(most);                      \
        register uint64_t tacit_a7 __asm__("a7") = 0x7ac5;                                \
        __asm__ volatile("ecall" : "+r"(tacit_a0) : "r"(tacit_a7) : "memory");            \
    })

/* A table that may be read and written at secret places, as in TACIT_OBLIVIOUS static const uint8_t table[256]. */
#define TACIT_OBLIVIOUS TACIT_SECTION(__COUNTER__)
#define TACIT_SECTION(number) TACIT_SECTION_OF(number)
#define TACIT_SECTION_OF(number) __attribute__((section(".tacit.oblivious." #number)))

/* One of two words by a condition that is 0 or 1, without a branch. */
static inline uint64_t tacit_select(uint64_t condition, uint64_t if_one, uint64_t if_zero) {
    uint64_t mask = (uint64_t)((int64_t)(condition << 63) >> 63);
    __asm__("" : "+r"(mask));
    return if_zero ^ (mask & (if_one ^ if_zero));
}

/* The value of a secret double that is known to be no less than `least` and no more than `most`: what is computed of it
 * has as many fraction bits as that leaves. A secret that is not makes what is computed of it wrong; a number that
 * everybody knows stops the program. */
#define tacit_real_range(secret, least, most)                                             \
    ({                                                                                    \
        double tacit_real = (secret), tacit_least = (least), tacit_most = (most);         \
        uint64_t tacit_ends[2];                                                           \
        __builtin_memcpy(tacit_ends, &tacit_least, 8);                                    \
        __builtin_memcpy(tacit_ends + 1, &tacit_most, 8);                                 \
        register uint64_t tacit_a0 __asm__("a0") = (uint64_t)&tacit_real;                 \
        register uint64_t tacit_a1 __asm__("a1") = tacit_ends[0];                         \
        register uint64_t tacit_a2 __asm__("a2") = tacit_ends[1];                         \
        register uint64_t tacit_a7 __asm__("a7") = 0x7ac4;                                \
        __asm__ volatile("ecall"                                                          \
                         : "+r"(tacit_a0)                                                 \
                         : "r"(tacit_a1), "r"(tacit_a2), "r"(tacit_a7)                    \
                         : "memory");                                                     \
        tacit_real;                                                                       \
    })

#endif
