#include "session/holding.h"

#include "base/mem.h"
#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"
#include "store/changes.h"

#include <stdlib.h>

#define WAIT_MS 5000

/* One that wants a session which the other replica, number 2, has. */
struct scene {
    struct sessions s;
    struct holdings *all;
    struct lease_key key;
    bool waits; /* its answer, when it is asked */
    size_t asked, ends;
    enum err_code failed;
};

static bool on_busy(const struct err *busy, void *ctx) {
    struct scene *scene = ctx;
    scene->asked++;
    assert_non_null(strstr(busy->text, "replica 'other'"));
    return scene->waits;
}

static void on_end(const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    scene->ends++;
    scene->failed = failed ? failed->code : ERR_NONE;
}

static int set_up(void **state) {
    const struct str name = STR("s");
    struct scene *scene = MEM_NEW(struct scene);
    scene->s = sessions_open(WITH_SHARED_STORE);
    scene->all = holdings_new();
    scene->key = lease_key(LEASE_OF_SESSION, &name, 1);
    scene->waits = true;
    *state = scene;
    return 0;
}

static int tear_down(void **state) {
    struct scene *scene = *state;
    for (int i = 0; i < 5; i++) loop_turn(scene->s.loop);
    holdings_free(scene->all);
    sessions_shut(&scene->s);
    free(scene);
    return 0;
}

static void start_as(struct scene *scene, bool recovers) {
    holding_start(&(struct holding_options){.all = scene->all,
                                            .store = scene->s.store,
                                            .loop = scene->s.loop,
                                            .key = scene->key,
                                            .recovers = recovers,
                                            .wait_ms = WAIT_MS,
                                            .waits = on_busy,
                                            .on_end = on_end,
                                            .ctx = scene});
}

static void start(struct scene *scene) {
    start_as(scene, false);
}

static void turns(struct scene *scene) {
    for (int i = 0; i < 4; i++) loop_turn(scene->s.loop);
}

static void the_other_takes_it(struct scene *scene) {
    start(scene);
    turns(scene);
    assert_int_equal(scene->ends, 1);
    scene->ends = 0;
    fake_store_sql(scene->s.store, "UPDATE lease SET holder = 2");
}

static void the_other_frees_it(struct scene *scene) {
    fake_store_sql(scene->s.store, "DELETE FROM lease");
}

static void hear(struct scene *scene, enum change what) {
    changes_tell(store_changes(scene->s.store), what);
    turns(scene);
}

static void a_free_one_is_held(void **state) {
    struct scene *scene = *state;
    start(scene);
    assert_int_equal(scene->ends, 0); /* never at once */
    turns(scene);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_NONE);
    assert_int_equal(scene->asked, 0);
}

static void it_is_held_when_the_other_gives_it_back(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    start(scene);
    turns(scene);
    the_other_frees_it(scene);
    hear(scene, CHANGE_WRITTEN); /* that is nothing to it */
    assert_int_equal(scene->ends, 0);
    hear(scene, CHANGE_FREED);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_NONE);
}

static void it_looks_again_by_itself(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    start(scene);
    turns(scene);
    the_other_frees_it(scene);
    loop_advance(scene->s.loop, 1000);
    turns(scene);
    assert_int_equal(scene->ends, 1);
}

/* It is given back after the store has answered, and heard of before that answer arrives. */
static void what_is_freed_while_the_store_is_asked_is_not_missed(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    start(scene);
    turns(scene);
    fake_store_ask_me(scene->s.store);
    hear(scene, CHANGE_FREED);
    assert_int_equal(fake_store_tasks(scene->s.store), 1);
    changes_tell(store_changes(scene->s.store), CHANGE_FREED);
    fake_store_run(scene->s.store, 0);
    the_other_frees_it(scene);
    turns(scene);
    assert_int_equal(fake_store_tasks(scene->s.store), 1); /* at once, and not after a moment */
    fake_store_run(scene->s.store, 0);
    turns(scene);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_NONE);
    fake_store_always_commit(scene->s.store);
}

static void it_ends_when_nobody_waits(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    scene->waits = false;
    start(scene);
    turns(scene);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_UNAVAILABLE);
}

static void it_waits_for_so_long_and_no_longer(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    start(scene);
    turns(scene);
    for (int ms = 0; ms < WAIT_MS - 1000; ms += 500) {
        loop_advance(scene->s.loop, 500);
        turns(scene);
    }
    assert_int_equal(scene->ends, 0);
    loop_advance(scene->s.loop, 1000);
    turns(scene);
    loop_advance(scene->s.loop, 1000);
    turns(scene);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_UNAVAILABLE);
}

static void a_store_that_fails_ends_it(void **state) {
    struct scene *scene = *state;
    fake_store_always_lose(scene->s.store, ERR_OUTCOME_UNKNOWN);
    start(scene);
    turns(scene);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_OUTCOME_UNKNOWN);
    fake_store_always_commit(scene->s.store);
}

static void one_that_waits_for_the_end_of_turns_is_for_runs_that_go_on(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    fake_store_sql(scene->s.store, "UPDATE lease SET holder = -2");
    start_as(scene, true);
    turns(scene);
    assert_int_equal(scene->ends, 0);
    fake_store_sql(scene->s.store, "UPDATE lease SET holder = -1");
    hear(scene, CHANGE_FREED);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_NONE);
}

/* One rests, one is with the store: both end, and neither asks again. */
static void all_of_a_loop_end_when_it_ends(void **state) {
    struct scene *scene = *state;
    the_other_takes_it(scene);
    start(scene);
    turns(scene);
    fake_store_ask_me(scene->s.store);
    start(scene);
    holdings_leave(scene->all, scene->s.loop);
    assert_int_equal(scene->ends, 1);
    assert_int_equal(scene->failed, ERR_UNAVAILABLE);
    fake_store_run(scene->s.store, 0);
    turns(scene);
    assert_int_equal(scene->ends, 2);
    assert_int_equal(scene->failed, ERR_UNAVAILABLE);
    hear(scene, CHANGE_FREED);
    loop_advance(scene->s.loop, WAIT_MS);
    assert_int_equal(fake_store_tasks(scene->s.store), 0);
    fake_store_always_commit(scene->s.store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_free_one_is_held),
        TEST(it_is_held_when_the_other_gives_it_back),
        TEST(it_looks_again_by_itself),
        TEST(what_is_freed_while_the_store_is_asked_is_not_missed),
        TEST(it_ends_when_nobody_waits),
        TEST(it_waits_for_so_long_and_no_longer),
        TEST(a_store_that_fails_ends_it),
        TEST(one_that_waits_for_the_end_of_turns_is_for_runs_that_go_on),
        TEST(all_of_a_loop_end_when_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
