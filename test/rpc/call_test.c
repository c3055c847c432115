/* A call between open() and closed(): what it sends, how it ends, and that its handler is told
 * of the end exactly once. The ids are rows of the fault table. */
#include "rpc/call.h"

#include "fake/exchange_fake.h"
#include "rpc/gzip.h"
#include "rpc/probe.h"
#include "rpc/status.h"

#include <stdio.h>

/* --- states ------------------------------------------------------------------------------ */

static void every_pair_of_states_is_allowed_or_not(void **state) {
    (void)state;
    static const bool allowed[CALL_STATE_COUNT][CALL_STATE_COUNT] = {
        [CALL_CHECKING] = {[CALL_REFUSED] = true, [CALL_OPENING] = true},
        [CALL_REFUSED] = {[CALL_CLOSED] = true},
        [CALL_OPENING] = {[CALL_OPEN] = true, [CALL_ENDED] = true, [CALL_CUT] = true},
        [CALL_OPEN] = {[CALL_ENDED] = true, [CALL_CUT] = true},
        [CALL_ENDED] = {[CALL_CLOSED] = true},
        [CALL_CUT] = {[CALL_CANCELLED] = true, [CALL_ENDED] = true},
        [CALL_CANCELLED] = {[CALL_CLOSED] = true},
    };
    for (unsigned from = 0; from < CALL_STATE_COUNT; from++) {
        for (unsigned to = 0; to < CALL_STATE_COUNT; to++)
            assert_int_equal(states_allow(call_states, from, to), allowed[from][to]);
        assert_true(states_name(call_states, from).len > 0);
    }
}

static void an_open_call_is_small(void **state) {
    (void)state;
    assert_true(sizeof(struct rpc_call) <= 400);
}

/* --- the response ------------------------------------------------------------------------ */

static void a_unary_call_answers_with_one_message_and_ok(void **state) {
    (void)state;
    probe.echoes = probe.ends_ok = true;
    struct exchange *x = started("/t.Probe/Unary");
    assert_int_equal(fake_status(x), 0);
    send_messages(x, "hello");
    fake_body_end(x);
    ended_with(x, "0", NULL);
    assert_str(fake_head(x),
               "content-type: application/grpc\ngrpc-accept-encoding: identity,gzip\n");
    settle();
    sent_is(x, "hello");
    done(x);
    seen_is("open [hello] half_closed closed");
}

static void a_call_established_at_accept_sends_its_head_at_once(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    assert_int_equal(fake_status(x), 200);
    assert_true(rpc_established(probe.call));
    rpc_establish(probe.call);
    fake_leave(x);
    done(x);
}

static void a_call_established_by_its_handler_waits_for_it(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Bounded");
    assert_false(rpc_established(probe.call));
    rpc_establish(probe.call);
    assert_true(rpc_established(probe.call));
    rpc_end(probe.call, ERR_NOT_FOUND, STR("nobody"));
    ended_with(x, "5", "nobody");
    done(x);
}

static void an_error_before_anything_was_sent_is_trailers_only(void **state) {
    (void)state;
    probe.ends_early = true;
    static const char *const paths[] = {"/t.Probe/Unary", "/t.Probe/Talk"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        refused_with(x, "10", "not now");
        assert_true(fake_forgotten(x));
        send_messages(x, "never read");
        done(x);
        seen_is("open closed");
    }
}

static void open_may_send_and_end(void **state) {
    (void)state;
    probe.sends_in_open = 3;
    probe.ends_early = true;
    struct exchange *x = started("/t.Probe/Talk");
    ended_with(x, "10", "not now");
    settle();
    assert_int_equal(fake_sent(x).len, 8);
    done(x);
    seen_is("open closed");
}

static void messages_are_encoded_in_place_and_leave_together(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    rpc_send(probe.call, STR("copied"));
    struct buf *out = rpc_message_begin(probe.call);
    buf_append(out, STR("in "));
    buf_append(out, STR("place"));
    rpc_message_end(probe.call);
    rpc_message_begin(probe.call);
    rpc_message_end(probe.call);
    assert_str(fake_sent(x), "");
    assert_int_equal(rpc_queued(probe.call), 6 + 8 + 3 * 5);
    settle();
    sent_is(x, "copied|in place|");
    assert_int_equal(rpc_queued(probe.call), 0);
    rpc_end(probe.call, ERR_NONE, STR("not said"));
    ended_with(x, "0", NULL);
    done(x);
}

