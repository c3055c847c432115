/* Runs that another replica wishes to cancel: heard, cancelled, and read again until they are over.
 * And those who wish it: cancel_run. */
#include "turn/cancel_box.h"

#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "session/directory.h"
#include "store/cancelling.h"
#include "store/changes.h"

#include "turn/cancel_run.h"

#include <stdio.h>

struct scene {
    struct loop *loop;
    struct store *store;
    struct session_table *sessions;
    struct cancel_box *box;
    struct live live;
    char why[64];
    size_t left;
    size_t answers; /* of cancel_run */
    enum cancel_run_answer answer;
};

static void settle(struct scene *scene) {
    for (size_t i = 0; i < 300; i++) loop_turn(scene->loop);
}

static void on_leave(struct leaving leaving, struct str why, void *ctx) {
    struct scene *scene = ctx;
    assert_int_equal(leaving.how, LEAVING_NONE); /* its caller has not left */
    snprintf(scene->why, sizeof(scene->why), STR_FMT, STR_ARG(why));
    scene->left++;
}

static void enter(struct scene *scene, uint64_t run) {
    scene->live = (struct live){.run = run,
                                .loop = scene->loop,
                                .workspace = STR("w"),
                                .user = STR("u"),
                                .session = STR_EMPTY,
                                .leave = on_leave,
                                .ctx = scene};
    directory_add(session_table_directory(scene->sessions), &scene->live);
}

static void leave(struct scene *scene) {
    directory_remove(session_table_directory(scene->sessions), &scene->live);
}

/* A run of replica `holder`, 1 being this one. */
static void stored(struct scene *scene, uint64_t run, int holder, int state) {
    char sql[320];
    snprintf(sql, sizeof(sql),
             "INSERT INTO log(id, run, sum, bytes, replica) VALUES(%llu, %llu, 0, x'', %d);"
             "INSERT INTO run(id, state, first_log, last_log, last_seq, places)"
             " VALUES(%llu, %d, %llu, %llu, 1, x'')",
             (unsigned long long)run, (unsigned long long)run, holder, (unsigned long long)run,
             state, (unsigned long long)run, (unsigned long long)run);
    fake_store_sql(scene->store, sql);
}

static int64_t wishes(struct scene *scene) {
    return fake_store_number(scene->store, "SELECT count(*) FROM cancelling");
}

static void open_scene(struct scene *scene) {
    *scene = (struct scene){.loop = loop_new_fake(), .store = fake_store_new()};
    fake_store_always_commit(scene->store);
    fake_store_share(scene->store);
    scene->sessions = session_table_new(scene->store);
    scene->box = cancel_box_start(scene->sessions, scene->loop);
    settle(scene);
}

static void close_scene(struct scene *scene) {
    cancel_box_stop(scene->box);
    settle(scene);
    session_table_free(scene->sessions);
    fake_store_free(scene->store);
    loop_free(scene->loop);
}

static void hear(struct scene *scene) {
    changes_tell(store_changes(scene->store), CHANGE_POSTED);
    settle(scene);
}

static void a_wish_of_another_replica_is_heard(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 7, 1, 0);
    stored(&scene, 8, 2, 0); /* of another replica */
    enter(&scene, 7);
    fake_store_sql(scene.store, "INSERT INTO cancelling VALUES(7, CAST('so' AS BLOB)),"
                                " (8, CAST('no' AS BLOB))");
    hear(&scene);
    assert_int_equal(scene.left, 1);
    assert_string_equal(scene.why, "so");
    /* It is over: the row of the run goes, the other's stays. */
    leave(&scene);
    fake_store_sql(scene.store, "UPDATE run SET state = 3 WHERE id = 7");
    loop_advance(scene.loop, 250);
    settle(&scene);
    assert_int_equal(wishes(&scene), 1);
    assert_int_equal(scene.left, 1);
    close_scene(&scene);
}

/* The run ended after the wish was made, and before it was heard here. */
static void a_wish_for_a_run_that_has_ended_meanwhile_goes(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 7, 1, 3);
    stored(&scene, 8, 2, 0);
    fake_store_sql(scene.store, "INSERT INTO cancelling VALUES(7, CAST('late' AS BLOB)),"
                                " (8, CAST('no' AS BLOB))");
    hear(&scene);
    assert_int_equal(wishes(&scene), 1);
    assert_int_equal(fake_store_number(scene.store, "SELECT run FROM cancelling"), 8);
    close_scene(&scene);
}

static void a_run_that_is_not_live_yet_is_cancelled_when_it_is(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 7, 2, 0);
    fake_store_sql(scene.store, "INSERT INTO moved VALUES(7, 1);"
                                "INSERT INTO cancelling VALUES(7, CAST('so' AS BLOB))");
    hear(&scene);
    assert_int_equal(scene.left, 0);
    enter(&scene, 7);
    loop_advance(scene.loop, 250);
    settle(&scene);
    assert_int_equal(scene.left, 1);
    leave(&scene);
    close_scene(&scene);
}

static void a_live_run_is_cancelled_at_once_and_no_one_else_is_told(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 7, 1, 0);
    enter(&scene, 7);
    cancel_run_send(scene.sessions, scene.loop, 7, STR("mine"));
    settle(&scene);
    assert_string_equal(scene.why, "mine");
    assert_int_equal(wishes(&scene), 0);
    leave(&scene);
    close_scene(&scene);
}

