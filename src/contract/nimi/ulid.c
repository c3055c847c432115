#include "contract/nimi/ulid.h"

#include "base/clock.h"

#include <assert.h>
#include <sys/random.h>

#define BYTES 16

void ulid_new(char ret[static ULID_LEN + 1]) {
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    unsigned char bytes[BYTES];
    uint64_t now = (uint64_t)clock_unix_ms();
    ssize_t got = getrandom(bytes, sizeof(bytes), 0);
    assert(got == (ssize_t)sizeof(bytes));
    for (size_t i = 0; i < 6; i++) bytes[i] = (unsigned char)(now >> (40 - 8 * i));
    /* 26 digits of 5 bits are 130: the first two bits are none. */
    for (size_t i = 0; i < ULID_LEN; i++) {
        unsigned value = 0;
        for (size_t bit = 5 * i; bit < 5 * i + 5; bit++) {
            unsigned set = bit < 2 ? 0 : bytes[(bit - 2) / 8] >> (7 - (bit - 2) % 8) & 1;
            value = value << 1 | set;
        }
        ret[i] = digits[value];
    }
    ret[ULID_LEN] = '\0';
}
