/* gRPC calls over sockets, to a server that behaves as the path says. */
#include "client/grpc_call.h"

#include "base/mem.h"
#include "client/h2.h"
#include "client/h2_peer.h"
#include "helper/moves.h"
#include "wire/grpc.h"

#include <stdlib.h>

static void a_connection_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "dialling securing", "dialling open", "dialling closed", "securing open",
        "securing closed",   "open draining", "open closed",     "draining closed"};
    assert_moves(h2_states, H2_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_call_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"asking reading", "asking over", "reading over"};
    assert_moves(grpc_call_states, GRPC_CALL_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- the server --------------------------------------------------------------------------- */

static void say_message(struct h2_peer *peer, int32_t id, const char *text, bool last) {
    struct buf out;
    buf_init(&out, MIB);
    grpc_append_message(&out, str_from(text));
    h2_peer_say(peer, id, buf_str(&out), last);
    buf_done(&out);
}

static void answer(struct h2_peer *peer, int32_t id, const char *status, const char *body) {
    h2_peer_begin(peer, id, "200", status);
    say_message(peer, id, body, true);
}

static void only_head(struct h2_peer *peer, int32_t id, const char *status, const char *type,
                      const char *grpc_status, const char *message) {
    const nghttp2_nv nv[] = {h2_peer_nv(":status", status), h2_peer_nv("content-type", type),
                             h2_peer_nv("grpc-status", grpc_status),
                             h2_peer_nv("grpc-message", message)};
    h2_peer_only_head(peer, id, nv, grpc_status[0] ? 4 : 2);
}

#define LONG_MESSAGE_BYTES 1000

/* A status with a long message, and with details. */
static void say_at_length(struct h2_peer *peer, int32_t id) {
    char message[LONG_MESSAGE_BYTES + 1];
    memset(message, 'm', LONG_MESSAGE_BYTES);
    message[LONG_MESSAGE_BYTES] = '\0';
    const nghttp2_nv nv[] = {
        h2_peer_nv(":status", "200"), h2_peer_nv("content-type", "application/grpc"),
        h2_peer_nv("grpc-status", "9"), h2_peer_nv("grpc-message", message),
        h2_peer_nv("grpc-status-details-bin", "aGk")};
    h2_peer_only_head(peer, id, nv, ARRAY_LEN(nv));
}

/* What a call sends comes back, as it comes. */
static void repeat(struct h2_peer *peer, int32_t id, bool whole) {
    struct h2_peer_stream *stream = h2_peer_stream(peer, id);
    if (!stream->open) h2_peer_begin(peer, id, "200", "0");
    h2_peer_say(peer, id, buf_str(&stream->heard), whole);
    buf_clear(&stream->heard);
}

/* Whole requests with one digit more than "/http" and "/reset": that status, or code. */
static bool answer_with_code(struct h2_peer *peer, int32_t id, struct str path) {
    uint64_t code;
    bool http = str_starts(path, STR("/http")), resets = str_starts(path, STR("/reset"));
    if (http && str_to_u64(str_skip(path, 5), &code))
        only_head(peer, id, path.at + 5, "text/html", "", "");
    else if (resets && str_to_u64(str_skip(path, 6), &code))
        h2_peer_reset(peer, id, (uint32_t)code);
    else
        return false;
    return true;
}

static void on_request(struct h2_peer *peer, int32_t id, struct str path, bool whole) {
    if (str_equal(path, STR("/repeat"))) repeat(peer, id, whole);
    if (!whole || answer_with_code(peer, id, path)) return;
    if (str_equal(path, STR("/ok"))) answer(peer, id, "0", "hello");
    if (str_equal(path, STR("/fields"))) answer(peer, id, "0", peer->fields);
    if (str_equal(path, STR("/failed"))) answer(peer, id, "13", "first");
    if (str_equal(path, STR("/unknown"))) answer(peer, id, "99", "first");
    if (str_equal(path, STR("/no-status"))) answer(peer, id, NULL, "first");
    if (str_equal(path, STR("/only")))
        only_head(peer, id, "200", "application/grpc", "5", "no such%20agent: %E2%82%AC");
    if (str_equal(path, STR("/mute"))) only_head(peer, id, "200", "application/grpc", "7", "");
    if (str_equal(path, STR("/only404")))
        only_head(peer, id, "404", "text/html", "8", "too much");
    if (str_equal(path, STR("/long"))) say_at_length(peer, id);
    if (str_equal(path, STR("/html"))) only_head(peer, id, "200", "text/html", "", "");
    if (str_equal(path, STR("/cut"))) h2_peer_answer(peer, id, STR("\0\0\0\0\5hel"), "0");
    if (str_equal(path, STR("/cut-prefix"))) h2_peer_answer(peer, id, STR("\0\0\0"), "0");
    if (str_equal(path, STR("/flag"))) h2_peer_answer(peer, id, STR("\7\0\0\0\1x"), "0");
    if (str_equal(path, STR("/gzip"))) h2_peer_answer(peer, id, STR("\1\0\0\0\1x"), "0");
    if (str_equal(path, STR("/huge"))) h2_peer_answer(peer, id, STR("\0\1\0\0\0x"), "0");
    if (str_equal(path, STR("/deaf"))) peer->deaf = true;
    if (str_equal(path, STR("/hang-up"))) peer->hangs_up = true;
    if (str_equal(path, STR("/mid-hang-up"))) {
        h2_peer_begin(peer, id, "200", "0");
        say_message(peer, id, "first", false);
        peer->hangs_up = true;
    }
    if (str_equal(path, STR("/go-away"))) h2_peer_goaway(peer, id - 2, NGHTTP2_NO_ERROR);
}

/* --- who calls ---------------------------------------------------------------------------- */

struct world {
    struct peer_server server;
    struct loop *loop;
    struct http_pool *pool;
    int open; /* calls; the loop stops at 0 */
};

static void world_open(struct world *world, uint32_t max_streams) {
    *world = (struct world){.loop = loop_new(), .pool = http_pool_new()};
    http_pool_add(world->pool, world->loop);
    peer_server_start(&world->server, max_streams, on_request);
}

static void world_shut(struct world *world) {
    http_pool_leave(world->pool, world->loop);
    http_pool_free(world->pool);
    loop_free(world->loop);
    peer_server_stop(&world->server);
}

static int setup(void **state) {
    struct world *world = MEM_NEW(struct world);
    world_open(world, 0);
    *state = world;
    return 0;
}

static int teardown(void **state) {
    struct world *world = *state;
    world_shut(world);
    free(world);
    return 0;
}

struct caller {
    struct world *world;
    struct grpc_call *call;
    struct buf heard; /* "message|message|" */
    struct buf metadata;
    size_t messages, cancels_at, pauses_at, answers_at;
    struct timer resume;
    int ends;
    enum err_code code;
    bool from_server, never_seen, paused;
    char text[ERR_TEXT_BYTES];
    size_t said_bytes;
};

static void over(struct caller *caller) {
    caller->call = NULL;
    if (--caller->world->open == 0) loop_stop(caller->world->loop);
}

static void go_on(void *ctx) {
    struct caller *caller = ctx;
    caller->paused = false;
    grpc_call_resume(caller->call);
}

static void on_metadata(struct str name, struct str value, void *ctx) {
    struct caller *caller = ctx;
    buf_printf(&caller->metadata, STR_FMT "=" STR_FMT ";", STR_ARG(name), STR_ARG(value));
}

static void on_message(struct lent message, void *ctx) {
    struct caller *caller = ctx;
    struct err e;
    assert_false(caller->paused);
    caller->messages++;
    buf_append(&caller->heard, lent_read(message));
    buf_append_byte(&caller->heard, '|');
    if (caller->messages == caller->cancels_at) {
        grpc_call_cancel(caller->call);
        over(caller);
    } else if (caller->messages == caller->pauses_at) {
        grpc_call_pause(caller->call);
        caller->paused = true;
        timer_start(&caller->resume, 20);
    } else if (caller->messages < caller->answers_at) {
        assert_true(grpc_call_send(caller->call, STR("again"), &e));
    } else if (caller->messages == caller->answers_at) {
        grpc_call_finish(caller->call);
    }
}

static void on_end(const struct grpc_call_end *end, void *ctx) {
    struct caller *caller = ctx;
    assert_false(caller->paused);
    caller->ends++;
    caller->code = end->code;
    caller->from_server = end->from_server;
    caller->never_seen = end->never_seen;
    caller->said_bytes = end->said.len;
    snprintf(caller->text, sizeof(caller->text), STR_FMT, STR_ARG(end->text));
    over(caller);
}

static const struct grpc_call_sink sink = {on_metadata, on_message, NULL, on_end};

static struct grpc_call_request request_for(const struct world *world, const char *path) {
    return (struct grpc_call_request){
        .host = STR("127.0.0.1"), .port = world->server.port, .path = str_from(path)};
}

static void call_with(struct caller *caller, struct world *world,
                      const struct grpc_call_request *request) {
    struct err e;
    *caller = (struct caller){.world = world};
    buf_init(&caller->heard, 8 * MIB);
    buf_init(&caller->metadata, 64 * KIB);
    timer_init(&caller->resume, world->loop, go_on, caller);
    world->open++;
    if (!grpc_call_start(world->pool, world->loop, request, &sink, caller, &caller->call, &e))
        fail_msg("%s", e.text);
    assert_true(grpc_call_send(caller->call, STR("question"), &e));
}

static void call(struct caller *caller, struct world *world, const char *path) {
    struct grpc_call_request request = request_for(world, path);
    call_with(caller, world, &request);
    grpc_call_finish(caller->call);
}

static void caller_done(struct caller *caller) {
    assert_true(caller->ends <= 1);
    buf_done(&caller->heard);
    buf_done(&caller->metadata);
}

/* --- what is asked and answered ------------------------------------------------------------ */

static void one_connection_carries_all_calls(void **state) {
    (void)state;
    struct world world;
    struct caller callers[200];
    world_open(&world, 32);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) call(&callers[i], &world, "/ok");
    assert_true(grpc_call_waits(callers[0].call));
    loop_run(world.loop);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        assert_str(buf_str(&callers[i].heard), "hello|");
        assert_int_equal(callers[i].code, ERR_NONE);
        caller_done(&callers[i]);
    }
    assert_int_equal(atomic_load(&world.server.accepted), 1);
    assert_int_equal(atomic_load(&world.server.requests), 200);
    assert_int_equal(atomic_load(&world.server.resets), 0); /* 32 at once, never more */
    world_shut(&world);
}

