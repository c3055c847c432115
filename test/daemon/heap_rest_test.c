/* heap_rest beside a real store, with two loops that the test turns. */
#include "daemon/heap_rest.h"

#include "base/heap.h"
#include "base/mem.h"
#include "store/fixture.h"

#include <sched.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_IS_GLIBC false /* a sanitizer has its own, which keeps what is freed */
#else
#define HEAP_IS_GLIBC true
#endif

#define LOOK_MS 500
#define TIDY_FIRST_MS 2000
#define TIDY_SECOND_MS 4000
#define TIDY_MS 15000
#define TIDY_AFTER_BURST_MS 250
#define TRIM_FIRST_MS 1000
#define TRIM_AGAIN_MS 300
#define LOOPS 2

struct scene {
    struct fixture store;
    struct loop *loops[LOOPS]; /* the first is home */
    struct heap_rest *rest;
    size_t tidied, rested, unused;
    size_t trims, trims_wanted;
};

static size_t on_tidy(void *ctx) {
    struct scene *scene = ctx;
    scene->tidied++;
    return scene->unused;
}

static uint64_t on_trim(void *ctx) {
    struct scene *scene = ctx;
    scene->trims++;
    return --scene->trims_wanted ? TRIM_AGAIN_MS : 0;
}

static void on_rested(void *ctx) {
    ((struct scene *)ctx)->rested++;
}

static int make_scene(void **state) {
    struct scene *scene = mem_zero(1, sizeof(*scene));
    fixture_init(&scene->store);
    scene->store.durability = STORE_OFF;
    fixture_open(&scene->store);
    for (size_t i = 0; i < LOOPS; i++) scene->loops[i] = loop_new_fake();
    scene->rest = heap_rest_new(&(struct heap_rest_options){.home = scene->loops[0],
                                                            .loops = scene->loops,
                                                            .loop_count = LOOPS,
                                                            .store = scene->store.store,
                                                            .tidy = on_tidy,
                                                            .trim = on_trim,
                                                            .trim_ms = TRIM_FIRST_MS,
                                                            .rested = on_rested,
                                                            .ctx = scene});
    *state = scene;
    return 0;
}

static void turn_all(struct scene *scene) {
    for (size_t i = 0; i < LOOPS; i++) loop_turn(scene->loops[i]);
}

static int drop_scene(void **state) {
    struct scene *scene = *state;
    heap_rest_stop(scene->rest);
    turn_all(scene);
    fixture_close(&scene->store);
    heap_rest_wait(scene->rest);
    turn_all(scene);
    heap_rest_free(scene->rest);
    for (size_t i = 0; i < LOOPS; i++) loop_free(scene->loops[i]);
    fixture_done(&scene->store);
    free(scene);
    return 0;
}

/* The store's thread and the one that gives back take their time. */
static void turn_until_rested(struct scene *scene, size_t times) {
    while (scene->rested < times) {
        turn_all(scene);
        sched_yield();
    }
}

static void burst(size_t bytes) {
    mem_count(bytes);
    mem_uncount(bytes);
}

static void after_a_burst_memory_is_given_back(void **state) {
    struct scene *scene = *state;
    heap_rest_start(scene->rest);
    for (size_t times = 1; times <= 3; times++) {
        burst(8 * MIB);
        burst(8 * MIB);
        turn_all(scene);
        loop_advance(scene->loops[0], LOOK_MS);
        turn_until_rested(scene, times);
    }
}

/* So that a rest that follows is found at once; after that the looks are as far apart as before. */
static void after_a_burst_the_next_look_comes_soon(void **state) {
    struct scene *scene = *state;
    heap_rest_start(scene->rest);
    burst(8 * MIB);
    burst(8 * MIB);
    turn_all(scene);
    loop_advance(scene->loops[0], LOOK_MS);
    turn_until_rested(scene, 1);
    loop_advance(scene->loops[0], TIDY_AFTER_BURST_MS - 1);
    assert_int_equal(scene->tidied, 0);
    loop_advance(scene->loops[0], 1);
    assert_int_equal(scene->tidied, 1);
    loop_advance(scene->loops[0], TIDY_SECOND_MS);
    assert_int_equal(scene->tidied, 2);
}

static void a_burst_that_goes_on_is_left_alone(void **state) {
    struct scene *scene = *state;
    heap_rest_start(scene->rest);
    mem_count(8 * MIB);
    mem_uncount(6 * MIB);
    turn_all(scene);
    mem_count(6 * MIB);
    loop_advance(scene->loops[0], 10 * LOOK_MS); /* looks once, and waits for the next end */
    turn_all(scene);
    assert_int_equal(scene->rested, 0);
    mem_uncount(8 * MIB);
    turn_all(scene);
    loop_advance(scene->loops[0], LOOK_MS);
    turn_until_rested(scene, 1);
}

#define MANY 4096

static void take_many(char **blocks) {
    for (size_t i = 0; i < MANY; i++) memset(blocks[i] = mem_alloc(KIB), 1, KIB);
}

static void free_many(char **blocks) {
    for (size_t i = 0; i < MANY; i++) free(blocks[i]);
}

/* If a look began to give back, this is the end of it: the store's thread has done what was asked of
 * it before the question, and the thread that gives back has ended. */
