/* AgentRuntime.Converse over runs with a scripted model and tools: many turns on one stream,
 * failures, and what happens to a turn when its caller leaves or does not read, or the daemon
 * stops. */
#include "contract/crawbl/converse.h"

#include "fake/exchange_fake.h"
#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "proto/runtime.pb.h"
#include "stream/stream.h"
#include "turn/fixture.h"
#include "wire/grpc.h"

#define PATH "/crawbl.agentruntime.v1.AgentRuntime/Converse"
#define STALL_MS 5000

static struct fixture f;
static struct converse_settings settings;
static struct converse_instance instance;
static struct rpc_service service;
static struct rpc_site *site;

static int setup(void **state) {
    (void)state;
    static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};
    static const struct workspace_agents_settings nobody = {.endpoint = STR_INIT("")};
    fixture_init(&f, false);
    f.agents[0].tools = writing_asks;
    f.agents[0].tool_count = 1;
    settings = (struct converse_settings){.busy = SESSION_REJECT,
                                          .message_max_bytes = MIB,
                                          .on_disconnect = {.how = LEAVING_CANCELS},
                                          .stall_ms = STALL_MS};
    instance =
        (struct converse_instance){&settings, &f.host, workspace_agents_new(f.loop, NULL)};
    workspace_agents_use(instance.workspace_agents, &f.engine, &nobody);
    converse_service(&instance, &service);
    site = rpc_site_new(f.loop, &service, 1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    turns(&f);
    rpc_site_free(site);
    workspace_agents_free(instance.workspace_agents);
    fixture_done(&f);
    return 0;
}

/* --- the client --------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

static struct exchange *dial(void) {
    struct exchange *x = fake_new(f.loop, "POST", PATH);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "te", "trailers");
    fake_start(x, serve, site);
    turns(&f);
    return x;
}

static void send_request(struct exchange *x, const struct crawbl_converse_request *request) {
    struct buf message, framed;
    buf_init(&message, MIB);
    buf_init(&framed, MIB);
    assert_true(pb_encode(&crawbl_converse_request_table, request, &message));
    assert_true(grpc_append_message(&framed, buf_str(&message)));
    fake_body(x, buf_str(&framed));
    buf_done(&framed);
    buf_done(&message);
    turns(&f);
}

/* All its ids are there. */
static struct crawbl_converse_request request_with(const char *message) {
    return (struct crawbl_converse_request){.session_id = STR("s"),
                                            .message = str_from(message),
                                            .workspace_id = STR("w"),
                                            .user_id = STR("u")};
}

static void say_on(struct exchange *x, const char *message) {
    struct crawbl_converse_request request = request_with(message);
    send_request(x, &request);
}

static struct exchange *ask(const char *message) {
    struct exchange *x = dial();
    say_on(x, message);
    return x;
}

static void over(struct exchange *x) {
    turns(&f);
    assert_true(fake_closed(x));
    fake_free(x);
}

/* The client has nothing more to ask, and all went well. */
static void hang_up(struct exchange *x) {
    fake_body_end(x);
    turns(&f);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    over(x);
}

/* --- what it read, as words --------------------------------------------------------------- */

static void write_turns(struct buf *out, const struct crawbl_done_event *done) {
    buf_printf(out, "done(" STR_FMT, STR_ARG(done->model));
    for (size_t i = 0; i < done->turns_count; i++)
        buf_printf(out, " " STR_FMT "=" STR_FMT, STR_ARG(done->turns[i].agent_id),
                   STR_ARG(done->turns[i].text));
    buf_append_byte(out, ')');
}

static void write_heard(struct buf *out, const struct crawbl_converse_event *event) {
    if (out->len) buf_append_byte(out, ' ');
    switch (event->which_event) {
    case CRAWBL_CONVERSE_EVENT_CHUNK:
        buf_printf(out, STR_FMT "(" STR_FMT ")", STR_ARG(event->chunk->agent_id),
                   STR_ARG(event->chunk->text));
        break;
    case CRAWBL_CONVERSE_EVENT_THINKING:
        buf_printf(out, "thinking(" STR_FMT ")", STR_ARG(event->thinking->text));
        break;
    case CRAWBL_CONVERSE_EVENT_TOOL_CALL:
        buf_printf(out, "call(" STR_FMT " " STR_FMT ")", STR_ARG(event->tool_call->tool),
                   STR_ARG(event->tool_call->args_json));
        break;
    case CRAWBL_CONVERSE_EVENT_TOOL_RESULT:
        buf_printf(out, "result(" STR_FMT ")", STR_ARG(event->tool_result->result_json));
        break;
    case CRAWBL_CONVERSE_EVENT_USAGE:
        buf_printf(out, "usage(%d)", event->usage->call_sequence);
        break;
    case CRAWBL_CONVERSE_EVENT_DONE: write_turns(out, event->done); break;
    default: fail_msg("event %d", event->which_event);
    }
}