static void every_way_to_end_has_its_code(void **state) {
    struct world *world = *state;
    static const struct {
        const char *path, *heard;
        enum err_code code;
        bool from_server, never_seen;
        const char *text; /* a part of it */
    } rows[] = {
        {"/ok", "hello|", ERR_NONE, true, false, ""},
        {"/failed", "first|", ERR_INTERNAL, true, false, "INTERNAL, without a word"},
        {"/unknown", "first|", ERR_UNKNOWN, true, false, "UNKNOWN"},
        {"/no-status", "first|", ERR_UNKNOWN, false, false, "without a grpc-status"},
        {"/only", "", ERR_NOT_FOUND, true, false, "no such agent: \xe2\x82\xac"},
        {"/mute", "", ERR_PERMISSION_DENIED, true, false, "PERMISSION_DENIED, without"},
        {"/only404", "", ERR_RESOURCE_EXHAUSTED, true, false, "too much"},
        {"/html", "", ERR_UNKNOWN, false, false, "'text/html', which is not gRPC"},
        {"/cut", "", ERR_INTERNAL, false, false, "inside a message"},
        {"/cut-prefix", "", ERR_INTERNAL, false, false, "inside a message prefix"},
        {"/flag", "", ERR_INTERNAL, false, false, "flag 7"},
        {"/gzip", "", ERR_INTERNAL, false, false, "switch its compression off"},
        {"/huge", "", ERR_TOO_LARGE, false, false, "larger than the limit"},
        {"/http400", "", ERR_INTERNAL, false, false, "status 400"},
        {"/http401", "", ERR_UNAUTHENTICATED, false, false, "status 401"},
        {"/http403", "", ERR_PERMISSION_DENIED, false, false, "status 403"},
        {"/http404", "", ERR_UNIMPLEMENTED, false, false, "status 404"},
        {"/http429", "", ERR_UNAVAILABLE, false, false, "status 429"},
        {"/http500", "", ERR_UNKNOWN, false, false, "status 500"},
        {"/http502", "", ERR_UNAVAILABLE, false, false, "status 502"},
        {"/http503", "", ERR_UNAVAILABLE, false, false, "status 503"},
        {"/http504", "", ERR_UNAVAILABLE, false, false, "status 504"},
        {"/reset0", "", ERR_INTERNAL, false, false, "NO_ERROR"},
        {"/reset1", "", ERR_INTERNAL, false, false, "PROTOCOL_ERROR"},
        {"/reset2", "", ERR_INTERNAL, false, false, "INTERNAL_ERROR"},
        {"/reset5", "", ERR_UNKNOWN, false, false, "STREAM_CLOSED"},
        {"/reset7", "", ERR_UNAVAILABLE, false, true, "refused"},
        {"/reset8", "", ERR_CANCELLED, false, false, "CANCEL"},
        {"/reset11", "", ERR_RESOURCE_EXHAUSTED, false, false, "asked too much"},
        {"/reset12", "", ERR_PERMISSION_DENIED, false, false, "INADEQUATE_SECURITY"},
        {"/reset4096", "", ERR_UNKNOWN, false, false, "gave the request up"},
    };
    struct caller callers[ARRAY_LEN(rows)];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct grpc_call_request request = request_for(world, rows[i].path);
        request.message_max_bytes = 64 * KIB - 1;
        call_with(&callers[i], world, &request);
        grpc_call_finish(callers[i].call);
    }
    loop_run(world->loop);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct caller *caller = &callers[i];
        bool same = caller->ends == 1 && caller->code == rows[i].code &&
                    caller->from_server == rows[i].from_server &&
                    caller->never_seen == rows[i].never_seen &&
                    strstr(caller->text, rows[i].text);
        if (!same) fail_msg("%s: %d %s", rows[i].path, (int)caller->code, caller->text);
        assert_str(buf_str(&caller->heard), rows[i].heard);
        caller_done(&callers[i]);
    }
    assert_int_equal(atomic_load(&world->server.accepted), 1); /* no other call was harmed */
}

