/* The client library over gRPC: a server that behaves as the header x-frames says. */
#include "library/inner.h"

#include "base/mem.h"
#include "client/h2_peer.h"
#include "helper/moves.h"
#include "proto/nimi.pb.h"
#include "proto/runtime.pb.h"
#include "wire/grpc.h"

static void a_stream_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"opening running", "opening ended", "running ended"};
    assert_moves(reading_states, READING_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- the server --------------------------------------------------------------------------- */

#define LONG_TEXT_BYTES (64 * KIB)
#define LONG_FRAMES 400 /* 25 MiB */

static void put_delta(uint64_t number, struct str text, struct buf *out) {
    const struct nimi_text_stream_delta said = {.text = text};
    const struct nimi_scenario_stream_delta delta = {
        .which_delta = NIMI_SCENARIO_STREAM_DELTA_TEXT, .text = &said};
    const struct nimi_stream_scenario_event event = {.event_type = NIMI_STREAM_EVENT_DELTA,
                                                     .sequence = number,
                                                     .which_payload =
                                                         NIMI_STREAM_SCENARIO_EVENT_DELTA,
                                                     .delta = &delta};
    assert_true(pb_encode(&nimi_stream_scenario_event_table, &event, out));
}

static void put_scenario(char letter, uint64_t number, struct buf *out) {
    static char text[LONG_TEXT_BYTES];
    const struct nimi_scenario_stream_completed completed = {.finish_reason = 1};
    const struct nimi_stream_scenario_event event = {.event_type = NIMI_STREAM_EVENT_COMPLETED,
                                                     .sequence = number,
                                                     .which_payload =
                                                         NIMI_STREAM_SCENARIO_EVENT_COMPLETED,
                                                     .completed = &completed};
    if (letter == 'd') put_delta(number, STR("hi"), out);
    if (letter == 'l') {
        memset(text, 'x', sizeof(text));
        put_delta(number, str_of(text, sizeof(text)), out);
    }
    if (letter == 'C') assert_true(pb_encode(&nimi_stream_scenario_event_table, &event, out));
}

static void put_job(char letter, uint64_t number, struct buf *out) {
    const struct nimi_scenario_job job = {.job_id = STR("j"),
                                          .status = letter == 'T'
                                                        ? NIMI_SCENARIO_JOB_STATUS_COMPLETED
                                                        : NIMI_SCENARIO_JOB_STATUS_RUNNING,
                                          .progress_percent = (int32_t)number};
    const struct nimi_scenario_job_event event = {
        .event_type =
            letter == 'T' ? NIMI_SCENARIO_JOB_EVENT_COMPLETED : NIMI_SCENARIO_JOB_EVENT_RUNNING,
        .sequence = number,
        .job = &job};
    assert_true(pb_encode(&nimi_scenario_job_event_table, &event, out));
}

static void say(struct h2_peer *peer, int32_t id, char letter, uint64_t number) {
    struct buf message, framed;
    buf_init(&message, MIB);
    buf_init(&framed, MIB);
    if (letter == 'r' || letter == 'T')
        put_job(letter, number, &message);
    else
        put_scenario(letter, number, &message);
    grpc_append_message(&framed, buf_str(&message));
    h2_peer_say(peer, id, buf_str(&framed), false);
    buf_done(&framed);
    buf_done(&message);
}

/* The value of one of the request's fields; "" when it has none. */
static void field(const struct h2_peer *peer, const char *name, char *ret, size_t room) {
    const char *at = strstr(peer->fields, name);
    ret[0] = '\0';
    if (!at) return;
    at += strlen(name) + 1;
    snprintf(ret, room, "%.*s", (int)strcspn(at, ";"), at);
}

static const nghttp2_nv html[] = {
    {(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "401", 7, 3, 0}};

/* x-end: a grpc-status; "open", "reset-8", "hang-up", "go-away", "no-status". */
static void end_call(struct h2_peer *peer, int32_t id, const char *end) {
    struct h2_peer_stream *stream = h2_peer_stream(peer, id);
    if (strcmp(end, "open") == 0) return;
    if (strncmp(end, "reset-", 6) == 0) {
        h2_peer_settle(peer); /* what was said first */
        h2_peer_reset(peer, id, (uint32_t)atoi(end + 6));
        return;
    }
    if (strcmp(end, "hang-up") == 0) {
        peer->hangs_up = true;
        return;
    }
    if (strcmp(end, "go-away") == 0) {
        h2_peer_goaway(peer, 0, NGHTTP2_NO_ERROR);
        return;
    }
    stream->trailers = strcmp(end, "no-status") != 0;
    snprintf(stream->status, sizeof(stream->status), "%.7s", end);
    h2_peer_say(peer, id, STR_EMPTY, true);
}

static void answer_script(struct h2_peer *peer, int32_t id) {
    char frames[512], end[32];
    uint64_t number = 1;
    field(peer, "x-frames", frames, sizeof(frames));
    field(peer, "x-end", end, sizeof(end));
    if (strcmp(end, "http-401") == 0) {
        h2_peer_only_head(peer, id, html, 1);
        return;
    }
    if (strcmp(end, "go-away") != 0) h2_peer_begin(peer, id, "200", "0");
    for (const char *at = frames; *at; at++) {
        if (*at == 'L') { /* very many */
            for (size_t i = 0; i < LONG_FRAMES; i++) say(peer, id, 'l', number++);
        } else {
            say(peer, id, *at, number++);
        }
    }
    end_call(peer, id, end);
}

/* Converse: each request is answered by a done that says how many were heard. */
static void answer_turns(struct h2_peer *peer, int32_t id, bool whole) {
    struct h2_peer_stream *stream = h2_peer_stream(peer, id);
    struct grpc_reader reader;
    struct grpc_message message;
    struct err none;
    struct str heard = buf_str(&stream->heard);
    if (!stream->open && !whole) h2_peer_begin(peer, id, "200", "0");
    grpc_reader_init(&reader, MIB);
    size_t turns = 0;
    while (grpc_next(&reader, &heard, &message, &none) == GRPC_MESSAGE) turns++;
    assert_true(turns <= 1); /* the next one comes only after this one's done */
    grpc_reader_done(&reader);
    if (turns == 1) {
        struct buf out, framed;
        const struct crawbl_done_event done = {.model = STR("m")};
        const struct crawbl_converse_event event = {.which_event = CRAWBL_CONVERSE_EVENT_DONE,
                                                    .done = &done};
        buf_clear(&stream->heard);
        buf_init(&out, KIB);
        buf_init(&framed, KIB);
        assert_true(pb_encode(&crawbl_converse_event_table, &event, &out));
        grpc_append_message(&framed, buf_str(&out));
        h2_peer_say(peer, id, buf_str(&framed), false);
        buf_done(&framed);
        buf_done(&out);
    }
    if (whole) h2_peer_say(peer, id, STR_EMPTY, true);
}

static void on_request(struct h2_peer *peer, int32_t id, struct str path, bool whole) {
    if (str_ends(path, STR("/Converse")))
        answer_turns(peer, id, whole);
    else if (whole)
        answer_script(peer, id);
}

/* --- who reads ---------------------------------------------------------------------------- */

struct world {
    struct peer_server server;
    struct weir_client *client;
};

static struct weir_client *client_at(unsigned port) {
    char address[64], error[256];
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    struct weir_client *client = weir_client_new(
        &(struct weir_client_options){
            .size = sizeof(struct weir_client_options), .address = address, .token = "t"},
        error, sizeof(error));
    if (!client) fail_msg("%s", error);
    return client;
}

static void world_open(struct world *world) {
    peer_server_start(&world->server, 0, on_request);
    world->client = client_at(world->server.port);
}

static void world_shut(struct world *world) {
    weir_client_free(world->client);
    peer_server_stop(&world->server);
}

static struct weir_stream *open_with(struct weir_client *client, const char *method,
                                     const char *json, const char *frames, const char *end,
                                     size_t queue_bytes) {
    char error[512] = "";
    const char *const headers[] = {"x-frames", frames, "x-end", end, NULL};
    struct weir_stream *stream = weir_stream_open(
        client,
        &(struct weir_stream_options){.size = sizeof(struct weir_stream_options),
                                      .method = method,
                                      .json = json,
                                      .queue_bytes = queue_bytes,
                                      .headers = headers},
        error, sizeof(error));
    if (!stream) fail_msg("%s", error);
    return stream;
}

static struct weir_outcome outcome_of(struct weir_stream *stream) {
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    assert_true(weir_stream_outcome(stream, &outcome));
    return outcome;
}

/* Read to the end; returns how many frames there were. */
static size_t drain(struct weir_stream *stream, bool *ret_last) {
    struct weir_frame frame = {.size = sizeof(frame)};
    size_t count = 0;
    *ret_last = false;
    while (weir_stream_next(stream, &frame, -1) == WEIR_NEXT_FRAME) {
        assert_false(*ret_last);
        assert_int_equal(((const char *)frame.bytes)[frame.len], 0);
        assert_int_equal(frame.number, ++count);
        *ret_last = frame.last;
    }
    return count;
}

struct row {
    const char *method, *frames, *end;
    size_t count;
    const char *outcome;
    int status;
    unsigned faults;
    int repeat;
};

#define S "StreamScenario"
#define J "SubscribeScenarioJobEvents"

static const struct row rows[] = {
    /* clang-format off */
    {S, "dddC",  "0",        4, "completed",     0,  0, WEIR_REPEAT_NO},
    {S, "dddC",  "14",       4, "completed",     14, WEIR_FAULT_ERROR_AFTER_END, WEIR_REPEAT_NO},
    {S, "dddC",  "reset-8",  4, "completed",     14, WEIR_FAULT_ERROR_AFTER_END, WEIR_REPEAT_NO},
    {S, "dCdd",  "0",        2, "completed",     0,  WEIR_FAULT_AFTER_END, WEIR_REPEAT_NO},
    {S, "dC",    "open",     2, "completed",     0,  WEIR_FAULT_NOT_CLOSED, WEIR_REPEAT_NO},
    {S, "ddd",   "0",        3, "truncated",     0,  WEIR_FAULT_NO_END, WEIR_REPEAT_UNKNOWN},
    {S, "",      "0",        0, "truncated",     0,  WEIR_FAULT_NO_END, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "14",       3, "broken",        14, 0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "1",        3, "preempted",     1,  0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "8",        3, "slow_consumer", 8,  0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "4",        3, "timed_out",     4,  0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "reset-2",  3, "broken",        14, 0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "reset-8",  3, "broken",        14, 0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "no-status",3, "broken",        14, 0, WEIR_REPEAT_UNKNOWN},
    {S, "ddd",   "hang-up",  3, "broken",        14, 0, WEIR_REPEAT_UNKNOWN},
    {S, "",      "reset-7",  0, "unknown",       14, 0, WEIR_REPEAT_UNKNOWN},
    {S, "",      "go-away",  0, "broken",        14, 0, WEIR_REPEAT_YES},
    {S, "",      "http-401", 0, "unknown",       16, 0, WEIR_REPEAT_UNKNOWN},
    {J, "rrT",   "0",        3, "completed",     0,  0, WEIR_REPEAT_NO},
    {J, "rr",    "0",        2, "truncated",     0,  WEIR_FAULT_NO_END, WEIR_REPEAT_YES},
    {J, "rr",    "1",        2, "preempted",     1,  0, WEIR_REPEAT_YES},
    {J, "",      "5",        0, "refused",       5,  0, WEIR_REPEAT_NO},
    /* clang-format on */
};

/* After reading at once, and after everything has come and waits in the queue: the error must
 * not overtake the frames. */
static void check_row(const struct row *row, bool late) {
    struct weir_outcome early = {.size = sizeof(early)};
    struct world world;
    bool last;
    world_open(&world);
    struct weir_stream *stream =
        open_with(world.client, row->method, "{}", row->frames, row->end, 0);
    if (late) {
        pthread_mutex_lock(&stream->shared.lock);
        while (stream->shared.state != READING_ENDED)
            pthread_cond_wait(&stream->shared.changed, &stream->shared.lock);
        pthread_mutex_unlock(&stream->shared.lock);
        assert_int_equal(weir_stream_outcome(stream, &early), row->count == 0);
    }
    size_t count = drain(stream, &last);
    struct weir_outcome outcome = outcome_of(stream);
    if (strcmp(outcome.name, row->outcome) != 0 || count != row->count)
        fail_msg("%s \"%s\" %s: %zu frames, %s (%s)", row->method, row->frames, row->end, count,
                 outcome.name, outcome.message);
    assert_int_equal(outcome.status, row->status);
    assert_int_equal(outcome.faults, row->faults);
    assert_int_equal(outcome.repeat, row->repeat);
    assert_int_equal(outcome.frames, count);
    assert_int_equal(last, strcmp(row->outcome, "completed") == 0);
    weir_stream_free(stream);
    world_shut(&world);
}

static void each_end_has_its_outcome_and_comes_after_the_frames(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(&rows[i], false);
        check_row(&rows[i], true);
    }
}

static void a_slow_reader_loses_nothing_and_its_queue_stays_bounded(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    const size_t queue = 128 * KIB, most = queue + LONG_TEXT_BYTES * 2 + KIB;
    size_t count = 0;
    world_open(&world);
    struct weir_stream *stream = open_with(world.client, S, "{}", "LC", "14", queue);
    while (weir_stream_next(stream, &frame, -1) == WEIR_NEXT_FRAME) {
        pthread_mutex_lock(&stream->shared.lock);
        assert_true(stream->shared.queued <= most);
        pthread_mutex_unlock(&stream->shared.lock);
        assert_int_equal(frame.number, ++count);
        assert_true(frame.last || frame.text_len == LONG_TEXT_BYTES);
    }
    assert_int_equal(count, LONG_FRAMES + 1);
    assert_string_equal(outcome_of(stream).name, "completed");
    weir_stream_free(stream);
    world_shut(&world);
}

/* The server has more than fits anywhere, and its call is not read: it is still open. */
static void a_reader_that_does_not_read_holds_the_server_back(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    world_open(&world);
    struct weir_stream *slow = open_with(world.client, S, "{}", "LC", "0", 64 * KIB);
    struct weir_stream *other = open_with(world.client, S, "{}", "dC", "0", 0);
    bool last;
    assert_int_equal(drain(other, &last), 2); /* on the same connection */
    assert_string_equal(outcome_of(other).name, "completed");
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    assert_false(weir_stream_outcome(slow, &outcome));
    assert_int_equal(weir_stream_next(slow, &frame, -1), WEIR_NEXT_FRAME);
    weir_stream_free(other);
    weir_stream_free(slow); /* cancels it */
    world_shut(&world);
}

/* --- cancelling, and several at once ------------------------------------------------------ */

static void *cancel_later(void *ctx) {
    weir_stream_cancel(ctx);
    return NULL;
}

static void a_cancelled_stream_hands_out_its_frames_and_then_ends(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    pthread_t thread;
    bool last;
    world_open(&world);
    struct weir_stream *stream = open_with(world.client, S, "{}", "dd", "open", 0);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_int_equal(weir_stream_next(stream, &frame, 0), WEIR_NEXT_TIMEOUT);
    assert_null(weir_stream_json(stream));
    pthread_create(&thread, NULL, cancel_later, stream);
    assert_int_equal(drain(stream, &last), 0);
    pthread_join(thread, NULL);
    weir_stream_cancel(stream); /* again: nothing */
    assert_string_equal(outcome_of(stream).name, "cancelled");
    assert_int_equal(outcome_of(stream).repeat, WEIR_REPEAT_UNKNOWN);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_END);
    weir_stream_free(stream);
    while (atomic_load(&world.server.resets) == 0) sched_yield(); /* the server hears of it */
    world_shut(&world);
}