/* What came after the first `from` bytes. */
static void read_heard(const struct exchange *x, size_t from, struct buf *out) {
    struct str rest = str_skip(fake_sent(x), from), text;
    while (rest.len) {
        assert_true(rest.len >= GRPC_PREFIX_BYTES);
        const unsigned char *prefix = (const unsigned char *)rest.at;
        size_t len = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 |
                     (size_t)prefix[3] << 8 | prefix[4];
        text = str_head(str_skip(rest, GRPC_PREFIX_BYTES), len);
        assert_int_equal(text.len, len);
        rest = str_skip(rest, GRPC_PREFIX_BYTES + len);
        struct arena *arena = arena_new(MIB);
        struct crawbl_converse_event event;
        struct err e;
        assert_true(pb_decode_view(&crawbl_converse_event_table, text, arena, &event, &e));
        write_heard(out, &event);
        arena_free(arena);
    }
}

static void assert_heard(const struct exchange *x, const char *expected) {
    struct buf seen;
    buf_init(&seen, MIB);
    turns(&f);
    read_heard(x, 0, &seen);
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
}

/* Since `from`, a length of fake_sent(). */
static void assert_heard_since(const struct exchange *x, size_t from, const char *expected) {
    struct buf seen;
    buf_init(&seen, MIB);
    turns(&f);
    read_heard(x, from, &seen);
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
}

static void assert_ended(const struct exchange *x, const char *status, const char *message) {
    assert_true(fake_ended(x));
    assert_str(fake_value(fake_trailers(x), "grpc-status"), status);
    assert_str(fake_value(fake_trailers(x), "grpc-message"), message);
}

/* --- turns -------------------------------------------------------------------------------- */

static void many_turns_pass_on_one_stream_one_after_the_other(void **state) {
    (void)state;
    struct exchange *x = ask("hi");
    assert_asked(&f, "user=hi");
    assert_true(fake_text(asked(&f), STR("hel")));
    assert_heard(x, "manager(hel)");
    say_on(x, "again"); /* while the first one runs */
    assert_int_equal(fake_calls(f.model), 1);
    assert_asked(&f, "user=hi");
    reply(&f, "lo");
    assert_asked(&f, "user=hi agent/manager=hello user=again");
    size_t first = fake_sent(x).len;
    reply(&f, "yes");
    assert_heard(x, "manager(hel) manager(lo) usage(0) done(m-1 manager=hello) "
                    "manager(yes) usage(0) done(m-1 manager=yes)");
    assert_heard_since(x, first, "manager(yes) usage(0) done(m-1 manager=yes)");
    hang_up(x);
}

static void a_request_names_its_agent_and_overrides_the_instructions(void **state) {
    (void)state;
    struct crawbl_converse_request request = request_with("hi");
    struct exchange *x = dial();
    request.agent_id = STR("wally");
    request.system_prompt = STR("Rhyme.");
    send_request(x, &request);
    assert_str(fake_request(asked(&f))->agent, "wally");
    assert_true(str_find(fake_request(asked(&f))->system, STR("Rhyme.")) <
                fake_request(asked(&f))->system.len);
    reply(&f, "ok");
    assert_heard(x, "wally(ok) usage(0) done(m-1 wally=ok)");
    hang_up(x);
}

