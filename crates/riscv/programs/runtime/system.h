/* Between the parts of the runtime: system calls by their numbers on Linux for RISC-V. */
#ifndef TACIT_SYSTEM_H
#define TACIT_SYSTEM_H

enum {
    TACIT_OPEN_AT = 56,
    TACIT_CLOSE = 57,
    TACIT_SEEK = 62,
    TACIT_READ = 63,
    TACIT_WRITE = 64,
    TACIT_EXIT = 93,
    TACIT_KILL = 129,
    TACIT_BREAK = 214,
    /* The machine's own: a byte of text is about to be read as a part of a number or a word. */
    TACIT_TEXT = 0x7ac6,
    /* The machine's own: the form of a secret double at an address, as tacit_form has it; 0 of another. */
    TACIT_FORM = 0x7ac7,
    /* The machine's own: a double at an address is no longer within a known range. */
    TACIT_ANY_RANGE = 0x7ac8,
};

static inline long tacit_call(long number, long first, long second, long third) {
    register long a0 __asm__("a0") = first;
    register long a1 __asm__("a1") = second;
    register long a2 __asm__("a2") = third;
    register long a7 __asm__("a7") = number;
    /* Who may do what with a file that is made. */
    register long a3 __asm__("a3") = 0644;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a7) : "memory");
    return a0;
}

/* A number that is printed in digits, or a text's first byte: a secret one stops the program here, and not where a loop
   over its digits ends. */
static inline unsigned long tacit_printed(unsigned long word) {
    tacit_call(0x7ac3, (long)word, 0, 0);
    return word;
}

struct tacit_file;

/* Writes what is buffered. */
void tacit_close_all(void);

/* Puts bytes into a file's buffer, and writes it where it is full; how many. */
unsigned long tacit_put(const void *from, unsigned long bytes, struct tacit_file *file);

/* Has what was printed written at once, so that what stops a program later does not lose it, and what must not be
   printed stops it there. */
void tacit_show(struct tacit_file *file);

#endif
