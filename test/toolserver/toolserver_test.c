/* A tool server with a table of the test's: what its clients receive. */
#include "toolserver/toolserver.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"
#include "toolserver/call.h"
#include "toolserver/cursor.h"

#include <stdio.h>

#define TOOLS 120

static struct loop *loop;
static struct toolserver server;
static struct toolserver_sessions *sessions;
static struct route_site *site;
static struct toolserver_call *open_call; /* of the tool that waits */
static unsigned cancelled, left, cuts;
static bool left_resumable;

/* --- the tools ---------------------------------------------------------------------------- */

static bool at(size_t index, const struct toolserver_caller *caller, struct arena *arena,
               struct toolserver_tool *ret, void *ctx) {
    char name[16];
    (void)caller, (void)ctx;
    if (index >= TOOLS) return false;
    snprintf(name, sizeof(name), "tool%zu", index);
    *ret = (struct toolserver_tool){.description = STR("a tool"),
                                    .input_schema = STR("{\"type\":\"object\"}"),
                                    .lasts = index == 1};
    return arena_str(arena, str_from(name), &ret->name);
}

static void on_cancelled(void *ctx) {
    (void)ctx;
    cancelled++;
}

static void on_left(bool resumable, void *ctx) {
    (void)ctx;
    left++;
    left_resumable = resumable;
}

static void on_cut(void *ctx) {
    cuts++;
    toolserver_call_fail(ctx, STR("stopped"));
}

static const struct toolserver_call_watch watch = {
    .cancelled = on_cancelled, .left = on_left, .cut = on_cut};

/* tool0 answers at once; the others wait. */
static void call(struct toolserver_call *made, const struct toolserver_tool *tool,
                 struct json arguments, void *ctx) {
    (void)arguments, (void)ctx;
    if (str_equal(tool->name, STR("tool0"))) {
        toolserver_call_answer(made, STR("{\"content\":[]}"));
        return;
    }
    open_call = made;
    toolserver_call_set_run(made, 9, 0);
    toolserver_call_watch(made, &watch, made);
}

static void resume(struct toolserver_call *made, uint64_t run, uint64_t after_seq, void *ctx) {
    (void)ctx;
    if (run != 9) {
        toolserver_call_refuse(made, JSONRPC_INVALID_PARAMS, STR("unknown"));
        return;
    }
    open_call = made;
    toolserver_call_watch(made, &watch, made);
    toolserver_call_resumed(made);
    assert_int_equal(after_seq, 3);
}

static const struct toolserver_table tools = {.at = at, .call = call, .resume = resume};
static const struct toolserver_settings settings = {STR_INIT("test"), STR_INIT("1"),
                                                    STR_INIT("")};

/* --- the routes --------------------------------------------------------------------------- */

static const struct toolserver_caller ann = {STR_INIT("w"), STR_INIT("ann"), STR_INIT("")};

static void post(struct route_call *route, void *ctx) {
    toolserver_post(ctx, route, &ann);
}

static void get(struct route_call *route, void *ctx) {
    toolserver_get(ctx, route, &ann);
}

static void delete (struct route_call *route, void *ctx) {
    toolserver_delete(ctx, route, &ann);
}

static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT("/mcp"), post, ROUTE_OPEN, ROUTE_JSON},
    {STR_INIT("GET"), STR_INIT("/mcp"), get, ROUTE_OPEN, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT("/mcp"), delete, ROUTE_OPEN, ROUTE_PLAIN},
};
static struct route_table table;

static int setup(void **state) {
    static const struct route_table *const all[] = {&table};
    (void)state;
    loop = loop_new_fake();
    sessions = toolserver_sessions_new(10, 60000);
    toolserver_init(&server, &settings, &tools, NULL, sessions, loop);
    table = (struct route_table){.rows = rows,
                                 .row_count = ARRAY_LEN(rows),
                                 .body_max_bytes = 64 * KIB,
                                 .failure_body = toolserver_failure_body,
                                 .ctx = &server};
    site = route_site_new(loop, all, 1);
    open_call = NULL;
    cancelled = left = cuts = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_settle(loop);
    assert_true(list_empty(&server.exchanges));
    route_site_free(site);
    toolserver_sessions_free(sessions);
    loop_free(loop);
    return 0;
}

