/* varint: whole numbers in as few bytes as they need, seven bits a byte, lowest first.
 *
 * Memory   none.
 * Threads  any; values only.
 */
#ifndef WEIR_STORE_VARINT_H
#define WEIR_STORE_VARINT_H

#include "base/str.h"

#define VARINT_MAX_BYTES 10

/* Write `number` at `at`, which has room for VARINT_MAX_BYTES; returns the bytes used. */
static inline size_t varint_put(char *at, uint64_t number) {
    size_t len = 0;
    while (number >= 0x80) {
        at[len++] = (char)(number | 0x80);
        number >>= 7;
    }
    at[len++] = (char)number;
    return len;
}

/* Read a number from the front of *bytes and advance past it. False, without advancing, if it
 * is truncated or exceeds 64 bits. */
static inline bool varint_take(struct str *bytes, uint64_t *ret) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes->len && i < VARINT_MAX_BYTES; i++) {
        unsigned char byte = (unsigned char)bytes->at[i];
        if (i == VARINT_MAX_BYTES - 1 && byte > 1) return false;
        number |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte >= 0x80) continue;
        *bytes = str_skip(*bytes, i + 1);
        *ret = number;
        return true;
    }
    return false;
}

#endif
