#include "contract/crawbl/workspace_agents.h"

#include "base/mem.h"
#include "fake/http_fake.h"
#include "fake/provider_fake.h"
#include "helper/assert_str.h"

#include "engine/offers.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>

#define ENDPOINT "http://o:7171/mcp/v1?x"

struct stage {
    struct loop *loop;
    struct http_pool *pool;
    struct provider *model;
    struct tool *local;
    struct agent agent;
    struct engine base;
    struct token_keys *keys;
    struct workspace_agents *workspace_agents;
    struct workspace_agents_settings settings;
    struct workspace_agents_ask ask;
    struct engine *answer; /* a reference */
    size_t answers;
};

static void stage_init(struct stage *stage) {
    struct err e;
    bool trimmed;
    *stage = (struct stage){.loop = loop_new_fake(),
                            .pool = http_pool_new(),
                            .model = fake_provider_new(),
                            .local = fake_tool_new("local")};
    stage->keys = token_keys_new(TOKEN_STRICT, TOKEN_WINDOW_S);
    assert_true(token_keys_add(stage->keys, STR("key"), &trimmed, &e));
    stage->agent = (struct agent){.slug = STR("clerk"),
                                  .model = STR("m-1"),
                                  .provider = stage->model,
                                  .window_tokens = 9};
    stage->base = (struct engine){.agents = &stage->agent,
                                  .agent_count = 1,
                                  .tools = &stage->local,
                                  .tool_count = 1,
                                  .limits = run_limits_default,
                                  .refs = 1};
    stage->settings = (struct workspace_agents_settings){STR(ENDPOINT), true, stage->keys};
    stage->workspace_agents = workspace_agents_new(stage->loop, stage->pool);
    workspace_agents_use(stage->workspace_agents, &stage->base, &stage->settings);
}

static void stage_done(struct stage *stage) {
    engine_unref(stage->answer);
    workspace_agents_free(stage->workspace_agents);
    assert_int_equal(fake_http_calls(stage->pool), 0);
    assert_int_equal(stage->base.refs, 1);
    token_keys_free(stage->keys);
    tool_free(stage->local);
    provider_free(stage->model);
    http_pool_free(stage->pool);
    loop_free(stage->loop);
}

static int setup(void **state) {
    struct stage *stage = MEM_NEW(struct stage);
    stage_init(stage);
    *state = stage;
    return 0;
}

static int teardown(void **state) {
    struct stage *stage = *state;
    stage_done(stage);
    free(stage);
    return 0;
}

static void hears(struct engine *engine, void *ctx) {
    struct stage *stage = ctx;
    stage->answers++;
    engine_unref(stage->answer);
    stage->answer = engine_ref(engine);
}

/* Whether the answer is there at once. */
static bool find(struct stage *stage, const char *workspace) {
    struct mcp_caller caller = {STR("u"), str_from(workspace), STR("s-1")};
    stage->answers = 0;
    struct engine *engine =
        workspace_agents_find(stage->workspace_agents, &caller, &stage->ask, hears, stage);
    assert_int_equal(stage->answers, 0);
    if (engine) hears(engine, stage);
    return engine != NULL;
}

static bool is_base(const struct stage *stage) {
    return stage->answers == 1 && stage->answer == &stage->base;
}

/* --- the other side ----------------------------------------------------------------------- */

static struct http_call *out(const struct stage *stage, const char *method) {
    for (size_t i = 0; i < fake_http_calls(stage->pool); i++) {
        struct http_call *call = fake_http_call(stage->pool, i);
        if (str_equal(fake_http_request(call)->method, str_from(method))) return call;
    }
    fail_msg("no %s is out", method);
    return NULL;
}

static void answer(struct http_call *call, unsigned status, const char *body) {
    if (!fake_http_head(call, status, "application/json")) return;
    if (*body && !fake_http_body(call, str_from(body))) return;
    fake_http_end(call);
}

