/* How body bytes become messages: at the handler's pace, cut anywhere, and the answer to a peer
 * that breaks the framing. The ids are rows of the fault table. */
#include "rpc/intake.h"

#include "fake/exchange_fake.h"
#include "rpc/gzip.h"
#include "rpc/probe.h"

#include <stdio.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* --- states ------------------------------------------------------------------------------ */

static void every_pair_of_states_is_allowed_or_not(void **state) {
    (void)state;
    static const bool allowed[INTAKE_STATE_COUNT][INTAKE_STATE_COUNT] = {
        [INTAKE_WAITING] = {[INTAKE_HANDED] = true, [INTAKE_OVER] = true},
        [INTAKE_HANDED] = {[INTAKE_WAITING] = true, [INTAKE_OVER] = true},
    };
    for (unsigned from = 0; from < INTAKE_STATE_COUNT; from++)
        for (unsigned to = 0; to < INTAKE_STATE_COUNT; to++)
            assert_int_equal(states_allow(intake_states, from, to), allowed[from][to]);
}

/* --- messages ---------------------------------------------------------------------------- */

static void the_one_request_is_handed_over_when_the_client_has_half_closed(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Unary", "/t.Probe/Feed"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        send_messages(x, "hello");
        settle();
        seen_is("open");
        assert_int_equal(fake_unconsumed(x), 0);
        fake_body_end(x);
        seen_is("[hello] half_closed");
        fake_leave(x);
        done(x);
        seen_is("left closed");
    }
}

static void a_message_may_be_empty(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Unary");
    send_messages(x, "");
    fake_body_end(x);
    seen_is("open [] half_closed");
    fake_leave(x);
    done(x);
}

static void messages_are_the_same_however_the_body_is_cut(void **state) {
    (void)state;
    static const struct {
        const char *path, *messages, *seen;
    } rows[] = {
        {"/t.Probe/Talk", "a||ccc|dddddddddd", "open [a] [] [ccc] [dddddddddd] half_closed"},
        {"/t.Probe/Upload", "a||ccc", "open [a] [] [ccc] half_closed"},
        {"/t.Probe/Unary", "hello", "open [hello] half_closed"},
        {"/t.Probe/Feed", "hello", "open [hello] half_closed"},
    };
    probe.asks = true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf room;
        struct str body = frames(&room, rows[i].messages);
        for (size_t cut = 0; cut <= body.len; cut++) {
            for (size_t cut2 = cut; cut2 <= body.len; cut2++) {
                struct exchange *x = started(rows[i].path);
                fake_body(x, str_head(body, cut));
                fake_body(x, str_head(str_skip(body, cut), cut2 - cut));
                settle();
                fake_body(x, str_skip(body, cut2));
                assert_int_equal(fake_unconsumed(x), 0);
                fake_body_end(x);
                settle();
                seen_is(rows[i].seen);
                fake_leave(x);
                done(x);
                seen_is("left closed");
            }
        }
        buf_done(&room);
    }
}

static void one_byte_at_a_time_is_enough(void **state) {
    (void)state;
    struct buf room;
    struct str body = frames(&room, "first|second|");
    struct exchange *x = started("/t.Probe/Talk");
    probe.asks = true;
    for (size_t i = 0; i < body.len; i++) fake_body(x, str_head(str_skip(body, i), 1));
    fake_body_end(x);
    seen_is("open [first] [second] [] half_closed");
    buf_done(&room);
    fake_leave(x);
    done(x);
}

static void a_stream_may_end_without_any_message(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Upload", "/t.Probe/Talk"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        fake_body_end(x);
        seen_is("open half_closed");
        fake_leave(x);
        done(x);
        seen_is("left closed");
    }
}

/* --- pace -------------------------------------------------------------------------------- */

