/* The client library over HTTP: server-sent events of /stream and of a run. */
#include "client/peer.h"

#include <weir/client.h>

#define HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
#define VERSIONED HEAD "x-runtime-contract-version: 1\r\nconnection: close\r\n\r\n"
#define BARE HEAD "connection: close\r\n\r\n"
#define CHUNKED HEAD "x-runtime-contract-version: 1\r\ntransfer-encoding: chunked\r\n\r\n"
#define DELTA "data: {\"delta\":\"a\"}\n\n"
#define TEXT "data: {\"text\":\"b\"}\n\n"
#define ERROR "event: error\ndata: {\"error\":\"it broke\"}\n\n"
#define DONE "data: [DONE]\n\n"
#define LONG_EVENTS 2000

struct row {
    const char *method, *answer;
    size_t count;
    const char *text, *outcome;
    unsigned faults;
    int repeat;
    const char *reason;
};

static const struct row rows[] = {
    /* clang-format off */
    {"/stream", VERSIONED DELTA TEXT DONE,       3, "ab", "completed", 0, WEIR_REPEAT_NO, ""},
    {"/stream", BARE DELTA DONE,                 2, "a",  "completed", WEIR_FAULT_VERSION, WEIR_REPEAT_NO, ""},
    {"/stream", HEAD "x-runtime-contract-version: 2\r\nconnection: close\r\n\r\n" DONE, 1, "", "completed", WEIR_FAULT_VERSION, WEIR_REPEAT_NO, ""},
    {"/stream", VERSIONED DELTA,                 1, "a",  "truncated", WEIR_FAULT_NO_END, WEIR_REPEAT_UNKNOWN, ""},
    {"/stream", VERSIONED DELTA ERROR DONE,      3, "a",  "failed",    0, WEIR_REPEAT_UNKNOWN, ""},
    {"/stream", VERSIONED DELTA ERROR,           2, "a",  "failed",    WEIR_FAULT_NO_END, WEIR_REPEAT_UNKNOWN, ""},
    {"/stream", VERSIONED DONE DELTA DELTA,      1, "",   "completed", WEIR_FAULT_AFTER_END, WEIR_REPEAT_NO, ""},
    {"/stream", CHUNKED "15\r\ndata: {\"delta\":\"a\"}\n\n\r\n", 1, "a", "broken", 0, WEIR_REPEAT_UNKNOWN, ""},
    {"/stream", "HTTP/1.1 401 Unauthorized\r\nx-runtime-contract-version: 1\r\ncontent-length: 54\r\n\r\n{\"error\":{\"code\":\"UNAUTHORIZED\",\"message\":\"no token\"}}", 0, "", "refused", 0, WEIR_REPEAT_NO, "UNAUTHORIZED"},
    {"/stream", "HTTP/1.1 503 x\r\nx-runtime-contract-version: 1\r\ncontent-length: 0\r\n\r\n", 0, "", "refused", 0, WEIR_REPEAT_YES, "UNSPECIFIED"},
    {"/stream", "HTTP/1.1 500 x\r\nx-runtime-contract-version: 1\r\ncontent-length: 0\r\n\r\n", 0, "", "unknown", 0, WEIR_REPEAT_UNKNOWN, ""},
    {"/stream", "HTTP/1.1 200 OK\r\nx-runtime-contract-version: 1\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi", 0, "", "unknown", 0, WEIR_REPEAT_UNKNOWN, ""},
    {"runs/7/events", BARE "id: 1-1\nevent: text\ndata: {\"text\":\"a\"}\n\nid: 1-2\nevent: done\ndata: {}\n\n", 2, "a", "completed", 0, WEIR_REPEAT_NO, ""},
    {"runs/7/events", BARE "id: 1-1\nevent: text\ndata: {\"text\":\"a\"}\n\n", 1, "a", "truncated", WEIR_FAULT_NO_END, WEIR_REPEAT_YES, ""},
    {"runs/7/events", "HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n", 0, "", "refused", 0, WEIR_REPEAT_NO, "UNSPECIFIED"},
    /* clang-format on */
};

static bool answer(struct peer *peer, int fd, struct str request) {
    const struct row *row = peer->ctx;
    bool run = str_starts(request, STR("GET /weir/v1/runs/7/events HTTP/1.1\r\n"));
    bool turn =
        str_starts(request, STR("POST /stream HTTP/1.1\r\n")) &&
        str_ends(request, STR("{\"input\":\"hi\"}")) &&
        str_find_nocase(request, STR("x-runtime-contract-version: 1\r\n")) < request.len;
    assert(run || turn);
    assert(str_find_nocase(request, STR("authorization: Bearer t\r\n")) < request.len);
    peer_say(peer, fd, row->answer);
    return false;
}

static bool answer_bytewise(struct peer *peer, int fd, struct str request) {
    (void)request;
    const struct row *row = peer->ctx;
    for (const char *at = row->answer; *at; at++) {
        if (!peer_send(peer, fd, str_of(at, 1))) break;
    }
    return false;
}

static struct weir_client *client_of(const struct peer *peer) {
    char address[64];
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", peer->port);
    return weir_client_new(
        &(struct weir_client_options){
            .size = sizeof(struct weir_client_options), .address = address, .token = "t"},
        NULL, 0);
}

