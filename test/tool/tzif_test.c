#include "tool/tzif.h"

#include "helper/assert_str.h"

#include "base/buf.h"

#define Z4 "\0\0\0\0"

/* No times, one kind of offset 0. */
#define EMPTY_BLOCK                                                                            \
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" Z4 Z4 Z4 Z4 "\0\0\0\1\0\0\0\4" Z4 "\0\0"             \
    "LMT\0"

/* Before 1000: +60 s; from 1000: +3600 s; from 2^33: +7200 s; then as the rule says. */
static const char two_times[] =
    EMPTY_BLOCK "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" Z4 Z4 Z4 "\0\0\0\2\0\0\0\3\0\0\0\4"
                "\0\0\0\0\0\0\x03\xE8"
                "\0\0\0\2\0\0\0\0"
                "\1\2"
                "\0\0\0\x3C\0\0"
                "\0\0\x0E\x10\0\0"
                "\0\0\x1C\x20\0\0"
                "LMT\0"
                "\nJST-9\n";

static struct str sample(void) {
    return str_of(two_times, sizeof two_times - 1);
}

static bool reads(struct str bytes, struct err *e) {
    struct tzif zone;
    struct str copy = exact_copy(bytes);
    bool read = tzif_read(copy, &zone, e);
    if (read) (void)tzif_offset(&zone, 0);
    free((void *)copy.at);
    return read;
}

static void an_offset_holds_from_its_time_on(void **state) {
    (void)state;
    struct err e;
    struct tzif zone;
    if (!tzif_read(sample(), &zone, &e)) fail_msg("%s", e.text);
    assert_int_equal(tzif_offset(&zone, INT32_MIN), 60);
    assert_int_equal(tzif_offset(&zone, 999), 60);
    assert_int_equal(tzif_offset(&zone, 1000), 3600);
    assert_int_equal(tzif_offset(&zone, (INT64_C(1) << 33) - 1), 3600);
}

static void after_the_last_time_the_rule_holds(void **state) {
    (void)state;
    struct err e;
    struct tzif zone;
    assert_true(tzif_read(sample(), &zone, &e));
    assert_int_equal(tzif_offset(&zone, INT64_C(1) << 33), 9 * 3600);
}

static void without_a_rule_the_last_offset_goes_on(void **state) {
    (void)state;
    struct err e;
    struct tzif zone;
    struct buf bytes;
    buf_init(&bytes, KIB);
    buf_append(&bytes, str_head(sample(), sample().len - 6));
    buf_append(&bytes, STR("\n"));
    assert_true(tzif_read(buf_str(&bytes), &zone, &e));
    assert_int_equal(tzif_offset(&zone, INT64_C(1) << 34), 7200);
    buf_done(&bytes);
}

static void an_old_file_has_one_block(void **state) {
    (void)state;
    struct err e;
    struct tzif zone;
    char old[] = EMPTY_BLOCK;
    old[4] = '\0';
    assert_true(tzif_read(str_of(old, sizeof old - 1), &zone, &e));
    assert_int_equal(tzif_offset(&zone, 0), 0);
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct err e;
    for (size_t cut = 0; cut < sample().len; cut++) {
        assert_false(reads(str_head(sample(), cut), &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
    assert_true(reads(sample(), &e));
}

/* The sample with one byte changed; the byte is found after the second header. */
static void assert_refused(size_t at, char byte, enum err_code code) {
    struct err e;
    char bytes[sizeof two_times];
    memcpy(bytes, two_times, sizeof bytes);
    bytes[at] = byte;
    assert_false(reads(str_of(bytes, sizeof bytes - 1), &e));
    assert_int_equal(e.code, code);
}

static void what_does_not_fit_together_is_refused(void **state) {
    (void)state;
    size_t second = sizeof EMPTY_BLOCK - 1, body = second + 44;
    assert_refused(0, 'x', ERR_MALFORMED);
    assert_refused(second, 'x', ERR_MALFORMED);
    assert_refused(second + 20 + 12, '\xFF', ERR_MALFORMED); /* 2^32 times */
    assert_refused(second + 20 + 19, '\0', ERR_MALFORMED);   /* no kinds */
    assert_refused(body + 11, '\0', ERR_MALFORMED);          /* the second time is the first */
    assert_refused(body + 16, '\3', ERR_MALFORMED);          /* a fourth kind */
    assert_refused(body + 18, '\x7F', ERR_MALFORMED);        /* an offset of 60 years */
    assert_refused(sample().len - 2, 'x', ERR_MALFORMED);    /* no rule */
}

static void leap_seconds_are_not_understood(void **state) {
    (void)state;
    struct err e;
    struct buf bytes;
    buf_init(&bytes, KIB);
    buf_append(&bytes, str_head(sample(), sample().len - 7));
    buf_append(&bytes, STR("\0\0\0\0\0\0\0\1\0\0\0\1\n\n"));
    bytes.at[sizeof EMPTY_BLOCK - 1 + 20 + 11] = '\1';
    assert_false(reads(buf_str(&bytes), &e));
    assert_int_equal(e.code, ERR_UNIMPLEMENTED);
    buf_done(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offset_holds_from_its_time_on),
        cmocka_unit_test(after_the_last_time_the_rule_holds),
        cmocka_unit_test(without_a_rule_the_last_offset_goes_on),
        cmocka_unit_test(an_old_file_has_one_block),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(leap_seconds_are_not_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