static void a_busy_handler_gets_one_message_and_the_window_fills(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    send_messages(x, "one|two|three");
    fake_body_end(x);
    settle();
    seen_is("open [one]");
    assert_int_equal(fake_unconsumed(x), 5 + 3 + 5 + 5);

    rpc_next(probe.call);
    rpc_next(probe.call);
    seen_is("");
    settle();
    seen_is("[two]");
    assert_int_equal(fake_unconsumed(x), 5 + 5);

    rpc_next(probe.call);
    settle();
    seen_is("[three]");
    assert_int_equal(fake_unconsumed(x), 0);

    rpc_next(probe.call);
    seen_is("");
    settle();
    seen_is("half_closed");
    rpc_next(probe.call);
    settle();
    seen_is("");
    fake_leave(x);
    done(x);
}

static void a_client_is_done_when_all_it_sent_was_handed_over(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    send_messages(x, "one|two");
    assert_false(rpc_client_is_done(probe.call));
    fake_body_end(x);
    assert_false(rpc_client_is_done(probe.call)); /* two waits */
    rpc_next(probe.call);
    settle();
    assert_true(rpc_client_is_done(probe.call));
    seen_is("open [one] [two]");
    rpc_next(probe.call);
    settle();
    seen_is("half_closed");
    fake_leave(x);
    done(x);
    seen_is("left closed");
}

static void a_client_that_was_cut_in_a_message_is_not_done(void **state) {
    (void)state;
    struct buf room;
    struct str body = frames(&room, "one|two");
    struct exchange *x = started("/t.Probe/Talk");
    fake_body(x, str_head(body, body.len - 1));
    fake_body_end(x);
    assert_false(rpc_client_is_done(probe.call));
    rpc_next(probe.call);
    settle();
    seen_is("open [one] broken closed");
    buf_done(&room);
    done(x);
}

static void held_messages_come_in_order_while_new_ones_arrive(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    struct buf expected;
    buf_init(&expected, 1 * MIB);
    buf_append(&expected, STR("open [0]"));
    for (int i = 0; i < 300; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", i);
        send_messages(x, text);
        if (i) buf_printf(&expected, " [%d]", i);
        if (i % 3 == 0) {
            rpc_next(probe.call);
            settle();
        }
    }
    fake_body_end(x);
    for (int i = 0; i < 300; i++) {
        rpc_next(probe.call);
        settle();
    }
    buf_append(&expected, STR(" half_closed"));
    buf_append_byte(&expected, '\0');
    seen_is(expected.at);
    buf_done(&expected);
    assert_int_equal(fake_unconsumed(x), 0);
    fake_leave(x);
    done(x);
}

static void a_message_larger_than_the_window_is_consumed_as_it_comes(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    char text[PROBE_MESSAGE_MAX_BYTES + 1];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    struct buf room;
    struct str body = frames(&room, text);
    for (; body.len > 1; body = str_skip(body, 1)) {
        fake_body(x, str_head(body, 1));
        assert_int_equal(fake_unconsumed(x), 0);
    }
    seen_is("open");
    fake_body(x, body);
    assert_int_equal(probe.seen.len, PROBE_MESSAGE_MAX_BYTES + 2);
    buf_clear(&probe.seen);
    buf_done(&room);
    fake_leave(x);
    done(x);
}

static void a_peer_that_sends_far_more_than_it_may_is_refused(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    char *zeros = calloc(1, MIB);
    send_messages(x, "one");
    for (size_t i = 0; i < INTAKE_HELD_MAX_BYTES / MIB; i++) fake_body(x, str_of(zeros, MIB));
    seen_is("open [one]");
    fake_body(x, str_of(zeros, 1));
    free(zeros);
    seen_is("broken");
    ended_with(x, "8", "more was sent than was asked for");
    done(x);
    seen_is("closed");
}

/* --- the end in the middle --------------------------------------------------------------- */

