#include "store/crc64.h"

#include <endian.h>
#include <pthread.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define POLYNOMIAL UINT64_C(0x9A6C9329AC4BC9B5) /* reflected */

/* --- by tables: eight bytes a step --------------------------------------------------------- */

enum { SLICES = 8 };

/* tables[n][byte]: the remainder of the byte when n bytes of zero follow it. */
static uint64_t tables[SLICES][256];

static void make_tables(void) {
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = rest >> 1 ^ (rest & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = rest;
    }
    for (int n = 1; n < SLICES; n++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint64_t before = tables[n - 1][byte];
            tables[n][byte] = before >> 8 ^ tables[0][before & 0xFF];
        }
    }
}

static void have_tables(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_tables);
}

static uint64_t word_at(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

static uint64_t go_on(uint64_t rest, struct str bytes) {
    const char *at = bytes.at, *end = at + bytes.len;
    for (; end - at >= SLICES; at += SLICES) {
        uint64_t word = rest ^ word_at(at);
        rest = 0;
        for (int i = 0; i < SLICES; i++) rest ^= tables[SLICES - 1 - i][word >> (8 * i) & 0xFF];
    }
    for (; at < end; at++) rest = rest >> 8 ^ tables[0][(rest ^ (unsigned char)*at) & 0xFF];
    return rest;
}

uint64_t crc64_by_tables(struct str bytes) {
    have_tables();
    return ~go_on(~UINT64_C(0), bytes);
}

/* --- by multiplying: 64 bytes a step ------------------------------------------------------- */

#ifdef __x86_64__

#define STEP_BYTES 64
#define TARGET __attribute__((target("avx,pclmul")))

/* The remainder of 128 bits when so many bits follow them: x^(n + 63) for the lower and x^(n - 1)
 * for the higher half, modulo the polynomial, reflected. */
#define FOLD_512 _mm_set_epi64x(0x62242240ACE5045A, 0x0C32CDB31E18A84A)
#define FOLD_128 _mm_set_epi64x(0x21E9761E252621AC, (long long)0xEADC41FD2BA3D420)

TARGET static inline __m128i fold(__m128i rest, __m128i by, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(rest, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(rest, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

TARGET static inline __m128i load(const char *at) {
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* `bytes` has at least STEP_BYTES. The 128 bits that are left behave like the bytes that they stand
 * for, so the tables finish them and the end. */
TARGET static uint64_t multiply(struct str bytes) {
    const char *at = bytes.at, *end = at + bytes.len;
    const __m128i by = FOLD_512, by_next = FOLD_128;
    __m128i a = _mm_xor_si128(load(at), _mm_set_epi64x(0, -1)); /* begun with all ones */
    __m128i b = load(at + 16), c = load(at + 32), d = load(at + 48);
    for (at += STEP_BYTES; end - at >= STEP_BYTES; at += STEP_BYTES) {
        a = fold(a, by, load(at));
        b = fold(b, by, load(at + 16));
        c = fold(c, by, load(at + 32));
        d = fold(d, by, load(at + 48));
    }
    d = fold(fold(fold(a, by_next, b), by_next, c), by_next, d);
    char left[16];
    _mm_storeu_si128((__m128i *)(void *)left, d);
    uint64_t rest = go_on(0, str_of(left, sizeof(left)));
    return ~go_on(rest, str_of(at, (size_t)(end - at)));
}

static bool can_multiply(void) {
    return __builtin_cpu_supports("avx") && __builtin_cpu_supports("pclmul");
}

uint64_t crc64_of(struct str bytes) {
    if (bytes.len < STEP_BYTES || !can_multiply()) return crc64_by_tables(bytes);
    have_tables();
    return multiply(bytes);
}

#else

uint64_t crc64_of(struct str bytes) {
    return crc64_by_tables(bytes);
}

#endif
