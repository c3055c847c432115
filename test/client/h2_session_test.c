/* The client's side of an HTTP/2 connection, against a server in memory. */
#include "client/h2_session.h"

#include "base/mem.h"
#include "client/h2_peer.h"
#include "helper/moves.h"

#include <stdlib.h>

static void a_stream_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"waiting asking", "waiting over", "asking reading",
                                        "asking over", "reading over"};
    assert_moves(h2_stream_states, H2_STREAM_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- who asks ----------------------------------------------------------------------------- */

struct asker {
    struct h2_stream *stream;
    struct buf heard; /* "field=value;200:body|end" */
    size_t bytes, takes_max, drained;
    bool pauses, cancels, ended;
    enum err_code code;
    struct h2_end end;
};

static void on_field(struct str name, struct str value, void *ctx) {
    struct asker *asker = ctx;
    buf_printf(&asker->heard, STR_FMT "=" STR_FMT ";", STR_ARG(name), STR_ARG(value));
}

static void on_head(unsigned status, void *ctx) {
    struct asker *asker = ctx;
    buf_printf(&asker->heard, "%u:", status);
    if (asker->cancels) h2_stream_cancel(asker->stream);
}

static size_t on_body(struct str bytes, void *ctx) {
    struct asker *asker = ctx;
    assert_true(bytes.len > 0);
    size_t takes =
        asker->takes_max && asker->takes_max < bytes.len ? asker->takes_max : bytes.len;
    asker->bytes += takes;
    buf_append(&asker->heard, str_head(bytes, takes));
    if (asker->pauses || takes < bytes.len) h2_stream_pause(asker->stream);
    return takes;
}

static void on_drained(void *ctx) {
    ((struct asker *)ctx)->drained++;
}

static void on_end(const struct h2_end *end, void *ctx) {
    struct asker *asker = ctx;
    assert_false(asker->ended);
    asker->ended = true;
    asker->end = *end;
    asker->code = end->why ? end->why->code : ERR_NONE;
    asker->end.why = NULL;
    asker->stream = NULL;
    buf_append(&asker->heard, STR("|end"));
}

static const struct h2_events events = {on_field, on_head, on_body, on_drained, on_end};

static void ask(struct asker *asker, struct h2_session *session, const char *path) {
    const struct http_header field = {STR("te"), STR("trailers")};
    const struct h2_head head = {.method = STR("POST"),
                                 .scheme = STR("http"),
                                 .authority = STR("there:1"),
                                 .path = str_from(path),
                                 .fields = &field,
                                 .field_count = 1};
    *asker = (struct asker){0};
    buf_init(&asker->heard, 4 * MIB);
    asker->stream = h2_stream_new(session, &head, &events, asker);
}

static void ask_whole(struct asker *asker, struct h2_session *session, const char *path) {
    ask(asker, session, path);
    h2_stream_finish(asker->stream);
}

/* --- both sides --------------------------------------------------------------------------- */

struct pair {
    struct h2_session *session;
    struct h2_peer peer;
    bool broken;
    struct err why;
};

static void on_output(void *ctx) {
    (void)ctx;
}

/* By the path: "/7" answers with 7 bytes, "/silent" not at all, "/mid" begins, "/echo" repeats. */
static void on_request(struct h2_peer *peer, int32_t id, struct str path, bool whole) {
    static char bytes[256 * KIB];
    uint64_t count;
    memset(bytes, 'x', sizeof(bytes));
    if (!whole) return;
    if (str_to_u64(str_skip(path, 1), &count))
        h2_peer_answer(peer, id, str_of(bytes, (size_t)count), "0");
    else if (str_equal(path, STR("/echo")))
        h2_peer_answer(peer, id, buf_str(&h2_peer_stream(peer, id)->heard), NULL);
    else if (str_equal(path, STR("/mid"))) {
        h2_peer_begin(peer, id, "200", "0");
        h2_peer_say(peer, id, STR("half"), false);
    }
}

static void pair_open(struct pair *pair, uint32_t max_streams) {
    *pair = (struct pair){.session = h2_session_new(H2_ASKS_AT_ONCE, on_output, NULL)};
    h2_peer_open(&pair->peer, max_streams, on_request, NULL);
}

static void pair_shut(struct pair *pair) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "over");
    h2_session_break(pair->session, &why);
    h2_session_free(pair->session);
    h2_peer_shut(&pair->peer);
}