static void answer_agents(struct stage *stage, const char *workspace, const char *agents) {
    struct buf body;
    buf_init(&body, MIB);
    buf_printf(&body, "{\"workspace_id\":\"%s\",\"agents\":[{\"slug\":\"manager\"}%s]}",
               workspace, agents);
    buf_append_byte(&body, '\0');
    answer(out(stage, "GET"), 200, body.at);
    buf_done(&body);
}

static void answer_call(struct stage *stage, const char *result) {
    struct http_call *call = out(stage, "POST");
    struct json request;
    struct buf body;
    struct err e;
    buf_init(&body, MIB);
    assert_true(json_read(fake_http_request(call)->body, &request, &e));
    buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":" STR_FMT ",\"result\":%s}",
               STR_ARG(json_find(request, STR("id")).raw), result);
    buf_append_byte(&body, '\0');
    answer(call, 200, body.at);
    buf_done(&body);
}

static void greet(struct stage *stage) {
    answer_call(stage, "{\"protocolVersion\":\"2025-11-25\"}");
    assert_true(!fake_http_head(out(stage, "POST"), 202, ""));
}

static void answer_tools(struct stage *stage, const char *tools) {
    answer_call(stage, tools);
}

#define TOOLS "{\"tools\":[{\"name\":\"remote\"},{\"name\":\"local\"}]}"

/* The first answer of a workspace: two agents, one more tool. */
static void learn(struct stage *stage, const char *workspace) {
    assert_false(find(stage, workspace));
    answer_agents(stage, workspace, ",{\"slug\":\"eve\",\"allowed_tools\":[\"remote\"]}");
    greet(stage);
    assert_int_equal(stage->answers, 0);
    answer_tools(stage, TOOLS);
    assert_int_equal(stage->answers, 1);
}

/* --- tests -------------------------------------------------------------------------------- */

static void a_workspace_has_its_own_agents_and_tools(void **state) {
    struct stage *stage = *state;
    assert_false(find(stage, "w&1"));
    struct http_call *get = out(stage, "GET");
    assert_str(fake_http_request(get)->url,
               "http://o:7171/v1/internal/agents?workspace_id=w%261");
    assert_str(fake_http_header(get, "Accept"), "application/json");
    assert_true(str_starts(fake_http_header(get, "Authorization"), STR("Bearer ")));
    assert_int_equal(fake_http_request(get)->total_ms, 15000);
    assert_int_equal(fake_http_request(get)->body_max_bytes, MIB);
    assert_str(fake_http_header(out(stage, "POST"), "X-Conversation-Id"), "s-1");
    answer_agents(stage, "w&1",
                  ",{\"slug\":\"eve\",\"model\":\"m-2\",\"system_prompt\":\"You plan.\","
                  "\"allowed_tools\":[\"remote\"]}");
    greet(stage);
    answer_tools(stage, TOOLS);
    assert_int_equal(stage->answers, 1);
    const struct engine *engine = stage->answer;
    assert_int_equal(engine->agent_count, 2);
    assert_str(engine->agents[0].slug, "manager");
    assert_str(engine->agents[0].model, "m-1");
    assert_int_equal(engine->agents[0].window_tokens, 9);
    assert_str(engine->agents[0].delegates[0], "eve");
    assert_int_equal(engine->agents[0].delegate_count, 1);
    assert_str(engine->agents[1].model, "m-2");
    assert_ptr_equal(engine->agents[1].provider, stage->model);
    assert_int_equal(agent_tool_policy(&engine->agents[1], STR("local")), TOOL_HIDDEN);
    assert_int_equal(engine->tool_count, 2); /* of two with one name, ours */
    assert_ptr_equal(engine_tool(engine, STR("local")), stage->local);
    assert_string_equal(engine_tool(engine, STR("remote"))->kind->name, "mcp");
    const struct offer *offer = offers_of(engine->offers, &engine->agents[1]);
    assert_true(str_starts(offer->system, STR("You plan.")));
    assert_int_equal(offer->tool_count, 2); /* the transfer, and what it may */
}