static void turn_whatever_began(struct scene *scene) {
    turn_all(scene);
    assert_answer(&scene->store, (struct store_load){.question = STORE_UNFINISHED}, "");
    turn_all(scene);
    heap_rest_wait(scene->rest);
    turn_all(scene);
}

static void unused_memory_is_tidied_and_then_given_back(void **state) {
    struct scene *scene = *state;
    static char *blocks[MANY];
    heap_rest_start(scene->rest);
    heap_give_back(NULL, 0);
    take_many(blocks); /* what was added counts as well, also to the heap of a sanitizer */
    loop_advance(scene->loops[0], TIDY_FIRST_MS);
    turn_until_rested(scene, 1);
    assert_int_equal(scene->tidied, 1);
    loop_advance(scene->loops[0], TIDY_SECOND_MS);
    assert_int_equal(scene->tidied, 2);
    loop_advance(scene->loops[0], TIDY_MS - 1);
    assert_int_equal(scene->tidied, 2);
    loop_advance(scene->loops[0], 1);
    assert_int_equal(scene->tidied, 3);
    free_many(blocks);
}

static void giving_back_frees_nothing_that_is_worth_a_second_time(void **state) {
    struct scene *scene = *state;
    if (!HEAP_IS_GLIBC) skip();
    scene->unused = 1;
    heap_rest_start(scene->rest);
    loop_advance(scene->loops[0], TIDY_FIRST_MS);
    turn_until_rested(scene, 1);
    scene->unused = 0;
    for (size_t look = 0; look < 5; look++) {
        loop_advance(scene->loops[0], TIDY_MS);
        turn_all(scene);
    }
    turn_whatever_began(scene); /* only now: the question takes memory */
    assert_int_equal(scene->rested, 1);
}

static void one_thing_that_goes_for_its_age_is_enough(void **state) {
    struct scene *scene = *state;
    scene->unused = 1;
    loop_advance(scene->loops[0], TIDY_MS); /* not yet */
    heap_rest_start(scene->rest);
    for (size_t times = 1; times <= 5; times++) { /* nothing else was freed in between */
        loop_advance(scene->loops[0], TIDY_MS);
        turn_until_rested(scene, times);
    }
}

static void what_is_too_much_is_trimmed_until_none_is_left(void **state) {
    struct scene *scene = *state;
    heap_rest_start(scene->rest);
    loop_advance(scene->loops[0], 10 * LOOK_MS);
    assert_int_equal(scene->trims, 0);
    for (size_t round = 1; round <= 2; round++) {
        scene->trims_wanted = 3;
        heap_rest_trim(scene->rest);
        turn_all(scene);
        loop_advance(scene->loops[0], TRIM_FIRST_MS - 1);
        assert_int_equal(scene->trims, round * 3 - 3);
        loop_advance(scene->loops[0], 1);
        assert_int_equal(scene->trims, round * 3 - 2);
        loop_advance(scene->loops[0], TRIM_AGAIN_MS);
        assert_int_equal(scene->trims, round * 3 - 1);
        loop_advance(scene->loops[0], 10 * TRIM_AGAIN_MS);
        assert_int_equal(scene->trims, round * 3);
    }
}

static void after_a_stop_nothing_is_trimmed(void **state) {
    struct scene *scene = *state;
    scene->trims_wanted = 3;
    heap_rest_trim(scene->rest); /* before the loops run: it waits for its time */
    turn_all(scene);
    heap_rest_start(scene->rest);
    loop_advance(scene->loops[0], TRIM_FIRST_MS);
    assert_int_equal(scene->trims, 1);
    heap_rest_stop(scene->rest);
    loop_advance(scene->loops[0], TRIM_AGAIN_MS);
    heap_rest_trim(scene->rest); /* was on its way */
    turn_all(scene);
    loop_advance(scene->loops[0], TRIM_FIRST_MS);
    assert_int_equal(scene->trims, 1);
}

static void before_the_loops_run_no_server_is_asked(void **state) {
    struct scene *scene = *state;
    burst(8 * MIB);
    loop_advance(scene->loops[0], TIDY_FIRST_MS + TIDY_SECOND_MS);
    assert_int_equal(scene->tidied, 2);
    assert_int_equal(scene->rested, 0);
}

static void a_stop_ends_a_look_at_any_moment(void **state) {
    struct scene *scene = *state;
    heap_rest_start(scene->rest);
    burst(8 * MIB);
    turn_all(scene);
    loop_advance(scene->loops[0], LOOK_MS); /* the loops and the store are asked; the rest is
                                               drop_scene()'s */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_scene, drop_scene)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(after_a_burst_memory_is_given_back),
        TEST(after_a_burst_the_next_look_comes_soon),
        TEST(a_burst_that_goes_on_is_left_alone),
        TEST(unused_memory_is_tidied_and_then_given_back),
        TEST(giving_back_frees_nothing_that_is_worth_a_second_time),
        TEST(one_thing_that_goes_for_its_age_is_enough),
        TEST(what_is_too_much_is_trimmed_until_none_is_left),
        TEST(after_a_stop_nothing_is_trimmed),
        TEST(before_the_loops_run_no_server_is_asked),
        TEST(a_stop_ends_a_look_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
