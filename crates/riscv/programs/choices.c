/* Branches on secrets, for the tests; compiled with lines. */
#include <stdint.h>

/* A tax of three rates: sides inside sides, which write on one or on both. */
uint64_t tax(uint64_t income, uint64_t *parts) {
    uint64_t tax = 0;
    if (income > 50000) {
        parts[2] = income - 50000;
        tax = parts[2] / 2;
        income = 50000;
    }
    if (income > 10000) {
        parts[1] = income - 10000;
        if (parts[1] > 20000)
            tax += (parts[1] - 20000) / 4 + 4000;
        else
            tax += parts[1] / 8;
        income = 10000;
    }
    parts[0] = income;
    return tax;
}

/* Ends when a secret says so. */
uint64_t digits(uint64_t number) {
    uint64_t digits = 0;
    while (number >= 10) {
        number >>= 3;
        digits++;
    }
    return digits;
}

/* Reads memory that is not there, on a side. */
uint64_t beyond(uint64_t index, const uint64_t *values) {
    if (index < 4) __asm__ volatile("");
    else return *(volatile const uint64_t *)(values + (1 << 20)) + index;
    return index;
}

void _start(void) {}
