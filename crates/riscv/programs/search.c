/* Where a secret number is in a sorted table that everybody knows: the place of the first that is not less. */
#include <stdint.h>
#include <stdio.h>
#include <tacit.h>

enum { MOST = 1024 };

TACIT_OBLIVIOUS static uint32_t table[MOST];

int main(void) {
    FILE *file = fopen("table", "rb");
    size_t count = file ? fread(table, sizeof table[0], MOST, file) : 0;
    for (size_t at = count; at < MOST; at++) table[at] = UINT32_MAX;
    uint32_t wanted[64];
    FILE *numbers = fopen("wanted", "rb"), *places = fopen("places", "wb");
    size_t asked = numbers ? fread(wanted, sizeof wanted[0], 64, numbers) : 0;
    for (size_t each = 0; each < asked; each++) {
        uint32_t place = 0;
        for (uint32_t step = MOST / 2; step > 0; step /= 2)
            place += table[place + step - 1] < wanted[each] ? step : 0;
        fwrite(&place, sizeof place, 1, places);
    }
    fclose(places);
    return 0;
}