static void a_wish_is_kept_once_and_not_for_a_run_that_is_over(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 8, 2, 0);
    stored(&scene, 9, 2, 3);
    for (uint64_t run = 8; run <= 10; run++) { /* 10: there is no such run */
        cancel_run_send(scene.sessions, scene.loop, run, STR("why"));
        cancel_run_send(scene.sessions, scene.loop, run, STR("again"));
    }
    settle(&scene);
    assert_int_equal(wishes(&scene), 1);
    assert_int_equal(fake_store_number(scene.store, "SELECT run FROM cancelling"
                                                    " WHERE why = CAST('why' AS BLOB)"),
                     8);
    close_scene(&scene);
}

static void more_than_are_read_at_a_time_are_heard_in_one_pass(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    for (uint64_t run = 1; run <= 2 * CANCELLING_MAX; run++) { /* none of them is live */
        stored(&scene, run, 1, 0);
        cancel_run_send(scene.sessions, scene.loop, run, STR("all"));
    }
    settle(&scene);
    stored(&scene, 2 * CANCELLING_MAX + 1, 1, 0);
    enter(&scene, 2 * CANCELLING_MAX + 1);
    fake_store_sql(scene.store, "INSERT INTO cancelling VALUES(129, CAST('last' AS BLOB))");
    hear(&scene);
    assert_int_equal(scene.left, 1);
    assert_string_equal(scene.why, "last");
    leave(&scene);
    close_scene(&scene);
}

/* --- who asks for it ----------------------------------------------------------------------- */

static void on_answer(enum cancel_run_answer answer, const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    assert_int_equal(failed != NULL, answer == CANCEL_RUN_FAILED);
    scene->answers++;
    scene->answer = answer;
}

static struct cancel_run *ask(struct scene *scene, uint64_t run) {
    scene->answers = 0;
    return cancel_run_start(scene->sessions, scene->loop, run, STR("asked"), on_answer, scene);
}

static void who_asks_hears_what_was_found_and_never_at_once(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 7, 1, 0);
    stored(&scene, 8, 2, 0);
    stored(&scene, 9, 2, 3);
    enter(&scene, 7);
    static const enum cancel_run_answer wanted[] = {CANCEL_RUN_ASKED, CANCEL_RUN_ASKED,
                                                    CANCEL_RUN_OVER, CANCEL_RUN_OVER};
    for (uint64_t run = 7; run <= 10; run++) { /* live, another's, over, none */
        for (size_t times = 0; times < 2; times++) {
            (void)ask(&scene, run);
            assert_int_equal(scene.answers, 0);
            settle(&scene);
            assert_int_equal(scene.answers, 1);
            assert_int_equal(scene.answer, wanted[run - 7]);
        }
    }
    assert_int_equal(scene.left, 2);
    assert_int_equal(wishes(&scene), 1);
    leave(&scene);
    close_scene(&scene);
}

static void who_leaves_before_the_answer_has_wished_all_the_same(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    stored(&scene, 7, 1, 0);
    stored(&scene, 8, 2, 0);
    enter(&scene, 7);
    for (uint64_t run = 7; run <= 9; run++) cancel_run_forget(ask(&scene, run));
    settle(&scene);
    assert_int_equal(scene.answers, 0);
    assert_int_equal(scene.left, 1);
    assert_int_equal(wishes(&scene), 1);
    leave(&scene);
    close_scene(&scene);
}

static void without_replicas_a_run_that_is_not_live_is_over(void **state) {
    (void)state;
    struct scene scene = {.loop = loop_new_fake(), .sessions = session_table_new(NULL)};
    enter(&scene, 7);
    for (uint64_t run = 7; run <= 8; run++) {
        (void)ask(&scene, run);
        settle(&scene);
        assert_int_equal(scene.answers, 1);
        assert_int_equal(scene.answer, run == 7 ? CANCEL_RUN_ASKED : CANCEL_RUN_OVER);
    }
    assert_int_equal(scene.left, 1);
    leave(&scene);
    session_table_free(scene.sessions);
    loop_free(scene.loop);
}

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[CANCEL_BOX_STATE_COUNT] = {
        /* idle reading waiting stopped */
        [CANCEL_BOX_IDLE] = ".#.#",
        [CANCEL_BOX_READING] = "#.##",
        [CANCEL_BOX_WAITING] = ".#.#",
        [CANCEL_BOX_STOPPED] = "....",
    };
    for (unsigned from = 0; from < CANCEL_BOX_STATE_COUNT; from++) {
        for (unsigned to = 0; to < CANCEL_BOX_STATE_COUNT; to++)
            assert_int_equal(states_allow(cancel_box_states, from, to), rows[from][to] == '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(a_wish_of_another_replica_is_heard),
        cmocka_unit_test(a_wish_for_a_run_that_has_ended_meanwhile_goes),
        cmocka_unit_test(a_run_that_is_not_live_yet_is_cancelled_when_it_is),
        cmocka_unit_test(a_live_run_is_cancelled_at_once_and_no_one_else_is_told),
        cmocka_unit_test(a_wish_is_kept_once_and_not_for_a_run_that_is_over),
        cmocka_unit_test(more_than_are_read_at_a_time_are_heard_in_one_pass),
        cmocka_unit_test(who_asks_hears_what_was_found_and_never_at_once),
        cmocka_unit_test(who_leaves_before_the_answer_has_wished_all_the_same),
        cmocka_unit_test(without_replicas_a_run_that_is_not_live_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
