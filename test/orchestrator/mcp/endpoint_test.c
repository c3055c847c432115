/* An orchestrator's endpoint: who may call, what is listed, what its tools answer, what is kept of
 * each call. */
#include "orchestrator/mcp/endpoint.h"

#include "base/clock.h"
#include "base/id.h"
#include "fake/exchange_fake.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"

#include <stdio.h>

#define KEY "test-signing-key-32bytes-long!!!"

static struct loop *loop;
static struct store *store;
static struct token_keys *keys;
static struct orchestrator_endpoint endpoint;
static struct route_table table;
static struct route_site *site;
static struct orchestrator_call *waiting;
static char conversation[64], audited_of[64], audited[8 * KIB];
static unsigned audits, gone;
static bool unheard, refused;

/* --- the orchestrator --------------------------------------------------------------------- */

static void list_conversations(struct orchestrator_call *call,
                               const struct orchestrator_call_view *view, void *ctx) {
    (void)ctx;
    snprintf(conversation, sizeof(conversation), STR_FMT, STR_ARG(view->conversation));
    orchestrator_call_answer(call, STR("{\"conversations\":[]}"));
}

static void on_gone(void *ctx) {
    (void)ctx;
    gone++;
}

static void send_message(struct orchestrator_call *call,
                         const struct orchestrator_call_view *view, void *ctx) {
    (void)ctx;
    snprintf(conversation, sizeof(conversation), STR_FMT, STR_ARG(view->conversation));
    waiting = call;
    orchestrator_call_watch(call, on_gone, NULL);
}

static void blueprint(struct orchestrator_blueprint *asked, struct str workspace,
                      struct str user, void *ctx) {
    struct buf json;
    (void)user, (void)ctx;
    buf_init(&json, KIB);
    buf_printf(&json, "{\"workspace_id\":\"" STR_FMT "\",\"agents\":[]}", STR_ARG(workspace));
    orchestrator_blueprint_answer(asked, buf_str(&json));
    buf_done(&json);
}

static void audit(const struct orchestrator_audit *row, void *ctx) {
    (void)ctx;
    audits++;
    unheard = row->unheard;
    refused = row->refused;
    snprintf(audited_of, sizeof(audited_of), STR_FMT, STR_ARG(row->conversation));
    assert_true(!row->conversation.len || id_ok(row->conversation));
    snprintf(audited, sizeof(audited), STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT " %d",
             STR_ARG(row->workspace), STR_ARG(row->tool), STR_ARG(row->arguments),
             STR_ARG(row->result), row->error);
}

static int setup(void **state) {
    static const struct route_table *const all[] = {&table};
    struct err e;
    bool trimmed;
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_always_commit(store);
    keys = token_keys_new(TOKEN_LENIENT, TOKEN_WINDOW_S);
    assert_true(token_keys_add(keys, STR(KEY), &trimmed, &e));
    endpoint = (struct orchestrator_endpoint){.keys = keys,
                                              .store = store,
                                              .blueprint = blueprint,
                                              .audit = audit,
                                              .body_max_bytes = 64 * KIB};
    endpoint.tools[ORCHESTRATOR_LIST_CONVERSATIONS] = list_conversations;
    endpoint.tools[ORCHESTRATOR_SEARCH_PAST_MESSAGES] = list_conversations;
    endpoint.tools[ORCHESTRATOR_SEND_MESSAGE_TO_AGENT] = send_message;
    orchestrator_endpoint_init(&endpoint, loop);
    orchestrator_endpoint_table(&endpoint, &table);
    site = route_site_new(loop, all, 1);
    waiting = NULL;
    audits = gone = 0;
    conversation[0] = '\0';
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_settle(loop);
    route_site_free(site);
    token_keys_free(keys);
    fake_store_free(store);
    loop_free(loop);
    return 0;
}

