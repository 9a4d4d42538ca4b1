/* What the runtime has for texts, and for order: of secrets too. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
    uint32_t key, number;
};

static int by_key(const void *left, const void *right) {
    uint32_t one = ((const struct record *)left)->key, other = ((const struct record *)right)->key;
    return (one > other) - (one < other);
}

static int by_letter(const void *left, const void *right) { return *(const char *)left - *(const char *)right; }

static int said(char *to, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsprintf(to, format, values);
    va_end(values);
    return length;
}

static void print(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
}

/* Which kinds of bytes there are, by the number of each. */
static void kinds(void) {
    int (*is[])(int) = {isalnum, isalpha, isblank, iscntrl, isdigit, isgraph,
                        islower, isprint, ispunct, isspace, isupper, isxdigit};
    for (size_t kind = 0; kind < sizeof is / sizeof is[0]; kind++) {
        int count = 0;
        for (int byte = 0; byte < 256; byte++) count += is[kind](byte) != 0;
        print("%d ", count);
    }
    print("%c%c%c\n", toupper('q'), tolower('Q'), toupper('['));
}

static void texts(void) {
    char text[40], other[8];
    int length = sprintf(text, "%s-%d", "one", 2);
    length += said(text + length, "%c%04x", '/', 255);
    print("%s %d\n", text, length);
    strncpy(other, "ab", sizeof other);
    for (size_t at = 0; at < sizeof other; at++) print("%d ", other[at]);
    strncpy(other, "abcdefghij", sizeof other);
    print("%.8s\n", other);
    strcpy(text, "left");
    strncat(strcat(text, ", "), "rightmost", 5);
    const char *end = text + strlen(text);
    print("%s %ld %ld %d\n", text, (long)(strrchr(text, 't') - text), (long)(strrchr(text, 0) - end),
          strrchr(text, 'x') == NULL);
    print("%ld %d %ld\n", (long)((char *)memchr(text, 't', 12) - text), memchr(text, 'r', 6) == NULL,
          (long)(strstr(text, "t, r") - text));
    print("%d %ld %d\n", strstr(text, "rights") == NULL, (long)(strstr(text, "") - text), strstr("", "a") == NULL);
    print("%ld %ld %ld %ld\n", (long)strspn("aabbc", "ab"), (long)strspn("abc", "abc"), (long)strcspn("xyza", "ab"),
          (long)strcspn("xyz", ""));
}

/* Elements of one byte, which are searched for too. */
static void letters(void) {
    char letters[] = "thequickbrownfox";
    qsort(letters, strlen(letters), 1, by_letter);
    int found = 0;
    for (char letter = 'a'; letter <= 'z'; letter++) {
        char *place = bsearch(&letter, letters, strlen(letters), 1, by_letter);
        found += place && *place == letter;
    }
    print("%s %d\n", letters, found);
}

/* Floats as text: exact, and of two that are as near the even one. */
static void floats(void) {
    double values[] = {0.0,  -1.5,   2.5,     0.1,   1e22, 9.9999995, 999999.5, 5e-324, 1.7976931348623157e308,
                       1e-5, 123.45, INFINITY, -0.045, 1e6};
    for (size_t at = 0; at < sizeof values / sizeof values[0]; at++) {
        double value = values[at];
        print("%f %.0f %+09.2f|%-9.1f|%e %.3E %g %.3g %.17g % .2g %#.0f\n", value, value, value, value, value, value,
              value, value, value, value, value);
    }
    print("%o %#o %#o %#06o|%#.2o\n", 8, 0, 8, 8, 64);
    volatile double halves[] = {-0.5, 2.5, -3.5, 1e300};
    for (size_t at = 0; at < 4; at++) {
        double value = halves[at];
        print("%g %g %g %g %g %g %g %g\n", floor(value), ceil(value), trunc(value), round(value), rint(value),
              sqrt(fabs(value)), fmin(value, 1), fmax(value, copysign(1, value)));
    }
}

static jmp_buf place;

static void leave(int value) {
    longjmp(place, value);
}

/* The number of times that a place is come back to. */
static void jumps(void) {
    volatile int times = 0;
    int with = setjmp(place);
    times++;
    if (times < 4) leave(times - 1);
    print("%d %d\n", times, with);
}

/* Bytes that are moved, from and to all places of a word, with all that lies around them. */
static void moves(void) {
    static unsigned char room[64];
    unsigned long sums[4] = {0};
    for (size_t to = 0; to < 8; to++)
        for (size_t from = 0; from < 8; from++)
            for (size_t size = 0; size <= 24; size++) {
                for (int what = 0; what < 4; what++) {
                    for (size_t at = 0; at < sizeof room; at++) room[at] = (unsigned char)(at * 37 + from);
                    if (what == 0) memcpy(room + 32 + to, room + from, size);
                    if (what == 1) memmove(room + 8 + to, room + 8 + from, size);
                    if (what == 2) memmove(room + 12 + to, room + from, size);
                    if (what == 3) memset(room + to, (int)from + 250, size);
                    for (size_t at = 0; at < sizeof room; at++) sums[what] = (sums[what] ^ room[at]) * 0x100000001b3;
                }
            }
    print("%lx %lx %lx %lx\n", sums[0], sums[1], sums[2], sums[3]);
    /* What was used before is cleared. */
    long *used = malloc(5 * sizeof *used);
    for (int at = 0; used && at < 5; at++) ((volatile long *)used)[at] = ~at;
    free(used);
    volatile long *cleared = calloc(5, sizeof *cleared);
    print("%ld %ld\n", cleared[0], cleared[4]);
}

/* The same with bytes that may be secret. */
static void moves_of(const uint32_t *keys, size_t count, FILE *moved) {
    static unsigned char room[64];
    memset(room + 3, (int)keys[0], 30);
    memcpy(room + 36, keys, 4 * count);
    memmove(room + 11, room + 3, 40);
    memmove(room + 1, room + 9, 50);
    fwrite(room, 1, sizeof room, moved);
    fclose(moved);
}

int main(void) {
    static struct record records[64];
    kinds();
    texts();
    letters();
    floats();
    jumps();
    moves();
    FILE *file = fopen("keys", "rb"), *sorted = fopen("sorted", "wb"), *moved = fopen("moved", "wb");
    static uint32_t keys[64];
    size_t count = file ? fread(keys, sizeof keys[0], 64, file) : 0;
    moves_of(keys, count, moved);
    for (size_t at = 0; at < count; at++) records[at] = (struct record){keys[at], (uint32_t)at};
    qsort(records, count, sizeof records[0], by_key);
    fwrite(records, sizeof records[0], count, sorted);
    fclose(sorted);
    /* Its end is that of a program that ends well. */
}
