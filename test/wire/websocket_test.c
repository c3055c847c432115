#include "wire/websocket.h"

#include "helper/assert_str.h"

#define MAX_BYTES 300

static const char *const kinds[] = {
    [WEBSOCKET_TEXT] = "text", [WEBSOCKET_BINARY] = "binary", [WEBSOCKET_PING] = "ping",
    [WEBSOCKET_PONG] = "pong", [WEBSOCKET_CLOSE] = "close",
};

static void record(const struct websocket_message *message, void *ctx) {
    struct buf *seen = ctx;
    buf_printf(seen, "%s", kinds[message->kind]);
    if (message->kind == WEBSOCKET_CLOSE) buf_printf(seen, " %u", message->code);
    buf_printf(seen, "=" STR_FMT ";", STR_ARG(message->data));
}

static void record_fault(struct websocket *websocket, const struct err *e, struct buf *seen) {
    bool large = e->code == ERR_TOO_LARGE;
    assert_true(large == (websocket_fault(websocket) == WEBSOCKET_TOO_LARGE));
    buf_printf(seen, "fault %d", (int)websocket_fault(websocket));
}

static void feed(struct websocket *websocket, struct str piece, bool *fine, struct buf *seen) {
    struct err e;
    struct str copy = exact_copy(piece);
    if (*fine && !websocket_feed(websocket, copy, &e)) {
        *fine = false;
        record_fault(websocket, &e, seen);
    }
    free((void *)copy.at);
}

/* What a stream says must not depend on where it is cut. */
static void assert_reads(enum websocket_role role, struct str stream, const char *expected) {
    for (size_t cut = 0; cut <= stream.len + 1; cut++) {
        struct buf seen;
        bool fine = true;
        buf_init(&seen, 4096);
        struct websocket *websocket = websocket_new(role, MAX_BYTES, record, &seen);
        if (cut <= stream.len) {
            feed(websocket, str_head(stream, cut), &fine, &seen);
            feed(websocket, str_skip(stream, cut), &fine, &seen);
        } else {
            for (size_t i = 0; i < stream.len; i++)
                feed(websocket, str_of(stream.at + i, 1), &fine, &seen);
        }
        assert_str(buf_str(&seen), expected);
        websocket_free(websocket);
        buf_done(&seen);
    }
}

/* Frames with the masking key 0 are those of a client, and can be read here. */
#define KEY "\0\0\0\0"

static void reads_server(struct str stream, const char *expected) {
    assert_reads(WEBSOCKET_SERVER, stream, expected);
}

static void reads_client(struct str stream, const char *expected) {
    assert_reads(WEBSOCKET_CLIENT, stream, expected);
}