static struct weir_stream *open_stream(struct weir_client *client, const char *method) {
    struct weir_stream *stream = weir_stream_open(
        client,
        &(struct weir_stream_options){
            .size = sizeof(struct weir_stream_options),
            .method = method,
            .queue_bytes = 16 * KIB,
            .json = strcmp(method, "/stream") == 0 ? "{\"input\":\"hi\"}" : NULL},
        NULL, 0);
    assert_non_null(stream);
    return stream;
}

static void check(const struct row *row, peer_fn *fn) {
    struct peer peer;
    struct weir_frame frame = {.size = sizeof(frame)};
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    struct buf text;
    size_t count = 0;
    buf_init(&text, KIB);
    peer_start(&peer, fn, (void *)(uintptr_t)row);
    struct weir_client *client = client_of(&peer);
    struct weir_stream *stream = open_stream(client, row->method);
    for (; weir_stream_next(stream, &frame, -1) == WEIR_NEXT_FRAME; count++)
        buf_append(&text, str_of(frame.text, frame.text_len));
    assert_true(weir_stream_outcome(stream, &outcome));
    if (strcmp(outcome.name, row->outcome) != 0)
        fail_msg("%s: %s (%s), not %s", row->answer, outcome.name, outcome.message,
                 row->outcome);
    assert_int_equal(count, row->count);
    assert_str(buf_str(&text), row->text);
    assert_int_equal(outcome.faults, row->faults);
    assert_int_equal(outcome.repeat, row->repeat);
    assert_string_equal(outcome.reason, row->reason);
    weir_stream_free(stream);
    weir_client_free(client);
    peer_stop(&peer);
    buf_done(&text);
}

static void each_answer_has_its_outcome(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check(&rows[i], answer);
        check(&rows[i], answer_bytewise);
    }
}

static void events_are_shown_as_json(void **state) {
    (void)state;
    const struct row row = {.answer =
                                VERSIONED "event: step\ndata: {\"description\":1}\n\n" DONE};
    struct peer peer;
    struct weir_frame frame = {.size = sizeof(frame)};
    peer_start(&peer, answer, (void *)(uintptr_t)&row);
    struct weir_client *client = client_of(&peer);
    struct weir_stream *stream = open_stream(client, "/stream");
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_string_equal(frame.type, "step");
    assert_string_equal(weir_stream_json(stream),
                        "{\"event\":\"step\",\"data\":{\"description\":1}}");
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_string_equal(weir_stream_json(stream),
                        "{\"event\":\"message\",\"data\":\"[DONE]\"}");
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_END);
    assert_null(weir_stream_json(stream));
    weir_stream_free(stream);
    weir_client_free(client);
    peer_stop(&peer);
}

static bool answer_at_length(struct peer *peer, int fd, struct str request) {
    static char event[8 * 1024];
    (void)request;
    memset(event, 'x', sizeof(event));
    memcpy(event, "data: {\"delta\":\"", 16);
    memcpy(event + sizeof(event) - 4, "\"}\n\n", 4);
    peer_say(peer, fd, VERSIONED);
    for (int i = 0; i < LONG_EVENTS; i++) {
        if (!peer_send(peer, fd, str_of(event, sizeof(event)))) return false;
    }
    peer_say(peer, fd, DONE);
    return false;
}

static void a_slow_reader_loses_nothing_and_holds_the_server_back(void **state) {
    (void)state;
    struct peer peer;
    struct weir_frame frame = {.size = sizeof(frame)};
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    size_t count = 0;
    peer_start(&peer, answer_at_length, NULL);
    struct weir_client *client = client_of(&peer);
    struct weir_stream *stream = open_stream(client, "/stream");
    for (; weir_stream_next(stream, &frame, -1) == WEIR_NEXT_FRAME; count++) {
        if (!frame.last) assert_int_equal(frame.text_len, 8 * 1024 - 20);
        /* What lies between us is what the sockets hold, not the whole stream. */
        if (count == 0) assert_true(atomic_load(&peer.sent) < (size_t)LONG_EVENTS * 8 * 1024);
    }
    assert_int_equal(count, LONG_EVENTS + 1);
    assert_true(weir_stream_outcome(stream, &outcome));
    assert_string_equal(outcome.name, "completed");
    weir_stream_free(stream);
    weir_client_free(client);
    peer_stop(&peer);
}

static bool answer_and_wait(struct peer *peer, int fd, struct str request) {
    (void)request;
    peer_say(peer, fd, VERSIONED DELTA);
    return peer_wait(peer, fd);
}

static void a_cancelled_call_closes_its_connection(void **state) {
    (void)state;
    struct peer peer;
    struct weir_frame frame = {.size = sizeof(frame)};
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    peer_start(&peer, answer_and_wait, NULL);
    struct weir_client *client = client_of(&peer);
    struct weir_stream *stream = open_stream(client, "/stream");
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    weir_stream_cancel(stream);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_END);
    assert_true(weir_stream_outcome(stream, &outcome));
    assert_string_equal(outcome.name, "cancelled");
    weir_stream_free(stream);
    peer_stop(&peer); /* returns only when the connection was closed */
    assert_true(atomic_load(&peer.saw_close));
    weir_client_free(client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_has_its_outcome),
        cmocka_unit_test(events_are_shown_as_json),
        cmocka_unit_test(a_slow_reader_loses_nothing_and_holds_the_server_back),
        cmocka_unit_test(a_cancelled_call_closes_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