static void tools_are_shown_at_work(void **state) {
    (void)state;
    struct exchange *x = ask("hi");
    fake_tool_call(asked(&f), "c1", "search", "{\"q\":1}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    fake_tool_answer(f.search, 0, "{\"hit\":1}");
    turns(&f);
    reply(&f, "ok");
    assert_heard(x, "usage(0) call(search {\"q\":1}) result({\"hit\":1}) manager(ok) "
                    "usage(1) done(m-1 manager=ok)");
    hang_up(x);
}

static void thinking_is_shown_of_agents_that_show_it(void **state) {
    (void)state;
    struct exchange *x = dial();
    size_t before = 0;
    for (int shows = 0; shows < 2; shows++) {
        f.agents[0].shows_thinking = shows;
        before = fake_sent(x).len;
        say_on(x, "hi");
        assert_true(fake_thinking(asked(&f), STR("hm")));
        reply(&f, "ok");
        assert_heard_since(x, before,
                           shows ? "thinking(hm) manager(ok) usage(0) done(m-1 manager=ok)"
                                 : "manager(ok) usage(0) done(m-1 manager=ok)");
    }
    hang_up(x);
}

/* --- what is refused ---------------------------------------------------------------------- */

#define ERROR "done(ERROR: INVALID_ARGUMENT: converse: "

static const struct {
    struct crawbl_converse_request request;
    const char *heard;
} refusals[] = {
    {{.session_id = STR_INIT("s"), .message = STR_INIT("m")},
     ERROR "workspace_id and user_id are required on the first request of a stream)"},
    {{.session_id = STR_INIT("s"), .message = STR_INIT("m"), .user_id = STR_INIT("u")},
     ERROR "workspace_id and user_id are required on the first request of a stream)"},
    {{.message = STR_INIT("m"), .workspace_id = STR_INIT("w"), .user_id = STR_INIT("u")},
     ERROR "session_id is required)"},
    {{.session_id = STR_INIT("s"), .workspace_id = STR_INIT("w"), .user_id = STR_INIT("u")},
     ERROR "message is required)"},
    {{.session_id = STR_INIT("a\nb"), .workspace_id = STR_INIT("w"), .user_id = STR_INIT("u")},
     ERROR "session_id must be 1 to 256 bytes of UTF-8 without control characters)"},
    /* Now the stream has its identity, also by a request that was refused. */
    {{.session_id = STR_INIT("s"), .message = STR_INIT("m"), .user_id = STR_INIT("eve")},
     "done(ERROR: PERMISSION_DENIED: converse: the request names another user than the "
     "stream's identity)"},
    {{.session_id = STR_INIT("s"), .message = STR_INIT("m"), .workspace_id = STR_INIT("x")},
     "done(ERROR: PERMISSION_DENIED: converse: the request names another workspace than the "
     "stream's identity)"},
};

static void a_request_that_is_refused_is_a_done_and_the_stream_goes_on(void **state) {
    (void)state;
    struct exchange *x = dial();
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        size_t before = fake_sent(x).len;
        send_request(x, &refusals[i].request);
        assert_heard_since(x, before, refusals[i].heard);
    }
    assert_int_equal(fake_calls_ever(f.model), 0);
    size_t before = fake_sent(x).len;
    /* The ids were said. */
    const struct crawbl_converse_request later = {.session_id = STR("s"), .message = STR("m")};
    send_request(x, &later);
    reply(&f, "ok");
    assert_heard_since(x, before, "manager(ok) usage(0) done(m-1 manager=ok)");
    hang_up(x);
}

static void an_agent_that_is_not_there_is_a_failure_of_its_turn(void **state) {
    (void)state;
    struct crawbl_converse_request request = request_with("hi");
    struct exchange *x = dial();
    request.agent_id = STR("nobody");
    send_request(x, &request);
    assert_int_equal(fake_calls_ever(f.model), 0);
    struct buf seen;
    buf_init(&seen, MIB);
    read_heard(x, 0, &seen);
    assert_true(str_starts(buf_str(&seen), STR("done(ERROR: NOT_FOUND: ")));
    buf_done(&seen);
    hang_up(x);
}

static void leniency_fills_in_what_is_missing(void **state) {
    (void)state;
    settings.lenient = true;
    const struct crawbl_converse_request bare = {.message = STR("hi"),
                                                 .agent_id = STR("nobody")};
    struct exchange *x = dial();
    send_request(x, &bare);
    assert_str(fake_request(asked(&f))->agent, "manager");
    reply(&f, "ok");
    assert_heard(x, "manager(ok) usage(0) done(m-1 manager=ok)");
    /* Another user is no other identity: the stream's stays. */
    const struct crawbl_converse_request other = {.message = STR("more"),
                                                  .user_id = STR("eve")};
    send_request(x, &other);
    assert_asked(&f, "user=hi agent/manager=ok user=more");
    reply(&f, "ok");
    hang_up(x);
}

