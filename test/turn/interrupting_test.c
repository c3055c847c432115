/* Turns of this replica make way for newer ones of another; and this one's own wishes. */
#include "turn/cancel_box.h"

#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "session/directory.h"
#include "session/session.h"
#include "store/changes.h"
#include "store/interrupting.h"

#include <stdio.h>

#define TURNS_MAX 4

struct scene;

/* A turn that has the session, or waits for it. */
struct waiting_turn {
    struct scene *scene;
    struct live live;
    struct lease lease;
    bool granted, left;
};

struct scene {
    struct loop *loop;
    struct store *store;
    struct session_table *sessions;
    struct cancel_box *box;
    struct waiting_turn turns[TURNS_MAX];
    size_t count;
};

static const struct session_name name = {STR_INIT("w"), STR_INIT("u"), STR_INIT("s")};

static void settle(struct scene *scene) {
    for (size_t i = 0; i < 300; i++) {
        loop_turn(scene->loop);
        if (fake_store_loads(scene->store)) fake_store_answer(scene->store, 0);
    }
}

static void open_scene(struct scene *scene) {
    *scene = (struct scene){.loop = loop_new_fake(), .store = fake_store_new()};
    fake_store_always_commit(scene->store);
    fake_store_share(scene->store);
    scene->sessions = session_table_new(scene->store);
    session_table_wait(scene->sessions, 60000);
    scene->box = cancel_box_start(scene->sessions, scene->loop);
    settle(scene);
}

static void on_granted(void *ctx) {
    struct waiting_turn *turn = ctx;
    turn->granted = true;
}

static void on_refused(const struct err *why, void *ctx) {
    (void)ctx;
    fail_msg("%s", why->text);
}

static void on_children_done(void *ctx) {
    (void)ctx;
}

static const struct lease_events events = {on_granted, on_refused, on_children_done};

static void on_leave(struct leaving leaving, struct str why, void *ctx) {
    struct waiting_turn *turn = ctx;
    assert_int_equal(leaving.how, LEAVING_NONE);
    assert_str(why, "a newer message of the session took its place");
    turn->left = true;
}

static struct waiting_turn *begin(struct scene *scene, uint64_t run,
                                  enum session_policy policy) {
    struct waiting_turn *turn = &scene->turns[scene->count++];
    struct err e;
    turn->scene = scene;
    turn->live = (struct live){.run = run,
                               .loop = scene->loop,
                               .workspace = name.workspace,
                               .user = name.user,
                               .session = name.session,
                               .leave = on_leave,
                               .ctx = turn};
    turn->lease =
        (struct lease){.loop = scene->loop, .run = run, .events = &events, .ctx = turn};
    directory_add(session_table_directory(scene->sessions), &turn->live);
    if (session_acquire(scene->sessions, &name, policy, &turn->lease, &e) == SESSION_GRANTED)
        turn->granted = true;
    settle(scene);
    return turn;
}

static void end(struct scene *scene, struct waiting_turn *turn) {
    if (turn->lease.state == LEASE_WAITING)
        assert_true(session_withdraw(&turn->lease));
    else
        session_release(&turn->lease, NULL);
    directory_remove(session_table_directory(scene->sessions), &turn->live);
    settle(scene);
}

static void close_scene(struct scene *scene) {
    cancel_box_stop(scene->box);
    session_table_leave(scene->sessions, scene->loop);
    settle(scene);
    session_table_free(scene->sessions);
    fake_store_free(scene->store);
    loop_free(scene->loop);
}

static int64_t wishes(struct scene *scene) {
    return fake_store_number(scene->store, "SELECT count(*) FROM kept WHERE space = 7");
}

/* As replica 2 does for its run. */
static void wish_of_another(struct scene *scene, uint64_t run, const char *session) {
    const struct interrupting wish = {.run = run,
                                      .lease = session_lease_key(&name),
                                      .workspace = name.workspace,
                                      .user = name.user,
                                      .session = str_from(session)};
    interrupting_wish(scene->store, scene->loop, &wish);
    settle(scene);
    fake_store_sql(
        scene->store,
        "UPDATE OR REPLACE kept SET key = CAST(replace(CAST(key AS TEXT), '1-', '2-') AS BLOB)"
        " WHERE space = 7");
    changes_tell(store_changes(scene->store), CHANGE_POSTED);
    settle(scene);
}

