#ifndef TACIT_TIME_H
#define TACIT_TIME_H
#include <stddef.h>

typedef long time_t, clock_t;

#define CLOCKS_PER_SEC 1000000L

/* The machine has no clock, since all parties must do the same: time counts instructions. */
time_t time(time_t *now);
clock_t clock(void);
double difftime(time_t end, time_t beginning);

#endif