static int setup(void **state) {
    struct pair *pair = MEM_NEW(struct pair);
    pair_open(pair, 0);
    *state = pair;
    return 0;
}

static int teardown(void **state) {
    struct pair *pair = *state;
    pair_shut(pair);
    free(pair);
    return 0;
}

/* Bytes to and fro until neither has any. */
static void exchange(struct pair *pair) {
    struct str bytes;
    bool busy = true;
    h2_peer_settle(&pair->peer);
    while (busy) {
        busy = false;
        while ((bytes = h2_session_pull(pair->session)).len) {
            h2_peer_feed(&pair->peer, bytes);
            busy = true;
        }
        struct buf out = pair->peer.out;
        buf_init(&pair->peer.out, 64 * MIB);
        if (out.len && !pair->broken) {
            busy = true;
            pair->broken = !h2_session_feed(pair->session, buf_str(&out), &pair->why);
        }
        buf_done(&out);
        h2_peer_settle(&pair->peer);
    }
}

#define HEAD "content-type=application/grpc;x-said=by the server;200:"

static void calls_share_a_connection(void **state) {
    struct pair *pair = *state;
    struct asker askers[20];
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) ask_whole(&askers[i], pair->session, "/3");
    exchange(pair);
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        assert_str(buf_str(&askers[i].heard), HEAD "xxxgrpc-status=0;|end");
        assert_int_equal(askers[i].code, ERR_NONE);
        buf_done(&askers[i].heard);
    }
    assert_int_equal(pair->peer.requests, 20);
    assert_int_equal(pair->peer.resets, 0);
    assert_int_equal(h2_session_streams(pair->session), 0);
}

static void the_request_is_written_in_pieces(void **state) {
    struct pair *pair = *state;
    struct asker asker;
    ask(&asker, pair->session, "/echo");
    exchange(pair);
    assert_true(h2_stream_write(asker.stream, STR("one,")));
    exchange(pair);
    assert_int_equal(h2_stream_unsent(asker.stream), 0);
    assert_int_equal(asker.drained, 1);
    assert_true(h2_stream_write(asker.stream, STR("two")));
    h2_stream_finish(asker.stream);
    exchange(pair);
    assert_str(buf_str(&asker.heard), HEAD "one,two|end");
    buf_done(&asker.heard);
}

static void more_calls_than_the_server_allows_wait(void **state) {
    (void)state;
    struct pair pair;
    struct asker askers[5];
    pair_open(&pair, 2);
    for (size_t i = 0; i < ARRAY_LEN(askers); i++)
        ask_whole(&askers[i], pair.session, "/silent");
    exchange(&pair);
    assert_int_equal(pair.peer.requests, 2);
    assert_false(h2_stream_waits(askers[1].stream));
    assert_true(h2_stream_waits(askers[2].stream));
    h2_stream_cancel(askers[2].stream); /* never sent */
    h2_stream_cancel(askers[0].stream);
    exchange(&pair);
    assert_int_equal(pair.peer.requests, 3);
    assert_int_equal(pair.peer.resets, 1);
    assert_int_equal(pair.peer.reset_code, NGHTTP2_CANCEL);
    h2_peer_answer(&pair.peer, 3, STR("late"), NULL);
    exchange(&pair);
    assert_str(buf_str(&askers[1].heard), HEAD "late|end");
    assert_int_equal(pair.peer.requests, 4);
    pair_shut(&pair);
    assert_int_equal(askers[3].code, ERR_UNAVAILABLE);
    assert_false(askers[3].end.never_seen);
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) buf_done(&askers[i].heard);
}

