/* sixteen: look at sixteen bytes at once.
 *
 * Both compilers keep the type in one register and compare all bytes of it in one step, on any
 * machine; a comparison gives 0xFF for each byte that it holds for.
 *
 *     while (at + 16 <= len && !sixteen_any(sixteen_at(text + at) == '"')) at += 16;
 *
 * Memory   none.
 * Threads  any.
 */
#ifndef WEIR_BASE_SIXTEEN_H
#define WEIR_BASE_SIXTEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef unsigned char sixteen __attribute__((vector_size(16)));

/* The bytes from `at` on. */
static inline sixteen sixteen_at(const char *at) {
    sixteen bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return bytes;
}

/* The lesser of each pair of bytes. */
static inline sixteen sixteen_least(sixteen a, sixteen b) {
#ifdef __SSE2__
    return (sixteen)_mm_min_epu8((__m128i)a, (__m128i)b);
#else
    sixteen less = (sixteen)(a < b);
    return (a & less) | (b & ~less);
#endif
}

/* The high bit of each byte, the first one lowest. Only some machines have this in one step. */
#ifdef __SSE2__
#define SIXTEEN_BITS 1
static inline unsigned sixteen_bits(sixteen bytes) {
    typedef char signs __attribute__((vector_size(16)));
    return (unsigned)__builtin_ia32_pmovmskb128((signs)bytes);
}
#endif

/* Whether any byte has its high bit set, as those have for which a comparison holds. */
static inline bool sixteen_any(sixteen bytes) {
#ifdef SIXTEEN_BITS
    return sixteen_bits(bytes) != 0;
#else
    typedef uint64_t words __attribute__((vector_size(16)));
    words both = (words)bytes;
    return ((both[0] | both[1]) & UINT64_C(0x8080808080808080)) != 0;
#endif
}

/* The index of the first byte with its high bit set; 16 if there is none. */
static inline size_t sixteen_first(sixteen bytes) {
#ifdef SIXTEEN_BITS
    return (size_t)__builtin_ctz(sixteen_bits(bytes) | 1u << 16);
#else
    size_t at = 0;
    while (at < sizeof(bytes) && bytes[at] < 0x80) at++;
    return at;
#endif
}

#endif