static void a_daemon_for_one_workspace_serves_no_other(void **state) {
    (void)state;
    settings.guard.workspace = STR("mine");
    struct exchange *x = ask("hi");
    assert_heard(x, "done(ERROR: PERMISSION_DENIED: this server does not serve that "
                    "workspace)");
    assert_int_equal(fake_calls_ever(f.model), 0);
    hang_up(x);
}

static void a_session_that_is_busy_refuses_a_second_turn(void **state) {
    (void)state;
    struct exchange *x = ask("hi"), *y = ask("me too");
    struct buf seen;
    buf_init(&seen, MIB);
    read_heard(y, 0, &seen);
    assert_true(str_starts(buf_str(&seen), STR("done(ERROR: ABORTED: ")));
    buf_done(&seen);
    reply(&f, "ok");
    hang_up(y);
    hang_up(x);
}

static void a_malformed_request_ends_the_call(void **state) {
    (void)state;
    struct exchange *x = dial();
    fake_body(x, STR("\0\0\0\0\2\x0a\x7f"));
    turns(&f);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "13");
    assert_str(fake_sent(x), "");
    over(x);
}

static void a_turn_that_fails_says_so_in_its_done_and_where_wished_as_text(void **state) {
    (void)state;
    struct exchange *x = dial();
    for (int as_text = 0; as_text < 2; as_text++) {
        size_t before = fake_sent(x).len;
        settings.errors_as_text = as_text;
        say_on(x, "hi");
        fake_fail(asked(&f), ERR_UNAVAILABLE, "GONE");
        assert_heard_since(x, before,
                           as_text
                               ? "usage(0) manager(UNAVAILABLE: the fake model failed) "
                                 "done(ERROR: UNAVAILABLE: the fake model failed)"
                               : "usage(0) done(ERROR: UNAVAILABLE: the fake model failed)");
    }
    hang_up(x);
}

/* --- a human's decision ------------------------------------------------------------------- */

#define QUESTION "May 'manager' use the tool 'write' with {}? (yes or no)"

static void a_question_ends_the_turn_and_the_next_message_answers_it(void **state) {
    (void)state;
    struct exchange *x = ask("save it");
    fake_tool_call(asked(&f), "c1", "write", "{}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_heard(x, "usage(0) call(write {}) call(request_approval {}) manager(" QUESTION ") "
                    "done(m-1 manager=" QUESTION ")");
    size_t before = fake_sent(x).len;
    say_on(x, "what would it write?"); /* K29: it decides nothing */
    assert_int_equal(fake_tool_calls(f.write), 0);
    assert_heard_since(x, before,
                       "call(request_approval {}) manager(" QUESTION ") "
                       "done( manager=" QUESTION ")");
    before = fake_sent(x).len;
    say_on(x, "yes");
    assert_int_equal(fake_tool_calls(f.write), 1);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    assert_asked(&f, "user=save it call/write={} result={} user=what would it write?");
    reply(&f, "saved");
    assert_heard_since(x, before,
                       "result({\"decision\":\"approve\",\"tool\":\"write\",\"args\":{}}) "
                       "result({}) manager(saved) usage(0) done(m-1 manager=saved)");
    hang_up(x);
}

/* --- callers that leave, and one that does not read --------------------------------------- */

static void a_caller_that_leaves_ends_its_turn_unless_the_settings_detach_it(void **state) {
    (void)state;
    for (int detaches = 0; detaches < 2; detaches++) {
        settings.on_disconnect.how = detaches ? LEAVING_DETACHES : LEAVING_CANCELS;
        struct exchange *x = ask("hi");
        assert_int_equal(fake_calls(f.model), 1);
        fake_leave(x);
        turns(&f);
        assert_int_equal(fake_calls(f.model), detaches);
        if (detaches) reply(&f, "to nobody");
        assert_int_equal(f.host.run_count, 0);
        over(x);
    }
}