static void a_handler_may_end_the_call_inside_message(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Unary"};
    probe.ends_in_message = true;
    probe.asks = true;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        struct buf room;
        struct str body = frames(&room, "one");
        fake_body(x, str_head(body, 6));
        fake_body(x, str_skip(body, 6));
        buf_done(&room);
        if (i == 0) send_messages(x, "two");
        fake_body_end(x);
        done(x);
        seen_is("open [one] closed");
    }
}

static void what_is_held_is_consumed_when_the_call_ends(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    send_messages(x, "one|two");
    assert_int_equal(fake_unconsumed(x), 8);
    rpc_end(probe.call, ERR_ABORTED, STR("no more"));
    assert_int_equal(fake_unconsumed(x), 0);
    send_messages(x, "three");
    assert_int_equal(fake_unconsumed(x), 0);
    done(x);
    seen_is("open [one] closed");
}

static void a_held_message_that_ends_the_call_takes_the_rest_with_it(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    send_messages(x, "one|two|three");
    probe.ends_in_message = true;
    rpc_next(probe.call);
    settle();
    assert_int_equal(fake_unconsumed(x), 0);
    done(x);
    seen_is("open [one] [two] closed");
}

/* --- broken framing (G3, G11) ------------------------------------------------------------ */

static void broken_with(struct exchange *x, const char *status) {
    seen_is("open broken");
    assert_true(fake_ended(x));
    struct str said = fake_value(fake_head(x), "grpc-status");
    assert_str(said.at ? said : fake_value(fake_trailers(x), "grpc-status"), status);
    assert_int_equal(fake_aborted(x), -1);
    done(x);
    seen_is("closed");
}

static void a_stream_that_ends_inside_a_message_is_an_error_wherever_it_is_cut(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Unary", "/t.Probe/Upload", "/t.Probe/Feed",
                                        "/t.Probe/Talk"};
    struct buf room;
    struct str body = frames(&room, "hello");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        for (size_t cut = 1; cut < body.len; cut++) {
            struct exchange *x = started(paths[i]);
            fake_body(x, str_head(body, cut));
            fake_body_end(x);
            broken_with(x, "13");
        }
    }
    buf_done(&room);
}

static void exactly_one_request_is_what_such_calls_have(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Unary", "/t.Probe/Feed"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        fake_body_end(x);
        broken_with(x, "12");

        x = started(paths[i]);
        send_messages(x, "one|two");
        broken_with(x, "12");

        x = started(paths[i]);
        send_messages(x, "one");
        send_messages(x, "");
        fake_body_end(x);
        broken_with(x, "12");
    }
}

static void a_flag_that_was_not_negotiated_is_an_error(void **state) {
    (void)state;
    static const unsigned char flags[] = {1, 2, 128, 255};
    static const char *const encodings[] = {NULL, "identity"};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        for (size_t j = 0; j < ARRAY_LEN(encodings); j++) {
            struct exchange *x = request("/t.Probe/Talk");
            if (encodings[j]) fake_field(x, "grpc-encoding", encodings[j]);
            start(x);
            unsigned char message[] = {flags[i], 0, 0, 0, 1, 'x'};
            fake_body(x, str_of(message, sizeof(message)));
            broken_with(x, "13");
        }
    }
}

/* --- compressed messages (G3) ------------------------------------------------------------- */

/* One message as a client that has agreed on gzip sends it; a plain one too, unless `text`
 * gets shorter. */
static struct str squeezed(struct buf *room, struct str text) {
    buf_init(room, 1 * MIB);
    size_t begin = grpc_begin_message(room);
    if (gzip_deflate(text, room)) {
        room->at[begin] = 1;
    } else {
        buf_append(room, text);
    }
    grpc_end_message(room, begin);
    return buf_str(room);
}

static struct exchange *started_with_gzip(const char *path) {
    struct exchange *x = request(path);
    fake_field(x, "grpc-encoding", "gzip");
    start(x);
    return x;
}

