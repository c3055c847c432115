/* The bridge between a client on pipes and a server over HTTP: each line goes out once, and each
 * request gets an answer. */
#include "toolserver/bridge.h"

#include "base/buf.h"

#include "fake/http_fake.h"
#include "helper/assert_str.h"

static struct loop *loop;
static struct http_pool *pool;
static struct toolserver_bridge *bridge;
static struct buf said;
static unsigned idle;

static void on_message(struct str message, void *ctx) {
    (void)ctx;
    buf_append(&said, message);
    buf_append_byte(&said, '\n');
}

static void on_idle(void *ctx) {
    (void)ctx;
    idle++;
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    pool = http_pool_new();
    http_pool_add(pool, loop);
    buf_init(&said, 64 * KIB);
    idle = 0;
    bridge = toolserver_bridge_new(
        &(struct toolserver_bridge_options){.loop = loop,
                                            .pool = pool,
                                            .url = STR("http://h/mcp"),
                                            .authorization = STR("Bearer t"),
                                            .on_message = on_message,
                                            .on_idle = on_idle});
    return 0;
}

static int teardown(void **state) {
    (void)state;
    toolserver_bridge_free(bridge);
    loop_turn(loop);
    http_pool_leave(pool, loop);
    http_pool_free(pool);
    loop_free(loop);
    buf_done(&said);
    return 0;
}

static void take(const char *line) {
    toolserver_bridge_take(bridge, str_from(line));
    loop_turn(loop);
}

static struct http_call *newest(void) {
    return fake_http_call(pool, fake_http_calls(pool) - 1);
}

static void assert_said(const char *lines) {
    assert_str(buf_str(&said), lines);
    buf_clear(&said);
}

static void answer(struct http_call *call, unsigned status, const char *body) {
    assert_true(fake_http_head(call, status, "application/json"));
    if (body[0]) assert_true(fake_http_body(call, str_from(body)));
    fake_http_end(call);
    loop_turn(loop);
}

#define GREET                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "\"2025-11-25\"}}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

static void greet(void) {
    take(GREET);
    struct http_call *call = newest();
    assert_str(fake_http_header(call, "mcp-session-id"), "");
    assert_true(fake_http_head_session(call, 200, "application/json", "s1"));
    assert_true(fake_http_body(
        call, STR("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":"
                  "\"2025-06-18\"}}")));
    fake_http_end(call);
    loop_turn(loop);
    buf_clear(&said);
}

static void a_request_goes_out_with_the_session_and_the_version(void **state) {
    (void)state;
    greet();
    take(PING);
    struct http_call *call = newest();
    assert_str(fake_http_request(call)->url, "http://h/mcp");
    assert_str(fake_http_request(call)->body, PING);
    assert_true(fake_http_request(call)->once);
    assert_str(fake_http_header(call, "mcp-session-id"), "s1");
    assert_str(fake_http_header(call, "mcp-protocol-version"), "2025-06-18");
    assert_str(fake_http_header(call, "authorization"), "Bearer t");
    answer(call, 200, "{\"jsonrpc\": \"2.0\",\n \"id\": 1, \"result\": {}}");
    assert_said(PONG "\n");
    assert_true(toolserver_bridge_is_idle(bridge));
}

static void events_are_lines(void **state) {
    (void)state;
    take(PING);
    struct http_call *call = newest();
    assert_true(fake_http_head(call, 200, "text/event-stream"));
    assert_true(
        fake_http_body(call, STR("id: 1\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\"")));
    assert_said("");
    assert_true(fake_http_body(call, STR(":\"m\"}\n\n: x\n\ndata: " PONG "\n\n")));
    assert_said("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n" PONG "\n");
    fake_http_end(call);
    loop_turn(loop);
    assert_said("");
    assert_int_equal(idle, 1);
}

static void a_request_without_an_answer_gets_one(void **state) {
    (void)state;
    static const char *const bodies[] = {"", "{\"error\":{\"message\":\"no\"}}", "<html>"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        take(PING);
        answer(newest(), 503, bodies[i]);
        assert_true(str_starts(buf_str(&said), STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{"
                                                   "\"code\":-32603,")));
        buf_clear(&said);
    }
    take(PING);
    fake_http_fail(newest(), ERR_UNAVAILABLE, HTTP_CONNECTING);
    loop_turn(loop);
    assert_true(str_find(buf_str(&said), STR("-32603")) < said.len);
    buf_clear(&said);
    take(PING);
    struct http_call *call = newest();
    assert_true(fake_http_head(call, 200, "text/event-stream"));
    fake_http_end(call);
    loop_turn(loop);
    assert_true(str_find(buf_str(&said), STR("before it answered")) < said.len);
}

static void a_notification_is_never_answered(void **state) {
    (void)state;
    take(NOTE);
    answer(newest(), 202, "");
    take(NOTE);
    answer(newest(), 500, "{\"error\":{\"message\":\"no\"}}");
    take(NOTE);
    fake_http_fail(newest(), ERR_UNAVAILABLE, HTTP_CONNECTING);
    loop_turn(loop);
    assert_said("");
}

static void a_refusal_of_the_protocol_is_passed_on(void **state) {
    (void)state;
    take(PING);
    answer(newest(), 400,
           "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"v\"}}");
    assert_said(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"v\"}}\n");
}

static void a_lost_session_is_left_out_from_then_on(void **state) {
    (void)state;
    greet();
    take(PING);
    answer(newest(), 404,
           "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":"
           "\"gone\"}}");
    assert_said("");
    assert_str(fake_http_header(newest(), "mcp-session-id"), "");
    assert_str(fake_http_request(newest())->body, PING);
    answer(newest(), 404, "{}");
    assert_true(str_find(buf_str(&said), STR("-32603")) < said.len); /* not a third time */
}

static void a_stateless_request_says_itself_in_headers(void **state) {
    (void)state;
    greet();
    take("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\","
         "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}");
    assert_str(fake_http_header(newest(), "mcp-session-id"), "");
    assert_str(fake_http_header(newest(), "mcp-protocol-version"), "2026-07-28");
    assert_str(fake_http_header(newest(), "mcp-method"), "tools/call");
    assert_str(fake_http_header(newest(), "mcp-name"), "x");
    /* It is cancelled by closing its connection. */
    take("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
         "\"requestId\":1}}");
    assert_int_equal(fake_http_calls(pool), 0);
    assert_said("");
    assert_true(toolserver_bridge_is_idle(bridge));
}

static void a_cancellation_in_a_session_is_the_servers(void **state) {
    (void)state;
    greet();
    take(PING);
    take("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
         "\"requestId\":1}}");
    assert_int_equal(fake_http_calls(pool), 2);
}

static void a_line_that_is_no_message_is_refused_here(void **state) {
    (void)state;
    take("");
    take("  \r");
    assert_said("");
    take("nonsense");
    assert_true(str_starts(buf_str(&said), STR("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{"
                                               "\"code\":-32700,")));
    buf_clear(&said);
    take("{\"id\":4}");
    assert_true(str_starts(buf_str(&said), STR("{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{"
                                               "\"code\":-32600,")));
    assert_int_equal(fake_http_calls_ever(pool), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_request_goes_out_with_the_session_and_the_version),
        TEST(events_are_lines),
        TEST(a_request_without_an_answer_gets_one),
        TEST(a_notification_is_never_answered),
        TEST(a_refusal_of_the_protocol_is_passed_on),
        TEST(a_lost_session_is_left_out_from_then_on),
        TEST(a_stateless_request_says_itself_in_headers),
        TEST(a_cancellation_in_a_session_is_the_servers),
        TEST(a_line_that_is_no_message_is_refused_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
