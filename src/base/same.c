#include "base/same.h"

/* Hide a value from the optimiser, which could otherwise prove the result early and stop. */
static uint64_t opaque(uint64_t value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}

bool same_bytes(const void *a, const void *b, size_t len) {
    const unsigned char *x = a, *y = b;
    uint64_t differences = 0;
    size_t at = 0;
    for (; at + 8 <= len; at += 8) {
        uint64_t eight_of_x, eight_of_y;
        memcpy(&eight_of_x, x + at, 8);
        memcpy(&eight_of_y, y + at, 8);
        differences = opaque(differences | (eight_of_x ^ eight_of_y));
    }
    for (; at < len; at++) differences = opaque(differences | (uint64_t)(x[at] ^ y[at]));
    return differences == 0;
}

bool same_secret(struct str given, struct str secret) {
    if (secret.len == 0) return false;
    uint64_t differences = given.len != secret.len;
    size_t at = 0;
    for (size_t i = 0; i < given.len; i++) {
        unsigned char mine = (unsigned char)secret.at[at], theirs = (unsigned char)given.at[i];
        differences = opaque(differences | (uint64_t)(mine ^ theirs));
        at = at + 1 < secret.len ? at + 1 : 0;
    }
    return differences == 0;
}
