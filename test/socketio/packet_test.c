/* Packets of Socket.IO as text: read, refused, written. */
#include "socketio/packet.h"

#include "helper/assert_str.h"

static void reads(const char *text, enum packet_kind kind, const char *name_space, int64_t ack,
                  const char *data) {
    struct packet packet;
    struct err e;
    struct str copy = exact_copy(str_from(text));
    if (!packet_read(copy, &packet, &e)) fail_msg("%s: %s", text, e.text);
    assert_int_equal(packet.kind, kind);
    assert_str(packet.name_space, name_space);
    assert_int_equal(packet.ack, ack);
    if (data)
        assert_str(packet.data.raw, data);
    else
        assert_int_equal(packet.data.kind, JSON_NONE);
    free((void *)copy.at);
}

static void refuses(const char *text, enum err_code code) {
    struct packet packet;
    struct err e;
    struct str copy = exact_copy(str_from(text));
    if (packet_read(copy, &packet, &e)) fail_msg("%s was read", text);
    assert_int_equal(e.code, code);
    assert_true(e.text[0]);
    free((void *)copy.at);
}

static void the_examples_of_the_protocol_are_read(void **state) {
    (void)state;
    reads("0", PACKET_CONNECT, "/", -1, NULL);
    reads("0/admin,", PACKET_CONNECT, "/admin", -1, NULL);
    reads("0/admin,{\"token\":\"1\"}", PACKET_CONNECT, "/admin", -1, "{\"token\":\"1\"}");
    reads("0{\"token\":\"1\"}", PACKET_CONNECT, "/", -1, "{\"token\":\"1\"}");
    reads("1/admin,", PACKET_DISCONNECT, "/admin", -1, NULL);
    reads("2[\"hello\",1]", PACKET_EVENT, "/", -1, "[\"hello\",1]");
    reads("2/admin,456[\"project:delete\",123]", PACKET_EVENT, "/admin", 456,
          "[\"project:delete\",123]");
    reads("3/admin,456[]", PACKET_ACK, "/admin", 456, "[]");
    reads("30[1]", PACKET_ACK, "/", 0, "[1]");
    reads("4{\"message\":\"Not authorized\"}", PACKET_CONNECT_ERROR, "/", -1,
          "{\"message\":\"Not authorized\"}");
}

static void a_namespace_may_carry_a_query_and_no_comma(void **state) {
    (void)state;
    reads("0/v1?token=1,{}", PACKET_CONNECT, "/v1", -1, "{}");
    reads("0/v1", PACKET_CONNECT, "/v1", -1, NULL);
    reads("1/v1", PACKET_DISCONNECT, "/v1", -1, NULL);
    reads("2/v1,[\"a\",\"b,c\"]", PACKET_EVENT, "/v1", -1, "[\"a\",\"b,c\"]");
}

static void what_is_no_packet_is_refused(void **state) {
    (void)state;
    refuses("", ERR_MALFORMED);
    refuses("x", ERR_MALFORMED);
    refuses("7", ERR_MALFORMED);
    refuses("2", ERR_MALFORMED);
    refuses("2[]", ERR_MALFORMED);
    refuses("2[1]", ERR_MALFORMED);
    refuses("2{}", ERR_MALFORMED);
    refuses("2[\"a\"", ERR_MALFORMED);
    refuses("2[\"a\"]x", ERR_MALFORMED);
    refuses("2-1[\"a\"]", ERR_MALFORMED);
    refuses("2v1,[\"a\"]", ERR_MALFORMED);
    refuses("0[]", ERR_MALFORMED);
    refuses("0null", ERR_MALFORMED);
    refuses("1{}", ERR_MALFORMED);
    refuses("3[]", ERR_MALFORMED);
    refuses("31{}", ERR_MALFORMED);
    refuses("4", ERR_MALFORMED);
    refuses("21234567890123456789[\"a\"]", ERR_MALFORMED);
}

static void binary_packets_are_refused_as_such(void **state) {
    (void)state;
    refuses("51-[\"a\",{\"_placeholder\":true,\"num\":0}]", ERR_UNIMPLEMENTED);
    refuses("61-/admin,456[{\"_placeholder\":true,\"num\":0}]", ERR_UNIMPLEMENTED);
}

static void the_name_of_a_namespace_is_bounded(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text, 1024);
    buf_append_byte(&text, '0');
    buf_append_byte(&text, '/');
    while (text.len < PACKET_NAMESPACE_MAX_BYTES + 1) buf_append_byte(&text, 'n');
    buf_append_byte(&text, '\0');
    struct packet packet;
    struct err e;
    assert_true(packet_read(str_head(buf_str(&text), text.len - 1), &packet, &e));
    text.at[text.len - 1] = 'n';
    assert_false(packet_read(buf_str(&text), &packet, &e));
    buf_done(&text);
}

static void wrote(struct buf *out, const char *expected) {
    struct packet packet;
    struct err e;
    assert_true(buf_ok(out));
    assert_str(buf_str(out), expected);
    assert_true(packet_read(str_skip(buf_str(out), 1), &packet, &e));
    buf_clear(out);
}

static void what_is_written_is_what_clients_expect(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1024);
    packet_put_connect(&out, STR("/v1"), STR("abc"));
    wrote(&out, "40/v1,{\"sid\":\"abc\"}");
    packet_put_connect(&out, STR("/"), STR("abc"));
    wrote(&out, "40{\"sid\":\"abc\"}");
    packet_put_error(&out, STR("/v1"), STR("unauthorized"), STR("\"missing authentication\""));
    wrote(&out, "44/v1,{\"message\":\"unauthorized\",\"data\":\"missing authentication\"}");
    packet_put_error(&out, STR("/v1"), STR("no"), STR_EMPTY);
    wrote(&out, "44/v1,{\"message\":\"no\"}");
    packet_put_disconnect(&out, STR("/v1"));
    wrote(&out, "41/v1,");
    packet_put_event(&out, STR("/v1"), STR("message.chunk"), STR("{\"chunk\":\"a\"}"));
    wrote(&out, "42/v1,[\"message.chunk\",{\"chunk\":\"a\"}]");
    packet_put_event(&out, STR("/"), STR("quote\"d"), STR_EMPTY);
    wrote(&out, "42[\"quote\\\"d\"]");
    packet_put_ack(&out, STR("/v1"), 7, STR("true"));
    wrote(&out, "43/v1,7[true]");
    packet_put_ack(&out, STR("/"), 0, STR_EMPTY);
    wrote(&out, "430[]");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_protocol_are_read),
        cmocka_unit_test(a_namespace_may_carry_a_query_and_no_comma),
        cmocka_unit_test(what_is_no_packet_is_refused),
        cmocka_unit_test(binary_packets_are_refused_as_such),
        cmocka_unit_test(the_name_of_a_namespace_is_bounded),
        cmocka_unit_test(what_is_written_is_what_clients_expect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
