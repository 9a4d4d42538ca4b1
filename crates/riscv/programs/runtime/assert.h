#ifndef TACIT_ASSERT_H
#define TACIT_ASSERT_H
#include <stdio.h>
#include <stdlib.h>

#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), abort()))
#endif

#endif