#define LONG_TEXT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void compressed_messages_are_inflated_however_the_body_is_cut(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Upload", "/t.Probe/Unary"};
    struct buf room;
    struct str body = squeezed(&room, STR(LONG_TEXT));
    assert_true(body.len < strlen(LONG_TEXT));
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        for (size_t cut = 0; cut <= body.len; cut++) {
            struct exchange *x = started_with_gzip(paths[i]);
            fake_body(x, str_head(body, cut));
            settle();
            fake_body(x, str_skip(body, cut));
            fake_body_end(x);
            assert_true(rpc_came_compressed(probe.call));
            rpc_next(probe.call);
            settle();
            seen_is("open [" LONG_TEXT "] half_closed");
            fake_leave(x);
            done(x);
            seen_is("left closed");
        }
    }
    buf_done(&room);
}

static void a_stream_may_mix_compressed_messages_with_plain_ones(void **state) {
    (void)state;
    probe.asks = true;
    struct buf room;
    struct exchange *x = started_with_gzip("/t.Probe/Talk");
    send_messages(x, "plain");
    assert_false(rpc_came_compressed(probe.call));
    fake_body(x, squeezed(&room, STR(LONG_TEXT)));
    buf_done(&room);
    assert_true(rpc_came_compressed(probe.call));
    send_messages(x, "|end");
    assert_false(rpc_came_compressed(probe.call));
    seen_is("open [plain] [" LONG_TEXT "] [] [end]");
    fake_leave(x);
    done(x);
}

/* Also of a message that was not compressed, whose bytes are only written over. */
static void with_the_address_sanitizer_a_message_is_freed_after_the_handler(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Unary"};
    struct buf plain, squeezed_plain;
    struct str bodies[] = {frames(&plain, "plain"), squeezed(&squeezed_plain, STR(LONG_TEXT))};
    for (size_t i = 0; i < ARRAY_LEN(paths) * ARRAY_LEN(bodies); i++) {
        struct exchange *x = started_with_gzip(paths[i % 2]);
        fake_body(x, bodies[i / 2]);
        fake_body_end(x);
        assert_true(probe.message.len > 0);
        assert_true(__asan_address_is_poisoned(probe.message.at));
        fake_leave(x);
        done(x);
        buf_clear(&probe.seen);
    }
    buf_done(&squeezed_plain);
    buf_done(&plain);
#else
    skip();
#endif
}

static void a_damaged_compressed_message_is_an_error(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Unary"};
    struct buf room, bad;
    struct str message = str_skip(squeezed(&room, STR(LONG_TEXT)), GRPC_PREFIX_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        for (size_t len = 0; len < message.len; len++) {
            buf_init(&bad, 1 * KIB);
            grpc_append_message(&bad, str_head(message, len));
            bad.at[0] = 1;
            struct exchange *x = started_with_gzip(paths[i]);
            fake_body(x, buf_str(&bad));
            buf_done(&bad);
            broken_with(x, "13");
        }
    }
    buf_done(&room);
}

static void a_bomb_is_refused_at_the_methods_limit(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Unary"};
    static char letters[1 * MIB];
    struct buf room;
    memset(letters, 'x', sizeof(letters));
    struct str body = squeezed(&room, str_of(letters, sizeof(letters)));
    struct str fits = str_of(letters, PROBE_MESSAGE_MAX_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started_with_gzip(paths[i]);
        assert_true(body.len > PROBE_MESSAGE_MAX_BYTES); /* the prefix alone tells */
        fake_body(x, body);
        broken_with(x, "8");

        struct buf small;
        x = started_with_gzip(paths[i]);
        fake_body(x, squeezed(&small, str_of(letters, PROBE_MESSAGE_MAX_BYTES + 1)));
        buf_done(&small);
        broken_with(x, "8");

        x = started_with_gzip(paths[i]);
        fake_body(x, squeezed(&small, fits));
        buf_done(&small);
        fake_body_end(x);
        assert_int_equal(probe.seen.len,
                         strlen("open []") + fits.len + (i ? strlen(" half_closed") : 0));
        buf_clear(&probe.seen);
        fake_leave(x);
        done(x);
        buf_clear(&probe.seen);
    }
    buf_done(&room);
}

