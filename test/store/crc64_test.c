/* The checksum of packed rows: known values, the same in both ways of computing it, and every small
 * change is noticed. */
#include "store/crc64.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <stdlib.h>

#define LONGEST 700 /* several steps of 64 bytes, and every rest of one */

static void fill(char bytes[LONGEST]) {
    uint64_t state = 1;
    for (size_t i = 0; i < LONGEST; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        bytes[i] = (char)(state >> 56);
    }
}

static void the_sums_of_known_bytes_stay_what_they_are(void **state) {
    (void)state;
    char bytes[LONGEST];
    fill(bytes);
    assert_true(crc64_of(STR_EMPTY) == 0);
    assert_true(crc64_of(STR("123456789")) == UINT64_C(0xAE8B14860A799888));
    assert_true(crc64_of(str_of(bytes, LONGEST)) == UINT64_C(0x59CFD67BBF345552));
}

/* Bit by bit, as the polynomial says. */
static uint64_t slowly(struct str bytes) {
    uint64_t rest = ~UINT64_C(0);
    for (size_t i = 0; i < bytes.len; i++) {
        rest ^= (unsigned char)bytes.at[i];
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? UINT64_C(0x9A6C9329AC4BC9B5) : 0);
    }
    return ~rest;
}

static void all_ways_give_the_same(void **state) {
    (void)state;
    char bytes[LONGEST];
    fill(bytes);
    for (size_t len = 0; len <= LONGEST - 16; len++) {
        struct str some = str_of(bytes + len % 16, len); /* any alignment */
        assert_true(crc64_of(some) == slowly(some));
        assert_true(crc64_by_tables(some) == slowly(some));
    }
}

/* Change up to eight bytes and change them back. */
static void assert_noticed(char bytes[LONGEST], size_t len, size_t at, uint64_t change) {
    uint64_t good = crc64_of(str_of(bytes, len));
    for (int way = 0; way < 2; way++) {
        for (size_t i = 0; i < 8 && at + i < len; i++)
            bytes[at + i] = (char)(bytes[at + i] ^ (char)(change >> (8 * i)));
        if (way == 0) assert_true(crc64_of(str_of(bytes, len)) != good);
    }
    assert_true(crc64_of(str_of(bytes, len)) == good);
}

static void every_flipped_bit_and_every_changed_word_is_noticed(void **state) {
    (void)state;
    char bytes[LONGEST];
    fill(bytes);
    uint64_t change = 1;
    for (size_t len = 1; len <= LONGEST; len += 33) {
        for (size_t at = 0; at < len; at++) {
            for (int bit = 0; bit < 8; bit++)
                assert_noticed(bytes, len, at, UINT64_C(1) << bit);
            change = change * UINT64_C(6364136223846793005) + 1442695040888963407;
            assert_noticed(bytes, len, at, change | 1);
            assert_noticed(bytes, len, at, UINT64_C(0xFF));
        }
        assert_true(crc64_of(str_of(bytes, len)) != crc64_of(str_of(bytes, len - 1)));
    }
}

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

/* A flipped bit changes the sum by what depends on its place alone, in another way at each place of
 * the largest row; so two of them never cancel each other. */
static void any_two_flipped_bits_of_a_row_are_noticed(void **state) {
    (void)state;
    enum { BITS = 8 * 64 * 1024 };
    uint64_t *sums = mem_alloc(BITS * sizeof(*sums)), rest = 1;
    /* A flipped bit leaves x^n behind, n the bits that follow it. */
    for (size_t i = 0; i < BITS; i++) {
        sums[i] = rest;
        rest = rest >> 1 ^ (rest & 1 ? UINT64_C(0x9A6C9329AC4BC9B5) : 0);
    }
    qsort(sums, BITS, sizeof(*sums), compare);
    for (size_t i = 1; i < BITS; i++) assert_true(sums[i] != sums[i - 1]);
    free(sums);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sums_of_known_bytes_stay_what_they_are),
        cmocka_unit_test(all_ways_give_the_same),
        cmocka_unit_test(every_flipped_bit_and_every_changed_word_is_noticed),
        cmocka_unit_test(any_two_flipped_bits_of_a_row_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
