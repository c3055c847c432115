/* Places of a workspace's turns, over all replicas. */
#include "store/place.h"

#include "store/changes.h"
#include "store/takeover.h"
#include "two_replicas.h"

static void on_taken(struct place_request *request, const struct err *failed, void *ctx) {
    (void)request;
    scene_answered(ctx, failed);
}

static bool take(struct scene *scene, struct replica *replica, uint64_t run,
                 const char *workspace, unsigned max) {
    struct place_request request = {.run = run,
                                    .workspace = str_from(workspace),
                                    .max = max,
                                    .on_done = on_taken,
                                    .ctx = scene};
    place_take(replica->store, scene->f->loop, &request);
    await_answers(scene, 1);
    return request.taken;
}

static void a_workspace_has_so_many_places_at_all_replicas(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    assert_true(take(&scene, &scene.a, 1, "w", 2));
    assert_true(take(&scene, &scene.b, 2, "w", 2));
    assert_false(take(&scene, &scene.a, 3, "w", 2));
    assert_true(take(&scene, &scene.a, 4, "v", 1));
    assert_true(take(&scene, &scene.a, 1, "w", 2)); /* the same again */
    place_give_back(scene.b.store, scene.f->loop, 2, STR("w"));
    place_give_back(scene.b.store, scene.f->loop, 2, STR("w"));
    assert_false(take(&scene, &scene.b, 5, "v", 1));
    assert_true(take(&scene, &scene.a, 3, "w", 2));
    assert_int_equal(server_number(scene.f, "SELECT count(*) FROM place"), 3);
    close_scene(&scene);
}

/* Two replicas ask for the last place at the same time: their tasks are queued before the loop runs
 * at all. */
static void of_two_that_ask_at_once_one_gets_the_last_place(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    for (uint64_t round = 0; round < 20; round++) {
        struct place_request requests[2];
        for (size_t i = 0; i < 2; i++) {
            requests[i] = (struct place_request){.run = 10 * round + i,
                                                 .workspace = STR("w"),
                                                 .max = 1,
                                                 .on_done = on_taken,
                                                 .ctx = &scene};
            place_take(i ? scene.b.store : scene.a.store, scene.f->loop, &requests[i]);
        }
        await_answers(&scene, 2);
        assert_int_equal(requests[0].taken + requests[1].taken, 1);
        server_run(scene.f, "DELETE FROM place");
    }
    close_scene(&scene);
}

struct hearing {
    struct changes_watcher *watcher;
    size_t times;
    struct loop *loop;
};

static void on_freed(void *ctx) {
    struct hearing *hearing = ctx;
    hearing->times++;
    if (hearing->loop) loop_stop(hearing->loop);
}

/* A name that shares no bit with "w": those that do are woken for nothing. */
static struct str another_workspace(void) {
    static char name[] = "v0";
    while (change_name(str_from(name)) == change_name(STR("w"))) name[1]++;
    return str_from(name);
}

static void only_those_who_wait_for_the_workspace_hear_of_its_place(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    const uint64_t what[] = {place_change(another_workspace()), place_change(STR("w"))};
    struct hearing hearings[ARRAY_LEN(what)] = {{.loop = NULL}, {.loop = scene.f->loop}};
    assert_true(take(&scene, &scene.a, 1, "w", 1));
    replica_listens(&scene.b);
    for (size_t i = 0; i < ARRAY_LEN(what); i++)
        hearings[i].watcher = changes_watch(store_changes(scene.b.store), what[i],
                                            scene.f->loop, on_freed, &hearings[i]);
    place_give_back(scene.a.store, scene.f->loop, 1, STR("w"));
    loop_run(scene.f->loop);
    for (size_t i = 0; i < ARRAY_LEN(what); i++) changes_leave(hearings[i].watcher);
    close_scene(&scene);
    assert_int_equal(hearings[0].times, 0);
    assert_int_equal(hearings[1].times, 1);
}

static void taken_over(struct takeover *takeover, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)takeover;
    fixture_opened(failed, scene->f);
}

static void those_of_a_dead_replica_are_free_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    assert_true(take(&scene, &scene.a, 1, "w", 1));
    server_fence(scene.f, "a");
    assert_false(take(&scene, &scene.b, 2, "w", 1));
    struct takeover takeover = {.on_done = taken_over, .ctx = &scene};
    takeover_start(scene.b.store, scene.f->loop, &takeover);
    loop_run(scene.f->loop);
    takeover_done(&takeover);
    assert_true(take(&scene, &scene.b, 2, "w", 1));
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_workspace_has_so_many_places_at_all_replicas),
        TEST(of_two_that_ask_at_once_one_gets_the_last_place),
        TEST(only_those_who_wait_for_the_workspace_hear_of_its_place),
        TEST(those_of_a_dead_replica_are_free_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