/* --- requests ----------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

struct head {
    const char *session, *version, *last, *accept;
};

static struct exchange *ask(const char *method, const char *body, struct head head) {
    struct exchange *x = fake_new(loop, method, "/mcp");
    fake_field(x, "content-type", "application/json");
    fake_field(x, "accept", head.accept ? head.accept : "application/json, text/event-stream");
    if (head.session) fake_field(x, "mcp-session-id", head.session);
    if (head.version) fake_field(x, "mcp-protocol-version", head.version);
    if (head.last) fake_field(x, "last-event-id", head.last);
    fake_start(x, serve, site);
    if (body) fake_body(x, str_from(body));
    fake_body_end(x);
    fake_settle(loop);
    return x;
}

static struct exchange *send(const char *body, struct head head) {
    return ask("POST", body, head);
}

static void over(struct exchange *x) {
    fake_settle(loop);
    assert_true(fake_closed(x));
    fake_free(x);
}

static void assert_says(const struct exchange *x, const char *words) {
    if (str_find(fake_sent(x), str_from(words)) == fake_sent(x).len)
        fail_msg("no '%s' in " STR_FMT, words, STR_ARG(fake_sent(x)));
}

static void assert_answer(struct exchange *x, int status, const char *words) {
    fake_settle(loop);
    if (fake_status(x) != status)
        fail_msg("%d " STR_FMT, fake_status(x), STR_ARG(fake_sent(x)));
    if (words[0]) assert_says(x, words);
    over(x);
}

#define GREET(version)                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "\"" version "\"}}"
#define CALL(tool, meta)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool     \
    "\"" meta "}}"
#define TOKEN ",\"_meta\":{\"progressToken\":\"t\"}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"

/* A session of this version; its id is valid until the next one. */
static const char *begin(const char *greeting) {
    static char id[64];
    struct exchange *x = send(greeting, (struct head){0});
    struct str session = fake_value(fake_head(x), "mcp-session-id");
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(session));
    over(x);
    return id;
}

/* --- the handshake ------------------------------------------------------------------------ */

static void the_clients_version_is_taken_if_it_is_known(void **state) {
    (void)state;
    assert_answer(send(GREET("2025-03-26"), (struct head){0}), 200,
                  "\"protocolVersion\":\"2025-03-26\"");
    assert_answer(send(GREET("2031-01-01"), (struct head){0}), 200,
                  "\"protocolVersion\":\"2025-11-25\"");
}

static void a_session_that_is_not_known_is_404(void **state) {
    (void)state;
    assert_answer(send(PING, (struct head){.session = "x"}), 404, "no such session");
    const char *id = begin(GREET("2025-11-25"));
    assert_answer(send(PING, (struct head){.session = id}), 200, "\"result\":{}");
    assert_answer(ask("DELETE", NULL, (struct head){.session = id}), 204, "");
    assert_answer(send(PING, (struct head){.session = id}), 404, "no such session");
    assert_answer(ask("DELETE", NULL, (struct head){0}), 400, "missing");
}

static void a_server_without_sessions_gives_none(void **state) {
    (void)state;
    server.sessions = NULL;
    struct exchange *x = send(GREET("2025-11-25"), (struct head){0});
    assert_null(fake_value(fake_head(x), "mcp-session-id").at);
    over(x);
    assert_answer(send(PING, (struct head){.session = "x"}), 200, "\"result\":{}");
    assert_answer(ask("DELETE", NULL, (struct head){.session = "x"}), 405, "no sessions");
    x = ask("GET", NULL, (struct head){.last = "9.3.Nw", .session = "x"});
    assert_str(fake_value(fake_head(x), "allow"), "POST");
    assert_answer(x, 405, "");
}

/* --- lists -------------------------------------------------------------------------------- */

static size_t count_tools(const struct exchange *x) {
    size_t count = 0;
    struct str rest = fake_sent(x), name = STR("\"inputSchema\"");
    for (size_t i; (i = str_find(rest, name)) < rest.len; rest = str_skip(rest, i + 1)) count++;
    return count;
}