static void *read_one(void *ctx) {
    struct weir_client *client = ctx;
    for (int i = 0; i < 8; i++) {
        bool last;
        struct weir_stream *stream = open_with(client, S, "{}", "dlldlldllC", "0", 100 * KIB);
        if (i % 4 == 3) weir_stream_cancel(stream);
        size_t count = drain(stream, &last);
        assert_true(count <= 10 && (last || i % 4 == 3));
        weir_stream_free(stream);
    }
    return NULL;
}

static void threads_share_a_client(void **state) {
    (void)state;
    struct world world;
    pthread_t threads[6];
    world_open(&world);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, read_one, world.client);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    world_shut(&world);
}

static void a_stream_outlives_its_client(void **state) {
    (void)state;
    struct world world;
    bool last;
    world_open(&world);
    struct weir_stream *stream = open_with(world.client, S, "{}", "ddC", "0", 0);
    weir_client_free(world.client);
    world.client = NULL;
    assert_int_equal(drain(stream, &last), 3);
    assert_string_equal(outcome_of(stream).name, "completed");
    weir_stream_free(stream);
    weir_stream_free(NULL);
    world_shut(&world);
}

static void a_server_that_is_not_there_is_an_outcome(void **state) {
    (void)state;
    struct world world;
    bool last;
    world_open(&world);
    unsigned port = world.server.port;
    world_shut(&world);
    struct weir_client *client = client_at(port);
    struct weir_stream *stream = open_with(client, S, "{}", "", "0", 0);
    assert_int_equal(drain(stream, &last), 0);
    assert_string_equal(outcome_of(stream).name, "broken");
    assert_int_equal(outcome_of(stream).repeat, WEIR_REPEAT_YES);
    assert_int_equal(outcome_of(stream).wait, WEIR_WAIT_BACKOFF);
    weir_stream_free(stream);
    weir_client_free(client);
}

