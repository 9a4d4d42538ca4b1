/* Ascon v1.2: Ascon-Hash of a message, or of as many of one length as it is told, or Ascon-128 of it by a key, a nonce and associated data. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t s[5];

static uint64_t turned(uint64_t x, int places) { return x >> places | x << (64 - places); }

static void permutation(int rounds) {
    for (int round = 12 - rounds; round < 12; round++) {
        s[2] ^= (uint64_t)(0xf0 - 0x10 * round + round);
        s[0] ^= s[4];
        s[4] ^= s[3];
        s[2] ^= s[1];
        uint64_t t[5];
        for (int at = 0; at < 5; at++) t[at] = ~s[at] & s[(at + 1) % 5];
        for (int at = 0; at < 5; at++) s[at] ^= t[(at + 1) % 5];
        s[1] ^= s[0];
        s[0] ^= s[4];
        s[3] ^= s[2];
        s[2] = ~s[2];
        s[0] ^= turned(s[0], 19) ^ turned(s[0], 28);
        s[1] ^= turned(s[1], 61) ^ turned(s[1], 39);
        s[2] ^= turned(s[2], 1) ^ turned(s[2], 6);
        s[3] ^= turned(s[3], 10) ^ turned(s[3], 17);
        s[4] ^= turned(s[4], 7) ^ turned(s[4], 41);
    }
}

/* The first byte is the highest. */
static uint64_t word(const uint8_t *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t at = 0; at < count; at++) word |= (uint64_t)bytes[at] << (56 - 8 * at);
    return word;
}

static void put(FILE *file, uint64_t word, size_t count) {
    for (size_t at = 0; at < count; at++) fputc((int)(word >> (56 - 8 * at) & 0xff), file);
}

static uint64_t padding(size_t count) { return (uint64_t)0x80 << (56 - 8 * count); }

static size_t read_all(const char *name, uint8_t *bytes, size_t most) {
    FILE *file = fopen(name, "rb");
    size_t count = file ? fread(bytes, 1, most, file) : 0;
    if (file) fclose(file);
    return count;
}

static uint8_t message[65536], data[4096], key[16], nonce[16];

static void hash(FILE *out, const uint8_t *message, size_t length) {
    size_t at = 0;
    s[0] = 0x00400c0000000100;
    s[1] = s[2] = s[3] = s[4] = 0;
    permutation(12);
    for (; length - at >= 8; at += 8) {
        s[0] ^= word(message + at, 8);
        permutation(12);
    }
    s[0] ^= word(message + at, length - at) ^ padding(length - at);
    for (int block = 0; block < 4; block++) {
        permutation(12);
        put(out, s[0], 8);
    }
}

static void sealed(FILE *out, size_t length, size_t data_length) {
    size_t at = 0;
    uint64_t k0 = word(key, 8), k1 = word(key + 8, 8);
    s[0] = 0x80400c0600000000;
    s[1] = k0, s[2] = k1, s[3] = word(nonce, 8), s[4] = word(nonce + 8, 8);
    permutation(12);
    s[3] ^= k0, s[4] ^= k1;
    if (data_length > 0) {
        for (; data_length - at >= 8; at += 8) {
            s[0] ^= word(data + at, 8);
            permutation(6);
        }
        s[0] ^= word(data + at, data_length - at) ^ padding(data_length - at);
        permutation(6);
    }
    s[4] ^= 1;
    for (at = 0; length - at >= 8; at += 8) {
        s[0] ^= word(message + at, 8);
        put(out, s[0], 8);
        permutation(6);
    }
    s[0] ^= word(message + at, length - at) ^ padding(length - at);
    put(out, s[0], length - at);
    s[1] ^= k0, s[2] ^= k1;
    permutation(12);
    put(out, s[3] ^ k0, 8);
    put(out, s[4] ^ k1, 8);
}

int main(int count, char **arguments) {
    size_t length = read_all("message", message, sizeof message);
    FILE *out = fopen("out", "wb");
    if (!out) return 1;
    if (count > 1 && !strcmp(arguments[1], "hash")) {
        size_t messages = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
        for (size_t at = 0; at < messages; at++) hash(out, message + at * (length / messages), length / messages);
    } else {
        size_t data_length = read_all("data", data, sizeof data);
        if (read_all("key", key, 16) != 16 || read_all("nonce", nonce, 16) != 16) return 2;
        sealed(out, length, data_length);
    }
    fclose(out);
    return 0;
}
