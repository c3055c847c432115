/* Compressing and decompressing: never past a limit, and every damage is detected (G3). */
#include "rpc/gzip.h"

#include "helper/assert_str.h"

static void inflates_to(struct str bytes, size_t max_bytes, struct str expected) {
    struct buf out;
    struct err e;
    struct str copy = exact_copy(bytes);
    buf_init(&out, max_bytes);
    assert_true(gzip_inflate(copy, &out, &e));
    assert_true(str_equal(buf_str(&out), expected));
    buf_done(&out);
    free((void *)(uintptr_t)copy.at);
}

static void fails_with(struct str bytes, size_t max_bytes, enum err_code code) {
    struct buf out;
    struct err e;
    struct str copy = exact_copy(bytes);
    buf_init(&out, max_bytes);
    assert_false(gzip_inflate(copy, &out, &e));
    assert_int_equal(e.code, code);
    assert_true(out.len <= max_bytes && out.room <= max_bytes);
    buf_done(&out);
    free((void *)(uintptr_t)copy.at);
}

/* Text that neither repeats at once nor is noise. */
static void fill(char *at, size_t len) {
    unsigned seed = 1;
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1103515245u + 12345u;
        at[i] = (char)('a' + (seed >> 16) % 8);
    }
}

static void deflated_bytes_inflate_to_the_same(void **state) {
    (void)state;
    static char text[300 * 1024];
    static const size_t lens[] = {200, 201, 1000, 16384, 16385, 65536, sizeof(text)};
    fill(text, sizeof(text));
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct buf out;
        buf_init(&out, 1 * MIB);
        buf_append(&out, STR("before"));
        assert_true(gzip_deflate(str_of(text, lens[i]), &out));
        assert_true(out.len - 6 < lens[i]);
        struct str squeezed = str_skip(buf_str(&out), 6);
        inflates_to(squeezed, 1 * MIB, str_of(text, lens[i]));
        inflates_to(squeezed, lens[i], str_of(text, lens[i]));
        fails_with(squeezed, lens[i] - 1, ERR_TOO_LARGE);
        fails_with(squeezed, lens[i] / 2, ERR_TOO_LARGE);
        fails_with(squeezed, 1, ERR_TOO_LARGE);
        fails_with(squeezed, 0, ERR_TOO_LARGE);
        buf_done(&out);
    }
}

static void text_that_would_not_get_shorter_is_not_deflated(void **state) {
    (void)state;
    static const char *const texts[] = {"", "x", "ab", "token", "a sentence of some words"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct buf out;
        buf_init(&out, 1 * KIB);
        buf_append(&out, STR("before"));
        assert_false(gzip_deflate(str_from(texts[i]), &out));
        assert_str(buf_str(&out), "before");
        buf_done(&out);
    }
}

/* "hello", as two other compressors write it: without a name, and with one. */
static const unsigned char hello[] = {0x1f, 0x8b, 8,    0,    0,    0,    0, 0, 0,
                                      3,    0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86,
                                      0xa6, 0x10, 0x36, 5,    0,    0,    0};
static const unsigned char named[] = {0x1f, 0x8b, 8,    8,    0,    0,    0,    0,    2,
                                      0xff, 'h',  0,    0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7,
                                      0,    0x86, 0xa6, 0x10, 0x36, 5,    0,    0,    0};
static const unsigned char empty[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3,
                                      3,    0,    0, 0, 0, 0, 0, 0, 0, 0};

#define BYTES(array) str_of(array, sizeof(array))

static void other_writers_are_understood(void **state) {
    (void)state;
    inflates_to(BYTES(hello), 1 * KIB, STR("hello"));
    inflates_to(BYTES(named), 1 * KIB, STR("hello"));
    inflates_to(BYTES(empty), 1 * KIB, STR(""));
    inflates_to(BYTES(empty), 0, STR(""));
}

static void members_in_a_row_are_one_message(void **state) {
    (void)state;
    struct buf row;
    buf_init(&row, 1 * KIB);
    buf_append(&row, BYTES(hello));
    buf_append(&row, BYTES(empty));
    buf_append(&row, BYTES(named));
    inflates_to(buf_str(&row), 1 * KIB, STR("hellohello"));
    inflates_to(buf_str(&row), 10, STR("hellohello"));
    fails_with(buf_str(&row), 9, ERR_TOO_LARGE);
    buf_done(&row);
}

static void every_truncation_is_an_error(void **state) {
    (void)state;
    for (size_t len = 0; len < sizeof(hello); len++)
        fails_with(str_of(hello, len), 1 * KIB, ERR_INTERNAL);
    for (size_t len = 0; len < sizeof(named); len++)
        fails_with(str_of(named, len), 1 * KIB, ERR_INTERNAL);
}

static void damage_is_an_error(void **state) {
    (void)state;
    /* Magic, method, reserved flags, the data, its sum and its length; not the time and the
     * system, which mean nothing. */
    static const size_t places[] = {0, 1, 2, 10, 13, 17, 18, 19, 20, 21, 22, 23, 24};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        unsigned char bytes[sizeof(hello)];
        memcpy(bytes, hello, sizeof(hello));
        bytes[places[i]] ^= 0x55;
        fails_with(BYTES(bytes), 1 * KIB, ERR_INTERNAL);
    }
    unsigned char longer[sizeof(hello) + 1] = {0};
    memcpy(longer, hello, sizeof(hello));
    fails_with(BYTES(longer), 1 * KIB, ERR_INTERNAL);
    fails_with(STR("plain text"), 1 * KIB, ERR_INTERNAL);
}

/* A gibibyte of zeros fits a megabyte, and that again: whatever comes out, it stops. */
static void a_bomb_stops_at_the_limit(void **state) {
    (void)state;
    static char zeros[16 * 1024 * 1024];
    struct buf once;
    buf_init(&once, 1 * MIB);
    assert_true(gzip_deflate(str_of(zeros, sizeof(zeros)), &once));
    fails_with(buf_str(&once), 4 * MIB, ERR_TOO_LARGE);
    fails_with(buf_str(&once), 4 * KIB, ERR_TOO_LARGE);
    struct buf row;
    buf_init(&row, 8 * MIB);
    for (int i = 0; i < 64; i++) buf_append(&row, buf_str(&once)); /* 1 GiB */
    fails_with(buf_str(&row), 4 * MIB, ERR_TOO_LARGE);
    buf_done(&row);
    buf_done(&once);
}

int main(void) {
#define TEST(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        TEST(deflated_bytes_inflate_to_the_same),
        TEST(text_that_would_not_get_shorter_is_not_deflated),
        TEST(other_writers_are_understood),
        TEST(members_in_a_row_are_one_message),
        TEST(every_truncation_is_an_error),
        TEST(damage_is_an_error),
        TEST(a_bomb_stops_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