static void a_status_comes_whole_and_with_its_details(void **state) {
    struct world *world = *state;
    struct caller caller;
    call(&caller, world, "/long");
    loop_run(world->loop);
    assert_int_equal(caller.code, ERR_FAILED_PRECONDITION);
    assert_int_equal(strlen(caller.text), ERR_TEXT_BYTES - 1); /* a sentence is cut */
    assert_int_equal(caller.said_bytes, LONG_MESSAGE_BYTES);
    assert_str(buf_str(&caller.metadata), "grpc-status-details-bin=hi;");
    caller_done(&caller);
}

static void messages_go_to_and_fro(void **state) {
    struct world *world = *state;
    struct caller caller;
    struct grpc_call_request request = request_for(world, "/repeat");
    call_with(&caller, world, &request);
    caller.answers_at = 3;
    loop_run(world->loop);
    assert_str(buf_str(&caller.heard), "question|again|again|");
    assert_int_equal(caller.code, ERR_NONE);
    caller_done(&caller);
}

static void large_messages_pass_both_windows(void **state) {
    (void)state;
    struct world world;
    struct caller caller;
    struct err e;
    size_t len = 3 * MIB;
    char *large = mem_alloc(len);
    memset(large, 'L', len);
    world_open(&world, 0);
    struct grpc_call_request request = request_for(&world, "/repeat");
    call_with(&caller, &world, &request);
    assert_true(grpc_call_send(caller.call, str_of(large, len), &e));
    caller.pauses_at = 1; /* and the rest waits */
    grpc_call_finish(caller.call);
    loop_run(world.loop);
    assert_int_equal(caller.messages, 2);
    assert_int_equal(caller.heard.len, sizeof("question|") - 1 + len + 1);
    assert_int_equal(caller.code, ERR_NONE);
    caller_done(&caller);
    world_shut(&world);
    free(large);
}