static void a_caller_that_does_not_read_is_cut_off_and_its_turn_ends(void **state) {
    (void)state;
    struct exchange *x = ask("hi");
    fake_stop_reading(x);
    char *text = mem_alloc(2 * STREAM_HIGH_BYTES);
    memset(text, 'x', 2 * STREAM_HIGH_BYTES);
    assert_true(fake_text(asked(&f), str_of(text, 2 * STREAM_HIGH_BYTES)));
    free(text);
    turns(&f);
    loop_advance(f.loop, STALL_MS - 1);
    assert_int_equal(fake_calls(f.model), 1);
    loop_advance(f.loop, 1);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 0);
    fake_read_all(x); /* and hears why, if he reads after all */
    turns(&f);
    assert_ended(x, "8", "the turn was cut short");
    over(x);
}

#define UNREAD 16

/* Endless turns without a reader would be paid for. */
static void a_peer_that_asks_and_never_reads_is_made_to_wait(void **state) {
    (void)state;
    struct exchange *x = ask("hi");
    fake_stop_reading(x);
    for (int i = 0; i < UNREAD; i++) say_on(x, "hi");
    for (int i = 0; i < UNREAD; i++) {
        assert_int_equal(fake_calls(f.model), 1);
        reply(&f, "ok");
    }
    assert_int_equal(fake_calls(f.model), 0);
    assert_int_equal(fake_calls_ever(f.model), UNREAD);
    fake_read_all(x);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 1);
    fake_stop_reading(x); /* it is counted from the beginning */
    say_on(x, "hi");
    reply(&f, "ok");
    assert_int_equal(fake_calls(f.model), 1);
    fake_read_all(x);
    reply(&f, "ok");
    hang_up(x);
}

/* --- the daemon stops --------------------------------------------------------------------- */

/* Idle, it ends at once; where a turn runs, after it. */
static void a_stream_ends_with_its_turn_when_the_daemon_stops(void **state) {
    (void)state;
    struct exchange *idle = dial(), *busy = ask("hi");
    rpc_site_stop(site);
    turns(&f);
    assert_ended(idle, "14", "the server is shutting down");
    over(idle);
    assert_false(fake_ended(busy));
    reply(&f, "ok");
    assert_heard(busy, "manager(ok) usage(0) done(m-1 manager=ok)");
    assert_ended(busy, "14", "the server is shutting down");
    over(busy);
}

static void a_client_that_is_done_has_had_all_it_came_for(void **state) {
    (void)state;
    struct exchange *x = ask("hi");
    fake_body_end(x);
    rpc_site_stop(site);
    turns(&f);
    reply(&f, "ok");
    turns(&f);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    over(x);
}

/* Trailers say it; no DoneEvent is forged. */
static void a_turn_that_outlasts_the_stop_is_cancelled(void **state) {
    (void)state;
    struct exchange *x = ask("hi");
    assert_true(fake_text(asked(&f), STR("half")));
    turns(&f);
    rpc_site_cut(site);
    turns(&f);
    assert_heard(x, "manager(half)");
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "1");
    over(x);
    run_host_cancel(&f.host, STR("the daemon stops"));
    turns(&f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(many_turns_pass_on_one_stream_one_after_the_other),
        TEST(a_request_names_its_agent_and_overrides_the_instructions),
        TEST(tools_are_shown_at_work),
        TEST(thinking_is_shown_of_agents_that_show_it),
        TEST(a_request_that_is_refused_is_a_done_and_the_stream_goes_on),
        TEST(an_agent_that_is_not_there_is_a_failure_of_its_turn),
        TEST(leniency_fills_in_what_is_missing),
        TEST(a_daemon_for_one_workspace_serves_no_other),
        TEST(a_session_that_is_busy_refuses_a_second_turn),
        TEST(a_malformed_request_ends_the_call),
        TEST(a_turn_that_fails_says_so_in_its_done_and_where_wished_as_text),
        TEST(a_question_ends_the_turn_and_the_next_message_answers_it),
        TEST(a_caller_that_leaves_ends_its_turn_unless_the_settings_detach_it),
        TEST(a_caller_that_does_not_read_is_cut_off_and_its_turn_ends),
        TEST(a_peer_that_asks_and_never_reads_is_made_to_wait),
        TEST(a_stream_ends_with_its_turn_when_the_daemon_stops),
        TEST(a_client_that_is_done_has_had_all_it_came_for),
        TEST(a_turn_that_outlasts_the_stop_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
