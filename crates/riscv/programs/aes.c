/* AES-128 (FIPS 197) of each block of a file, by a key that may be secret: bytes are replaced by a table. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tacit.h>

enum { BLOCK = 16, ROUNDS = 10 };

TACIT_OBLIVIOUS static uint8_t box[256];

/* Times x, modulo x^8 + x^4 + x^3 + x + 1. */
static uint8_t doubled(uint8_t x) { return (uint8_t)(x << 1 ^ tacit_select(x >> 7, 0x1b, 0)); }

static uint8_t turned(uint8_t x, int places) { return (uint8_t)(x << places | x >> (8 - places)); }

/* What each byte is replaced by: x + 1 makes all powers but 0, and the inverse of a power is a power. */
static void make_box(void) {
    uint8_t power = 1, inverse = 1;
    do {
        power ^= doubled(power);
        inverse ^= (uint8_t)(inverse << 1);
        inverse ^= (uint8_t)(inverse << 2);
        inverse ^= (uint8_t)(inverse << 4);
        if (inverse >> 7) inverse ^= 0x09;
        box[power] = inverse ^ turned(inverse, 1) ^ turned(inverse, 2) ^ turned(inverse, 3) ^ turned(inverse, 4) ^ 0x63;
    } while (power != 1);
    box[0] = 0x63;
}

static void next_key(uint8_t key[BLOCK], uint8_t constant) {
    for (int at = 0; at < 4; at++) key[at] ^= box[key[12 + (at + 1) % 4]];
    key[0] ^= constant;
    for (int at = 4; at < BLOCK; at++) key[at] ^= key[at - 4];
}

/* The columns of what was replaced, after rows were turned; the last round mixes none. */
static void round_of(uint8_t block[BLOCK], int is_last) {
    uint8_t moved[BLOCK];
    for (int at = 0; at < BLOCK; at++) moved[at] = box[block[(at + 4 * (at % 4)) % BLOCK]];
    for (int at = 0; at < BLOCK; at++) {
        const uint8_t *column = moved + at / 4 * 4;
        uint8_t one = column[at % 4], two = column[(at + 1) % 4];
        uint8_t all = column[0] ^ column[1] ^ column[2] ^ column[3];
        block[at] = is_last ? one : one ^ all ^ doubled(one ^ two);
    }
}

static void add(uint8_t block[BLOCK], const uint8_t key[BLOCK]) {
    for (int at = 0; at < BLOCK; at++) block[at] ^= key[at];
}

static void seal(uint8_t block[BLOCK], const uint8_t first_key[BLOCK]) {
    uint8_t key[BLOCK], constant = 1;
    memcpy(key, first_key, BLOCK);
    add(block, key);
    for (int round = 1; round <= ROUNDS; round++) {
        round_of(block, round == ROUNDS);
        next_key(key, constant);
        constant = doubled(constant);
        add(block, key);
    }
}

int main(void) {
    uint8_t key[BLOCK], block[BLOCK];
    FILE *file = fopen("key", "rb");
    if (!file || fread(key, 1, BLOCK, file) != BLOCK) return 1;
    make_box();
    FILE *blocks = fopen("blocks", "rb"), *sealed = fopen("sealed", "wb");
    if (!blocks || !sealed) return 2;
    while (fread(block, 1, BLOCK, blocks) == BLOCK) {
        seal(block, key);
        fwrite(block, 1, BLOCK, sealed);
    }
    fclose(sealed);
    return 0;
}
