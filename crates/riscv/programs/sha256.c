/* SHA-256 (FIPS 180-4) of a file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t x, int places) { return x >> places | x << (32 - places); }

static void block(uint32_t state[8], const uint8_t bytes[64]) {
    uint32_t words[64], s[8];
    for (int at = 0; at < 16; at++)
        words[at] = (uint32_t)bytes[4 * at] << 24 | (uint32_t)bytes[4 * at + 1] << 16 |
                    (uint32_t)bytes[4 * at + 2] << 8 | bytes[4 * at + 3];
    for (int at = 16; at < 64; at++) {
        uint32_t x = words[at - 15], y = words[at - 2];
        words[at] = words[at - 16] + (turned(x, 7) ^ turned(x, 18) ^ x >> 3) + words[at - 7] +
                    (turned(y, 17) ^ turned(y, 19) ^ y >> 10);
    }
    for (int at = 0; at < 8; at++) s[at] = state[at];
    for (int at = 0; at < 64; at++) {
        uint32_t chosen = s[6] ^ (s[4] & (s[5] ^ s[6]));
        uint32_t most = (s[0] & s[1]) ^ (s[2] & (s[0] ^ s[1]));
        uint32_t first = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + chosen +
                         constants[at] + words[at];
        uint32_t second = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) + most;
        for (int place = 7; place > 0; place--) s[place] = s[place - 1];
        s[4] += first;
        s[0] = first + second;
    }
    for (int at = 0; at < 8; at++) state[at] += s[at];
}

int main(void) {
    static uint8_t message[4096 + 128];
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    FILE *file = fopen("message", "rb");
    if (!file) return 1;
    size_t length = fread(message, 1, 4096, file), end = length;
    message[end++] = 0x80;
    while (end % 64 != 56) end++;
    for (int place = 7; place >= 0; place--) message[end++] = (uint8_t)((uint64_t)length * 8 >> 8 * place);
    for (size_t at = 0; at < end; at += 64) block(state, message + at);
    FILE *digest = fopen("digest", "wb");
    for (int at = 0; at < 32; at++) fputc((int)(state[at / 4] >> (24 - at % 4 * 8) & 0xff), digest);
    fclose(digest);
    return 0;
}