static void the_head_says_who_asks_for_how_long(void **state) {
    struct world *world = *state;
    struct caller caller;
    const struct grpc_metadata metadata[] = {{STR("authorization"), STR("Bearer t")},
                                             {STR("x-key-bin"), STR_INIT("\0\1\377")}};
    char expected[512];
    struct grpc_call_request request = request_for(world, "/fields");
    request.metadata = metadata;
    request.metadata_count = ARRAY_LEN(metadata);
    request.deadline_ms = 20000;
    call_with(&caller, world, &request);
    grpc_call_finish(caller.call);
    loop_run(world->loop);
    snprintf(expected, sizeof(expected),
             ":authority=127.0.0.1:%u;:path=/fields;te=trailers;content-type=application/grpc;"
             "user-agent=weir;grpc-accept-encoding=identity;grpc-timeout=20000000u;"
             "authorization=Bearer t;x-key-bin=AAH/;|",
             world->server.port);
    struct str heard = buf_str(&caller.heard);
    assert_string_equal(caller.text, "");
    assert_str(str_skip(heard, str_find(heard, STR(":authority"))), expected);
    assert_str(buf_str(&caller.metadata), "x-said=by the server;");
    caller_done(&caller);
}

static void metadata_that_cannot_be_sent_is_refused(void **state) {
    struct world *world = *state;
    static const struct grpc_metadata rows[] = {
        {STR_INIT("Upper"), STR_INIT("x")},         {STR_INIT(""), STR_INIT("x")},
        {STR_INIT("grpc-timeout"), STR_INIT("1S")}, {STR_INIT("a b"), STR_INIT("x")},
        {STR_INIT("a"), STR_INIT("line\nbreak")},   {STR_INIT("a"), STR_INIT("\xe2\x82\xac")}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct grpc_call_request request = request_for(world, "/ok");
        struct grpc_call *none;
        struct err e;
        request.metadata = &rows[i];
        request.metadata_count = 1;
        assert_false(
            grpc_call_start(world->pool, world->loop, &request, &sink, NULL, &none, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static void a_pause_holds_messages_and_the_end_back(void **state) {
    struct world *world = *state;
    struct caller pausing, breaking;
    call(&pausing, world, "/failed");
    pausing.pauses_at = 1;
    call(&breaking, world, "/mid-hang-up"); /* takes the connection with it */
    breaking.pauses_at = 1;
    loop_run(world->loop);
    assert_str(buf_str(&pausing.heard), "first|");
    assert_int_equal(pausing.code, ERR_INTERNAL);
    assert_int_equal(breaking.code, ERR_UNAVAILABLE);
    caller_done(&pausing);
    caller_done(&breaking);
}

static void a_cancelled_call_hears_nothing(void **state) {
    struct world *world = *state;
    struct caller at_once, in_callback, last;
    struct grpc_call_request request = request_for(world, "/repeat");
    call_with(&in_callback, world, &request);
    in_callback.cancels_at = 1;
    call(&at_once, world, "/ok");
    grpc_call_cancel(at_once.call);
    over(&at_once);
    call(&last, world, "/ok");
    loop_run(world->loop);
    assert_int_equal(at_once.ends + in_callback.ends, 0);
    assert_int_equal(at_once.messages, 0);
    assert_int_equal(last.code, ERR_NONE);
    caller_done(&at_once);
    caller_done(&in_callback);
    caller_done(&last);
}

/* --- time ---------------------------------------------------------------------------------- */

static void a_deadline_ends_the_call_and_the_server_hears(void **state) {
    struct world *world = *state;
    struct caller late, fine;
    struct grpc_call_request request = request_for(world, "/silent");
    request.deadline_ms = 20;
    call_with(&late, world, &request);
    loop_run(world->loop);
    assert_int_equal(late.code, ERR_DEADLINE_EXCEEDED);
    call(&fine, world, "/ok"); /* the same connection: the reset came before this */
    loop_run(world->loop);
    assert_int_equal(fine.code, ERR_NONE);
    assert_int_equal(atomic_load(&world->server.resets), 1);
    caller_done(&late);
    caller_done(&fine);
}

static void a_server_that_went_deaf_is_left(void **state) {
    struct world *world = *state;
    struct caller callers[3], fine;
    struct grpc_call_request request = request_for(world, "/silent");
    request.keepalive_ms = 20;
    request.keepalive_answer_ms = 30;
    call_with(&callers[0], world, &request);
    call(&callers[1], world, "/silent");
    call(&callers[2], world, "/deaf");
    loop_run(world->loop);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        assert_int_equal(callers[i].code, ERR_UNAVAILABLE);
        assert_non_null(strstr(callers[i].text, "not even a ping"));
        assert_false(callers[i].never_seen);
        caller_done(&callers[i]);
    }
    call(&fine, world, "/ok");
    loop_run(world->loop);
    assert_int_equal(fine.code, ERR_NONE);
    assert_int_equal(atomic_load(&world->server.accepted), 2);
    caller_done(&fine);
}

static void a_silent_server_that_answers_pings_is_asked_rarely(void **state) {
    struct world *world = *state;
    struct caller silent;
    struct grpc_call_request request = request_for(world, "/silent");
    request.keepalive_ms = 5;
    request.deadline_ms = 150;
    call_with(&silent, world, &request);
    loop_run(world->loop);
    assert_int_equal(silent.code, ERR_DEADLINE_EXCEEDED);
    assert_int_equal(atomic_load(&world->server.pings), 1);
    caller_done(&silent);
}

/* --- connections that end ------------------------------------------------------------------ */

static void a_lost_connection_ends_its_calls_and_the_next_one_dials(void **state) {
    struct world *world = *state;
    struct caller silent, gone, fine;
    call(&silent, world, "/silent");
    call(&gone, world, "/hang-up");
    loop_run(world->loop);
    assert_int_equal(silent.code, ERR_UNAVAILABLE);
    assert_int_equal(gone.code, ERR_UNAVAILABLE);
    assert_false(silent.never_seen || gone.never_seen); /* it may have worked on them */
    call(&fine, world, "/ok");
    loop_run(world->loop);
    assert_int_equal(fine.code, ERR_NONE);
    assert_int_equal(atomic_load(&world->server.accepted), 2);
    caller_done(&silent);
    caller_done(&gone);
    caller_done(&fine);
}

static void a_goaway_moves_the_next_calls_to_a_new_connection(void **state) {
    struct world *world = *state;
    struct caller stays, refused, fine;
    struct grpc_call_request request = request_for(world, "/repeat");
    call_with(&stays, world, &request);
    world->open--; /* it is not waited for yet */
    call(&refused, world, "/go-away");
    loop_run(world->loop);
    assert_int_equal(refused.code, ERR_UNAVAILABLE);
    assert_true(refused.never_seen);
    caller_done(&refused);
    world->open++;
    grpc_call_finish(stays.call);
    loop_run(world->loop);
    assert_str(buf_str(&stays.heard), "question|");
    assert_int_equal(stays.code, ERR_NONE);
    caller_done(&stays);
    call(&fine, world, "/ok");
    loop_run(world->loop);
    assert_int_equal(fine.code, ERR_NONE);
    assert_int_equal(atomic_load(&world->server.accepted), 2);
    caller_done(&fine);
}

static void a_server_that_is_not_there_has_never_seen_the_call(void **state) {
    struct world *world = *state;
    struct caller callers[2];
    struct grpc_call_request request = request_for(world, "/ok");
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound, without a listener */
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    request.port = ntohs(address.sin_port);
    call_with(&callers[0], world, &request);
    request.host = STR("name.invalid");
    call_with(&callers[1], world, &request);
    loop_run(world->loop);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        assert_int_equal(callers[i].code, ERR_UNAVAILABLE);
        assert_true(callers[i].never_seen);
        caller_done(&callers[i]);
    }
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_moves_as_drawn),
        cmocka_unit_test(a_call_moves_as_drawn),
        cmocka_unit_test(one_connection_carries_all_calls),
        TEST(every_way_to_end_has_its_code),
        TEST(a_status_comes_whole_and_with_its_details),
        TEST(messages_go_to_and_fro),
        cmocka_unit_test(large_messages_pass_both_windows),
        TEST(the_head_says_who_asks_for_how_long),
        TEST(metadata_that_cannot_be_sent_is_refused),
        TEST(a_pause_holds_messages_and_the_end_back),
        TEST(a_cancelled_call_hears_nothing),
        TEST(a_deadline_ends_the_call_and_the_server_hears),
        TEST(a_server_that_went_deaf_is_left),
        TEST(a_silent_server_that_answers_pings_is_asked_rarely),
        TEST(a_lost_connection_ends_its_calls_and_the_next_one_dials),
        TEST(a_goaway_moves_the_next_calls_to_a_new_connection),
        TEST(a_server_that_is_not_there_has_never_seen_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
