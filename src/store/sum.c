#include "store/sum.h"

#include <endian.h>

#define SUM_MULTIPLIER UINT64_C(0x9FB21C651E98DF25) /* odd, so multiplying can be undone */

static uint64_t mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * SUM_MULTIPLIER;
    return state ^ (state >> 32);
}

uint64_t sum_of(uint64_t owner, struct str bytes) {
    uint64_t state = mix(mix(0, owner), bytes.len), word;
    for (; bytes.len >= sizeof(word); bytes = str_skip(bytes, sizeof(word))) {
        memcpy(&word, bytes.at, sizeof(word));
        state = mix(state, le64toh(word));
    }
    word = 0;
    if (bytes.len) memcpy(&word, bytes.at, bytes.len);
    return mix(state, le64toh(word));
}
