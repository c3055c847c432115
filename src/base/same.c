#include "base/same.h"

/* Hides a value from the optimiser, which could otherwise see that nothing can change the
 * answer any more and stop early. */
static unsigned opaque(unsigned value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}

bool same_bytes(const void *a, const void *b, size_t len) {
    const unsigned char *x = a, *y = b;
    unsigned differences = 0;
    for (size_t i = 0; i < len; i++)
        differences = opaque(differences | (unsigned)(x[i] ^ y[i]));
    return differences == 0;
}

bool same_secret(struct str given, struct str secret) {
    if (secret.len == 0) return false;
    unsigned differences = given.len != secret.len;
    size_t at = 0;
    for (size_t i = 0; i < given.len; i++) {
        unsigned char mine = (unsigned char)secret.at[at], theirs = (unsigned char)given.at[i];
        differences = opaque(differences | (unsigned)(mine ^ theirs));
        at = at + 1 < secret.len ? at + 1 : 0;
    }
    return differences == 0;
}