static void a_deadline_ends_a_silent_call(void **state) {
    (void)state;
    struct world world;
    bool last;
    const char *const headers[] = {"x-frames", "d", "x-end", "open", NULL};
    world_open(&world);
    struct weir_stream *stream = weir_stream_open(
        world.client,
        &(struct weir_stream_options){.size = sizeof(struct weir_stream_options),
                                      .method = S,
                                      .json = "{}",
                                      .deadline_ms = 100,
                                      .headers = headers},
        NULL, 0);
    assert_true(drain(stream, &last) <= 1);
    assert_string_equal(outcome_of(stream).name, "timed_out");
    weir_stream_free(stream);
    world_shut(&world);
}

/* --- frames ------------------------------------------------------------------------------- */

static void a_snapshot_is_the_newest_frame_even_if_the_stream_broke(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    bool last;
    world_open(&world);
    struct weir_stream *stream =
        open_with(world.client, J, "{\"jobId\":\"j\"}", "rrr", "14", 0);
    assert_int_equal(drain(stream, &last), 3);
    assert_int_equal(weir_stream_snapshot(stream, &frame), 1);
    assert_int_equal(frame.number, 3);
    assert_string_equal(frame.type, "nimi.runtime.v1.ScenarioJobEvent");
    assert_string_equal(outcome_of(stream).snapshot,
                        "/nimi.runtime.v1.RuntimeAiService/GetScenarioJob");
    weir_stream_free(stream);
    stream = open_with(world.client, S, "{}", "d", "0", 0);
    assert_int_equal(drain(stream, &last), 1);
    assert_int_equal(weir_stream_snapshot(stream, &frame), 0);
    weir_stream_free(stream);
    world_shut(&world);
}