#define LIST(params) "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"" params "}"

static void all_pages_together_are_all_tools(void **state) {
    (void)state;
    struct exchange *x = send(LIST(""), (struct head){0});
    assert_int_equal(count_tools(x), 50);
    assert_answer(x, 200, "\"nextCursor\":\"50\"");
    x = send(LIST(",\"params\":{\"cursor\":\"50\"}"), (struct head){0});
    assert_int_equal(count_tools(x), 50);
    assert_answer(x, 200, "\"nextCursor\":\"100\"");
    x = send(LIST(",\"params\":{\"cursor\":\"100\"}"), (struct head){0});
    assert_int_equal(count_tools(x), 20);
    assert_true(str_find(fake_sent(x), STR("nextCursor")) == fake_sent(x).len);
    over(x);
    assert_answer(send(LIST(",\"params\":{\"cursor\":\"-1\"}"), (struct head){0}), 200,
                  "-32602");
}

/* --- calls -------------------------------------------------------------------------------- */

static void a_call_without_progress_is_one_body(void **state) {
    (void)state;
    assert_answer(send(CALL("tool0", ""), (struct head){0}), 200,
                  "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[]}}");
    struct exchange *x = send(CALL("tool2", ""), (struct head){0});
    assert_int_equal(fake_status(x), 0);
    toolserver_call_answer(open_call, STR("{\"content\":[]}"));
    assert_answer(x, 200, "\"id\":7");
}

static void progress_is_an_event_stream(void **state) {
    (void)state;
    struct exchange *x = send(CALL("tool2", TOKEN), (struct head){0});
    assert_str(fake_value(fake_head(x), "content-type"), "text/event-stream");
    toolserver_call_report(open_call, 1, STR("hm"), STR("{\"k\":1}"));
    toolserver_call_answer(open_call, STR("{}"));
    fake_settle(loop);
    assert_str(
        fake_sent(x),
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
        "\"params\":{\"progressToken\":\"t\",\"progress\":1,\"message\":\"hm\",\"_meta\":"
        "{\"k\":1}}}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"
        "\n\n");
    over(x);
}

