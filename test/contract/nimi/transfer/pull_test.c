#include "contract/nimi/transfer/pull.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <stdio.h>
#include <stdlib.h>

static const struct str whole = STR_INIT(
    "{\"status\":\"pulling manifest\"}\n"
    "{\"status\":\"pulling aa\",\"digest\":\"sha256:aa\",\"total\":100}\r\n"
    "\n"
    "{\"status\":\"pulling aa\",\"digest\":\"sha256:aa\",\"total\":100,\"completed\":40}\n"
    "{\"status\":\"pulling bb\",\"digest\":\"sha256:bb\",\"total\":50,\"completed\":50}\n"
    "{\"status\":\"pulling aa\",\"digest\":\"sha256:aa\",\"total\":100,\"completed\":1e2}\n"
    "{\"status\":\"verifying sha256 digest\"}\n"
    "{\"status\":\"success\"}\n");

static void an_answer_is_summed_over_its_layers(void **state) {
    (void)state;
    struct pull pull;
    struct err e;
    pull_init(&pull);
    size_t upto = str_find(whole, STR("{\"status\":\"verifying"));
    assert_true(pull_feed(&pull, str_head(whole, upto), &e));
    assert_int_equal(pull.outcome, PULL_GOES_ON);
    assert_string_equal(pull.text, "pulling aa");
    assert_int_equal(pull.received, 150);
    assert_int_equal(pull.total, 150);
    assert_true(pull_feed(&pull, str_skip(whole, upto), &e));
    assert_int_equal(pull.outcome, PULL_SUCCEEDED);
    assert_true(pull_end(&pull, &e));
    pull_done(&pull);
}

static void an_answer_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    for (size_t cut = 0; cut <= whole.len; cut++) {
        struct pull pull;
        struct err e;
        pull_init(&pull);
        assert_true(pull_feed(&pull, str_head(whole, cut), &e));
        if (cut + 1 < whole.len) assert_int_equal(pull.outcome, PULL_GOES_ON);
        assert_true(pull_feed(&pull, str_skip(whole, cut), &e));
        assert_true(pull_end(&pull, &e));
        assert_int_equal(pull.outcome, PULL_SUCCEEDED);
        assert_int_equal(pull.received, 150);
        pull_done(&pull);
    }
}

/* One that lacks only its last LF is whole; any other is not. */
static void every_truncation_is_refused(void **state) {
    (void)state;
    for (size_t cut = 0; cut + 1 < whole.len; cut++) {
        struct pull pull;
        struct err e;
        pull_init(&pull);
        assert_true(pull_feed(&pull, str_head(whole, cut), &e));
        assert_false(pull_end(&pull, &e));
        assert_true(e.code == ERR_UNAVAILABLE || e.code == ERR_MALFORMED);
        pull_done(&pull);
    }
}

static void what_cannot_be_true_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *why;
    } wrong[] = {
        {"hello", "JSON"},
        {"[]", "neither a status nor an error"},
        {"{}", "neither a status nor an error"},
        {"{\"status\":5}", "neither a status nor an error"},
        {"{\"status\":\"x\",\"digest\":7}", "a digest is no text"},
        {"{\"status\":\"x\",\"digest\":\"a\",\"total\":-1}", "no number of bytes"},
        {"{\"status\":\"x\",\"digest\":\"a\",\"total\":1.5}", "no number of bytes"},
        {"{\"status\":\"x\",\"digest\":\"a\",\"total\":1e99}", "no number of bytes"},
        {"{\"status\":\"x\",\"digest\":\"a\",\"total\":\"9\"}", "no number of bytes"},
        {"{\"status\":\"x\",\"digest\":\"a\",\"completed\":1}", "more bytes have come"},
        {"{\"status\":\"x\",\"digest\":\"a\",\"total\":1,\"completed\":2}",
         "more bytes have come"},
        {"{\"status\":[[[[[[]]]]]]}", "JSON"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct pull pull;
        struct err e;
        pull_init(&pull);
        assert_true(pull_feed(&pull, str_from(wrong[i].line), &e));
        assert_false(pull_feed(&pull, STR("\n"), &e));
        if (!strstr(e.text, wrong[i].why)) fail_msg("%s: %s", wrong[i].line, e.text);
        pull_done(&pull);
    }
}

static void the_servers_own_error_is_kept_and_cut(void **state) {
    (void)state;
    struct pull pull;
    struct err e;
    struct buf line;
    buf_init(&line, PULL_LINE_MAX_BYTES);
    buf_append(&line, STR("{\"error\":\""));
    for (size_t i = 0; i < PULL_TEXT_BYTES; i++) buf_append(&line, STR("\xC3\xA4"));
    buf_append(&line, STR("\"}\n{\"status\":\"success\"}\nand more\n"));
    pull_init(&pull);
    assert_true(pull_feed(&pull, buf_str(&line), &e));
    assert_true(pull_end(&pull, &e));
    assert_int_equal(pull.outcome, PULL_FAILED); /* what follows it is not read */
    assert_int_equal(strlen(pull.text), (PULL_TEXT_BYTES - 1) / 2 * 2); /* whole characters */
    pull_done(&pull);
    buf_done(&line);
}

static void lines_and_layers_are_bounded(void **state) {
    (void)state;
    struct pull pull;
    struct err e;
    char *bytes = mem_alloc(PULL_LINE_MAX_BYTES + 1);
    memset(bytes, ' ', PULL_LINE_MAX_BYTES + 1);
    pull_init(&pull);
    assert_false(pull_feed(&pull, str_of(bytes, PULL_LINE_MAX_BYTES + 1), &e) &&
                 pull_feed(&pull, str_of(bytes, PULL_LINE_MAX_BYTES + 1), &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    pull_done(&pull);
    free(bytes);

    pull_init(&pull);
    for (size_t i = 0; i <= PULL_LAYERS_MAX; i++) {
        char line[100];
        snprintf(line, sizeof(line), "{\"status\":\"x\",\"digest\":\"%zu\",\"total\":1}\n", i);
        assert_int_equal(pull_feed(&pull, str_from(line), &e), i < PULL_LAYERS_MAX);
    }
    assert_int_equal(e.code, ERR_TOO_LARGE);
    assert_int_equal(pull.total, PULL_LAYERS_MAX);
    pull_done(&pull);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    struct pull pull;
    struct err e;
    pull_init(&pull);
    assert_true(pull_feed(
        &pull, STR("{\"status\":\"x\",\"digest\":\"a\",\"total\":9223372036854775807}\n"), &e));
    assert_false(
        pull_feed(&pull, STR("{\"status\":\"x\",\"digest\":\"b\",\"total\":1}\n"), &e));
    assert_int_equal(e.code, ERR_MALFORMED);
    pull_done(&pull);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_summed_over_its_layers),
        cmocka_unit_test(an_answer_reads_the_same_however_it_is_cut),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_cannot_be_true_is_refused),
        cmocka_unit_test(the_servers_own_error_is_kept_and_cut),
        cmocka_unit_test(lines_and_layers_are_bounded),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
