#ifndef TACIT_SETJMP_H
#define TACIT_SETJMP_H

/* Where a program goes on, its stack, and what functions leave as it was: twelve registers, and twelve of floats. */
typedef unsigned long jmp_buf[26];

int setjmp(jmp_buf place) __attribute__((returns_twice));
__attribute__((noreturn)) void longjmp(jmp_buf place, int value);

#endif
