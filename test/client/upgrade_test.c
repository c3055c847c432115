/* The opening handshake of a WebSocket, as a client asks and checks. */
#include "client/upgrade.h"

#include "base/units.h"
#include "helper/assert_str.h"

#include <stdio.h>

#define KEY "dGhlIHNhbXBsZSBub25jZQ==" /* RFC 6455 1.3 */
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define FIRST "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE "Upgrade: websocket\r\n"
#define CONNECTION "Connection: Upgrade\r\n"
#define ANSWER "Sec-WebSocket-Accept: " ACCEPT "\r\n"

static void the_request_is_as_the_rfc_has_it(void **state) {
    (void)state;
    const struct http_header headers[] = {
        {STR("authorization"), STR("Bearer k")},
        {STR("Host"), STR("evil")},
        {STR("content-type"), STR("application/json")},
        {STR("Sec-WebSocket-Extensions"), STR("permessage-deflate")}};
    struct url url;
    struct buf out;
    struct err e;
    buf_init(&out, 4 * KIB);
    assert_int_equal(url_read(STR("http://h.test:81/v1/realtime?model=m"), &url), URL_FINE);
    assert_true(upgrade_append(&url, headers, 4, STR(KEY), &out, &e));
    assert_str(buf_str(&out), "GET /v1/realtime?model=m HTTP/1.1\r\nHost: h.test:81\r\n"
                              "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"
                              "authorization: Bearer k\r\n\r\n");
    buf_done(&out);
}

static void a_header_with_a_line_break_is_refused(void **state) {
    (void)state;
    const struct http_header header = {STR("x-team"), STR("blue\r\nHost: evil")};
    struct url url;
    struct buf out;
    struct err e;
    buf_init(&out, 4 * KIB);
    assert_int_equal(url_read(STR("http://h.test/"), &url), URL_FINE);
    assert_false(upgrade_append(&url, &header, 1, STR(KEY), &out, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    buf_done(&out);
}

static void right_answers_are_taken(void **state) {
    (void)state;
    static const char *const heads[] = {
        FIRST UPGRADE CONNECTION ANSWER "\r\n",
        "HTTP/1.1 101\r\n" UPGRADE CONNECTION ANSWER "\r\n",
        FIRST "upgrade: WebSocket\r\nconnection: keep-alive,upgrade\r\nDate: today\r\n" ANSWER
              "Content-Length: 0\r\n\r\n",
    };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        if (!upgrade_check(str_from(heads[i]), STR(KEY), &e)) fail_msg("%zu: %s", i, e.text);
    }
}

static void wrong_answers_are_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *head, *why;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\n" UPGRADE CONNECTION ANSWER "\r\n", "not 101"},
        {"HTTP/1.0 101 X\r\n" UPGRADE CONNECTION ANSWER "\r\n", "not 101"},
        {FIRST CONNECTION ANSWER "\r\n", "Upgrade: websocket"},
        {FIRST UPGRADE UPGRADE CONNECTION ANSWER "\r\n", "once"},
        {FIRST "Upgrade: h2c\r\n" CONNECTION ANSWER "\r\n", "Upgrade: websocket"},
        {FIRST UPGRADE ANSWER "\r\n", "Connection: Upgrade"},
        {FIRST UPGRADE "Connection: upgraded\r\n" ANSWER "\r\n", "Connection: Upgrade"},
        {FIRST UPGRADE CONNECTION "\r\n", "does not answer our key"},
        {FIRST UPGRADE CONNECTION ANSWER ANSWER "\r\n", "does not answer our key"},
        {FIRST UPGRADE CONNECTION "Sec-WebSocket-Accept: S3PPLMBITXAQ9KYGZZHZRBK+XOO=\r\n\r\n",
         "does not answer our key"},
        {FIRST UPGRADE CONNECTION ANSWER "Sec-WebSocket-Extensions: x\r\n\r\n", "extension"},
        {FIRST UPGRADE CONNECTION ANSWER "Sec-WebSocket-Protocol: x\r\n\r\n", "subprotocol"},
        {FIRST UPGRADE CONNECTION ANSWER "Content-Length: 5\r\n\r\n", "body"},
        {FIRST UPGRADE CONNECTION ANSWER "Transfer-Encoding: chunked\r\n\r\n", "body"},
        {FIRST UPGRADE CONNECTION ANSWER " folded\r\n\r\n", "no header"},
        {FIRST UPGRADE CONNECTION ANSWER "no colon\r\n\r\n", "no header"},
        {FIRST UPGRADE CONNECTION ANSWER "x : y\r\n\r\n", "no header"},
        {FIRST UPGRADE CONNECTION "x: a\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
         "no header"},
    };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(upgrade_check(str_from(rows[i].head), STR(KEY), &e));
        if (!strstr(e.text, rows[i].why)) fail_msg("%zu: %s", i, e.text);
    }
}

static void a_status_is_three_digits(void **state) {
    (void)state;
    assert_int_equal(upgrade_status(STR("HTTP/1.1 429 Too Many\r\n\r\n")), 429);
    assert_int_equal(upgrade_status(STR("HTTP/1.1 101\r\n\r\n")), 101);
    static const char *const none[] = {"",           "HTTP/1.1 ",     "HTTP/1.1 10",
                                       "HTTP/2 200", "HTTP/1.1 1010", "HTTP/1.1 09x ",
                                       "SSH-2.0-x",  "HTTP/1.1 099 "};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_int_equal(upgrade_status(str_from(none[i])), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_is_as_the_rfc_has_it),
        cmocka_unit_test(a_header_with_a_line_break_is_refused),
        cmocka_unit_test(right_answers_are_taken),
        cmocka_unit_test(wrong_answers_are_refused_with_the_reason),
        cmocka_unit_test(a_status_is_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
