#include "client/head.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define NOW_MS INT64_C(784111777000) /* Sun, 06 Nov 1994 08:49:37 GMT */

/* Feed `text` line by line; how many heads were complete. */
static int feed(struct head *head, const char *text) {
    struct str rest = str_from(text);
    int complete = 0;
    head_done(head);
    *head = (struct head){.retry_after_ms = -1};
    while (rest.len) {
        struct str line = str_split(rest, '\n', &rest);
        complete += head_line(head, line, NOW_MS);
    }
    return complete;
}

static void a_head_says_what_callers_ask_for(void **state) {
    (void)state;
    struct head head = {0};
    assert_int_equal(feed(&head, "HTTP/2 429 \r\ncontent-type:  text/event-stream; a=b \r\n"
                                 "CONTENT-ENCODING: GZip\r\nLocation: /x\r\n"
                                 "Mcp-Session-Id: s-1\r\nretry-after: 2\r\nno field\r\n\r\n"),
                     1);
    assert_int_equal(head.status, 429);
    assert_str(head_content_type(&head), "text/event-stream; a=b");
    assert_str(head_session(&head), "s-1");
    assert_int_equal(head.coding, CODING_GZIP);
    assert_true(head.location);
    assert_int_equal(head.retry_after_ms, 2000);
    head_done(&head);
}

static void the_head_of_a_stored_object_describes_it(void **state) {
    (void)state;
    struct head head = {0};
    assert_int_equal(feed(&head, "HTTP/1.1 206 Partial Content\r\nETag: \"a-2\"\r\n"
                                 "Content-Range: bytes 0-9/44\r\n"
                                 "x-amz-bucket-region: eu-west-1\r\n"
                                 "X-Weir-Run-Id: 1882887048451325952\r\n"
                                 "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
                     1);
    assert_str(head_etag(&head), "\"a-2\"");
    assert_str(head_range(&head), "bytes 0-9/44");
    assert_str(head_region(&head), "eu-west-1");
    assert_str(head_run(&head), "1882887048451325952");
    assert_int_equal(head.date_ms, NOW_MS);
    assert_int_equal(feed(&head, "HTTP/1.1 200\r\nDate: soon\r\n\r\n"), 1);
    assert_str(head_etag(&head), "");
    assert_int_equal(head.date_ms, 0);
}

static void a_new_status_forgets_the_head_before(void **state) {
    (void)state;
    struct head head = {0};
    assert_int_equal(feed(&head, "HTTP/1.1 302 F\r\nLocation: /\r\nContent-Type: a\r\n"
                                 "Content-Encoding: br\r\nRetry-After: 1\r\n"
                                 "Mcp-Session-Id: s-1\r\n\r\n"
                                 "HTTP/1.1 200\r\n\r\n"),
                     2);
    assert_int_equal(head.status, 200);
    assert_str(head_content_type(&head), "");
    assert_str(head_session(&head), "");
    assert_int_equal(head.coding, CODING_NONE);
    assert_false(head.location);
    assert_int_equal(head.retry_after_ms, -1);
}

static void the_wait_is_read_in_every_form(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int64_t ms;
    } cases[] = {
        {"Retry-After: 0\r\n", 0},
        {"Retry-After: 120\r\n", 120000},
        {"Retry-After: 9223372036854775\r\n", INT64_MAX},
        {"Retry-After: 18446744073709551615\r\n", INT64_MAX},
        {"Retry-After: 18446744073709551616\r\n", -1},
        {"Retry-After: -1\r\n", -1},
        {"Retry-After: 1.5\r\n", -1},
        {"Retry-After:\r\n", -1},
        {"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 0},
        {"Retry-After: Sun, 06 Nov 1994 08:50:37 GMT\r\n", 60000},
        {"Retry-After: Sun, 06 Nov 1994 08:48:37 GMT\r\n", 0},
        {"Retry-After: Sunday, 06-Nov-94 08:49:38 GMT\r\n", 1000},
        {"Retry-After: Sun Nov  6 08:49:39 1994\r\n", 2000},
        {"Retry-After: Sun, 06 Nov 1994 08:49:38 GMT and more\r\n", -1},
        {"Retry-After: Sun, 06 Nov 1994\r\n", -1},
        {"Retry-After: soon, when the moon has risen over the hills and all is well again\r\n",
         -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct head head = {0};
        feed(&head, cases[i].line);
        if (head.retry_after_ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].line, (long long)head.retry_after_ms);
    }
}

static void codings_that_were_not_asked_for_are_known_as_such(void **state) {
    (void)state;
    static const struct {
        const char *lines;
        enum coding coding;
    } cases[] = {
        {"Content-Encoding: \r\n", CODING_NONE},
        {"Content-Encoding: identity\r\n", CODING_NONE},
        {"Content-Encoding: x-gzip\r\n", CODING_GZIP},
        {"Content-Encoding: deflate\r\n", CODING_UNKNOWN},
        {"Content-Encoding: gzip, gzip\r\n", CODING_UNKNOWN},
        {"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", CODING_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct head head = {0};
        feed(&head, cases[i].lines);
        assert_int_equal(head.coding, cases[i].coding);
    }
}

static void a_status_that_is_no_number_is_zero(void **state) {
    (void)state;
    static const char *const lines[] = {"HTTP/1.1\r\n", "HTTP/1.1 \r\n", "HTTP/1.1 2\r\n",
                                        "HTTP/1.1 2x0 OK\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct head head = {0};
        feed(&head, lines[i]);
        assert_int_equal(head.status, 0);
    }
}

static void a_content_type_that_is_too_long_is_not_said(void **state) {
    (void)state;
    char line[600];
    for (size_t len = 250; len < 260; len++) {
        struct head head = {0};
        snprintf(line, sizeof(line), "Content-Type: %0*d\r\n", (int)len, 1);
        head_line(&head, str_from(line), NOW_MS);
        assert_int_equal(head_content_type(&head).len, len <= 256 ? len : 0);
    }
}

static void a_session_may_have_any_length(void **state) {
    (void)state;
    static char line[20000];
    struct head head = {0};
    for (int len = 1; len < 19000; len += 1000) {
        snprintf(line, sizeof(line), "Mcp-Session-Id: %0*d\r\n", len, 1);
        head_line(&head, str_from(line), NOW_MS); /* the last one counts */
        assert_int_equal(head_session(&head).len, len);
    }
    head_done(&head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_says_what_callers_ask_for),
        cmocka_unit_test(the_head_of_a_stored_object_describes_it),
        cmocka_unit_test(a_new_status_forgets_the_head_before),
        cmocka_unit_test(the_wait_is_read_in_every_form),
        cmocka_unit_test(codings_that_were_not_asked_for_are_known_as_such),
        cmocka_unit_test(a_status_that_is_no_number_is_zero),
        cmocka_unit_test(a_session_may_have_any_length),
        cmocka_unit_test(a_content_type_that_is_too_long_is_not_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
