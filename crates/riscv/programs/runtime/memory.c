/* Bytes, texts, and memory that is asked for. */
#include "system.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Keeps a compiler from seeing a loop as the function that it is in. */
#define AS_IT_IS __asm__ volatile("" ::: "memory")

/* Eight bytes of whatever lies there: what is secret among them is moved as it is. */
typedef uint64_t __attribute__((may_alias)) eight;

/* Whether two places lie alike in words of eight bytes. */
static int alike(const char *one, const char *other) { return (((uintptr_t)one ^ (uintptr_t)other) & 7) == 0; }

/* Of so many bytes, those before a word of eight begins. */
static size_t before_a_word(const char *place, size_t size) {
    size_t before = -(uintptr_t)place & 7;
    return before < size ? before : size;
}

static void forwards(char *target, const char *source, size_t size) {
    size_t at = 0;
    if (alike(target, source)) {
        for (size_t first = before_a_word(target, size); at < first; at++) {
            target[at] = source[at];
            AS_IT_IS;
        }
        for (; size - at >= 8; at += 8) {
            *(eight *)(target + at) = *(const eight *)(source + at);
            AS_IT_IS;
        }
    }
    for (; at < size; at++) {
        target[at] = source[at];
        AS_IT_IS;
    }
}

static void backwards(char *target, const char *source, size_t size) {
    size_t at = size;
    if (alike(target, source)) {
        for (; at > 0 && ((uintptr_t)(target + at) & 7) != 0; at--) {
            target[at - 1] = source[at - 1];
            AS_IT_IS;
        }
        for (; at >= 8; at -= 8) {
            *(eight *)(target + at - 8) = *(const eight *)(source + at - 8);
            AS_IT_IS;
        }
    }
    for (; at > 0; at--) {
        target[at - 1] = source[at - 1];
        AS_IT_IS;
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    forwards(to, from, size);
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    if ((uintptr_t)to <= (uintptr_t)from)
        forwards(to, from, size);
    else
        backwards(to, from, size);
    return to;
}

void *memset(void *to, int byte, size_t size) {
    char *target = to;
    size_t at = 0, first = before_a_word(target, size);
    if (size - first >= 16) {
        for (; at < first + 8; at++) {
            target[at] = (char)byte;
            AS_IT_IS;
        }
        /* What was just made of bytes, which may be secret, is what all the others are. */
        eight word = *(eight *)(target + first);
        for (; size - at >= 8; at += 8) {
            *(eight *)(target + at) = word;
            AS_IT_IS;
        }
    }
    for (; at < size; at++) {
        target[at] = (char)byte;
        AS_IT_IS;
    }
    return to;
}

/* Compares halves, so that the result for n secret bytes takes the rounds of log n bytes. Both halves are compared
 * whatever the first one says: a compiler may not put the second behind a branch. */
static int compared(const unsigned char *one, const unsigned char *other, size_t size) {
    if (size == 0) return 0;
    if (size == 1) return (*one > *other) - (*one < *other);
    int first = compared(one, other, size / 2);
    int second = compared(one + size / 2, other + size / 2, size - size / 2);
    __asm__ volatile("" : "+r"(first), "+r"(second));
    return first ? first : second;
}

int memcmp(const void *left, const void *right, size_t size) { return compared(left, right, size); }

size_t strnlen(const char *text, size_t most) {
    size_t length = 0;
    for (; length < most && text[length]; length++) AS_IT_IS;
    return length;
}

size_t strlen(const char *text) {
    size_t length = 0;
    for (; text[length]; length++) AS_IT_IS;
    return length;
}

int strncmp(const char *left, const char *right, size_t size) {
    for (size_t at = 0; at < size; at++) {
        unsigned char one = left[at], other = right[at];
        if (one != other) return one < other ? -1 : 1;
        if (!one) break;
    }
    return 0;
}

int strcmp(const char *left, const char *right) { return strncmp(left, right, SIZE_MAX); }

char *strcpy(char *restrict to, const char *restrict from) { return memcpy(to, from, strlen(from) + 1); }

char *strchr(const char *text, int byte) {
    for (;; text++) {
        if (*text == (char)byte) return (char *)text;
        if (!*text) return NULL;
    }
}

/* What is free, as a list; each piece begins with its size and has the next one behind it. */
union piece {
    struct {
        size_t size;
        union piece *next;
    } free;
    max_align_t alignment;
};

static union piece *pieces;
static uintptr_t end;

void *malloc(size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + sizeof(union piece) - 1) / sizeof(union piece) * sizeof(union piece);
    for (union piece **place = &pieces; *place; place = &(*place)->free.next) {
        union piece *found = *place;
        if (found->free.size < size) continue;
        *place = found->free.next;
        return found + 1;
    }
    if (!end) end = ((uintptr_t)tacit_call(TACIT_BREAK, 0, 0, 0) + 15) / 16 * 16;
    uintptr_t wanted = end + sizeof(union piece) + size;
    if ((uintptr_t)tacit_call(TACIT_BREAK, (long)wanted, 0, 0) < wanted) return NULL;
    union piece *made = (union piece *)end;
    end = wanted;
    made->free.size = size;
    return made + 1;
}

void free(void *memory) {
    if (!memory) return;
    union piece *freed = (union piece *)memory - 1;
    freed->free.next = pieces;
    pieces = freed;
}

void *calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    void *memory = malloc(count * size);
    /* Of memory that is asked for and cleared a compiler makes a call of this function. */
    AS_IT_IS;
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *realloc(void *old, size_t size) {
    void *memory = malloc(size);
    if (!old || !memory) return memory;
    size_t before = ((union piece *)old - 1)->free.size;
    memcpy(memory, old, before < size ? before : size);
    free(old);
    return memory;
}

unsigned long strtoul(const char *text, char **end_of_number, int base) {
    const char *at = text;
    while (*at == ' ' || (*at >= '\t' && *at <= '\r')) at++;
    int negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    if ((base == 0 || base == 16) && at[0] == '0' && (at[1] | 32) == 'x') {
        at += 2;
        base = 16;
    }
    if (base == 0) base = *at == '0' ? 8 : 10;
    unsigned long value = 0;
    const char *first = at;
    for (;; at++) {
        int digit = *at >= '0' && *at <= '9' ? *at - '0' : (*at | 32) >= 'a' ? (*at | 32) - 'a' + 10 : 99;
        if (digit >= base) break;
        value = value * (unsigned long)base + (unsigned long)digit;
    }
    if (end_of_number) *end_of_number = (char *)(at == first ? text : at);
    return negative ? -value : value;
}

long strtol(const char *text, char **end_of_number, int base) {
    return (long)strtoul(text, end_of_number, base);
}

long atol(const char *text) { return strtol(text, NULL, 10); }

int atoi(const char *text) { return (int)atol(text); }