static void a_message_past_its_limit_is_refused_at_its_prefix(void **state) {
    (void)state;
    static const unsigned char too_long[] = {0, 0, 0, 3, 0xE9}; /* 1001 */
    static const unsigned char huge[] = {0, 0xFF, 0xFF, 0xFF, 0xFF};
    static const char *const paths[] = {"/t.Probe/Unary", "/t.Probe/Talk"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        fake_body(x, str_of(too_long, sizeof(too_long)));
        broken_with(x, "8");
        x = started(paths[i]);
        fake_body(x, str_of(huge, sizeof(huge)));
        broken_with(x, "8");
    }
}

static void a_handler_may_say_itself_that_a_message_is_too_large(void **state) {
    (void)state;
    static const unsigned char too_long[] = {0, 0, 0, 3, 0xE9}; /* 1001 */
    static const char *const paths[] = {"/t.Probe/Unary", "/t.Probe/Upload"};
    static char letters[PROBE_MESSAGE_MAX_BYTES + 1];
    struct buf room;
    probe.ends_too_large = true;
    memset(letters, 'x', sizeof(letters));
    struct str bomb = squeezed(&room, str_of(letters, sizeof(letters)));
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *plain = started(paths[i]);
        fake_body(plain, str_of(too_long, sizeof(too_long)));
        seen_is("open too_large");
        refused_with(plain, "3", "cut it in two");
        done(plain);
        seen_is("closed");
        struct exchange *packed = started_with_gzip(paths[i]);
        fake_body(packed, bomb);
        seen_is("open too_large");
        refused_with(packed, "3", "cut it in two");
        done(packed);
        seen_is("closed");
    }
    buf_done(&room);
}

static void an_error_before_the_half_close_is_trailers_only(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Unary");
    send_messages(x, "one|two");
    refused_with(x, "12", "more than one request message");
    done(x);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_states_is_allowed_or_not),
        TEST(the_one_request_is_handed_over_when_the_client_has_half_closed),
        TEST(a_message_may_be_empty),
        TEST(messages_are_the_same_however_the_body_is_cut),
        TEST(one_byte_at_a_time_is_enough),
        TEST(a_stream_may_end_without_any_message),
        TEST(a_busy_handler_gets_one_message_and_the_window_fills),
        TEST(a_client_is_done_when_all_it_sent_was_handed_over),
        TEST(a_client_that_was_cut_in_a_message_is_not_done),
        TEST(held_messages_come_in_order_while_new_ones_arrive),
        TEST(a_message_larger_than_the_window_is_consumed_as_it_comes),
        TEST(a_peer_that_sends_far_more_than_it_may_is_refused),
        TEST(a_handler_may_end_the_call_inside_message),
        TEST(what_is_held_is_consumed_when_the_call_ends),
        TEST(a_held_message_that_ends_the_call_takes_the_rest_with_it),
        TEST(a_stream_that_ends_inside_a_message_is_an_error_wherever_it_is_cut),
        TEST(exactly_one_request_is_what_such_calls_have),
        TEST(a_flag_that_was_not_negotiated_is_an_error),
        TEST(compressed_messages_are_inflated_however_the_body_is_cut),
        TEST(a_stream_may_mix_compressed_messages_with_plain_ones),
        TEST(with_the_address_sanitizer_a_message_is_freed_after_the_handler),
        TEST(a_damaged_compressed_message_is_an_error),
        TEST(a_bomb_is_refused_at_the_methods_limit),
        TEST(a_message_past_its_limit_is_refused_at_its_prefix),
        TEST(a_handler_may_say_itself_that_a_message_is_too_large),
        TEST(an_error_before_the_half_close_is_trailers_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