static void older_turns_make_way_and_newer_ones_stay(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    struct waiting_turn *has = begin(&scene, 5, SESSION_QUEUE),
                        *waits = begin(&scene, 6, SESSION_QUEUE),
                        *newer = begin(&scene, 9, SESSION_QUEUE);
    assert_true(has->granted && !waits->granted);
    wish_of_another(&scene, 7, "another");
    assert_false(has->left || waits->left);
    wish_of_another(&scene, 7, "s");
    assert_true(has->left && waits->left);
    assert_false(newer->left);
    end(&scene, waits);
    end(&scene, has);
    assert_true(newer->granted);
    end(&scene, newer);
    close_scene(&scene);
}

static void a_turn_that_waits_for_a_tool_stays_until_it_has_the_session_back(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    struct waiting_turn *has = begin(&scene, 5, SESSION_QUEUE);
    session_lend(&has->lease, history_ref(has->lease.history));
    wish_of_another(&scene, 7, "s");
    assert_false(has->left);
    assert_true(session_reclaim(&has->lease));
    wish_of_another(&scene, 7, "s");
    assert_true(has->left);
    end(&scene, has);
    close_scene(&scene);
}

static void its_own_wishes_are_not_for_a_replica(void **state) {
    (void)state;
    struct scene scene;
    const struct interrupting wish = {.run = 7,
                                      .lease = session_lease_key(&name),
                                      .workspace = name.workspace,
                                      .user = name.user,
                                      .session = name.session};
    open_scene(&scene);
    struct waiting_turn *has = begin(&scene, 5, SESSION_QUEUE);
    interrupting_wish(scene.store, scene.loop, &wish);
    settle(&scene);
    changes_tell(store_changes(scene.store), CHANGE_POSTED);
    settle(&scene);
    assert_false(has->left);
    end(&scene, has);
    close_scene(&scene);
}

/* The lease is replica 2's. */
static void hold_elsewhere(struct scene *scene) {
    const struct lease_key lease = session_lease_key(&name);
    char sql[256];
    int at = snprintf(sql, sizeof(sql), "INSERT INTO lease(key, holder) VALUES(x'");
    for (size_t i = 0; i < sizeof(lease.bytes); i++)
        at += snprintf(sql + at, sizeof(sql) - (size_t)at, "%02x", (uint8_t)lease.bytes[i]);
    snprintf(sql + at, sizeof(sql) - (size_t)at, "', 2)");
    fake_store_sql(scene->store, sql);
}

static void
a_turn_that_waits_for_another_replica_wishes_until_it_has_the_session(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    hold_elsewhere(&scene);
    struct waiting_turn *turn = begin(&scene, 7, SESSION_INTERRUPT);
    assert_false(turn->granted);
    assert_int_equal(wishes(&scene), 1);
    fake_store_sql(scene.store, "DELETE FROM kept"); /* as a store does that lost it */
    loop_advance(scene.loop, 500);
    settle(&scene);
    assert_int_equal(wishes(&scene), 1); /* again */
    fake_store_sql(scene.store, "DELETE FROM lease");
    loop_advance(scene.loop, 500);
    settle(&scene);
    assert_true(turn->granted);
    assert_int_equal(wishes(&scene), 0);
    end(&scene, turn);
    close_scene(&scene);
}

static void one_that_queues_wishes_nothing(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    hold_elsewhere(&scene);
    struct waiting_turn *turn = begin(&scene, 7, SESSION_QUEUE);
    assert_int_equal(wishes(&scene), 0);
    fake_store_sql(scene.store, "DELETE FROM lease");
    loop_advance(scene.loop, 500);
    settle(&scene);
    assert_true(turn->granted);
    end(&scene, turn);
    close_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_turns_make_way_and_newer_ones_stay),
        cmocka_unit_test(a_turn_that_waits_for_a_tool_stays_until_it_has_the_session_back),
        cmocka_unit_test(its_own_wishes_are_not_for_a_replica),
        cmocka_unit_test(a_turn_that_waits_for_another_replica_wishes_until_it_has_the_session),
        cmocka_unit_test(one_that_queues_wishes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
