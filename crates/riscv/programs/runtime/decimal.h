/* Between the parts of the runtime: a float in decimal. */
#ifndef TACIT_DECIMAL_H
#define TACIT_DECIMAL_H
#include <stdint.h>

struct tacit_decimal {
    int negative;
    /* Where the first digit is that is not 0, the first behind the point, and the end. */
    int first, point, end;
    char digits[1440];
};

/* A float's digits; 1 where it is infinite, 2 where it is no number. */
int tacit_decimal(struct tacit_decimal *to, double value);

/* Rounds off what is from a place on. */
void tacit_round(struct tacit_decimal *of, int end);

#endif