static void a_frame_is_shown_as_json(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    world_open(&world);
    struct weir_stream *stream = open_with(world.client, J, "{}", "rT", "0", 0);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_string_equal(
        weir_stream_json(stream),
        "{\"eventType\":\"SCENARIO_JOB_EVENT_RUNNING\",\"sequence\":\"1\",\"job\":{"
        "\"jobId\":\"j\",\"status\":\"SCENARIO_JOB_STATUS_RUNNING\","
        "\"progressPercent\":1}}");
    weir_stream_free(stream);
    world_shut(&world);
}

static void bytes_of_an_unknown_message_are_shown_as_base64(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    const char *const headers[] = {"x-frames", "d", "x-end", "1", NULL};
    world_open(&world);
    struct weir_stream *stream = weir_stream_open(
        world.client,
        &(struct weir_stream_options){.size = sizeof(struct weir_stream_options),
                                      .method = "/other.Service/Watch",
                                      .mode = WEIR_MODE_SUBSCRIPTION,
                                      .headers = headers},
        NULL, 0);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_true(str_starts(str_from(weir_stream_json(stream)), STR("{\"base64\":\"CAIQAVo")));
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_END);
    assert_string_equal(outcome_of(stream).name, "disconnected");
    assert_string_equal(outcome_of(stream).event, "runtime.disconnected");
    weir_stream_free(stream);
    world_shut(&world);
}