/* A client that reads no streams still gets its answer. */
static void a_client_that_reads_no_events_gets_a_body(void **state) {
    (void)state;
    struct exchange *x =
        send(CALL("tool1", TOKEN), (struct head){.accept = "application/json"});
    toolserver_call_report(open_call, 1, STR("hm"), STR_EMPTY);
    assert_false(toolserver_call_wants_progress(open_call));
    toolserver_call_answer(open_call, STR("{}"));
    assert_answer(x, 200, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
}

static void only_a_new_client_is_primed(void **state) {
    (void)state;
    const char *id = begin(GREET("2025-06-18"));
    struct exchange *x = send(CALL("tool1", TOKEN), (struct head){.session = id});
    assert_str(fake_sent(x), "");
    toolserver_call_report(open_call, 3, STR("hm"), STR_EMPTY);
    fake_settle(loop);
    assert_says(x, "id: 9.3.Nw.InQi\n");
    toolserver_call_answer(open_call, STR("{}"));
    over(x);
    id = begin(GREET("2025-11-25"));
    x = send(CALL("tool1", TOKEN), (struct head){.session = id});
    assert_says(x, "retry: 1000\nid: 9.0.Nw.InQi\n");
    toolserver_call_answer(open_call, STR("{}"));
    over(x);
}

static void a_cancelled_call_gets_no_answer(void **state) {
    (void)state;
    static const char note[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                               "\"params\":{\"requestId\":7}}";
    const char *id = begin(GREET("2025-11-25"));
    struct exchange *x = send(CALL("tool2", ""), (struct head){.session = id});
    assert_answer(send(note, (struct head){.session = id}), 202, "");
    assert_int_equal(cancelled, 1);
    assert_answer(x, 202, "");
    assert_answer(send(note, (struct head){.session = id}), 202, "");
    assert_int_equal(cancelled, 1);
}

static void who_leaves_can_come_back_only_with_a_session(void **state) {
    (void)state;
    struct exchange *x = send(CALL("tool1", ""), (struct head){0});
    fake_leave(x);
    over(x);
    assert_true(left == 1 && !left_resumable);
    const char *id = begin(GREET("2025-11-25"));
    x = send(CALL("tool1", ""), (struct head){.session = id});
    fake_leave(x);
    over(x);
    assert_true(left == 2 && left_resumable);
}

static void a_resumed_call_is_answered_with_its_first_id(void **state) {
    (void)state;
    const char *id = begin(GREET("2025-11-25"));
    struct exchange *x = ask("GET", NULL, (struct head){.session = id, .last = "9.3.Nw.InQi"});
    assert_int_equal(fake_status(x), 200);
    toolserver_call_report(open_call, 4, STR("on"), STR_EMPTY);
    toolserver_call_answer(open_call, STR("{}"));
    fake_settle(loop);
    assert_says(x, "id: 9.4.Nw.InQi\nevent: message\n");
    assert_says(x, "\"progressToken\":\"t\"");
    assert_says(x, "\"id\":7,\"result\"");
    over(x);
    assert_answer(ask("GET", NULL, (struct head){.session = id, .last = "8.3.Nw"}), 404,
                  "unknown");
    assert_answer(ask("GET", NULL, (struct head){.session = id, .last = "x"}), 400, "");
    assert_answer(ask("GET", NULL, (struct head){.last = "9.3.Nw"}), 400, "missing");
    assert_answer(ask("GET", NULL, (struct head){.session = id}), 405, "");
}

static void the_end_of_the_daemon_is_an_answer(void **state) {
    (void)state;
    struct exchange *x = send(CALL("tool1", ""), (struct head){0});
    toolserver_cut(&server);
    assert_int_equal(cuts, 1);
    fake_settle(loop);
    assert_says(x, "\"text\":\"stopped\"}],\"isError\":true");
    over(x);
}

/* --- batches ------------------------------------------------------------------------------ */

static void a_batch_is_answered_when_all_of_it_is(void **state) {
    (void)state;
    const char *id = begin(GREET("2025-03-26"));
    const struct head head = {.session = id, .accept = "application/json"};
    struct exchange *x = send("[" CALL("tool2", "") "," PING "]", head);
    assert_int_equal(fake_status(x), 0);
    toolserver_call_answer(open_call, STR("{}"));
    assert_answer(x, 200,
                  "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},"
                  "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}]");
    assert_answer(send("[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]", head), 202, "");
    assert_answer(send("[" GREET("2025-03-26") "]", head), 200, "must not be part of a batch");
}

/* --- stateless ---------------------------------------------------------------------------- */

static void a_stateless_result_says_that_it_is_whole(void **state) {
    (void)state;
    struct exchange *x = fake_new(loop, "POST", "/mcp");
    fake_field(x, "content-type", "application/json");
    fake_field(x, "mcp-protocol-version", "2026-07-28");
    fake_field(x, "mcp-method", "tools/call");
    fake_field(x, "mcp-name", "tool0");
    fake_start(x, serve, site);
    fake_body(x, STR(CALL("tool0", ",\"_meta\":{"
                                   "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                                   "\"io.modelcontextprotocol/clientCapabilities\":{}}")));
    fake_body_end(x);
    fake_settle(loop);
    assert_answer(x, 200, "\"result\":{\"resultType\":\"complete\",\"content\":[]}");
    assert_answer(send(PING, (struct head){.version = "2026-07-28"}), 400, "-32602");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_clients_version_is_taken_if_it_is_known),
        TEST(a_session_that_is_not_known_is_404),
        TEST(a_server_without_sessions_gives_none),
        TEST(all_pages_together_are_all_tools),
        TEST(a_call_without_progress_is_one_body),
        TEST(progress_is_an_event_stream),
        TEST(a_client_that_reads_no_events_gets_a_body),
        TEST(only_a_new_client_is_primed),
        TEST(a_cancelled_call_gets_no_answer),
        TEST(who_leaves_can_come_back_only_with_a_session),
        TEST(a_resumed_call_is_answered_with_its_first_id),
        TEST(the_end_of_the_daemon_is_an_answer),
        TEST(a_batch_is_answered_when_all_of_it_is),
        TEST(a_stateless_result_says_that_it_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