static void a_paused_reader_closes_its_window_only(void **state) {
    struct pair *pair = *state;
    struct asker slow, fast[8];
    ask_whole(&slow, pair->session, "/200000");
    slow.pauses = true;
    exchange(pair);
    size_t left = h2_peer_stream(&pair->peer, 1)->body.len;
    assert_int_equal(left, 200000 - H2_WINDOW_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(fast); i++) ask_whole(&fast[i], pair->session, "/200000");
    exchange(pair);
    for (size_t i = 0; i < ARRAY_LEN(fast); i++) {
        assert_int_equal(fast[i].bytes, 200000);
        buf_done(&fast[i].heard);
    }
    assert_int_equal(h2_peer_stream(&pair->peer, 1)->body.len, left); /* not a byte more */
    assert_false(slow.ended);
    for (int turns = 0; !slow.ended; turns++) {
        assert_true(turns < 1000);
        h2_stream_resume(slow.stream);
        exchange(pair);
    }
    assert_int_equal(slow.bytes, 200000);
    assert_int_equal(slow.code, ERR_NONE);
    buf_done(&slow.heard);
}

static void a_reader_may_take_a_byte_at_a_time(void **state) {
    struct pair *pair = *state;
    struct asker asker;
    ask_whole(&asker, pair->session, "/300");
    asker.takes_max = 1;
    exchange(pair);
    assert_int_equal(asker.bytes, 1);
    while (!asker.ended) h2_stream_resume(asker.stream);
    assert_int_equal(asker.bytes, 300);
    buf_done(&asker.heard);
}

static void a_call_cancelled_in_its_callback_hears_no_more(void **state) {
    struct pair *pair = *state;
    struct asker asker;
    ask_whole(&asker, pair->session, "/100000");
    asker.cancels = true;
    exchange(pair);
    assert_str(buf_str(&asker.heard), HEAD);
    assert_int_equal(pair->peer.resets, 1);
    assert_int_equal(h2_session_streams(pair->session), 0);
    buf_done(&asker.heard);
}

static void what_a_goaway_leaves_out_was_never_seen(void **state) {
    (void)state;
    struct pair pair;
    struct asker askers[4];
    pair_open(&pair, 3);
    for (size_t i = 0; i < ARRAY_LEN(askers); i++)
        ask_whole(&askers[i], pair.session, "/silent");
    exchange(&pair);
    assert_false(h2_session_drains(pair.session));
    h2_peer_goaway(&pair.peer, 1, NGHTTP2_ENHANCE_YOUR_CALM);
    exchange(&pair);
    assert_true(h2_session_drains(pair.session));
    assert_string_equal(h2_session_farewell(pair.session), "ENHANCE_YOUR_CALM");
    assert_false(askers[0].ended); /* it goes on */
    for (size_t i = 1; i < ARRAY_LEN(askers); i++) {
        assert_true(askers[i].ended && askers[i].end.never_seen);
        assert_int_equal(askers[i].code, ERR_UNAVAILABLE);
    }
    h2_peer_answer(&pair.peer, 1, STR("still"), NULL);
    exchange(&pair);
    assert_str(buf_str(&askers[0].heard), HEAD "still|end");
    assert_true(h2_session_over(pair.session));
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) buf_done(&askers[i].heard);
    pair_shut(&pair);
}

static void a_refused_stream_was_never_seen(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        bool never_seen;
    } rows[] = {{NGHTTP2_REFUSED_STREAM, true},
                {NGHTTP2_CANCEL, false},
                {NGHTTP2_NO_ERROR, false},
                {NGHTTP2_INTERNAL_ERROR, false},
                {NGHTTP2_ENHANCE_YOUR_CALM, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pair pair;
        struct asker before, middle;
        pair_open(&pair, 0);
        ask_whole(&before, pair.session, "/silent");
        ask_whole(&middle, pair.session, "/mid");
        exchange(&pair);
        h2_peer_reset(&pair.peer, 1, rows[i].code);
        h2_peer_reset(&pair.peer, 3, rows[i].code);
        exchange(&pair);
        assert_true(before.ended && middle.ended && before.end.reset);
        assert_int_equal(before.end.code, rows[i].code);
        assert_int_equal(before.end.never_seen, rows[i].never_seen);
        assert_false(middle.end.never_seen); /* it has begun to answer */
        assert_str(buf_str(&middle.heard), HEAD "half|end");
        buf_done(&before.heard);
        buf_done(&middle.heard);
        pair_shut(&pair);
    }
}

