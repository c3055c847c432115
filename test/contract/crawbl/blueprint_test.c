#include "contract/crawbl/blueprint.h"

#include "base/buf.h"
#include "helper/assert_str.h"

#define HEAD "{\"workspace_id\":\"w\",\"agents\":["
#define MANAGER "{\"slug\":\"manager\",\"role\":\"manager\"}"

struct stage {
    struct arena *arena;
    struct blueprint blueprint;
    struct err why;
};

static bool read(struct stage *stage, struct str text) {
    struct str copy = exact_copy(text);
    stage->arena = arena_new(BLUEPRINT_ARENA_BYTES);
    bool good = blueprint_read(copy, STR("w"), stage->arena, &stage->blueprint, &stage->why);
    free((void *)(uintptr_t)copy.at); /* nothing is borrowed */
    return good;
}

static void a_blueprint_lists_the_agents_the_manager_first(void **state) {
    (void)state;
    struct stage stage;
    assert_true(read(
        &stage,
        STR(HEAD "{\"slug\":\"wally\",\"role\":\"sub-agent\",\"system_prompt\":\"a\\n\\u00e9\","
                 "\"description\":\"D\",\"allowed_tools\":[\"web_search\",\"x\"],\"model\":"
                 "\"m-1\"}," MANAGER ",{\"slug\":\"eve\",\"role\":\"sub-agent\","
                 "\"allowed_tools\":[],\"model\":\"auto\",\"description\":null}]}")));
    const struct blueprint_agent *agents = stage.blueprint.agents;
    assert_int_equal(stage.blueprint.agent_count, 3);
    assert_str(agents[0].slug, "manager");
    assert_false(agents[0].picks_tools);
    assert_str(agents[1].slug, "wally");
    assert_str(agents[1].prompt, "a\n\xC3\xA9");
    assert_str(agents[1].description, "D");
    assert_str(agents[1].model, "m-1");
    assert_true(agents[1].picks_tools && agents[1].tool_count == 2);
    assert_str(agents[1].tools[0], "web_search_tool");
    assert_str(agents[1].tools[1], "x");
    assert_str(agents[2].slug, "eve");
    assert_str(agents[2].model, "");
    assert_false(agents[2].picks_tools);
    arena_free(stage.arena);
}

static void a_malformed_blueprint_is_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[]", "the blueprint names no workspace_id"},
        {"{\"workspace_id\":\"\",\"agents\":[" MANAGER "]}",
         "the blueprint names no workspace_id"},
        {"{\"workspace_id\":\"v\",\"agents\":[" MANAGER "]}",
         "the blueprint belongs to another workspace"},
        {"{\"workspace_id\":\"w\"}", "the blueprint has no agents"},
        {HEAD "{\"slug\":\"m\",\"role\":\"manager\",\"thinking\":\"yes\"}]}",
         "the blueprint's thinking is a string, not a boolean"},
        {"{\"workspace_id\":\"w\",\"agents\":{}}", "the blueprint has no agents"},
        {HEAD "]}", "the blueprint has no agents"},
        {HEAD "5]}", "an agent of the blueprint is a number"},
        {HEAD "{}]}", "an agent of the blueprint has no slug"},
        {HEAD "{\"slug\":\"a b\"}]}", "an agent of the blueprint has no slug"},
        {HEAD "{\"slug\":5}]}", "the blueprint's slug is a number, not a string"},
        {HEAD MANAGER "," MANAGER "]}", "two agents of the blueprint have the slug 'manager'"},
        {HEAD "{\"slug\":\"eve\",\"role\":\"sub-agent\"}]}",
         "no agent of the blueprint has the role 'manager'"},
        {HEAD "{\"slug\":\"manager\",\"role\":\"sub-agent\"}]}",
         "no agent of the blueprint has the role 'manager'"},
        {HEAD "{\"slug\":\"a\",\"allowed_tools\":\"x\"}]}",
         "the blueprint's allowed_tools are a string, not an array"},
        {HEAD "{\"slug\":\"a\",\"allowed_tools\":[1]}]}",
         "the blueprint's allowed_tools hold a number, not a name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        assert_false(read(&stage, str_from(cases[i].text)));
        assert_str(err_text(&stage.why), cases[i].why);
        arena_free(stage.arena);
    }
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct str text = STR(HEAD "{\"slug\":\"eve\",\"allowed_tools\":[\"x\"]}," MANAGER "]}");
    for (size_t len = 0; len < text.len; len++) {
        struct stage stage;
        assert_false(read(&stage, str_head(text, len)));
        arena_free(stage.arena);
    }
}

static void what_is_too_much_is_refused_or_cut(void **state) {
    (void)state;
    struct stage stage;
    struct buf text;
    buf_init(&text, 2 * MIB);
    for (int count = BLUEPRINT_AGENTS_MAX; count <= BLUEPRINT_AGENTS_MAX + 1; count++) {
        buf_clear(&text);
        buf_append(&text, STR(HEAD MANAGER));
        for (int i = 1; i < count; i++) buf_printf(&text, ",{\"slug\":\"a%d\"}", i);
        buf_append(&text, STR("]}"));
        assert_int_equal(read(&stage, buf_str(&text)), count == BLUEPRINT_AGENTS_MAX);
        arena_free(stage.arena);
    }
    assert_int_equal(stage.why.code, ERR_TOO_LARGE);

    buf_clear(&text);
    buf_append(&text, STR(HEAD "{\"slug\":\"manager\",\"description\":\"x"));
    for (int i = 0; i < 4000; i++) buf_append(&text, STR("\xC3\xA9"));
    buf_append(&text, STR("\"}]}"));
    assert_true(read(&stage, buf_str(&text)));
    assert_int_equal(stage.blueprint.agents[0].description.len, 4095);
    arena_free(stage.arena);

    buf_clear(&text); /* as many names of tools as fit: no arena is too small */
    buf_append(&text, STR(HEAD "{\"slug\":\"manager\",\"allowed_tools\":[\"\""));
    while (text.len < BLUEPRINT_MAX_BYTES - 8) buf_append(&text, STR(",\"\""));
    buf_append(&text, STR("]}]}"));
    assert_true(read(&stage, buf_str(&text)));
    arena_free(stage.arena);
    while (text.len <= BLUEPRINT_MAX_BYTES) buf_append_byte(&text, ' ');
    assert_false(read(&stage, buf_str(&text)));
    arena_free(stage.arena);
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blueprint_lists_the_agents_the_manager_first),
        cmocka_unit_test(a_malformed_blueprint_is_refused_with_the_reason),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_is_too_much_is_refused_or_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