static void turns_of_converse_are_sent_one_after_the_other(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame = {.size = sizeof(frame)};
    world_open(&world);
    struct weir_stream *stream =
        open_with(world.client, "Converse",
                  "[{\"message\":\"a\"},{\"message\":\"b\"},{\"message\":\"c\"}]", "", "", 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
        assert_true(frame.turn_over);
        assert_int_equal(frame.last, i == 2);
    }
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_END);
    assert_string_equal(outcome_of(stream).name, "completed");
    weir_stream_free(stream);
    world_shut(&world);
}

/* --- what cannot be opened ---------------------------------------------------------------- */

static void what_cannot_be_sent_is_an_error_that_says_why(void **state) {
    (void)state;
    static const char *const odd[] = {"x-a", NULL};
    static const char *const capital[] = {"X-A", "1", NULL};
    static const char *const line[] = {"x-a", "1\r\nx-b: 2", NULL};
    const struct {
        struct weir_stream_options options;
        const char *why;
    } wrong[] = {
        {{.method = ""}, "no method"},
        {{.method = "StreamScenarios", .json = "{}"}, "unknown stream 'StreamScenarios'"},
        {{.method = "/a.B/C"}, "only mode D"},
        {{.method = "/a.B/C", .json = "{}", .mode = WEIR_MODE_SUBSCRIPTION}, "as bytes"},
        {{.method = S, .json = "{}", .mode = WEIR_MODE_EOF}, "closes by mode done"},
        {{.method = S, .json = "{}", .mode = 9}, "no mode 9"},
        {{.method = S, .json = "{"}, "the request: JSON 1:2"},
        {{.method = S, .json = "{\"hed\":{}}"}, "no field 'hed'; did you mean 'head'?"},
        {{.method = S, .json = "{}", .request = "", .request_len = 0}, "not both"},
        {{.method = "Converse", .json = "[]"}, "has no turn"},
        {{.method = "Converse", .json = "[{},{\"x\":1}]"}, "turn 2 of the request"},
        {{.method = S, .json = "{}", .headers = odd}, "'x-a' has no value"},
        {{.method = S, .json = "{}", .headers = capital}, "'X-A' is not one"},
        {{.method = S, .json = "{}", .headers = line}, "'x-a' is not one"},
        {{.method = "runs/1/events", .json = "{}"}, "take no request"},
    };
    struct world world;
    world_open(&world);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        char error[512] = "";
        struct weir_stream_options options = wrong[i].options;
        options.size = sizeof(options);
        assert_null(weir_stream_open(world.client, &options, error, sizeof(error)));
        if (!strstr(error, wrong[i].why)) fail_msg("%s, not %s", error, wrong[i].why);
    }
    world_shut(&world);
}