/* --- requests ----------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

static const char *bearer(const char *workspace, const char *scheme) {
    static char text[512];
    struct buf token;
    struct err e;
    buf_init(&token, sizeof(text));
    buf_append(&token, str_from(scheme));
    assert_true(
        token_mint(keys, STR("u"), str_from(workspace), clock_unix_ms() / 1000, &token, &e));
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(buf_str(&token)));
    buf_done(&token);
    return text;
}

static struct exchange *begin(const char *method, const char *path, const char *authorization) {
    struct exchange *x = fake_new(loop, method, path);
    fake_field(x, "content-type", "application/json");
    fake_field(x, "accept", "application/json, text/event-stream");
    if (authorization) fake_field(x, "authorization", authorization);
    return x;
}

static struct exchange *finish(struct exchange *x, const char *body) {
    fake_start(x, serve, site);
    if (body) fake_body(x, str_from(body));
    fake_body_end(x);
    fake_settle(loop);
    return x;
}

static void over(struct exchange *x) {
    fake_settle(loop);
    assert_true(fake_closed(x));
    fake_free(x);
}

static bool says(const struct exchange *x, const char *words) {
    return str_find(fake_sent(x), str_from(words)) < fake_sent(x).len;
}

static void assert_answer(struct exchange *x, int status, const char *words) {
    fake_settle(loop);
    if (fake_status(x) != status || !says(x, words))
        fail_msg("%d " STR_FMT, fake_status(x), STR_ARG(fake_sent(x)));
    over(x);
}

#define MESSAGE(method, params)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define CALL(tool, arguments)                                                                  \
    MESSAGE("tools/call", "\"name\":\"" tool "\",\"arguments\":{" arguments "}")

static struct exchange *ask(const char *body) {
    return finish(begin("POST", "/mcp/v1", bearer("w", "Bearer ")), body);
}

/* --- who may call ------------------------------------------------------------------------- */

static void a_caller_without_a_token_reads_what_pods_expect(void **state) {
    (void)state;
    struct exchange *x = finish(begin("POST", "/mcp/v1", NULL), "{}");
    assert_str(fake_value(fake_head(x), "content-type"), "text/plain; charset=utf-8");
    assert_str(fake_sent(x), "missing authorization");
    assert_answer(x, 401, "");
    x = finish(begin("POST", "/mcp/v1", "Bearer nobody"), "{}");
    assert_str(fake_sent(x), "invalid token");
    assert_answer(x, 401, "");
    endpoint.keys = NULL;
    assert_answer(finish(begin("POST", "/mcp/v1", "Bearer nobody"), "{}"), 401,
                  "invalid token");
}

static void it_introduces_itself_and_knows_no_sessions(void **state) {
    (void)state;
    struct exchange *x = ask(MESSAGE("initialize", "\"protocolVersion\":\"2025-11-25\""));
    assert_null(fake_value(fake_head(x), "mcp-session-id").at);
    assert_answer(x, 200, "{\"name\":\"crawbl-orchestrator\",\"version\":\"1.0.0\"}");
    assert_answer(finish(begin("GET", "/mcp/v1", bearer("w", "Bearer ")), NULL), 405, "");
}

/* --- tools -------------------------------------------------------------------------------- */

static void only_what_is_carried_out_is_listed(void **state) {
    (void)state;
    struct exchange *x = ask(MESSAGE("tools/list", ""));
    assert_true(says(x, "\"name\":\"list_conversations\""));
    assert_true(says(x, "\"name\":\"memory_search\""));
    assert_false(says(x, "\"name\":\"get_user_profile\""));
    over(x);
    endpoint.store = NULL;
    x = ask(MESSAGE("tools/list", ""));
    assert_false(says(x, "\"name\":\"memory_search\""));
    over(x);
    assert_answer(ask(CALL("get_user_profile", "")), 200, "-32602");
}

