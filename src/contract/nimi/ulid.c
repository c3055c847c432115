#include "contract/nimi/ulid.h"

#include "base/clock.h"

#include <assert.h>
#include <sys/random.h>

#define BYTES 16
#define TIME_BYTES 6
#define NUMBER_AT 8 /* offset of the number, the last 64 bits */

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void fill_random(unsigned char bytes[static BYTES]) {
    ssize_t got = getrandom(bytes, BYTES, 0);
    assert(got == BYTES);
    (void)got;
}

static void ulid_put_number(unsigned char *at, size_t bytes, uint64_t number) {
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(number >> (8 * (bytes - 1 - i)));
}

/* 26 digits of 5 bits are 130 bits; the first two are always 0. */
static void spell(const unsigned char bytes[static BYTES], char ret[static ULID_LEN + 1]) {
    for (size_t i = 0; i < ULID_LEN; i++) {
        unsigned value = 0;
        for (size_t bit = 5 * i; bit < 5 * i + 5; bit++) {
            unsigned set = bit >= 2 && (bytes[(bit - 2) / 8] >> (7 - (bit - 2) % 8) & 1) != 0;
            value = value << 1 | set;
        }
        ret[i] = digits[value];
    }
    ret[ULID_LEN] = '\0';
}

void ulid_new(char ret[static ULID_LEN + 1]) {
    unsigned char bytes[BYTES];
    fill_random(bytes);
    ulid_put_number(bytes, TIME_BYTES, (uint64_t)clock_unix_ms());
    spell(bytes, ret);
}

void ulid_new_numbered(char ret[static ULID_LEN + 1], int64_t unix_ms, uint64_t number) {
    unsigned char bytes[BYTES];
    fill_random(bytes);
    ulid_put_number(bytes, TIME_BYTES, (uint64_t)unix_ms);
    ulid_put_number(bytes + NUMBER_AT, BYTES - NUMBER_AT, number);
    spell(bytes, ret);
}

bool ulid_number(struct str ulid, uint64_t *ret) {
    uint64_t number = 0; /* low 64 bits of the digits read so far */
    if (ulid.len != ULID_LEN || ulid.at[0] > '7') return false;
    for (size_t i = 0; i < ULID_LEN; i++) {
        const char *digit = memchr(digits, ulid.at[i], sizeof(digits) - 1);
        if (!digit) return false;
        number = number << 5 | (uint64_t)(digit - digits);
    }
    *ret = number;
    return true;
}