static void an_address_that_is_none_is_an_error(void **state) {
    (void)state;
    static const char *const wrong[] = {
        NULL, "", "ftp://a", "http://a/path", "http://u:p@a", "http://a?b", "a b", "http://"};
    char error[256];
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        error[0] = '\0';
        struct weir_client_options options = {.size = sizeof(options), .address = wrong[i]};
        assert_null(weir_client_new(&options, error, sizeof(error)));
        assert_non_null(strstr(error, "address"));
    }
    struct weir_client_options options = {
        .size = sizeof(options), .address = "a:1", .token = "a\nb"};
    assert_null(weir_client_new(&options, error, sizeof(error)));
    assert_non_null(strstr(error, "token"));
    assert_null(weir_client_new(&options, NULL, 0));
    weir_client_free(NULL);
}

/* A program that was built with an earlier header knows less of each struct. */
static void a_smaller_struct_is_filled_as_far_as_it_goes(void **state) {
    (void)state;
    struct world world;
    struct weir_frame frame;
    memset(&frame, 0x55, sizeof(frame));
    frame.size = offsetof(struct weir_frame, number);
    world_open(&world);
    struct weir_stream *stream = open_with(world.client, S, "{}", "dC", "0", 0);
    assert_int_equal(weir_stream_next(stream, &frame, -1), WEIR_NEXT_FRAME);
    assert_int_equal(frame.size, offsetof(struct weir_frame, number));
    assert_string_equal(frame.type, "nimi.runtime.v1.StreamScenarioEvent");
    assert_int_equal(frame.number, 0x5555555555555555);
    weir_stream_free(stream);
    world_shut(&world);
}