static void each_schema_is_json_and_takes_a_description(void **state) {
    (void)state;
    for (unsigned i = 0; i < ORCHESTRATOR_TOOL_COUNT; i++) {
        struct json schema;
        struct err e;
        const struct orchestrator_tool_row *row = &orchestrator_tools[i];
        if (!json_read(row->input_schema, &schema, &e)) fail_msg(STR_FMT, STR_ARG(row->name));
        struct json properties = json_find(schema, STR("properties"));
        assert_int_equal(json_find(properties, STR("description")).kind, JSON_OBJECT);
        struct json_reader required = json_enter(json_find(schema, STR("required")));
        struct json name;
        while (json_next_item(&required, &name))
            assert_int_equal(
                json_find(properties, str_head(str_skip(name.raw, 1), name.raw.len - 2)).kind,
                JSON_OBJECT);
        assert_int_equal(orchestrator_tool_find(row->name), i);
    }
}

static void the_conversation_of_the_turn_stands_in(void **state) {
    (void)state;
    static const char *const bodies[] = {
        CALL("list_conversations", ""),
        CALL("list_conversations", "\"conversation_id\":\"c2\""),
        CALL("search_past_messages", "\"conversation_id\":\"c3\",\"query\":\"q\",\"limit\":3")};
    static const char *const expected[] = {"c1", "c2", "c3"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct exchange *x = begin("POST", "/mcp/v1", bearer("w", "Bearer "));
        fake_field(x, "x-conversation-id", "c1");
        assert_answer(finish(x, bodies[i]), 200,
                      "\"structuredContent\":{\"conversations\":[]}");
        assert_string_equal(conversation, expected[i]);
    }
    assert_answer(ask(CALL("search_past_messages", "\"query\":\"q\",\"limit\":3")), 200,
                  "conversation_id is required");
}

static void a_call_that_takes_long_reports_and_ends(void **state) {
    (void)state;
    struct exchange *x =
        ask(CALL("send_message_to_agent", "\"agent_slug\":\"a\",\"message\":\"m\""));
    assert_str(fake_value(fake_head(x), "content-type"), "text/event-stream");
    assert_int_equal(audits, 0);
    orchestrator_call_answer(waiting, STR("{\"text\":\"t\"}"));
    assert_answer(x, 200, "\"structuredContent\":{\"text\":\"t\"}");
    assert_string_equal(audited, "w send_message_to_agent {\"agent_slug\":\"a\",\"message\":"
                                 "\"m\"} {\"text\":\"t\"} 0");
}

static void who_leaves_ends_the_call(void **state) {
    (void)state;
    struct exchange *x =
        ask(CALL("send_message_to_agent", "\"agent_slug\":\"a\",\"message\":\"m\""));
    fake_leave(x);
    over(x);
    assert_int_equal(gone, 1);
    assert_int_equal(audits, 0);
    orchestrator_call_report(waiting, STR("goes on"));
    orchestrator_call_fail(waiting, STR("nobody waits"));
    assert_string_equal(audited, "w send_message_to_agent {\"agent_slug\":\"a\",\"message\":"
                                 "\"m\"} {\"error\":\"nobody waits\"} 1");
    assert_true(unheard && audits == 1);
}

static void what_a_call_did_after_its_caller_left_is_audited(void **state) {
    (void)state;
    struct exchange *x =
        ask(CALL("send_message_to_agent", "\"agent_slug\":\"a\",\"message\":\"m\""));
    fake_leave(x);
    over(x);
    orchestrator_call_answer(waiting, STR("{\"text\":\"late\"}"));
    assert_string_equal(audited, "w send_message_to_agent {\"agent_slug\":\"a\",\"message\":"
                                 "\"m\"} {\"text\":\"late\"} 0");
    assert_true(unheard && audits == 1);
}

static bool never(void *ctx) {
    (void)ctx;
    return false;
}

static void what_could_not_be_audited_is_not_done(void **state) {
    (void)state;
    endpoint.ready = never;
    assert_answer(ask(CALL("list_conversations", "")), 200, "the orchestrator is not ready");
    assert_string_equal(conversation, "");
    assert_true(refused && audits == 1);
    endpoint.ready = NULL;
    assert_answer(ask(CALL("list_conversations", "")), 200, "structuredContent");
    assert_true(!refused && audits == 2);
}

