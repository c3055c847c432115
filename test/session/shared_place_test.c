/* A place of a workspace among replicas: asked for, waited for, and given back whatever happens. */
#include "session/shared_place.h"

#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"
#include "store/changes.h"
#include "store/place.h"

#include <stdio.h>

struct scene {
    struct sessions s;
    struct shared_place *place;
    size_t held;
};

static void open_scene(struct scene *scene) {
    *scene = (struct scene){.s = sessions_open(WITH_SHARED_STORE)};
}

static void settle(struct scene *scene) {
    for (size_t i = 0; i < 8; i++) loop_turn(scene->s.loop);
}

static void close_scene(struct scene *scene) {
    settle(scene);
    sessions_shut(&scene->s);
}

static void on_held(void *ctx) {
    ((struct scene *)ctx)->held++;
}

static void ask(struct scene *scene, uint64_t run, unsigned max) {
    char workspace[] = "w";
    scene->place =
        shared_place_take(&(struct shared_place_options){.sessions = scene->s.table,
                                                         .loop = scene->s.loop,
                                                         .run = run,
                                                         .workspace = str_from(workspace),
                                                         .max = max,
                                                         .on_held = on_held,
                                                         .ctx = scene});
    workspace[0] = '#';
}

static int64_t rows(struct scene *scene, const char *where) {
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM place WHERE %s", where);
    return fake_store_number(scene->s.store, sql);
}

static void others_have(struct scene *scene, const char *values) {
    char sql[128];
    snprintf(sql, sizeof(sql), "INSERT INTO place VALUES%s", values);
    fake_store_sql(scene->s.store, sql);
}

#define W "CAST('w' AS BLOB)"

static void a_place_is_held_and_given_back(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    others_have(&scene, "(90, " W ", 2), (91, CAST('v' AS BLOB), 2)");
    ask(&scene, 7, 2);
    assert_int_equal(scene.held, 0); /* never before it returns */
    settle(&scene);
    assert_int_equal(scene.held, 1);
    assert_int_equal(rows(&scene, "workspace = " W), 2);
    assert_true(shared_place_leave(scene.place));
    settle(&scene);
    assert_int_equal(rows(&scene, "run = 7"), 0);
    close_scene(&scene);
}

static void it_is_waited_for_until_another_is_given_back(void **state) {
    (void)state;
    for (int heard = 0; heard < 2; heard++) { /* or the notification was lost */
        struct scene scene;
        open_scene(&scene);
        others_have(&scene, "(90, " W ", 2)");
        ask(&scene, 7, 1);
        settle(&scene);
        assert_int_equal(scene.held, 0);
        changes_tell(store_changes(scene.s.store), CHANGE_FREED); /* another workspace's */
        settle(&scene);
        assert_int_equal(scene.held, 0);
        fake_store_sql(scene.s.store, "DELETE FROM place");
        if (heard)
            changes_tell(store_changes(scene.s.store), CHANGE_FREED);
        else
            loop_advance(scene.s.loop, 500);
        settle(&scene);
        assert_int_equal(scene.held, 1);
        assert_true(shared_place_leave(scene.place));
        close_scene(&scene);
    }
}

static void a_store_that_is_away_is_asked_again(void **state) {
    (void)state;
    static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_OUTCOME_UNKNOWN};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct scene scene;
        open_scene(&scene);
        fake_store_always_lose(scene.s.store, codes[i]);
        ask(&scene, 7, 1);
        settle(&scene);
        assert_int_equal(scene.held, 0);
        /* The one whose outcome is unknown may be there. */
        if (codes[i] == ERR_OUTCOME_UNKNOWN) others_have(&scene, "(7, " W ", 1)");
        fake_store_always_commit(scene.s.store);
        loop_advance(scene.s.loop, 500);
        settle(&scene);
        assert_int_equal(scene.held, 1);
        assert_true(shared_place_leave(scene.place));
        close_scene(&scene);
    }
}

/* Of ten thousand that wait, those of other workspaces do not ask the store. */
static void only_a_place_of_its_workspace_wakes_it(void **state) {
    (void)state;
    char other[] = "v0";
    struct scene scene;
    open_scene(&scene);
    others_have(&scene, "(90, " W ", 2)");
    ask(&scene, 7, 1);
    settle(&scene);
    fake_store_ask_me(scene.s.store);
    while (change_name(str_from(other)) == change_name(STR("w"))) other[1]++;
    changes_tell(store_changes(scene.s.store), place_change(str_from(other)));
    settle(&scene);
    assert_int_equal(fake_store_tasks(scene.s.store), 0);
    changes_tell(store_changes(scene.s.store), place_change(STR("w")));
    settle(&scene);
    assert_int_equal(fake_store_tasks(scene.s.store), 1);
    fake_store_sql(scene.s.store, "DELETE FROM place");
    fake_store_run(scene.s.store, 0);
    settle(&scene);
    assert_int_equal(scene.held, 1);
    assert_true(shared_place_leave(scene.place));
    while (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
    close_scene(&scene);
}

/* Asking, waiting, and asking again. */
static void one_that_is_left_before_it_is_held_leaves_nothing(void **state) {
    (void)state;
    for (int step = 0; step < 3; step++) {
        struct scene scene;
        open_scene(&scene);
        if (step) others_have(&scene, "(90, " W ", 2)");
        ask(&scene, 7, 1);
        if (step) settle(&scene);
        if (step == 2) {
            fake_store_sql(scene.s.store, "DELETE FROM place");
            fake_store_ask_me(scene.s.store);
            changes_tell(store_changes(scene.s.store), CHANGE_FREED);
            loop_turn(scene.s.loop);
            loop_turn(scene.s.loop);
            assert_int_equal(fake_store_tasks(scene.s.store), 1);
        }
        assert_false(shared_place_leave(scene.place));
        while (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
        settle(&scene);
        assert_int_equal(scene.held, 0);
        assert_int_equal(rows(&scene, "run = 7"), 0);
        close_scene(&scene);
    }
}

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[SHARED_PLACE_STATE_COUNT] = {
        /* asking waiting held left */
        [SHARED_PLACE_ASKING] = ".###",
        [SHARED_PLACE_WAITING] = "#..#",
        [SHARED_PLACE_HELD] = "...#",
        [SHARED_PLACE_LEFT] = "....",
    };
    for (unsigned from = 0; from < SHARED_PLACE_STATE_COUNT; from++) {
        for (unsigned to = 0; to < SHARED_PLACE_STATE_COUNT; to++)
            assert_int_equal(states_allow(shared_place_states, from, to),
                             rows[from][to] == '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(a_place_is_held_and_given_back),
        cmocka_unit_test(it_is_waited_for_until_another_is_given_back),
        cmocka_unit_test(a_store_that_is_away_is_asked_again),
        cmocka_unit_test(only_a_place_of_its_workspace_wakes_it),
        cmocka_unit_test(one_that_is_left_before_it_is_held_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
