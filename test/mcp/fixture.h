/* fixture: an MCP server that a test plays by hand, and a client that asks it. */
#ifndef WEIR_TEST_MCP_FIXTURE_H
#define WEIR_TEST_MCP_FIXTURE_H

#include "fake/http_fake.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include "mcp/client.h"

#include <stdlib.h>

#define FRESH __attribute__((unused)) static
#define ENDPOINT "http://o:7171/mcp/v1"

struct stage {
    struct loop *loop;
    struct http_pool *pool;
    struct mcp_client *client;
    unsigned tokens; /* handed out */
    bool refuses;    /* to authorize */
    size_t answers, changes;
    bool failed;
    enum err_code code; /* of the failure */
    struct buf said;
};

FRESH bool stage_authorize(const struct mcp_caller *caller, struct buf *out, void *ctx,
                           struct err *e) {
    struct stage *stage = ctx;
    if (stage->refuses) return err_set(e, ERR_INVALID_ARGUMENT, "no token");
    buf_printf(out, "Bearer " STR_FMT "/" STR_FMT "/%u", STR_ARG(caller->user),
               STR_ARG(caller->workspace), ++stage->tokens);
    return true;
}

FRESH void stage_changed(void *ctx) {
    struct stage *stage = ctx;
    stage->changes++;
}

FRESH void stage_init_with(struct stage *stage, bool probes, bool streams) {
    *stage = (struct stage){.loop = loop_new_fake(), .pool = http_pool_new()};
    stage->client =
        mcp_client_new(&(struct mcp_options){.pool = stage->pool,
                                             .loop = stage->loop,
                                             .endpoint = STR(ENDPOINT),
                                             .probes = probes,
                                             .streams = streams,
                                             .changed = stage_changed,
                                             .user_header = STR("x-user-id"),
                                             .conversation_header = STR("x-conversation-id"),
                                             .authorize = stage_authorize,
                                             .ctx = stage});
    buf_init(&stage->said, MIB);
}

FRESH void stage_init_as(struct stage *stage, bool probes) {
    stage_init_with(stage, probes, false);
}

FRESH void stage_init(struct stage *stage) {
    stage_init_as(stage, false);
}

FRESH void stage_done(struct stage *stage) {
    mcp_client_unref(stage->client);
    assert_int_equal(fake_http_calls(stage->pool), 0);
    http_pool_free(stage->pool);
    buf_done(&stage->said);
    loop_free(stage->loop);
}

FRESH int fixture_setup(void **state) {
    struct stage *stage = MEM_NEW(struct stage);
    stage_init(stage);
    *state = stage;
    return 0;
}

FRESH int fixture_setup_probing(void **state) {
    struct stage *stage = MEM_NEW(struct stage);
    stage_init_as(stage, true);
    *state = stage;
    return 0;
}

FRESH int fixture_teardown(void **state) {
    struct stage *stage = *state;
    stage_done(stage);
    free(stage);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define PROBED(name)                                                                           \
    cmocka_unit_test_setup_teardown(name, fixture_setup_probing, fixture_teardown)

FRESH void stage_hears(struct json result, const struct err *failed, void *ctx) {
    struct stage *stage = ctx;
    stage->answers++;
    stage->failed = failed != NULL;
    stage->code = failed ? failed->code : ERR_NONE;
    buf_append(&stage->said, failed ? err_text(failed) : result.raw);
}

FRESH struct mcp_request stage_request(const char *user) {
    return (struct mcp_request){.caller = {str_from(user), STR("w"), STR("s-1")},
                                .method = "tools/call",
                                .params = STR("{\"name\":\"t\"}"),
                                .total_ms = 60000};
}

FRESH struct mcp_call *stage_call(struct stage *stage, const struct mcp_request *request) {
    buf_clear(&stage->said);
    stage->answers = 0;
    struct mcp_call *call = mcp_call_start(stage->client, request, stage_hears, stage);
    assert_int_equal(stage->answers, 0);
    return call;
}

FRESH void stage_said(const struct stage *stage, bool failed, const char *expected) {
    assert_int_equal(stage->answers, 1);
    assert_str(buf_str(&stage->said), expected);
    assert_int_equal(stage->failed, failed);
}

/* --- the server's side -------------------------------------------------------------------- */

FRESH struct http_call *out(const struct stage *stage) {
    return fake_http_call(stage->pool, 0);
}

FRESH struct json posted(struct http_call *call) {
    struct json value;
    struct err e;
    if (!json_read(fake_http_request(call)->body, &value, &e)) fail_msg("%s", e.text);
    return value;
}

FRESH void assert_method(struct http_call *call, const char *method) {
    struct json said = json_find(posted(call), STR("method"));
    if (!json_is(said, str_from(method)))
        fail_msg("%s was expected, not " STR_FMT, method, STR_ARG(said.raw));
}

FRESH void answer_json(struct http_call *call, const char *session, const char *member) {
    struct buf body;
    buf_init(&body, MIB);
    buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":" STR_FMT ",%s}",
               STR_ARG(json_find(posted(call), STR("id")).raw), member);
    if (fake_http_head_session(call, 200, "application/json; charset=utf-8", session) &&
        fake_http_body(call, buf_str(&body)))
        fake_http_end(call);
    buf_done(&body);
}

FRESH void accept_note(struct http_call *call) {
    if (fake_http_head(call, 202, "")) fake_http_end(call);
}

/* initialize and notifications/initialized, up to the first real request. */
FRESH void greet(struct stage *stage, const char *session) {
    assert_method(out(stage), "initialize");
    answer_json(out(stage), session,
                "\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}");
    assert_method(out(stage), "notifications/initialized");
    accept_note(out(stage));
}

#endif