/* --- audit -------------------------------------------------------------------------------- */

static void a_failure_is_kept_as_one(void **state) {
    (void)state;
    assert_answer(ask(CALL("memory_search", "")), 200, "\"isError\":true");
    assert_string_equal(audited, "w memory_search {} {\"error\":\"query is required\"} 1");
    assert_int_equal(audits, 1);
}

/* A model may say anything: its row must be one that a table takes. */
static void a_conversation_that_is_no_id_stays_out_of_its_row(void **state) {
    (void)state;
    static const char *const given[] = {"\\u0000", "a\\nb", NULL, "c2"};
    char name[ID_MAX_BYTES + 2], body[2 * KIB];
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        snprintf(body, sizeof(body), CALL("list_conversations", "\"conversation_id\":\"%s\""),
                 given[i] ? given[i] : name);
        assert_answer(ask(body), 200, "structuredContent");
        assert_int_equal(audits, i + 1);
        assert_string_equal(audited_of, i == 3 ? "c2" : "");
    }
}

static void a_payload_beyond_the_limit_is_replaced(void **state) {
    (void)state;
    char json[ORCHESTRATOR_AUDIT_PAYLOAD_BYTES + 1];
    memset(json, '1', sizeof(json));
    for (size_t len = sizeof(json) - 1; len <= sizeof(json); len++) {
        struct buf kept;
        buf_init(&kept, 2 * sizeof(json));
        orchestrator_audit_payload(str_of(json, len), &kept);
        if (len == ORCHESTRATOR_AUDIT_PAYLOAD_BYTES)
            assert_true(str_equal(buf_str(&kept), str_of(json, len)));
        else
            assert_str(buf_str(&kept),
                       "{\"_truncated\":true,\"_original_size\":4097,\"_limit\":4096}");
        buf_done(&kept);
    }
}

/* --- memory ------------------------------------------------------------------------------- */

static void a_drawer_is_added_found_counted_and_removed(void **state) {
    (void)state;
    char id[64], body[256];
    struct exchange *x = ask(CALL("memory_add_drawer", "\"wing\":\"home\",\"room\":\"garden\","
                                                       "\"content\":\"tulips in May\""));
    size_t at = str_find(fake_sent(x), STR("drawer_"));
    at += str_find(str_skip(fake_sent(x), at + 1), STR("drawer_")) + 1;
    struct str found = str_skip(fake_sent(x), str_find(fake_sent(x), STR("drawer_id")));
    found = str_skip(found, str_find(found, STR(":\\\"")) + 3);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(str_head(found, str_find_byte(found, '\\'))));
    assert_true(at > 0 && strlen(id) == 31);
    over(x);
    over(ask(CALL("memory_add_drawer", "\"wing\":\"home\",\"room\":\"attic\",\"content\":\"old "
                                       "skis\"")));
    assert_answer(ask(CALL("memory_search", "\"query\":\"tulips\"")), 200,
                  "\"content\":\"tulips in May\"");
    assert_answer(ask(CALL("memory_search", "\"query\":\"tulips\",\"wing\":\"work\"")), 200,
                  "\"results\":[],\"count\":0");
    assert_answer(ask(CALL("memory_status", "")), 200,
                  "{\"total_drawers\":2,\"wings\":{\"home\":2}}");
    assert_answer(ask(CALL("memory_list_rooms", "\"wing\":\"home\"")), 200, "\"garden\":1");
    assert_answer(ask(CALL("memory_get_taxonomy", "")), 200, "{\"taxonomy\":{\"home\":{");
    snprintf(body, sizeof(body), CALL("memory_delete_drawer", "\"drawer_id\":\"%s\""), id);
    assert_answer(ask(body), 200, "\"success\":true");
    assert_answer(ask(body), 200, "there is no drawer with this id");
    assert_answer(ask(CALL("memory_status", "")), 200, "{\"total_drawers\":1");
}