/* The public numbers are those of the reader. */
static void public_numbers_are_the_readers(void **state) {
    (void)state;
    assert_int_equal(WEIR_COMPLETED, STREAM_COMPLETED);
    assert_int_equal(WEIR_REFUSED, STREAM_REFUSED);
    assert_int_equal(WEIR_TRUNCATED, STREAM_TRUNCATED);
    assert_int_equal(WEIR_INCOMPLETE, STREAM_INCOMPLETE);
    assert_int_equal(WEIR_DISCONNECTED, STREAM_DISCONNECTED);
    assert_int_equal(WEIR_CANCELLED, STREAM_CANCELLED);
    assert_int_equal(WEIR_CANCELLED + 1, STREAM_OUTCOME_COUNT);
    assert_int_equal(WEIR_REPEAT_UNKNOWN, REPEAT_UNKNOWN);
    assert_int_equal(WEIR_WAIT_READY, WAIT_READY);
    assert_string_equal(weir_fault_name(WEIR_FAULT_AFTER_END), "after_end");
    assert_string_equal(weir_fault_name(WEIR_FAULT_VERSION), "version");
    assert_int_equal(WEIR_FAULT_VERSION, 1 << (FAULT_COUNT - 1));
    assert_string_equal(weir_fault_name(0), "");
    assert_true(weir_backoff_ms(1) > 100 && weir_backoff_ms(9) <= 3000);
    assert_non_null(strchr(weir_client_version(), '.'));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_moves_as_drawn),
        cmocka_unit_test(each_end_has_its_outcome_and_comes_after_the_frames),
        cmocka_unit_test(a_slow_reader_loses_nothing_and_its_queue_stays_bounded),
        cmocka_unit_test(a_reader_that_does_not_read_holds_the_server_back),
        cmocka_unit_test(a_cancelled_stream_hands_out_its_frames_and_then_ends),
        cmocka_unit_test(threads_share_a_client),
        cmocka_unit_test(a_stream_outlives_its_client),
        cmocka_unit_test(a_server_that_is_not_there_is_an_outcome),
        cmocka_unit_test(a_deadline_ends_a_silent_call),
        cmocka_unit_test(a_snapshot_is_the_newest_frame_even_if_the_stream_broke),
        cmocka_unit_test(a_frame_is_shown_as_json),
        cmocka_unit_test(bytes_of_an_unknown_message_are_shown_as_base64),
        cmocka_unit_test(turns_of_converse_are_sent_one_after_the_other),
        cmocka_unit_test(what_cannot_be_sent_is_an_error_that_says_why),
        cmocka_unit_test(an_address_that_is_none_is_an_error),
        cmocka_unit_test(a_smaller_struct_is_filled_as_far_as_it_goes),
        cmocka_unit_test(public_numbers_are_the_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
