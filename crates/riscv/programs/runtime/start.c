/* How a program begins and ends, and what it asks the system. */
#include "system.h"
#include <stdlib.h>

extern int main(int count, char **arguments, char **environment);

/* The stack, as the system laid it out: how many arguments, and where each is. */
__attribute__((noreturn, used)) void tacit_start(long *stack) {
    char **arguments = (char **)(stack + 1);
    exit(main((int)stack[0], arguments, arguments + stack[0] + 1));
}

__asm__(".globl _start\n"
        "_start:\n"
        ".option push\n"
        ".option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "mv a0, sp\n"
        "andi sp, sp, -16\n"
        "call tacit_start\n");

void _Exit(int status) {
    for (;;) tacit_call(TACIT_EXIT, status, 0, 0);
}

enum { FUNCTIONS = 32 };

static void (*at_exit[FUNCTIONS])(void);
static int functions;

int atexit(void (*function)(void)) {
    if (functions == FUNCTIONS) return -1;
    at_exit[functions++] = function;
    return 0;
}

void exit(int status) {
    while (functions > 0) at_exit[--functions]();
    tacit_close_all();
    _Exit(status);
}

void abort(void) {
    tacit_close_all();
    tacit_call(TACIT_KILL, 0, 6, 0);
    _Exit(134);
}
