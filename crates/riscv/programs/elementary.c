/* Every function of math.h that is more than an instruction, of each number in a file; of two numbers, of one and the
 * next. */
#include <math.h>
#include <stdio.h>

enum { MOST = 64 };

static double numbers[MOST + 1], results[MOST];

typedef double of_one(double);
typedef double of_two(double, double);

static double third_power(double x) { return pow(x, 3); }
static double power_of_three(double x) { return pow(3, x); }
static double root_of_cube(double x) { return pow(x, 1.5); }
static double remainder_by_e(double x) { return fmod(x, M_E); }
static double half_of_sum(double x) { return ldexp(x + 1, -1); }
/* None of the powers may keep the range of all powers: that of their product would leave no bits. */
static double product_of_powers(double x, double y) { return exp(x) * exp(y) * exp(x); }

static of_one *const of_ones[] = {exp,  exp2,  expm1, log,  log2, log10, log1p,       sinh,           cosh,
                                  tanh, asinh, acosh, atanh, cbrt, sin,   cos,         tan,            asin,
                                  acos, atan,  floor, sqrt, third_power, power_of_three, root_of_cube, remainder_by_e,
                                  half_of_sum};
static of_two *const of_twos[] = {pow, hypot, atan2, product_of_powers};

/* Arguments: the number of the function. */
int main(int count, char **arguments) {
    int which = 0;
    if (count < 2 || sscanf(arguments[1], "%d", &which) != 1) return 1;
    FILE *from = fopen("numbers", "rb"), *to = fopen("results", "wb");
    if (!from || !to) return 1;
    int n = (int)fread(numbers, sizeof *numbers, MOST, from);
    numbers[n] = numbers[0];
    int ones = sizeof of_ones / sizeof *of_ones, twos = sizeof of_twos / sizeof *of_twos;
    for (int at = 0; at < n; at++)
        if (which < ones)
            results[at] = of_ones[which](numbers[at]);
        else if (which < ones + twos)
            results[at] = of_twos[which - ones](numbers[at], numbers[at + 1]);
    return fwrite(results, sizeof *results, (size_t)n, to) != (size_t)n || fclose(to);
}
