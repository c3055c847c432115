/* What agents read about their tools and colleagues. Source: contracts/crawbl.md 2.6. */
#include "engine/offers.h"

#include "fake/provider_fake.h"
#include "helper/assert_str.h"
#include "turn/run.h"
#include "wire/json.h"

#include <stdlib.h>

static const struct str manages[] = {STR_INIT("wally"), STR_INIT("eve")};

struct fixture {
    struct agent agents[3];
    struct tool *tools[2];
    struct engine engine;
    struct offers *offers;
};

static void fixture_init(struct fixture *f) {
    *f = (struct fixture){
        .agents = {{.slug = STR("manager"),
                    .description = STR("leads"),
                    .system = STR("Be brief."),
                    .delegates = manages,
                    .delegate_count = 2},
                   {.slug = STR("wally"), .description = STR("reads the web")},
                   {.slug = STR("eve"), .system = STR("Dates.")}},
        .tools = {fake_tool_new("search"), fake_tool_new("write")},
    };
    f->engine = (struct engine){
        .agents = f->agents, .agent_count = 3, .tools = f->tools, .tool_count = 2};
}

static const struct offer *offer_to(struct fixture *f, size_t agent) {
    if (!f->offers) f->offers = offers_new(&f->engine);
    return offers_of(f->offers, &f->agents[agent]);
}

static void fixture_done(struct fixture *f) {
    offers_free(f->offers);
    tool_free(f->tools[0]);
    tool_free(f->tools[1]);
}

#include "helper/heap_fixture.h"

static void the_manager_gets_the_agents_it_can_transfer_to(void **state) {
    struct fixture *f = *state;
    assert_str(offer_to(f, 0)->system,
               "Be brief.\n\nYou are the agent 'manager'. Your task: leads\n"
               "Where another agent suits the request better, hand the turn over with the tool "
               "transfer_to_agent, without saying so. The agents:\n"
               "- wally: reads the web\n- eve");
}

static void the_transfer_tool_comes_first_and_names_its_targets(void **state) {
    struct fixture *f = *state;
    struct err e;
    struct json schema;
    const struct offer *offer = offer_to(f, 1);
    assert_int_equal(offer->tool_count, 3);
    assert_str(offer->tools[0].name, TRANSFER_TOOL);
    assert_true(json_read(offer->tools[0].parameters, &schema, &e));
    assert_str(offer->tools[0].parameters,
               "{\"type\":\"object\",\"properties\":{\"agent_name\":{\"type\":\"string\","
               "\"enum\":[\"manager\",\"eve\"]}},\"required\":[\"agent_name\"]}");
    assert_str(offer->tools[1].name, "search");
}

static void a_hidden_tool_is_not_offered_and_one_that_asks_is(void **state) {
    struct fixture *f = *state;
    static const struct agent_tool policies[] = {{STR_INIT("search"), TOOL_HIDDEN},
                                                 {STR_INIT("write"), TOOL_ASK}};
    f->agents[2].tools = policies;
    f->agents[2].tool_count = 2;
    const struct offer *offer = offer_to(f, 2);
    assert_int_equal(offer->tool_count, 2);
    assert_str(offer->tools[1].name, "write");
}

static void an_agent_alone_gets_its_instructions_and_nothing_else(void **state) {
    struct fixture *f = *state;
    f->engine.agent_count = 1;
    const struct offer *offer = offer_to(f, 0);
    assert_str(offer->system, "Be brief.");
    assert_str(offer->briefing, "");
    assert_str(offer->tools[0].name, "search");
}

static void a_turn_may_go_to_children_parents_siblings_and_the_manager(void **state) {
    (void)state;
    static const struct str leads[] = {STR_INIT("c"), STR_INIT("d")};
    static const struct {
        const char *from, *to;
        bool may;
    } moves[] = {
        {"a", "b", false}, {"b", "a", true}, {"b", "c", true},  {"c", "b", true},
        {"c", "d", true},  {"d", "a", true}, {"a", "c", false}, {"c", "c", false},
    };
    const struct agent agents[] = {{.slug = STR("a")},
                                   {.slug = STR("b"), .delegates = leads, .delegate_count = 2},
                                   {.slug = STR("c")},
                                   {.slug = STR("d")}};
    const struct engine engine = {.agents = agents, .agent_count = 4};
    for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
        const struct agent *from = engine_agent(&engine, str_from(moves[i].from));
        assert_int_equal(engine_may_transfer(&engine, from, str_from(moves[i].to)),
                         moves[i].may);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_manager_gets_the_agents_it_can_transfer_to),
        TEST(the_transfer_tool_comes_first_and_names_its_targets),
        TEST(a_hidden_tool_is_not_offered_and_one_that_asks_is),
        TEST(an_agent_alone_gets_its_instructions_and_nothing_else),
        cmocka_unit_test(a_turn_may_go_to_children_parents_siblings_and_the_manager),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