static void the_settings_say_what_becomes_of_a_blueprints_calls(void **state) {
    struct stage *stage = *state;
    static const struct agent_tool policies[] = {{STR_INIT("remote"), TOOL_ASK},
                                                 {STR_INIT("local"), TOOL_HIDDEN}};
    stage->base.policies = policies;
    stage->base.policy_count = ARRAY_LEN(policies);
    assert_false(find(stage, "w"));
    answer_agents(stage, "w", ",{\"slug\":\"eve\",\"allowed_tools\":[\"remote\",\"other\"]}");
    greet(stage);
    answer_tools(stage, TOOLS);
    static const struct {
        const char *tool;
        enum tool_policy manager, eve;
    } cases[] = {{"remote", TOOL_ASK, TOOL_ASK},
                 {"local", TOOL_HIDDEN, TOOL_HIDDEN},
                 {"other", TOOL_ALLOW, TOOL_ALLOW},
                 {"third", TOOL_ALLOW, TOOL_HIDDEN}};
    const struct agent *agents = stage->answer->agents;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str tool = str_from(cases[i].tool);
        assert_int_equal(agent_tool_policy(&agents[0], tool), cases[i].manager);
        assert_int_equal(agent_tool_policy(&agents[1], tool), cases[i].eve);
    }
}

static void an_answer_is_kept_for_a_minute_and_refreshed_in_the_background(void **state) {
    struct stage *stage = *state;
    learn(stage, "w");
    struct engine *first = engine_ref(stage->answer);
    loop_advance(stage->loop, WORKSPACE_AGENTS_FRESH_MS - 1);
    assert_true(find(stage, "w") && stage->answer == first);
    assert_int_equal(fake_http_calls(stage->pool), 0);
    loop_advance(stage->loop, 1);
    assert_true(find(stage, "w") && stage->answer == first);
    assert_true(find(stage, "w")); /* one fetch is enough */
    assert_int_equal(fake_http_calls(stage->pool), 2);
    answer_agents(stage, "w", ",{\"slug\":\"eve\",\"allowed_tools\":[\"remote\"]}");
    answer_tools(stage, TOOLS);
    assert_true(find(stage, "w") && stage->answer == first); /* nothing is different */
    loop_advance(stage->loop, WORKSPACE_AGENTS_FRESH_MS);
    assert_true(find(stage, "w"));
    answer_agents(stage, "w", "");
    answer_tools(stage, TOOLS);
    assert_true(find(stage, "w") && stage->answer != first);
    assert_int_equal(stage->answer->agent_count, 1);
    assert_int_equal(first->agent_count, 2); /* a turn that began with it keeps it */
    engine_unref(first);
}

static void an_orchestrator_that_is_down_leaves_what_was_known_for_a_day(void **state) {
    struct stage *stage = *state;
    learn(stage, "w");
    struct engine *first = stage->answer;
    for (uint64_t gone = 0; gone < WORKSPACE_AGENTS_STALE_MS;
         gone += WORKSPACE_AGENTS_STALE_MS / 4) {
        if (gone) loop_advance(stage->loop, WORKSPACE_AGENTS_STALE_MS / 4);
        assert_true(find(stage, "w") && stage->answer == first);
        if (!gone) continue;
        fake_http_fail(out(stage, "GET"), ERR_UNAVAILABLE, HTTP_CONNECTING);
        fake_http_fail(out(stage, "POST"), ERR_DEADLINE_EXCEEDED, HTTP_WAITING);
    }
    loop_advance(stage->loop, WORKSPACE_AGENTS_STALE_MS / 4);
    assert_true(find(stage, "w") && is_base(stage));
    answer_agents(stage, "w", "");
    answer_tools(stage, TOOLS);
    assert_true(find(stage, "w") && !is_base(stage));
}

