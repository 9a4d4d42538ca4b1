#ifndef TACIT_STDLIB_H
#define TACIT_STDLIB_H
#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

__attribute__((noreturn)) void exit(int status);
__attribute__((noreturn)) void _Exit(int status);
__attribute__((noreturn)) void abort(void);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void free(void *memory);

int atoi(const char *text);
long atol(const char *text);
long strtol(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
static inline long long atoll(const char *text) { return atol(text); }
static inline long long strtoll(const char *text, char **end, int base) { return strtol(text, end, base); }
static inline unsigned long long strtoull(const char *text, char **end, int base) { return strtoul(text, end, base); }
/* Exact for up to 15 digits and powers of ten from -22 to 22; other numbers may be off in their last bits. */
double strtod(const char *text, char **end);
double atof(const char *text);

/* Numbers that all parties know. */
#define RAND_MAX 0x7fffffff
int rand(void);
void srand(unsigned seed);

/* At most 32 functions. */
int atexit(void (*function)(void));

/* Two elements, in this order, are compared where a network of sorting has them: which these are depends on `count`
 * alone, so that secrets are sorted as everything else is. */
void qsort(void *elements, size_t count, size_t size, int (*compare)(const void *, const void *));
void *bsearch(const void *wanted, const void *elements, size_t count, size_t size,
              int (*compare)(const void *, const void *));

static inline int abs(int value) { return value < 0 ? -value : value; }
static inline long labs(long value) { return value < 0 ? -value : value; }
static inline long long llabs(long long value) { return value < 0 ? -value : value; }

typedef struct {
    int quot, rem;
} div_t;
typedef struct {
    long quot, rem;
} ldiv_t;
typedef struct {
    long long quot, rem;
} lldiv_t;

static inline div_t div(int of, int by) { return (div_t){of / by, of % by}; }
static inline ldiv_t ldiv(long of, long by) { return (ldiv_t){of / by, of % by}; }
static inline lldiv_t lldiv(long long of, long long by) { return (lldiv_t){of / by, of % by}; }

#endif
