/* Slots of calls, over all replicas: the limits, the line, and what a dead replica leaves. */
#include "store/slot.h"

#include "store/takeover.h"
#include "two_replicas.h"

static void on_asked(struct slot_request *request, const struct err *failed, void *ctx) {
    (void)request;
    scene_answered(ctx, failed);
}

static struct slot_request wish(struct scene *scene, int64_t number, const char *app) {
    return (struct slot_request){.number = number,
                                 .pool = STR("p"),
                                 .app = str_from(app),
                                 .all_max = 2,
                                 .app_max = 1,
                                 .background_max = 1,
                                 .on_done = on_asked,
                                 .ctx = scene};
}

static bool ask_with(struct scene *scene, struct replica *replica, struct slot_request wish) {
    slot_ask(replica->store, scene->f->loop, &wish);
    await_answers(scene, 1);
    return wish.held;
}

static bool ask(struct scene *scene, struct replica *replica, int64_t number, const char *app) {
    return ask_with(scene, replica, wish(scene, number, app));
}

static bool ask_behind(struct scene *scene, struct replica *replica, int64_t number,
                       const char *app) {
    struct slot_request request = wish(scene, number, app);
    request.background = true;
    return ask_with(scene, replica, request);
}

/* And wait until it is: tasks of one store run in order. */
static void give_back(struct scene *scene, struct replica *replica, int64_t number) {
    struct slot_request after = wish(scene, 1000, "x");
    after.pool = STR("another");
    slot_give_back(replica->store, scene->f->loop, number);
    ask_with(scene, replica, after);
}

static void a_pool_and_an_app_have_so_many_at_all_replicas(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    assert_true(ask(&scene, &scene.a, 1, "x"));
    assert_false(ask(&scene, &scene.b, 1, "x")); /* its number is its own */
    assert_true(ask(&scene, &scene.b, 2, "y"));  /* x has no room, and delays no other app */
    assert_false(ask(&scene, &scene.a, 2, "z"));
    assert_true(ask(&scene, &scene.a, 1, "x")); /* the same again */
    struct slot_request other = wish(&scene, 9, "x");
    other.pool = STR("q");
    assert_true(ask_with(&scene, &scene.b, other));
    assert_int_equal(server_number(scene.f, "SELECT count(*) FROM slot WHERE held = 1"), 3);
    give_back(&scene, &scene.b, 2);
    give_back(&scene, &scene.b, 2);
    assert_false(ask(&scene, &scene.b, 3, "y")); /* z came before it */
    assert_true(ask(&scene, &scene.a, 2, "z"));
    close_scene(&scene);
}

/* Background work beyond its limit (1) waits, and delays nobody meanwhile. */
static void who_came_first_goes_first_if_it_may_run(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    assert_true(ask(&scene, &scene.a, 1, "x"));
    assert_true(ask_behind(&scene, &scene.a, 2, "y"));
    assert_false(ask_behind(&scene, &scene.a, 3, "v"));
    assert_false(ask(&scene, &scene.b, 1, "z"));
    assert_false(ask(&scene, &scene.b, 2, "w"));
    give_back(&scene, &scene.a, 1);
    assert_false(ask_behind(&scene, &scene.a, 3, "v"));
    assert_false(ask(&scene, &scene.b, 2, "w"));
    assert_true(ask(&scene, &scene.b, 1, "z"));
    give_back(&scene, &scene.a, 2); /* now the first in the line may run */
    assert_false(ask(&scene, &scene.b, 2, "w"));
    assert_true(ask_behind(&scene, &scene.a, 3, "v"));
    give_back(&scene, &scene.b, 2); /* it leaves the line */
    give_back(&scene, &scene.b, 1);
    assert_false(ask_behind(&scene, &scene.a, 4, "u"));
    assert_true(ask(&scene, &scene.a, 5, "u")); /* nor calls of its own app */
    close_scene(&scene);
}

/* Two replicas ask for the last slot at the same time: their tasks are queued before the loop runs
 * at all. */
static void of_two_that_ask_at_once_one_gets_the_last_slot(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    for (int64_t round = 0; round < 20; round++) {
        struct slot_request requests[2];
        for (size_t i = 0; i < 2; i++) {
            requests[i] = wish(&scene, round, i ? "x" : "y");
            requests[i].all_max = 1;
            slot_ask(i ? scene.b.store : scene.a.store, scene.f->loop, &requests[i]);
        }
        await_answers(&scene, 2);
        assert_int_equal(requests[0].held + requests[1].held, 1);
        server_run(scene.f, "DELETE FROM slot");
    }
    close_scene(&scene);
}

static void taken_over(struct takeover *takeover, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)takeover;
    fixture_opened(failed, scene->f);
}

/* Those that it had, and its places in the line. */
static void those_of_a_dead_replica_are_free_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    assert_true(ask(&scene, &scene.a, 1, "x"));
    assert_true(ask(&scene, &scene.a, 2, "y"));
    assert_false(ask(&scene, &scene.a, 3, "z"));
    server_fence(scene.f, "a");
    assert_false(ask(&scene, &scene.b, 1, "w"));
    struct takeover takeover = {.on_done = taken_over, .ctx = &scene};
    takeover_start(scene.b.store, scene.f->loop, &takeover);
    loop_run(scene.f->loop);
    takeover_done(&takeover);
    assert_true(ask(&scene, &scene.b, 1, "w"));
    assert_int_equal(server_number(scene.f, "SELECT count(*) FROM slot"), 1);
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_pool_and_an_app_have_so_many_at_all_replicas),
        TEST(who_came_first_goes_first_if_it_may_run),
        TEST(of_two_that_ask_at_once_one_gets_the_last_slot),
        TEST(those_of_a_dead_replica_are_free_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
