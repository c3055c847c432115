#include "store/sum.h"

#include <endian.h>

#define SUM_MULTIPLIER UINT64_C(0x9FB21C651E98DF25) /* odd, so multiplying is invertible */

/* Four independent chains, because one would wait for its own multiplications. */
enum { LANES = 4 };
#define WORD_BYTES sizeof(uint64_t)

static uint64_t mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * SUM_MULTIPLIER;
    return state ^ (state >> 32);
}

static uint64_t word_at(const char *at, size_t len) {
    uint64_t word = 0;
    memcpy(&word, at, len);
    return le64toh(word);
}

uint64_t sum_of(uint64_t owner, struct str bytes) {
    uint64_t state = mix(mix(0, owner), bytes.len);
    uint64_t lanes[LANES] = {1, 2, 3, 4};
    const char *at = bytes.at, *end = at + bytes.len;
    for (; end - at >= (ptrdiff_t)(LANES * WORD_BYTES); at += LANES * WORD_BYTES) {
        for (size_t i = 0; i < LANES; i++) {
            lanes[i] = mix(lanes[i], word_at(at + i * WORD_BYTES, WORD_BYTES));
        }
    }
    for (size_t i = 0; i < LANES; i++) state = mix(state, lanes[i]);
    for (; end - at >= (ptrdiff_t)WORD_BYTES; at += WORD_BYTES) {
        state = mix(state, word_at(at, WORD_BYTES));
    }
    return end == at ? state : mix(state, word_at(at, (size_t)(end - at)));
}
