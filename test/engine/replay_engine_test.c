/* The agents and tools of an engine, answered by recordings. */
#include "engine/replay_engine.h"

#include "engine/offers.h"
#include "fake/provider_fake.h"
#include "helper/assert_str.h"
#include "tape/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char folder[64], file[128];
    struct provider *model;
    struct agent agents[2];
    struct tool *tools[1];
    struct engine engine;
    struct tape *tape;
    bool unused; /* the engine that is replayed was let go of */
};

static void note_unused(struct engine *engine) {
    CONTAINER_OF(engine, struct fixture, engine)->unused = true;
}

static const char recording[] =
    "{\"weir_tape\":1,\"kind\":\"model\",\"started_us\":1,\"request\":{},"
    "\"heard\":[{\"at_ms\":0,\"kind\":\"done\",\"model\":\"m\"}]}";

static void fixture_init(struct fixture *f) {
    struct err e;
    *f = (struct fixture){.model = fake_provider_new(), .tools = {fake_tool_new("search")}};
    f->agents[0] =
        (struct agent){.slug = STR("manager"), .provider = f->model, .model = STR("m")};
    f->agents[1] = (struct agent){.slug = STR("eve"), .provider = f->model};
    f->engine = (struct engine){.agents = f->agents,
                                .agent_count = 2,
                                .tools = f->tools,
                                .tool_count = 1,
                                .budget_count = 1,
                                .unused = note_unused};
    engine_ref(&f->engine);
    snprintf(f->folder, sizeof(f->folder), "/tmp/weir-replay-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->file, sizeof(f->file), "%s/one.json", f->folder);
    FILE *file = fopen(f->file, "w");
    assert_non_null(file);
    fputs(recording, file);
    fclose(file);
    assert_true(tape_play(&(struct tape_options){.folder = str_from(f->folder)}, &f->tape, &e));
}

static void fixture_done(struct fixture *f) {
    tape_unref(f->tape);
    tool_free(f->tools[0]);
    provider_free(f->model);
    unlink(f->file);
    rmdir(f->folder);
}

#include "helper/heap_fixture.h"

static void it_has_the_same_agents_and_tools_with_other_answers(void **state) {
    struct fixture *f = *state;
    struct engine *replay = replay_engine_new(&f->engine, f->tape);
    assert_int_equal(replay->agent_count, 2);
    assert_str(replay->agents[0].model, "m");
    assert_str(engine_agent(replay, STR("eve"))->slug, "eve");
    assert_ptr_not_equal(replay->agents[0].provider, f->model);
    assert_string_equal(replay->agents[1].provider->kind->name, "playing");
    assert_string_equal(engine_tool(replay, STR("search"))->kind->name, "playing");
    assert_str(engine_tool(replay, STR("search"))->name, "search");
    assert_non_null(replay->offers);
    assert_true(replay->derived);
    engine_unref(replay);
}

static void nothing_is_counted_against_a_budget(void **state) {
    struct fixture *f = *state;
    struct engine *replay = replay_engine_new(&f->engine, f->tape);
    assert_null(replay->ledger);
    assert_int_equal(replay->budget_count, 0);
    engine_unref(replay);
}

static void the_engine_it_is_made_from_stays_as_long_as_it_does(void **state) {
    struct fixture *f = *state;
    struct engine *replay = replay_engine_new(&f->engine, f->tape);
    engine_unref(&f->engine);
    assert_false(f->unused);
    engine_unref(replay);
    assert_true(f->unused);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(it_has_the_same_agents_and_tools_with_other_answers),
        TEST(nothing_is_counted_against_a_budget),
        TEST(the_engine_it_is_made_from_stays_as_long_as_it_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