static void the_examples_of_the_rfc_are_read(void **state) {
    (void)state;
    reads_client(STR("\x81\x05Hello"), "text=Hello;");
    reads_server(STR("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "text=Hello;");
    reads_client(STR("\x01\x03Hel\x80\x02lo"), "text=Hello;");
    reads_client(STR("\x89\x05Hello"), "ping=Hello;");
    reads_server(STR("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "pong=Hello;");
}

static void messages_follow_each_other(void **state) {
    (void)state;
    reads_client(STR("\x81\x01"
                     "a\x82\x01"
                     "b\x81\x00\x89\x00"),
                 "text=a;binary=b;text=;ping=;");
    reads_server(STR("\x81\x81" KEY "a\x82\x81" KEY "b\x81\x80" KEY "\x89\x80" KEY),
                 "text=a;binary=b;text=;ping=;");
}

static void control_frames_may_come_between_fragments(void **state) {
    (void)state;
    reads_client(STR("\x01\x01"
                     "a\x89\x01p\x00\x01"
                     "b\x8a\x00\x80\x01"
                     "c"),
                 "ping=p;pong=;text=abc;");
    reads_client(STR("\x02\x00\x00\x00\x80\x00"), "binary=;");
}

static void a_character_may_be_cut_by_fragments(void **state) {
    (void)state;
    reads_client(STR("\x01\x01\xc3\x80\x01\xa4"), "text=\xc3\xa4;");
}

static void text_must_be_utf8(void **state) {
    (void)state;
    reads_client(STR("\x81\x01\xc3"), "fault 1007");
    reads_client(STR("\x01\x01\xc3\x80\x01x"), "fault 1007");
    reads_client(STR("\x81\x03\xed\xa0\x80"), "fault 1007");
    reads_client(STR("\x82\x01\xc3"), "binary=\xc3;");
}

static void a_close_has_a_code_and_a_reason(void **state) {
    (void)state;
    reads_client(STR("\x88\x00"), "close 1005=;");
    reads_client(STR("\x88\x02\x03\xe8"), "close 1000=;");
    reads_client(STR("\x88\x05\x03\xe9"
                     "bye"),
                 "close 1001=bye;");
    reads_client(STR("\x88\x02\x0f\xa0\x81\x01"
                     "a"),
                 "close 4000=;");
}

static void odd_closes_are_refused(void **state) {
    (void)state;
    reads_client(STR("\x88\x01\x03"), "fault 1002");
    reads_client(STR("\x88\x02\x03\xec"), "fault 1002"); /* 1004 */
    reads_client(STR("\x88\x02\x03\xed"), "fault 1002"); /* 1005 */
    reads_client(STR("\x88\x02\x03\xee"), "fault 1002"); /* 1006 */
    reads_client(STR("\x88\x02\x03\xf7"), "fault 1002"); /* 1015 */
    reads_client(STR("\x88\x02\x00\x00"), "fault 1002");
    reads_client(STR("\x88\x02\x07\xd0"), "fault 1002"); /* 2000 */
    reads_client(STR("\x88\x02\x13\x88"), "fault 1002"); /* 5000 */
    reads_client(STR("\x88\x03\x03\xe8\xff"), "fault 1007");
}

static void each_role_refuses_the_frames_of_its_own_kind(void **state) {
    (void)state;
    reads_server(STR("\x81\x01"
                     "a"),
                 "fault 1002");
    reads_client(STR("\x81\x81" KEY "a"), "fault 1002");
}

static void frames_that_break_a_rule_are_refused(void **state) {
    (void)state;
    reads_client(STR("\xc1\x01"
                     "a"),
                 "fault 1002"); /* a reserved bit */
    reads_client(STR("\x91\x01"
                     "a"),
                 "fault 1002");
    reads_client(STR("\x83\x01"
                     "a"),
                 "fault 1002"); /* an opcode of no kind */
    reads_client(STR("\x8b\x01"
                     "a"),
                 "fault 1002");
    reads_client(STR("\x80\x01"
                     "a"),
                 "fault 1002"); /* continues nothing */
    reads_client(STR("\x01\x01"
                     "a\x81\x01"
                     "b"),
                 "fault 1002");                          /* begins inside another */
    reads_client(STR("\x09\x00\x80\x00"), "fault 1002"); /* a ping in fragments */
    reads_client(STR("\x89\x7e\x00\x7e"), "fault 1002"); /* a long ping */
    reads_client(STR("\x81\x7e\x00\x7d"), "fault 1002"); /* a length that is not minimal */
    reads_client(STR("\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff"), "fault 1002");
    reads_client(STR("\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00"), "fault 1002");
}

static void what_came_before_a_fault_is_reported(void **state) {
    (void)state;
    reads_client(STR("\x81\x01"
                     "a\x83\x01"
                     "b"),
                 "text=a;fault 1002");
}

/* A stream of `fragments` frames of `each` bytes. */
static void assert_size(size_t fragments, size_t each, bool fits) {
    struct buf stream, seen;
    bool fine = true;
    buf_init(&stream, 4096);
    buf_init(&seen, 4096);
    for (size_t i = 0; i < fragments; i++) {
        uint8_t head[] = {(uint8_t)((i == 0 ? 1 : 0) | (i + 1 == fragments ? 0x80 : 0)), 126,
                          (uint8_t)(each >> 8), (uint8_t)each};
        if (each < 126) head[1] = (uint8_t)each;
        buf_append(&stream, str_of(head, each < 126 ? 2 : 4));
        for (size_t k = 0; k < each; k++) buf_append_byte(&stream, 'x');
    }
    struct websocket *websocket = websocket_new(WEBSOCKET_CLIENT, MAX_BYTES, record, &seen);
    feed(websocket, buf_str(&stream), &fine, &seen);
    assert_int_equal(fine, fits);
    if (!fits) assert_str(buf_str(&seen), "fault 1009");
    websocket_free(websocket);
    buf_done(&stream);
    buf_done(&seen);
}

static void a_message_beyond_the_limit_is_refused(void **state) {
    (void)state;
    assert_size(1, MAX_BYTES, true);
    assert_size(1, MAX_BYTES + 1, false);
    assert_size(3, MAX_BYTES / 3, true);
    assert_size(4, MAX_BYTES / 3, false);
    reads_client(STR("\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xffx"), "fault 1009");
}

static void stop_now(const struct websocket_message *message, void *ctx) {
    (void)message;
    struct websocket **websocket = ctx;
    websocket_stop(*websocket);
}

static void a_stopped_reader_reports_nothing_more(void **state) {
    (void)state;
    struct err e;
    struct websocket *websocket;
    websocket = websocket_new(WEBSOCKET_CLIENT, MAX_BYTES, stop_now, &websocket);
    assert_true(websocket_feed(websocket,
                               STR("\x81\x01"
                                   "a\x83\x01"
                                   "b"),
                               &e));
    assert_true(websocket_feed(websocket, STR("\xff\xff"), &e));
    websocket_free(websocket);
}

static void it_knows_when_a_stream_ends_in_the_middle(void **state) {
    (void)state;
    struct err e;
    struct buf seen;
    struct str stream = STR("\x01\x01"
                            "a\x80\x01"
                            "b");
    buf_init(&seen, 256);
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct websocket *websocket = websocket_new(WEBSOCKET_CLIENT, MAX_BYTES, record, &seen);
        assert_true(websocket_feed(websocket, str_head(stream, cut), &e));
        assert_int_equal(websocket_midway(websocket), cut > 0 && cut < stream.len);
        websocket_free(websocket);
    }
    buf_done(&seen);
}

/* --- writing ------------------------------------------------------------------------------ */

static enum websocket_role other(enum websocket_role role) {
    return role == WEBSOCKET_SERVER ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
}

static void what_one_role_writes_the_other_reads(void **state) {
    (void)state;
    static const size_t lens[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};
    for (size_t i = 0; i < 2 * ARRAY_LEN(lens); i++) {
        enum websocket_role role = i % 2 ? WEBSOCKET_SERVER : WEBSOCKET_CLIENT;
        struct buf data, stream, seen, wanted;
        struct err e;
        buf_init(&data, 1 << 20);
        buf_init(&stream, 1 << 20);
        buf_init(&seen, 1 << 20);
        buf_init(&wanted, 1 << 20);
        for (size_t k = 0; k < lens[i / 2]; k++) buf_append_byte(&data, (char)('a' + k % 26));
        assert_true(websocket_append(&stream, role, WEBSOCKET_TEXT, buf_str(&data)));
        assert_true(websocket_append(&stream, role, WEBSOCKET_PONG, STR("p")));
        assert_true(websocket_append_close(&stream, role, 1001, STR("bye")));
        buf_printf(&wanted, "text=" STR_FMT ";pong=p;close 1001=bye;", STR_ARG(buf_str(&data)));
        struct websocket *reader = websocket_new(other(role), 1 << 20, record, &seen);
        assert_true(websocket_feed(reader, buf_str(&stream), &e));
        assert_true(str_equal(buf_str(&seen), buf_str(&wanted)));
        websocket_free(reader);
        buf_done(&data);
        buf_done(&stream);
        buf_done(&seen);
        buf_done(&wanted);
    }
}

static void a_server_writes_plain_frames(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 256);
    assert_true(websocket_append(&out, WEBSOCKET_SERVER, WEBSOCKET_TEXT, STR("Hello")));
    assert_true(websocket_append_close(&out, WEBSOCKET_SERVER, WEBSOCKET_NO_CODE, STR("no")));
    assert_true(str_equal(buf_str(&out), STR("\x81\x05Hello\x88\x00")));
    buf_done(&out);
}

static void a_long_reason_is_cut_between_characters(void **state) {
    (void)state;
    struct buf out, reason;
    buf_init(&out, 256);
    buf_init(&reason, 256);
    for (int i = 0; i < 70; i++) buf_append(&reason, STR("\xc3\xa4"));
    assert_true(websocket_append_close(&out, WEBSOCKET_SERVER, 1011, buf_str(&reason)));
    assert_int_equal(out.len, 2 + 2 + 122);
    buf_done(&out);
    buf_done(&reason);
}

static void a_full_buffer_gets_no_part_of_a_frame(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 16);
    assert_false(websocket_append(&out, WEBSOCKET_SERVER, WEBSOCKET_TEXT, STR("Hello")));
    assert_int_equal(out.len, 0);
    buf_done(&out);
}

static void the_handshake_of_the_rfc_is_answered(void **state) {
    (void)state;
    char accept[WEBSOCKET_ACCEPT_BYTES], key[WEBSOCKET_KEY_BYTES], other_key[sizeof(key)];
    websocket_accept(STR("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    assert_str(str_of(accept, sizeof(accept)), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    websocket_key(key);
    websocket_key(other_key);
    assert_true(websocket_key_ok(str_of(key, sizeof(key))));
    assert_memory_not_equal(key, other_key, sizeof(key));
    assert_true(websocket_key_ok(STR("dGhlIHNhbXBsZSBub25jZQ==")));
    assert_false(websocket_key_ok(STR("dGhlIHNhbXBsZSBub25jZQ=")));
    assert_false(websocket_key_ok(STR("dGhlIHNhbXBsZSBub25jZWFh")));
    assert_false(websocket_key_ok(STR("dGhlIHNhbXBsZSBub25jZQ!=")));
    assert_false(websocket_key_ok(STR_EMPTY));
}

static int load(void **state) {
    struct err e;
    (void)state;
    return websocket_load(&e) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rfc_are_read),
        cmocka_unit_test(messages_follow_each_other),
        cmocka_unit_test(control_frames_may_come_between_fragments),
        cmocka_unit_test(a_character_may_be_cut_by_fragments),
        cmocka_unit_test(text_must_be_utf8),
        cmocka_unit_test(a_close_has_a_code_and_a_reason),
        cmocka_unit_test(odd_closes_are_refused),
        cmocka_unit_test(each_role_refuses_the_frames_of_its_own_kind),
        cmocka_unit_test(frames_that_break_a_rule_are_refused),
        cmocka_unit_test(what_came_before_a_fault_is_reported),
        cmocka_unit_test(a_message_beyond_the_limit_is_refused),
        cmocka_unit_test(a_stopped_reader_reports_nothing_more),
        cmocka_unit_test(it_knows_when_a_stream_ends_in_the_middle),
        cmocka_unit_test(what_one_role_writes_the_other_reads),
        cmocka_unit_test(a_server_writes_plain_frames),
        cmocka_unit_test(a_long_reason_is_cut_between_characters),
        cmocka_unit_test(a_full_buffer_gets_no_part_of_a_frame),
        cmocka_unit_test(the_handshake_of_the_rfc_is_answered),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
