#include "client/gunzip.h"

#include "base/buf.h"
#include "helper/assert_str.h"

/* "hello", and "hello" with another member " you" after it. */
#define HELLO                                                                                  \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05" \
    "\x00\x00\x00"
#define YOU                                                                                    \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x53\xa8\xcc\x2f\x05\x00\x26\xd1\x5c\x18\x04\x00" \
    "\x00\x00"

struct reader {
    struct buf seen;
    bool stops; /* after each piece */
};

static bool on_bytes(struct str bytes, void *ctx) {
    struct reader *reader = ctx;
    assert_true(bytes.len > 0);
    buf_append(&reader->seen, bytes);
    return !reader->stops;
}

static bool go_to_the_end(struct gunzip *gunzip, struct err *e) {
    while (gunzip_waits(gunzip)) {
        if (!gunzip_go(gunzip, e)) return false;
    }
    return true;
}

static void read_cut(struct str bytes, size_t cut, bool stops, const char *expected) {
    struct err e;
    struct reader reader = {.stops = stops};
    buf_init(&reader.seen, MIB);
    struct gunzip *gunzip = gunzip_new(on_bytes, &reader);
    const struct str parts[] = {str_head(bytes, cut), str_skip(bytes, cut)};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct str part = exact_copy(parts[i]);
        assert_true(gunzip_feed(gunzip, part, &e));
        free((void *)(uintptr_t)part.at);
        assert_true(go_to_the_end(gunzip, &e));
    }
    assert_true(gunzip_whole(gunzip));
    assert_str(buf_str(&reader.seen), expected);
    gunzip_free(gunzip);
    buf_done(&reader.seen);
}

static void a_body_reads_the_same_however_it_is_cut_and_stopped(void **state) {
    (void)state;
    struct str one = STR(HELLO), two = STR(HELLO YOU), padded = STR(HELLO "\0\0\0\0");
    for (int stops = 0; stops <= 1; stops++) {
        for (size_t cut = 0; cut <= one.len; cut++) read_cut(one, cut, stops, "hello");
        for (size_t cut = 0; cut <= two.len; cut++) read_cut(two, cut, stops, "hello you");
        for (size_t cut = 0; cut <= padded.len; cut++) read_cut(padded, cut, stops, "hello");
    }
}

static void a_body_that_is_cut_short_is_not_whole(void **state) {
    (void)state;
    struct str one = STR(HELLO);
    for (size_t len = 1; len < one.len; len++) {
        struct err e;
        struct reader reader = {0};
        buf_init(&reader.seen, MIB);
        struct gunzip *gunzip = gunzip_new(on_bytes, &reader);
        assert_true(gunzip_feed(gunzip, str_head(one, len), &e));
        assert_false(gunzip_whole(gunzip));
        gunzip_free(gunzip);
        buf_done(&reader.seen);
    }
}

static void bytes_that_are_not_gzip_are_refused(void **state) {
    (void)state;
    const struct str cases[] = {STR("hello"), STR("\x1f\x8c"), STR("\x78\x9c\xcb\x48"),
                                STR("\x1f\x8b\x08\x00\0\0\0\0\0\x03\xff\xff\xff")};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct reader reader = {0};
        buf_init(&reader.seen, MIB);
        struct gunzip *gunzip = gunzip_new(on_bytes, &reader);
        assert_false(gunzip_feed(gunzip, cases[i], &e));
        assert_int_equal(e.code, ERR_UNAVAILABLE);
        gunzip_free(gunzip);
        buf_done(&reader.seen);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_reads_the_same_however_it_is_cut_and_stopped),
        cmocka_unit_test(a_body_that_is_cut_short_is_not_whole),
        cmocka_unit_test(bytes_that_are_not_gzip_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