static void a_lost_connection_ends_every_call_once(void **state) {
    (void)state;
    struct pair pair;
    struct asker sent, waits, pauses;
    struct err why;
    pair_open(&pair, 2);
    ask_whole(&sent, pair.session, "/mid");
    ask_whole(&pauses, pair.session, "/mid");
    pauses.takes_max = 1;
    ask_whole(&waits, pair.session, "/silent");
    exchange(&pair);
    err_set(&why, ERR_UNAVAILABLE, "gone");
    h2_session_break(pair.session, &why);
    assert_true(sent.ended && waits.ended && !pauses.ended);
    assert_false(sent.end.never_seen);
    assert_true(waits.end.never_seen);
    h2_session_free(pair.session); /* the paused one outlives it */
    while (!pauses.ended) h2_stream_resume(pauses.stream);
    assert_str(buf_str(&pauses.heard), HEAD "half|end");
    assert_int_equal(pauses.code, ERR_UNAVAILABLE);
    h2_peer_shut(&pair.peer);
    buf_done(&sent.heard);
    buf_done(&waits.heard);
    buf_done(&pauses.heard);
}

static void an_answer_may_end_before_its_request(void **state) {
    struct pair *pair = *state;
    struct asker asker;
    ask(&asker, pair->session, "/silent");
    exchange(pair);
    h2_peer_answer(&pair->peer, 1, STR("no"), "7");
    exchange(pair);
    assert_str(buf_str(&asker.heard), HEAD "nogrpc-status=7;|end");
    assert_int_equal(asker.code, ERR_NONE);
    assert_int_equal(pair->peer.resets, 1);
    assert_int_equal(pair->peer.reset_code, NGHTTP2_NO_ERROR);
    buf_done(&asker.heard);
}

static void a_head_that_is_too_long_ends_its_call_only(void **state) {
    struct pair *pair = *state;
    struct asker long_one, other;
    char value[1000];
    nghttp2_nv nv[100] = {h2_peer_nv(":status", "200")};
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    for (size_t i = 1; i < ARRAY_LEN(nv); i++) nv[i] = h2_peer_nv("x-long", value);
    ask_whole(&long_one, pair->session, "/silent");
    ask_whole(&other, pair->session, "/silent");
    exchange(pair);
    h2_peer_only_head(&pair->peer, 1, nv, ARRAY_LEN(nv));
    h2_peer_answer(&pair->peer, 3, STR("fine"), NULL);
    exchange(pair);
    assert_int_equal(long_one.code, ERR_TOO_LARGE);
    assert_str(buf_str(&other.heard), HEAD "fine|end");
    buf_done(&long_one.heard);
    buf_done(&other.heard);
}

static void hints_before_the_head_are_not_the_head(void **state) {
    struct pair *pair = *state;
    struct asker asker;
    const nghttp2_nv hints[] = {h2_peer_nv(":status", "103"), h2_peer_nv("link", "a")};
    ask_whole(&asker, pair->session, "/silent");
    exchange(pair);
    nghttp2_submit_headers(pair->peer.session, 0, 1, NULL, hints, ARRAY_LEN(hints), NULL);
    h2_peer_settle(&pair->peer);
    h2_peer_answer(&pair->peer, 1, STR("b"), NULL);
    exchange(pair);
    assert_str(buf_str(&asker.heard), HEAD "b|end");
    buf_done(&asker.heard);
}

