/* Searches by a server: when one is asked again, and when one is refused. */
#include "store/searches.h"

#include "base/clock.h"
#include "replicas.h"
#include "store/memory.h"

#include <semaphore.h>

struct scene {
    struct fixture *f;
    struct replica a;
    sem_t may_end;
    atomic_int runs;
    unsigned wanted, answered, refused;
    enum err_code last;
};

struct search_task {
    struct store_task task;
    struct scene *scene;
};

static void open_scene(struct scene *scene, struct fixture *f) {
    *scene = (struct scene){.f = f};
    sem_init(&scene->may_end, 0, 0);
    replica_open(f, &scene->a, "a");
}

static void close_scene(struct scene *scene) {
    replica_close(&scene->a);
    sem_destroy(&scene->may_end);
}

static void on_answer(const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    scene->last = failed ? failed->code : ERR_NONE;
    scene->refused += memory_refused(failed);
    if (++scene->answered == scene->wanted) loop_stop(scene->f->loop);
}

static void ask(struct scene *scene, struct search_task *search,
                bool (*fn)(struct database *db, void *ctx, struct err *e)) {
    search->scene = scene;
    search->task = (struct store_task){
        .reads_only = true, .search_of = STR("w"), .fn = fn, .on_done = on_answer};
    store_run(scene->a.store, scene->f->loop, &search->task, scene);
}

static void wait_for(struct scene *scene, unsigned wanted) {
    scene->wanted = wanted;
    if (scene->answered < wanted) loop_run(scene->f->loop);
}

static bool look(struct database *db, const char *sql, struct err *e) {
    bool row;
    return database_has(db, sql, (struct sql_values){0}, &row, e);
}

#define LOSE "SELECT pg_terminate_backend(pg_backend_pid())"

#define SOON_MS 1000 /* one that failed within this time is asked again */

static bool lose_once(struct database *db, void *ctx, struct err *e) {
    struct scene *scene = ctx;
    bool first = atomic_fetch_add(&scene->runs, 1) == 0;
    return first ? look(db, LOSE, e) : look(db, "SELECT 1", e);
}

static bool lose_each_time(struct database *db, void *ctx, struct err *e) {
    struct scene *scene = ctx;
    atomic_fetch_add(&scene->runs, 1);
    return look(db, LOSE, e);
}

/* On a machine so busy that the loss was not noticed soon, it is tried anew. */
static void ask_soon(struct scene *scene, struct search_task *search,
                     bool (*fn)(struct database *db, void *ctx, struct err *e)) {
    uint64_t began_ms, took_ms;
    do {
        began_ms = clock_mono_ms();
        atomic_store(&scene->runs, 0);
        scene->answered = 0;
        ask(scene, search, fn);
        wait_for(scene, 1);
        took_ms = clock_mono_ms() - began_ms;
    } while (took_ms >= SOON_MS && atomic_load(&scene->runs) == 1);
}

static void one_whose_connection_was_lost_is_asked_once_more(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct search_task search;
    open_scene(&scene, *state);
    ask_soon(&scene, &search, lose_once);
    enum err_code once = scene.last;
    int once_runs = atomic_load(&scene.runs);
    ask_soon(&scene, &search, lose_each_time);
    close_scene(&scene);
    assert_int_equal(once, ERR_NONE);
    assert_int_equal(once_runs, 2);
    assert_int_not_equal(scene.last, ERR_NONE);
    assert_int_equal(atomic_load(&scene.runs), 2);
}

static bool lose_late(struct database *db, void *ctx, struct err *e) {
    struct scene *scene = ctx;
    atomic_fetch_add(&scene->runs, 1);
    return look(db, "SELECT pg_sleep(1.1)", e) && look(db, LOSE, e);
}

/* It would only take as long once more. */
static void one_that_took_long_to_fail_is_not_asked_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct search_task search;
    open_scene(&scene, *state);
    ask(&scene, &search, lose_late);
    wait_for(&scene, 1);
    assert_int_not_equal(scene.last, ERR_NONE);
    assert_int_equal(scene.refused, 0);
    assert_int_equal(atomic_load(&scene.runs), 1);
    close_scene(&scene);
}

static bool hold(struct database *db, void *ctx, struct err *e) {
    struct scene *scene = ctx;
    (void)db, (void)e;
    sem_wait(&scene->may_end);
    sem_post(&scene->may_end);
    return true;
}

static void one_more_than_an_owner_may_have_is_refused(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct search_task searches[SEARCHES_OWNER_MAX + 1];
    const struct err other = {.code = ERR_RESOURCE_EXHAUSTED, .text = "memory: too large"};
    open_scene(&scene, *state);
    for (size_t i = 0; i < ARRAY_LEN(searches); i++) ask(&scene, &searches[i], hold);
    wait_for(&scene, 1);
    assert_int_equal(scene.last, ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(scene.refused, 1);
    sem_post(&scene.may_end);
    wait_for(&scene, ARRAY_LEN(searches));
    assert_int_equal(scene.refused, 1);
    assert_false(memory_refused(&other));
    assert_false(memory_refused(NULL));
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_whose_connection_was_lost_is_asked_once_more),
        TEST(one_that_took_long_to_fail_is_not_asked_again),
        TEST(one_more_than_an_owner_may_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
