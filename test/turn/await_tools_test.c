/* Turns that wait for the tools of servers that are still starting. */
#include "turn/await_tools.h"

#include "fixture.h"

#include "fake/provider_fake.h"
#include "fake/store_fake.h"

/* A second configuration, in which the servers have answered. */
struct next {
    struct engine engine;
    struct agent agents[3];
};

static void next_init(struct next *next, struct fixture *f, bool awaits) {
    memcpy(next->agents, f->agents, sizeof(next->agents));
    for (size_t i = 0; i < 3; i++) next->agents[i].awaits_tools = awaits;
    next->agents[0].model = STR("m-2");
    next->engine = f->engine;
    next->engine.agents = next->agents;
    next->engine.refs = 1;
}

static void begin(struct fixture *f, bool with_store) {
    fixture_init(f, with_store);
    for (size_t i = 0; i < 3; i++) f->agents[i].awaits_tools = true;
}

static void finish(struct fixture *f, struct turn *turn, struct next *next) {
    end(turn);
    run_host_use(&f->host, &f->engine);
    assert_int_equal(next->engine.refs, 1); /* no run keeps it */
    fixture_done(f);
}

static void assert_model(struct fixture *f, const char *model) {
    assert_str(fake_request(asked(f))->model, model);
}

static void a_turn_waits_for_the_next_configuration_and_takes_it(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    struct next still, next;
    begin(&f, false);
    next_init(&still, &f, true);
    next_init(&next, &f, false);
    say(&turn, &f, "x");
    assert_int_equal(fake_calls(f.model), 0);
    run_host_use(&f.host, &still.engine);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 0);
    run_host_use(&f.host, &next.engine);
    turns(&f);
    assert_model(&f, "m-2");
    reply(&f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    finish(&f, &turn, &next);
    assert_int_equal(still.engine.refs, 1);
}

/* The store has not yet said what the session remembers. */
static void a_configuration_that_came_before_the_turn_began_counts(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn = {.f = &f};
    struct next next;
    struct err e;
    begin(&f, true);
    next_init(&next, &f, false);
    struct run_request request = request_of("x");
    if (!run_start(&f.host, &request, &turn.run, &e)) fail_msg("%s", e.text);
    follow(&turn, run_journal(turn.run), 0);
    assert_int_equal(run_state(turn.run), RUN_QUEUED);
    run_host_use(&f.host, &next.engine);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 1);
    assert_model(&f, "m-2");
    reply(&f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    finish(&f, &turn, &next);
}

/* The agents of a workspace come from elsewhere: no configuration replaces them. */
static void a_turn_of_a_derived_engine_waits_for_nothing(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    struct next next;
    begin(&f, false);
    next_init(&next, &f, true);
    engine_derive(&f.engine, &next.engine);
    next.engine.agents = next.agents;
    next.engine.refs = 1;
    run_host_use(&f.host, &next.engine);
    say(&turn, &f, "x");
    assert_int_equal(fake_calls(f.model), 1);
    reply(&f, "ok");
    finish(&f, &turn, &next);
}

static void a_turn_does_not_wait_for_ever(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    struct next next;
    begin(&f, false);
    next_init(&next, &f, false);
    say(&turn, &f, "x");
    loop_advance(f.loop, AWAIT_TOOLS_MS - 1);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 0);
    loop_advance(f.loop, 1);
    turns(&f);
    assert_model(&f, "m-1");
    reply(&f, "ok");
    finish(&f, &turn, &next);
}

static void a_turn_may_be_cancelled_while_it_waits(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    struct next next;
    begin(&f, false);
    next_init(&next, &f, false);
    say(&turn, &f, "x");
    run_cancel(turn.run, STR("enough"));
    turns(&f);
    run_host_use(&f.host, &next.engine);
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    assert_int_equal(fake_calls(f.model), 0);
    finish(&f, &turn, &next);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_waits_for_the_next_configuration_and_takes_it),
        cmocka_unit_test(a_configuration_that_came_before_the_turn_began_counts),
        cmocka_unit_test(a_turn_of_a_derived_engine_waits_for_nothing),
        cmocka_unit_test(a_turn_does_not_wait_for_ever),
        cmocka_unit_test(a_turn_may_be_cancelled_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
