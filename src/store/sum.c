#include "store/sum.h"

#include <endian.h>

#define SUM_MULTIPLIER UINT64_C(0x9FB21C651E98DF25) /* odd, so multiplying is invertible */

/* Four independent chains, a to d, because one would wait for its own multiplications. */
enum { LANES = 4 };
#define WORD_BYTES sizeof(uint64_t)

static inline uint64_t mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * SUM_MULTIPLIER;
    return state ^ (state >> 32);
}

static inline uint64_t word_at(const char *at, size_t len) {
    uint64_t word = 0;
    memcpy(&word, at, len);
    return le64toh(word);
}

uint64_t sum_of(uint64_t owner, struct str bytes) {
    uint64_t state = mix(mix(0, owner), bytes.len);
    uint64_t a = 1, b = 2, c = 3, d = 4;
    const char *at = bytes.at, *end = at + bytes.len;
    for (; end - at >= (ptrdiff_t)(LANES * WORD_BYTES); at += LANES * WORD_BYTES) {
        a = mix(a, word_at(at, WORD_BYTES));
        b = mix(b, word_at(at + WORD_BYTES, WORD_BYTES));
        c = mix(c, word_at(at + 2 * WORD_BYTES, WORD_BYTES));
        d = mix(d, word_at(at + 3 * WORD_BYTES, WORD_BYTES));
    }
    state = mix(mix(mix(mix(state, a), b), c), d);
    for (; end - at >= (ptrdiff_t)WORD_BYTES; at += WORD_BYTES) {
        state = mix(state, word_at(at, WORD_BYTES));
    }
    return end == at ? state : mix(state, word_at(at, (size_t)(end - at)));
}