static void every_code_has_its_grpc_number(void **state) {
    (void)state;
    for (unsigned code = 0; code < ERR_CODE_COUNT; code++) {
        struct exchange *x = started("/t.Probe/Unary");
        rpc_end(probe.call, code, STR_EMPTY);
        char number[12];
        snprintf(number, sizeof(number), "%d", err_kinds[code].grpc_status);
        assert_str(fake_value(fake_head(x), "grpc-status"), number);
        assert_null(fake_value(fake_head(x), "grpc-message").at);
        done(x);
    }
    buf_clear(&probe.seen);
}

/* G6 */
static void a_status_message_is_escaped_and_cut(void **state) {
    (void)state;
    static const struct {
        struct str text;
        const char *said;
    } rows[] = {
        {STR_INIT("a\0b"), "a%00b"},
        {STR_INIT("100%"), "100%25"},
        {STR_INIT("\xE7\xB3\xBB\xE7\xBB\x9F"), "%E7%B3%BB%E7%BB%9F"},
        {STR_INIT("\xFF\xFE\xFD"), "%EF%BF%BD%EF%BF%BD%EF%BF%BD"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = started("/t.Probe/Unary");
        rpc_end(probe.call, ERR_UNKNOWN, rows[i].text);
        refused_with(x, "2", rows[i].said);
        done(x);
    }
    char *text = malloc(10 * KIB);
    memset(text, 'x', 10 * KIB);
    struct exchange *x = started("/t.Probe/Unary");
    rpc_end(probe.call, ERR_UNKNOWN, str_of(text, 10 * KIB));
    assert_int_equal(fake_value(fake_head(x), "grpc-message").len, 1 * KIB);
    free(text);
    done(x);
    buf_clear(&probe.seen);
}

static void a_handler_adds_trailers_and_binary_ones_are_encoded(void **state) {
    (void)state;
    for (int established = 0; established < 2; established++) {
        struct exchange *x = started("/t.Probe/Unary");
        char name[] = "x-reason";
        rpc_trailer(probe.call, str_from(name), STR("because"));
        memset(name, '?', sizeof(name) - 1);
        rpc_trailer(probe.call, STR("x-raw-bin"), STR("\0\1\xFF"));
        if (established) rpc_establish(probe.call);
        rpc_end(probe.call, established ? ERR_NONE : ERR_ABORTED, STR("no"));
        struct str section = established ? fake_trailers(x) : fake_head(x);
        assert_str(fake_value(section, "x-reason"), "because");
        assert_str(fake_value(section, "x-raw-bin"), "AAH/");
        assert_str(fake_value(section, "grpc-status"), established ? "0" : "10");
        done(x);
    }
    buf_clear(&probe.seen);
}

/* --- metadata ----------------------------------------------------------------------------- */

static void add_initial(struct rpc_call *call) {
    rpc_header(call, STR("x-name"), STR("value"));
    rpc_header(call, STR("x-name"), STR("another"));
    rpc_header(call, STR("x-raw-bin"), STR("\0\1\xFF"));
}

static void a_handler_adds_fields_to_the_head(void **state) {
    (void)state;
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Unary"};
    probe.in_open = add_initial;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = started(paths[i]);
        rpc_establish(probe.call);
        assert_str(fake_head(x), "content-type: application/grpc\n"
                                 "grpc-accept-encoding: identity,gzip\n"
                                 "x-name: value\nx-name: another\nx-raw-bin: AAH/\n");
        rpc_end(probe.call, ERR_NONE, STR_EMPTY);
        ended_with(x, "0", NULL);
        done(x);
    }
}

static void initial_metadata_goes_ahead_of_a_status_that_comes_at_once(void **state) {
    (void)state;
    probe.in_open = add_initial;
    struct exchange *x = started("/t.Probe/Unary");
    rpc_trailer(probe.call, STR("x-name"), STR("last"));
    rpc_end(probe.call, ERR_ABORTED, STR("no"));
    ended_with(x, "10", "no");
    assert_str(fake_value(fake_head(x), "x-name"), "value");
    assert_str(fake_value(fake_trailers(x), "x-name"), "last");
    done(x);
}