static void a_diary_is_read_newest_first(void **state) {
    (void)state;
    over(ask(CALL("memory_diary_write",
                  "\"agent_name\":\"eve\",\"entry\":\"one\",\"topic\":\"a:b\"")));
    over(ask(CALL("memory_diary_write", "\"agent_name\":\"eve\",\"entry\":\"two\"")));
    over(ask(CALL("memory_diary_write", "\"agent_name\":\"wally\",\"entry\":\"three\"")));
    struct exchange *x = ask(CALL("memory_diary_read", "\"agent_name\":\"eve\""));
    size_t two = str_find(fake_sent(x), STR("\"entry\":\"two\",\"topic\":\"general\""));
    size_t one = str_find(fake_sent(x), STR("\"entry\":\"one\",\"topic\":\"a:b\""));
    assert_true(two < one && one < fake_sent(x).len);
    assert_false(says(x, "three"));
    over(x);
    assert_answer(ask(CALL("memory_diary_read", "\"agent_name\":\"eve\",\"last_n\":1")), 200,
                  "\"count\":1");
}

static void another_workspace_has_memories_of_its_own(void **state) {
    (void)state;
    over(
        ask(CALL("memory_add_drawer", "\"wing\":\"a\",\"room\":\"b\",\"content\":\"secret\"")));
    assert_answer(finish(begin("POST", "/mcp/v1", bearer("other", "Bearer ")),
                         CALL("memory_search", "\"query\":\"secret\"")),
                  200, "\"count\":0");
}

static void a_wing_with_a_slash_is_refused(void **state) {
    (void)state;
    assert_answer(
        ask(CALL("memory_add_drawer", "\"wing\":\"a/b\",\"room\":\"c\",\"content\":\"d\"")),
        200, "must not have a slash");
}

/* --- blueprints --------------------------------------------------------------------------- */

static void a_blueprint_is_the_tokens_workspace(void **state) {
    (void)state;
    static const char path[] = "/v1/internal/agents?workspace_id=w";
    static const char *const schemes[] = {"Bearer ", "bearer ", ""};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        assert_answer(finish(begin("GET", path, bearer("w", schemes[i])), NULL), 200,
                      "{\"workspace_id\":\"w\",\"agents\":[]}");
    assert_answer(finish(begin("GET", path, bearer("other", "Bearer ")), NULL), 403,
                  "another workspace");
    assert_answer(
        finish(begin("GET", "/v1/internal/agents?workspace_id=%ff", bearer("w", "Bearer ")),
               NULL),
        403, "another workspace"); /* no text */
    assert_answer(finish(begin("GET", path, NULL), NULL), 401, "unauthorized");
    assert_answer(finish(begin("GET", path, "Bearer x"), NULL), 401, "unauthorized");
    endpoint.keys = NULL;
    assert_answer(finish(begin("GET", path, "Bearer x"), NULL), 503, "no signing key");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_caller_without_a_token_reads_what_pods_expect),
        TEST(it_introduces_itself_and_knows_no_sessions),
        TEST(only_what_is_carried_out_is_listed),
        TEST(each_schema_is_json_and_takes_a_description),
        TEST(the_conversation_of_the_turn_stands_in),
        TEST(a_call_that_takes_long_reports_and_ends),
        TEST(who_leaves_ends_the_call),
        TEST(what_a_call_did_after_its_caller_left_is_audited),
        TEST(what_could_not_be_audited_is_not_done),
        TEST(a_failure_is_kept_as_one),
        TEST(a_conversation_that_is_no_id_stays_out_of_its_row),
        TEST(a_payload_beyond_the_limit_is_replaced),
        TEST(a_drawer_is_added_found_counted_and_removed),
        TEST(a_diary_is_read_newest_first),
        TEST(another_workspace_has_memories_of_its_own),
        TEST(a_wing_with_a_slash_is_refused),
        TEST(a_blueprint_is_the_tokens_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
