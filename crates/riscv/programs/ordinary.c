/* Ordinary C: the library of public programs, printed; and branches on secrets that compilers make selects of, loops
 * that end by a secret, comparisons of memory, and quotients of 128 bits. */
#include <alloca.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <memory.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bid {
    uint64_t who, amount;
};

static void last(void) { puts("last"); }

static void library(void) {
    int whole = 0, octal = 0, count = 0;
    unsigned hexadecimal = 0;
    long large = 0;
    double real = 0;
    float single = 0;
    char word[8] = "", letters[3] = "";
    printf("%d ", sscanf("12 -7, 0xff 777", "%d %ld , %x %o%n", &whole, &large, &hexadecimal, &octal, &count));
    printf("%d %ld %x %o %d\n", whole, large, hexadecimal, octal, count);
    printf("%d ", sscanf(" 2.5e3 -0.125 longwords xy", "%lf %f %4s%*s %2c", &real, &single, word, letters));
    printf("%g %g %s %s\n", real, single, word, letters);
    printf("%d %d %d\n", sscanf("x", "%d", &whole), sscanf("", "%d", &whole), sscanf("5%", "%d%%", &whole));
    printf("%g %g %g %g\n", atof("1e22"), atof("-3.25"), strtod("0.1", NULL), atof(".5e-3x"));
    char *copy = strdup("copied"), *block = alloca(4);
    strcpy(block, "own");
    printf("%s %s %d\n", copy, block, (int)strnlen("abc", 2));
    free(copy);
    errno = 0;
    printf("%d ", fopen("nothing there", "rb") == NULL);
    printf("%d %s\n", errno == ENOENT, strerror(errno));
    srand(3);
    int one = rand();
    srand(3);
    printf("%d %d %d\n", one == rand(), one >= 0, time(NULL) <= time(NULL));
    printf("%d %d %d\n", memcmp("abcd", "abcf", 4) < 0, memcmp("b", "a", 1) > 0, memcmp("same", "same", 4));
    div_t parts = div(-17, 5);
    int8_t small = 0;
    sscanf("-5", "%" SCNd8, &small);
    const unsigned long long most = strtoull("18446744073709551615", NULL, 10);
    printf("%d %d %llu %" PRId8 " %s\n", parts.quot, parts.rem, most, small, setlocale(LC_ALL, NULL));
}

static const struct bid *winner(const struct bid *bids, int count) {
    const struct bid *best = NULL;
    for (int at = 0; at < count; at++)
        if (!best || bids[at].amount > best->amount) best = &bids[at];
    return best;
}

static int place(const uint64_t *numbers, int count, uint64_t wanted) {
    for (int at = 0; at < count; at++)
        if (numbers[at] == wanted) return at;
    return -1;
}

/* Insertion sort, whose inner loop ends by a secret. */
static void sort(uint64_t *numbers, int count) {
    for (int end = 1; end < count; end++) {
        uint64_t moved = numbers[end];
        int at = end;
        for (; at > 0 && numbers[at - 1] > moved; at--) numbers[at] = numbers[at - 1];
        numbers[at] = moved;
    }
}

int main(void) {
    uint64_t x[16], out[16];
    if (atexit(last) != 0) return 1;
    library();
    FILE *in = fopen("x", "rb"), *written = fopen("out", "wb");
    if (fread(x, sizeof x[0], 16, in) != 16) return 1;
    const unsigned __int128 left = (unsigned __int128)x[0] << 64 | x[1], right = x[2];
    out[0] = (uint64_t)(left / right);
    out[1] = (uint64_t)(left % right);
    out[2] = (uint64_t)((__int128)-(int64_t)(x[1] >> 1) / (__int128)(int64_t)(x[2] >> 1));
    const struct bid *best = winner((const struct bid *)(x + 4), 4);
    out[3] = best->who;
    out[4] = best->amount;
    out[5] = (uint64_t)place(x + 12, 4, x[3]);
    int order = memcmp(x + 4, x + 12, 16);
    out[6] = (uint64_t)((order > 0) - (order < 0));
    double price = x[3] > 50 ? 0.75 : 1.5;
    out[7] = (uint64_t)(price * 1024);
    memcpy(out + 8, x + 8, 8 * sizeof x[0]);
    sort(out + 8, 8);
    fwrite(out, sizeof out[0], 16, written);
    return fclose(written);
}