static void a_bad_blueprint_leaves_the_configured_agents_with_the_tools(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body;
    } cases[] = {
        {503, ""},
        {401, "unauthorized"},
        {200, ""},
        {200, "{\"workspace_id\":\"\",\"agents\":[{\"slug\":\"manager\"}]}"},
        {200, "{\"workspace_id\":\"v\",\"agents\":[{\"slug\":\"manager\"}]}"},
        {200, "{\"workspace_id\":\"w\",\"agents\":[]}"},
        {200, "{\"workspace_id\":\"w\",\"agents\":[{\"slug\":\"eve\"}]}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        stage_init(&stage);
        assert_false(find(&stage, "w"));
        answer(out(&stage, "GET"), cases[i].status, cases[i].body);
        greet(&stage);
        answer_tools(&stage, TOOLS);
        assert_int_equal(stage.answers, 1);
        assert_str(stage.answer->agents[0].slug, "clerk");
        assert_int_equal(stage.answer->tool_count, 2);
        assert_true(find(&stage, "w")); /* no turn waits again */
        assert_int_equal(fake_http_calls(stage.pool), 0);
        loop_advance(stage.loop, WORKSPACE_AGENTS_RETRY_MS);
        assert_true(find(&stage, "w"));
        answer_agents(&stage, "w", "");
        answer_tools(&stage, TOOLS);
        assert_true(find(&stage, "w"));
        assert_str(stage.answer->agents[0].slug, "manager");
        loop_advance(stage.loop, WORKSPACE_AGENTS_FRESH_MS); /* and the last good one stays */
        assert_true(find(&stage, "w"));
        answer(out(&stage, "GET"), cases[i].status, cases[i].body);
        answer_tools(&stage, TOOLS);
        assert_true(find(&stage, "w"));
        assert_str(stage.answer->agents[0].slug, "manager");
        stage_done(&stage);
    }
}

static void without_tools_there_are_the_local_ones(void **state) {
    struct stage *stage = *state;
    assert_false(find(stage, "w"));
    fake_http_fail(out(stage, "POST"), ERR_UNAVAILABLE, HTTP_CONNECTING);
    answer_agents(stage, "w", "");
    assert_int_equal(stage->answers, 1);
    assert_str(stage->answer->agents[0].slug, "manager");
    assert_int_equal(stage->answer->tool_count, 1);
}

static void a_turn_waits_only_so_long(void **state) {
    struct stage *stage = *state;
    assert_false(find(stage, "w"));
    answer_agents(stage, "w", ""); /* the tools take too long */
    loop_advance(stage->loop, WORKSPACE_AGENTS_PATIENCE_MS - 1);
    assert_int_equal(stage->answers, 0);
    loop_advance(stage->loop, 1);
    assert_int_equal(stage->answers, 1);
    assert_str(stage->answer->agents[0].slug, "manager");
    assert_false(find(stage, "v")); /* there is no answer at all */
    loop_advance(stage->loop, WORKSPACE_AGENTS_PATIENCE_MS);
    assert_true(is_base(stage));
}

static void two_workspaces_never_share(void **state) {
    struct stage *stage = *state;
    learn(stage, "a");
    assert_false(find(stage, "b"));
    answer_agents(stage, "b", ",{\"slug\":\"bob\"}");
    greet(stage); /* a session of its own */
    answer_tools(stage, "{\"tools\":[]}");
    assert_non_null(engine_agent(stage->answer, STR("bob")));
    assert_null(engine_tool(stage->answer, STR("remote")));
    assert_true(find(stage, "a"));
    assert_null(engine_agent(stage->answer, STR("bob")));
    assert_non_null(engine_tool(stage->answer, STR("remote")));
}

