/* What ordinary programs call besides. All of it is public: the same for all parties. A program that has a function of
 * such a name itself keeps it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma weak time
#pragma weak clock
#pragma weak difftime
#pragma weak rand
#pragma weak srand
#pragma weak strdup
#pragma weak strtod
#pragma weak atof
#pragma weak strerror
#pragma weak perror

int errno;

/* Instructions that were carried out, as the counter of time has them. */
static long counted(void) {
    long count;
    __asm__ volatile("rdtime %0" : "=r"(count));
    return count;
}

time_t time(time_t *now) {
    time_t seconds = counted() / CLOCKS_PER_SEC;
    if (now) *now = seconds;
    return seconds;
}

clock_t clock(void) { return counted(); }

double difftime(time_t end, time_t beginning) { return (double)(end - beginning); }

/* The generator of the C standard's example, with all 31 bits: a permutation of its state, mixed. Nobody may take it
 * for randomness that others do not know. */
static unsigned long state = 1;

void srand(unsigned seed) { state = seed; }

int rand(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)(state >> 33);
}

/* Powers of ten that a double has exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number and a power of ten, exact where both are (Clinger 1990). */
static double scaled(double value, int power) {
    for (; power > 22; power -= 22) value *= 1e22;
    for (; power < -22; power += 22) value /= 1e22;
    return power < 0 ? value / powers[-power] : value * powers[power];
}

double strtod(const char *text, char **end) {
    const char *at = text;
    while (*at == ' ' || (*at >= '\t' && *at <= '\r')) at++;
    int negative = *at == '-', power = 0, digits = 0, is_behind = 0;
    if (*at == '-' || *at == '+') at++;
    unsigned long mantissa = 0;
    for (; (*at >= '0' && *at <= '9') || (*at == '.' && !is_behind); at++) {
        if (*at == '.') {
            is_behind = 1;
            continue;
        }
        digits++;
        if (mantissa < 1000000000000000000u) {
            mantissa = mantissa * 10 + (unsigned long)(*at - '0');
            power -= is_behind;
        } else {
            power += !is_behind;
        }
    }
    const char *last = digits ? at : text;
    if (digits && (*at | 32) == 'e') {
        char *behind;
        int is_signed = at[1] == '-' || at[1] == '+';
        if (at[1 + is_signed] >= '0' && at[1 + is_signed] <= '9') {
            long by = strtol(at + 1, &behind, 10);
            power += by > 400 ? 400 : by < -400 ? -400 : (int)by;
            last = behind;
        }
    }
    if (end) *end = (char *)last;
    double value = mantissa ? scaled((double)mantissa, power) : 0.0;
    return negative ? -value : value;
}

double atof(const char *text) { return strtod(text, NULL); }

char *strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *strerror(int error) {
    switch (error) {
    case 0: return "Success";
    case ENOENT: return "No such file or directory";
    case ENOMEM: return "Cannot allocate memory";
    case EINVAL: return "Invalid argument";
    case EDOM: return "Numerical argument out of domain";
    case ERANGE: return "Numerical result out of range";
    default: return "Unknown error";
    }
}

void perror(const char *text) {
    if (text && *text) fprintf(stderr, "%s: ", text);
    fprintf(stderr, "%s\n", strerror(errno));
}