static void another_protocol_is_named(void **state) {
    (void)state;
    static const char *const said[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                       "SSH-2.0-x\r\n\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        struct h2_session *session = h2_session_new(H2_ASKS_AT_ONCE, on_output, NULL);
        struct asker asker;
        struct err why;
        ask_whole(&asker, session, "/3");
        assert_false(h2_session_feed(session, str_from(said[i]), &why));
        assert_true(str_find(err_text(&why), STR("gRPC port")) < err_text(&why).len);
        h2_session_break(session, &why);
        assert_true(asker.ended);
        h2_session_free(session);
        buf_done(&asker.heard);
    }
}

static void a_ping_waits_for_its_answer(void **state) {
    struct pair *pair = *state;
    h2_session_ping(pair->session);
    assert_true(h2_session_ping_waits(pair->session));
    exchange(pair);
    assert_int_equal(pair->peer.pings, 1);
    assert_false(h2_session_ping_waits(pair->session));
}

static void there_is_room_while_the_server_answers(void **state) {
    struct pair *pair = *state;
    struct asker given_up, answered;
    exchange(pair);
    assert_true(h2_session_has_room(pair->session));
    h2_session_ping(pair->session);
    assert_false(h2_session_has_room(pair->session));
    exchange(pair);
    assert_true(h2_session_has_room(pair->session));
    ask_whole(&given_up, pair->session, "/silent");
    exchange(pair);
    assert_true(h2_session_has_room(pair->session));
    h2_stream_cancel(given_up.stream); /* nothing has come since it began */
    assert_false(h2_session_has_room(pair->session));
    ask_whole(&answered, pair->session, "/3");
    exchange(pair);
    assert_true(h2_session_has_room(pair->session));
    buf_done(&given_up.heard);
    buf_done(&answered.heard);
}

/* What is sent shares one window: without an answer to it, the next body would wait. */
static void there_is_room_for_a_body(void **state) {
    struct pair *pair = *state;
    struct asker asker;
    static char body[40 * KIB];
    exchange(pair);
    ask(&asker, pair->session, "/silent");
    assert_true(h2_stream_write(asker.stream, str_of(body, sizeof(body))));
    struct buf unread;
    struct str bytes;
    buf_init(&unread, MIB);
    while ((bytes = h2_session_pull(pair->session)).len) buf_append(&unread, bytes);
    assert_false(h2_session_has_room(pair->session));
    h2_peer_feed(&pair->peer, buf_str(&unread)); /* it opens the window again */
    exchange(pair);
    assert_true(h2_session_has_room(pair->session));
    h2_stream_cancel(asker.stream);
    buf_done(&unread);
    buf_done(&asker.heard);
}

/* --- cut anywhere ------------------------------------------------------------------------- */

struct dialog {
    struct h2_session *session;
    struct asker askers[4];
};

static void dialog_open(struct dialog *dialog) {
    dialog->session = h2_session_new(H2_ASKS_AT_ONCE, on_output, NULL);
    ask_whole(&dialog->askers[0], dialog->session, "/3");
    ask_whole(&dialog->askers[1], dialog->session, "/40");
    ask_whole(&dialog->askers[2], dialog->session, "/mid");
    ask_whole(&dialog->askers[3], dialog->session, "/echo");
}

/* All the server says in a dialog. */
static void record(struct buf *said) {
    struct dialog dialog;
    struct h2_peer peer;
    struct str bytes;
    struct err why;
    dialog_open(&dialog);
    h2_peer_open(&peer, 0, on_request, NULL);
    for (int round = 0; round < 4; round++) {
        h2_peer_settle(&peer);
        if (round == 2) h2_peer_reset(&peer, 5, NGHTTP2_INTERNAL_ERROR);
        if (round == 3) h2_peer_goaway(&peer, 7, NGHTTP2_NO_ERROR);
        h2_peer_settle(&peer);
        buf_append(said, buf_str(&peer.out));
        assert_true(h2_session_feed(dialog.session, buf_str(&peer.out), &why));
        buf_clear(&peer.out);
        while ((bytes = h2_session_pull(dialog.session)).len) h2_peer_feed(&peer, bytes);
    }
    err_set(&why, ERR_UNAVAILABLE, "over");
    h2_session_break(dialog.session, &why);
    h2_session_free(dialog.session);
    for (size_t i = 0; i < ARRAY_LEN(dialog.askers); i++) buf_done(&dialog.askers[i].heard);
    h2_peer_shut(&peer);
}