static void a_waiter_may_leave_and_the_rest_hear(void **state) {
    (void)state;
    struct stage stage, other = {0};
    struct mcp_caller caller = {STR("u"), STR("w"), STR("s-2")};
    stage_init(&stage);
    assert_false(find(&stage, "w"));
    assert_null(
        workspace_agents_find(stage.workspace_agents, &caller, &other.ask, hears, &other));
    workspace_agents_leave(&stage.ask);
    workspace_agents_leave(&stage.ask);
    answer_agents(&stage, "w", "");
    greet(&stage);
    answer_tools(&stage, TOOLS);
    assert_int_equal(stage.answers, 0);
    assert_int_equal(other.answers, 1);
    engine_unref(other.answer);
    stage_done(&stage);
}

static void a_new_configuration_forgets_everything(void **state) {
    struct stage *stage = *state;
    learn(stage, "w");
    assert_false(find(stage, "v"));
    workspace_agents_use(stage->workspace_agents, &stage->base, &stage->settings);
    assert_true(is_base(stage)); /* who waited goes on without */
    assert_int_equal(fake_http_calls(stage->pool), 0);
    learn(stage, "w");
    stage->settings.endpoint = STR_EMPTY;
    workspace_agents_use(stage->workspace_agents, &stage->base, &stage->settings);
    assert_true(find(stage, "w") && is_base(stage));
}

static void no_request_is_sent_without_an_endpoint_or_a_key(void **state) {
    struct stage *stage = *state;
    stage->settings.keys = NULL;
    workspace_agents_use(stage->workspace_agents, &stage->base, &stage->settings);
    assert_true(find(stage, "w") && is_base(stage));
    assert_int_equal(fake_http_calls_ever(stage->pool), 0);
}

static void a_caller_who_cannot_be_signed_for_gets_the_configured_agents(void **state) {
    struct stage *stage = *state;
    assert_false(find(stage, "w:1"));
    loop_advance(stage->loop, 1);
    assert_true(is_base(stage));
    assert_int_equal(fake_http_calls_ever(stage->pool), 0);
}

static void the_blueprint_can_be_switched_off(void **state) {
    struct stage *stage = *state;
    stage->settings.blueprint = false;
    workspace_agents_use(stage->workspace_agents, &stage->base, &stage->settings);
    assert_false(find(stage, "w"));
    assert_int_equal(fake_http_calls(stage->pool), 1);
    greet(stage);
    answer_tools(stage, TOOLS);
    assert_str(stage->answer->agents[0].slug, "clerk");
    assert_non_null(engine_tool(stage->answer, STR("remote")));
}

static void only_so_many_workspaces_are_remembered(void **state) {
    struct stage *stage = *state;
    stage->settings.blueprint = false;
    workspace_agents_use(stage->workspace_agents, &stage->base, &stage->settings);
    for (int i = 0; i <= WORKSPACE_AGENTS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        assert_false(find(stage, name));
        fake_http_fail(out(stage, "POST"), ERR_UNAVAILABLE, HTTP_CONNECTING);
    }
    assert_true(find(stage, "w1"));
    assert_false(find(stage, "w0")); /* the one that rested longest */
    workspace_agents_leave(&stage->ask);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_workspace_has_its_own_agents_and_tools),
        TEST(the_settings_say_what_becomes_of_a_blueprints_calls),
        TEST(an_answer_is_kept_for_a_minute_and_refreshed_in_the_background),
        TEST(an_orchestrator_that_is_down_leaves_what_was_known_for_a_day),
        cmocka_unit_test(a_bad_blueprint_leaves_the_configured_agents_with_the_tools),
        TEST(without_tools_there_are_the_local_ones),
        TEST(a_turn_waits_only_so_long),
        TEST(two_workspaces_never_share),
        cmocka_unit_test(a_waiter_may_leave_and_the_rest_hear),
        TEST(a_new_configuration_forgets_everything),
        TEST(no_request_is_sent_without_an_endpoint_or_a_key),
        TEST(a_caller_who_cannot_be_signed_for_gets_the_configured_agents),
        TEST(the_blueprint_can_be_switched_off),
        TEST(only_so_many_workspaces_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
