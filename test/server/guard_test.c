/* The guard alone: where sections end, with the bytes cut anywhere. The table of raw requests
 * in http1_test.c has what it refuses. */
#include "server/guard.h"

#include "server/server.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it. */
#include <cmocka.h>

static const struct str head = STR_INIT("POST / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n");
static const struct str chunks = STR_INIT("5;a=b\r\nhello\r\nA\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
                                          "00\r\nx: y\r\n\r\n");

/* Scan in two pieces; where the section ended, or SIZE_MAX. */
static size_t scan(struct guard *guard, struct str bytes, size_t cut) {
    size_t used, more;
    enum guard_verdict verdict = guard_scan(guard, str_head(bytes, cut), &used);
    if (verdict == GUARD_END) return used;
    if (verdict != GUARD_MORE) return SIZE_MAX;
    assert_int_equal(used, cut < bytes.len ? cut : bytes.len);
    verdict = guard_scan(guard, str_skip(bytes, cut), &more);
    return verdict == GUARD_END ? used + more : SIZE_MAX;
}

static void a_header_section_ends_at_the_same_byte_however_it_is_cut(void **state) {
    (void)state;
    for (size_t cut = 0; cut <= head.len; cut++) {
        struct guard guard;
        guard_head(&guard, &server_limits_default);
        assert_false(guard_began(&guard));
        assert_int_equal(scan(&guard, head, cut), head.len);
        assert_true(guard_began(&guard));
    }
}

static void chunks_end_at_the_same_byte_however_they_are_cut(void **state) {
    (void)state;
    struct str with_next = STR("5;a=b\r\nhello\r\nA\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
                               "00\r\nx: y\r\n\r\nGET ");
    for (size_t cut = 0; cut <= with_next.len; cut++) {
        struct guard guard;
        guard_head(&guard, &server_limits_default);
        guard_chunks(&guard);
        assert_int_equal(scan(&guard, with_next, cut), chunks.len);
    }
}

static void no_prefix_is_a_section(void **state) {
    (void)state;
    for (size_t len = 0; len < head.len; len++) {
        struct guard guard;
        size_t used;
        guard_head(&guard, &server_limits_default);
        assert_int_equal(guard_scan(&guard, str_head(head, len), &used), GUARD_MORE);
    }
    for (size_t len = 0; len < chunks.len; len++) {
        struct guard guard;
        size_t used;
        guard_head(&guard, &server_limits_default);
        guard_chunks(&guard);
        assert_int_equal(guard_scan(&guard, str_head(chunks, len), &used), GUARD_MORE);
    }
}

/* Where the verdict fell, and which; bytes are passed `step` at a time. */
static size_t judged(struct guard *guard, struct str bytes, size_t step,
                     enum guard_verdict *ret) {
    size_t at = 0, used;
    *ret = GUARD_MORE;
    while (at < bytes.len && *ret == GUARD_MORE) {
        *ret = guard_scan(guard, str_head(str_skip(bytes, at), step), &used);
        at += used;
    }
    return at;
}

static void any_byte_anywhere_is_judged_the_same_alone_and_in_a_run(void **state) {
    (void)state;
    struct str fine = STR("POST /a/path?with=a+query HTTP/1.1\r\n"
                          "Host: a\r\nX_A-Name-of_many-Bytes.1: and a value of many bytes\r\n"
                          "y:\r\n\r\n");
    char bytes[160];
    assert_true(fine.len <= sizeof(bytes));
    for (size_t at = 0; at < fine.len; at++) {
        for (int byte = 0; byte < 256; byte++) {
            struct guard at_once, apart;
            enum guard_verdict verdict, verdict_apart;
            memcpy(bytes, fine.at, fine.len);
            bytes[at] = (char)byte;
            guard_head(&at_once, &server_limits_default);
            guard_head(&apart, &server_limits_default);
            struct str section = str_of(bytes, fine.len);
            size_t used = judged(&at_once, section, section.len, &verdict);
            size_t used_apart = judged(&apart, section, 1, &verdict_apart);
            if (used != used_apart || verdict != verdict_apart) fail_msg("%zu %d", at, byte);
        }
    }
}

static void a_limit_is_reached_at_the_same_byte_alone_and_in_a_run(void **state) {
    (void)state;
    struct str section = STR("GET /a/target/of/more/bytes/than/are/allowed/for/it HTTP/1.1\r\n"
                             "host: a\r\nname-of-many-bytes: a value of many bytes\r\n\r\n");
    for (size_t max = 0; max <= section.len; max++) {
        struct server_limits limits = server_limits_default;
        limits.target_max_bytes = limits.fields_max_bytes = max;
        struct guard at_once, apart;
        enum guard_verdict verdict, verdict_apart;
        guard_head(&at_once, &limits);
        guard_head(&apart, &limits);
        size_t used = judged(&at_once, section, section.len, &verdict);
        size_t used_apart = judged(&apart, section, 1, &verdict_apart);
        if (used != used_apart || verdict != verdict_apart) fail_msg("%zu", max);
    }
}

static void every_limit_can_be_zero(void **state) {
    (void)state;
    const struct server_limits none = {0};
    struct guard guard;
    size_t used;
    guard_head(&guard, &none);
    assert_int_equal(guard_scan(&guard, head, &used), GUARD_FIELDS_TOO_LARGE);
    struct str target = STR("GET /a-target-longer-than-method-and-version-need HTTP/1.1\r\n");
    guard_head(&guard, &none);
    assert_int_equal(guard_scan(&guard, target, &used), GUARD_TARGET_TOO_LONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_section_ends_at_the_same_byte_however_it_is_cut),
        cmocka_unit_test(chunks_end_at_the_same_byte_however_they_are_cut),
        cmocka_unit_test(no_prefix_is_a_section),
        cmocka_unit_test(any_byte_anywhere_is_judged_the_same_alone_and_in_a_run),
        cmocka_unit_test(a_limit_is_reached_at_the_same_byte_alone_and_in_a_run),
        cmocka_unit_test(every_limit_can_be_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