/* The bytes up to `end`, in pieces. The first is the server's settings or less, for only then
 * may all the calls be asked. */
static void feed(struct dialog *dialog, struct str said, size_t cut, size_t end) {
    enum { SETTINGS_BYTES = 9 };
    struct err why;
    for (size_t at = 0, next; at < end; at = next) {
        next = end;
        if (at < SETTINGS_BYTES && SETTINGS_BYTES < next) next = SETTINGS_BYTES;
        if (at < cut && cut < next) next = cut;
        while (h2_session_pull(dialog->session).len) {
        }
        assert_true(
            h2_session_feed(dialog->session, str_head(str_skip(said, at), next - at), &why));
    }
}

static void hear(struct str said, size_t cut, size_t end, struct buf *ret) {
    struct dialog dialog;
    struct err why;
    dialog_open(&dialog);
    feed(&dialog, said, cut, end);
    err_set(&why, ERR_UNAVAILABLE, "over");
    h2_session_break(dialog.session, &why);
    h2_session_free(dialog.session);
    for (size_t i = 0; i < ARRAY_LEN(dialog.askers); i++) {
        assert_true(dialog.askers[i].ended);
        buf_printf(ret, STR_FMT " %d\n", STR_ARG(buf_str(&dialog.askers[i].heard)),
                   (int)dialog.askers[i].code);
        buf_done(&dialog.askers[i].heard);
    }
}

static void a_server_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    struct buf said, whole;
    buf_init(&said, MIB);
    buf_init(&whole, MIB);
    record(&said);
    hear(buf_str(&said), 0, said.len, &whole);
    assert_str(buf_str(&whole),
               HEAD "xxxgrpc-status=0;|end 0\n" HEAD
                    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxgrpc-status=0;|end "
                    "0\n" HEAD "half|end 14\n" HEAD "|end 0\n");
    for (size_t cut = 0; cut <= said.len; cut++) {
        struct buf cut_in_two;
        buf_init(&cut_in_two, MIB);
        hear(buf_str(&said), cut, said.len, &cut_in_two);
        assert_true(str_equal(buf_str(&cut_in_two), buf_str(&whole)));
        buf_done(&cut_in_two);
    }
    buf_done(&whole);
    buf_done(&said);
}

/* Every call has one end, wherever the server's bytes end. */
static void no_truncated_answer_is_whole(void **state) {
    (void)state;
    struct buf said;
    buf_init(&said, MIB);
    record(&said);
    for (size_t end = 0; end < said.len; end++) {
        struct buf heard;
        buf_init(&heard, MIB);
        hear(buf_str(&said), 0, end, &heard);
        assert_true(str_find(buf_str(&heard), STR("|end 14\n")) < heard.len);
        buf_done(&heard);
    }
    buf_done(&said);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_moves_as_drawn),
        TEST(calls_share_a_connection),
        TEST(the_request_is_written_in_pieces),
        cmocka_unit_test(more_calls_than_the_server_allows_wait),
        TEST(a_paused_reader_closes_its_window_only),
        TEST(a_reader_may_take_a_byte_at_a_time),
        TEST(a_call_cancelled_in_its_callback_hears_no_more),
        cmocka_unit_test(what_a_goaway_leaves_out_was_never_seen),
        cmocka_unit_test(a_refused_stream_was_never_seen),
        cmocka_unit_test(a_lost_connection_ends_every_call_once),
        TEST(an_answer_may_end_before_its_request),
        TEST(a_head_that_is_too_long_ends_its_call_only),
        TEST(hints_before_the_head_are_not_the_head),
        cmocka_unit_test(another_protocol_is_named),
        TEST(a_ping_waits_for_its_answer),
        TEST(there_is_room_while_the_server_answers),
        TEST(there_is_room_for_a_body),
        cmocka_unit_test(a_server_reads_the_same_however_it_is_cut),
        cmocka_unit_test(no_truncated_answer_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