static void a_head_holds_as_many_fields_as_may_be_added(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Unary");
    for (int i = 0; i < STATUS_EXTRA_MAX; i++) {
        rpc_header(probe.call, STR("a"), STR_EMPTY);
        rpc_trailer(probe.call, STR("b-bin"), STR_EMPTY);
    }
    rpc_end(probe.call, ERR_ABORTED, STR("no"));
    ended_with(x, "10", "no");
    done(x);
}

static const char *const values[] = {"AAH/",         "AAH/,Zg==", "",
                                     " Zm8 , Zm9v,", "no base64", NULL};

static void look_at_values(struct rpc_call *call) {
    /* clang-format off */
    static const struct {
        bool fine;
        struct str bytes;
    } expected[] = {
        {true, STR_INIT("\0\1\xFF")}, {true, STR_INIT("\0\1\xFF")}, {true, STR_INIT("f")},
        {true, STR_INIT("")}, {true, STR_INIT("fo")}, {true, STR_INIT("foo")},
        {true, STR_INIT("")}, {false, STR_INIT("")},
    };
    /* clang-format on */
    struct buf out;
    struct err e;
    buf_init(&out, 16);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        buf_clear(&out);
        assert_int_equal(rpc_metadata_bin(call, STR("x-bin"), i, &out, &e), expected[i].fine);
        assert_true(str_equal(buf_str(&out), expected[i].bytes));
        if (!expected[i].fine) assert_int_equal(e.code, ERR_INTERNAL);
    }
    assert_false(rpc_metadata_bin(call, STR("x-bin"), ARRAY_LEN(expected), &out, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_false(rpc_metadata_bin(call, STR("y-bin"), 0, &out, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    buf_done(&out);

    assert_str(lent_read(rpc_metadata_at(call, STR("x"), 0)), "a,b");
    assert_str(lent_read(rpc_metadata_at(call, STR("x"), 1)), "c");
    assert_null(lent_read(rpc_metadata_at(call, STR("x"), 2)).at);
}

static void values_are_found_one_by_one_and_binary_ones_also_after_commas(void **state) {
    (void)state;
    probe.in_open = look_at_values;
    struct exchange *x = request("/t.Probe/Unary");
    for (size_t i = 0; values[i]; i++) fake_field(x, "x-bin", values[i]);
    fake_field(x, "x", "a,b");
    fake_field(x, "x", "c");
    start(x);
    fake_leave(x);
    done(x);
}

/* --- compression -------------------------------------------------------------------------- */

static void wish_for_gzip(struct rpc_call *call) {
    rpc_compress(call, RPC_GZIP);
}

/* A message that is worth it. */
static struct str long_message(void) {
    static char text[1000];
    memset(text, 'x', sizeof(text));
    return str_of(text, sizeof(text));
}

/* The one message that was sent, as it was before it was compressed. */
static void sent_compressed(struct exchange *x, struct str expected) {
    settle();
    struct str sent = fake_sent(x);
    struct err e;
    struct buf out;
    buf_init(&out, 1 * MIB);
    assert_true(sent.len > GRPC_PREFIX_BYTES && sent.len < expected.len);
    assert_int_equal(sent.at[0], 1);
    assert_int_equal((unsigned char)sent.at[4], sent.len - GRPC_PREFIX_BYTES);
    assert_true(gzip_inflate(str_skip(sent, GRPC_PREFIX_BYTES), &out, &e));
    assert_true(str_equal(buf_str(&out), expected));
    buf_done(&out);
}

static void messages_are_compressed_when_both_sides_want_it(void **state) {
    (void)state;
    static const char *const lists[] = {"gzip", "identity, gzip", "identity,deflate,gzip "};
    static const char *const paths[] = {"/t.Probe/Talk", "/t.Probe/Unary"};
    probe.in_open = wish_for_gzip;
    for (size_t i = 0; i < ARRAY_LEN(lists) * ARRAY_LEN(paths); i++) {
        struct exchange *x = request(paths[i % ARRAY_LEN(paths)]);
        fake_field(x, "grpc-accept-encoding", lists[i / ARRAY_LEN(paths)]);
        start(x);
        rpc_send(probe.call, long_message());
        assert_str(fake_value(fake_head(x), "grpc-encoding"), "gzip");
        sent_compressed(x, long_message());
        fake_leave(x);
        done(x);
    }
}

static void nothing_is_compressed_for_a_client_that_did_not_ask(void **state) {
    (void)state;
    static const char *const lists[] = {NULL, "", "identity", "gzip2,deflate"};
    probe.in_open = wish_for_gzip;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct exchange *x = request("/t.Probe/Talk");
        if (lists[i]) fake_field(x, "grpc-accept-encoding", lists[i]);
        start(x);
        rpc_send(probe.call, long_message());
        settle();
        assert_null(fake_value(fake_head(x), "grpc-encoding").at);
        assert_int_equal(fake_sent(x).len, GRPC_PREFIX_BYTES + long_message().len);
        fake_leave(x);
        done(x);
    }
}

static void a_wish_after_the_head_comes_too_late(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Talk");
    fake_field(x, "grpc-accept-encoding", "gzip");
    start(x);
    rpc_compress(probe.call, RPC_GZIP);
    rpc_send(probe.call, long_message());
    settle();
    assert_int_equal(fake_sent(x).len, GRPC_PREFIX_BYTES + long_message().len);
    fake_leave(x);
    done(x);
}

static void each_message_may_be_compressed_or_not(void **state) {
    (void)state;
    probe.in_open = wish_for_gzip;
    struct exchange *x = request("/t.Probe/Talk");
    fake_field(x, "grpc-accept-encoding", "gzip");
    start(x);
    rpc_compress(probe.call, RPC_PLAIN);
    rpc_send(probe.call, long_message());
    settle();
    size_t plain = fake_sent(x).len;
    assert_int_equal(plain, GRPC_PREFIX_BYTES + long_message().len);
    rpc_compress(probe.call, RPC_GZIP);
    rpc_send(probe.call, long_message());
    settle();
    assert_int_equal(fake_sent(x).at[plain], 1);
    fake_leave(x);
    done(x);
}

static void a_message_that_gets_no_shorter_goes_as_it_is(void **state) {
    (void)state;
    probe.in_open = wish_for_gzip;
    struct exchange *x = request("/t.Probe/Talk");
    fake_field(x, "grpc-accept-encoding", "gzip");
    start(x);
    rpc_send(probe.call, STR(""));
    rpc_send(probe.call, STR("token"));
    settle();
    sent_is(x, "|token");
    fake_leave(x);
    done(x);
}

/* --- the queue --------------------------------------------------------------------------- */

static void a_handler_hears_when_its_queue_has_drained(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    fake_stop_reading(x);
    rpc_send(probe.call, STR("0123456789"));
    rpc_wake_at(probe.call, 4);
    settle();
    seen_is("open");
    fake_read(x, 10);
    settle();
    seen_is("");
    fake_read(x, 1);
    settle();
    seen_is("drained");
    fake_read_all(x);
    settle();
    seen_is("");
    rpc_wake_at(probe.call, 0);
    rpc_end(probe.call, ERR_NONE, STR_EMPTY);
    rpc_wake_at(probe.call, 0);
    done(x);
    seen_is("closed");
}

static void send_large(size_t len) {
    char *bytes = calloc(1, len);
    rpc_send(probe.call, str_of(bytes, len));
    free(bytes);
}

static void a_message_that_does_not_fit_is_not_sent_in_part(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    settle();
    fake_stop_reading(x);
    rpc_send(probe.call, STR("whole"));
    send_large(FAKE_QUEUE_BYTES);
    /* The handler hears at the end of the turn; until then it may go on, in vain. */
    seen_is("open");
    rpc_send(probe.call, STR("lost"));
    send_large(FAKE_QUEUE_BYTES);
    assert_int_equal(rpc_queued(probe.call), 10);
    settle();
    seen_is("stalled");
    fake_read_all(x);
    settle();
    sent_is(x, "whole");
    ended_with(x, "8", "too much waits to be read");
    done(x);
    seen_is("closed");
}

static void a_handler_that_ended_before_the_notice_gets_none(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    send_large(FAKE_QUEUE_BYTES);
    rpc_end(probe.call, ERR_NONE, STR_EMPTY);
    ended_with(x, "8", "too much waits to be read");
    done(x);
    seen_is("open closed");
}

static void open_may_send_too_much(void **state) {
    (void)state;
    probe.sends_in_open = FAKE_QUEUE_BYTES;
    struct exchange *x = started("/t.Probe/Talk");
    done(x);
    seen_is("open stalled closed");
}

static void a_peer_that_leaves_before_the_notice_changes_nothing(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    fake_leave(x);
    send_large(FAKE_QUEUE_BYTES);
    done(x);
    seen_is("open stalled closed");
}

/* --- deadlines (G5) ---------------------------------------------------------------------- */

static void the_clients_deadline_ends_the_call(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Unary");
    fake_field(x, "grpc-timeout", "100m");
    start(x);
    loop_advance(probe.loop, 99);
    assert_int_equal(rpc_time_left_ms(probe.call), 1);
    seen_is("open");
    loop_advance(probe.loop, 1);
    seen_is("deadline closed");
    refused_with(x, "4", "deadline exceeded");
    done(x);
}

static void the_nearer_of_two_deadlines_counts(void **state) {
    (void)state;
    static const struct {
        const char *timeout;
        uint64_t ms;
    } rows[] = {{NULL, PROBE_BOUND_MS}, {"1S", 1000}, {"99999999H", PROBE_BOUND_MS}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request("/t.Probe/Bounded");
        if (rows[i].timeout) fake_field(x, "grpc-timeout", rows[i].timeout);
        start(x);
        assert_int_equal(rpc_time_left_ms(probe.call), rows[i].ms);
        rpc_send(probe.call, STR("partial"));
        loop_advance(probe.loop, rows[i].ms - 1);
        assert_false(fake_ended(x));
        loop_advance(probe.loop, 1);
        ended_with(x, "4", "deadline exceeded");
        sent_is(x, "partial");
        done(x);
        seen_is("open deadline closed");
    }
    struct exchange *x = started("/t.Probe/Talk");
    assert_true(rpc_time_left_ms(probe.call) == UINT64_MAX);
    fake_leave(x);
    done(x);
}

static void a_call_that_is_over_has_no_deadline(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Talk");
    fake_field(x, "grpc-timeout", "1S");
    start(x);
    fake_stop_reading(x);
    rpc_send(probe.call, STR("unread"));
    rpc_end(probe.call, ERR_NONE, STR_EMPTY);
    loop_advance(probe.loop, 2000);
    seen_is("open");
    fake_read_all(x);
    ended_with(x, "0", NULL);
    done(x);
    seen_is("closed");
}

/* --- exactly once ------------------------------------------------------------------------ */

static void a_peer_that_leaves_is_noticed_at_once(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    send_messages(x, "one|two");
    fake_leave(x);
    done(x);
    seen_is("open [one] left closed");
}

static unsigned dice(unsigned *seed, unsigned sides) {
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % sides;
}

/* Something that may happen to a call that the handler believes to be open, or later. */
static void happen(struct exchange *x, unsigned what, bool *body_ended) {
    bool live = probe.call && call_is_live(probe.call);
    bool sends = live || (probe.call && probe.call->state == CALL_CUT);
    switch (what) {
    case 0:
        if (!*body_ended) send_messages(x, "a|b");
        break;
    case 1:
        if (!*body_ended) fake_body(x, STR("\0"));
        break;
    case 2:
        if (!*body_ended) fake_body_end(x);
        *body_ended = true;
        break;
    case 3:
        if (sends) rpc_send(probe.call, STR("reply"));
        break;
    case 4:
        if (sends) send_large(FAKE_QUEUE_BYTES);
        break;
    case 5:
        if (sends) rpc_end(probe.call, ERR_ABORTED, STR("no"));
        break;
    case 6:
        if (probe.call) rpc_next(probe.call);
        break;
    case 7: loop_advance(probe.loop, 400); break;
    case 8: loop_advance(probe.loop, 20000); break;
    case 9: fake_stop_reading(x); break;
    case 10: fake_read(x, 3); break;
    case 11: fake_read_all(x); break;
    case 12: fake_leave(x); break;
    case 13: rpc_site_stop(probe.site); break;
    case 14: rpc_site_cut(probe.site); break;
    case 15:
        if (probe.call) rpc_wake_at(probe.call, 2);
        break;
    case 16:
        if (live) rpc_hurry(probe.call, 3000, STR("closing"));
        break;
    default: settle(); break;
    }
}

static size_t count_word(const char *word) {
    size_t count = 0;
    struct str rest = buf_str(&probe.seen);
    while (rest.at) {
        if (str_equal(str_split(rest, ' ', &rest), str_from(word))) count++;
    }
    return count;
}

static void whatever_happens_a_call_opens_once_and_closes_once(void **state) {
    (void)state;
    static const char *const ends[] = {"left", "deadline", "stalled", "stopped", "broken"};
    for (unsigned round = 1; round <= 3000; round++) {
        unsigned seed = round;
        rpc_site_free(probe.site);
        probe.site = rpc_site_new(probe.loop, &probe_service, 1);
        probe.asks = dice(&seed, 2);
        probe.echoes = dice(&seed, 2);
        probe.ends_ok = dice(&seed, 2);
        probe.ends_in_message = dice(&seed, 8) == 0;
        probe.ends_at_stop = dice(&seed, 2);
        struct exchange *x = request(probe_methods[dice(&seed, 5)].path.at);
        if (dice(&seed, 3) == 0) fake_field(x, "grpc-timeout", "1S");
        start(x);
        bool body_ended = false;
        for (int step = 0; step < 24; step++) happen(x, dice(&seed, 20), &body_ended);
        fake_leave(x);
        settle();
        assert_true(fake_closed(x));
        assert_int_equal(count_word("open"), 1);
        assert_int_equal(count_word("closed"), 1);
        assert_true(str_ends(buf_str(&probe.seen), STR("closed")));
        size_t endings = 0;
        for (size_t i = 0; i < ARRAY_LEN(ends); i++) endings += count_word(ends[i]);
        assert_true(endings <= 1);
        buf_clear(&probe.seen);
        done(x);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_states_is_allowed_or_not),
        TEST(an_open_call_is_small),
        TEST(a_unary_call_answers_with_one_message_and_ok),
        TEST(a_call_established_at_accept_sends_its_head_at_once),
        TEST(a_call_established_by_its_handler_waits_for_it),
        TEST(an_error_before_anything_was_sent_is_trailers_only),
        TEST(open_may_send_and_end),
        TEST(messages_are_encoded_in_place_and_leave_together),
        TEST(every_code_has_its_grpc_number),
        TEST(a_status_message_is_escaped_and_cut),
        TEST(a_handler_adds_trailers_and_binary_ones_are_encoded),
        TEST(a_handler_adds_fields_to_the_head),
        TEST(initial_metadata_goes_ahead_of_a_status_that_comes_at_once),
        TEST(a_head_holds_as_many_fields_as_may_be_added),
        TEST(values_are_found_one_by_one_and_binary_ones_also_after_commas),
        TEST(messages_are_compressed_when_both_sides_want_it),
        TEST(nothing_is_compressed_for_a_client_that_did_not_ask),
        TEST(a_wish_after_the_head_comes_too_late),
        TEST(each_message_may_be_compressed_or_not),
        TEST(a_message_that_gets_no_shorter_goes_as_it_is),
        TEST(a_handler_hears_when_its_queue_has_drained),
        TEST(a_message_that_does_not_fit_is_not_sent_in_part),
        TEST(a_handler_that_ended_before_the_notice_gets_none),
        TEST(open_may_send_too_much),
        TEST(a_peer_that_leaves_before_the_notice_changes_nothing),
        TEST(the_clients_deadline_ends_the_call),
        TEST(the_nearer_of_two_deadlines_counts),
        TEST(a_call_that_is_over_has_no_deadline),
        TEST(a_peer_that_leaves_is_noticed_at_once),
        TEST(whatever_happens_a_call_opens_once_and_closes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
