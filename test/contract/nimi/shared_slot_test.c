/* A call's slot among replicas: asked for, waited for, and given back whatever happens. */
#include "contract/nimi/shared_slot.h"

#include "fake/store_fake.h" /* named here: the build links it */
#include "helper/assert_str.h"
#include "loop/loop.h"
#include "store/changes.h"

#include <stdio.h>

static struct loop *loop;
static struct store *store;
static size_t held;

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_share(store);
    fake_store_always_commit(store);
    held = 0;
    return 0;
}

static void settle(void) {
    for (size_t i = 0; i < 8; i++) loop_turn(loop);
}

static int teardown(void **state) {
    (void)state;
    settle();
    fake_store_free(store);
    loop_free(loop);
    return 0;
}

static void on_held(void *ctx) {
    (void)ctx;
    held++;
}

static struct shared_slot *ask(void) {
    char app[] = "x";
    struct shared_slot *slot =
        shared_slot_take(&(struct shared_slot_options){.store = store,
                                                       .loop = loop,
                                                       .pool = STR("p"),
                                                       .app = str_from(app),
                                                       .all_max = 1,
                                                       .app_max = 1,
                                                       .background_max = 1,
                                                       .on_held = on_held});
    app[0] = '#';
    return slot;
}

static int64_t rows(const char *where) {
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM slot WHERE %s", where);
    return fake_store_number(store, sql);
}

#define OTHER                                                                                  \
    "INSERT INTO slot(holder, number, pool, app, background, held)"                            \
    " VALUES(2, 1, CAST('p' AS BLOB), CAST('x' AS BLOB), 0, 1)"

static void a_slot_is_held_and_given_back(void **state) {
    (void)state;
    struct shared_slot *slot = ask();
    assert_int_equal(held, 0); /* never before it returns */
    settle();
    assert_int_equal(held, 1);
    assert_int_equal(rows("held = 1 AND app = CAST('x' AS BLOB)"), 1);
    shared_slot_leave(slot);
    settle();
    assert_int_equal(rows("1"), 0);
}

static void it_is_waited_for_until_another_is_given_back(void **state) {
    (void)state;
    for (int heard = 0; heard < 2; heard++) { /* or the notification was lost */
        held = 0;
        fake_store_sql(store, OTHER);
        struct shared_slot *slot = ask();
        settle();
        assert_int_equal(held, 0);
        assert_int_equal(rows("held = 0"), 1); /* it has its place in the line */
        fake_store_sql(store, "DELETE FROM slot WHERE holder = 2");
        if (heard)
            changes_tell(store_changes(store), CHANGE_SLOTS);
        else
            loop_advance(loop, 500);
        settle();
        assert_int_equal(held, 1);
        shared_slot_leave(slot);
        settle();
    }
}

static void a_store_that_is_away_is_asked_again(void **state) {
    (void)state;
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    struct shared_slot *slot = ask();
    settle();
    assert_int_equal(held, 0);
    fake_store_always_commit(store);
    loop_advance(loop, 500);
    settle();
    assert_int_equal(held, 1);
    shared_slot_leave(slot);
}

/* While it asks, and while it waits. */
static void one_that_is_left_before_it_is_held_leaves_nothing(void **state) {
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        fake_store_sql(store, OTHER);
        struct shared_slot *slot = ask();
        if (waits) settle();
        shared_slot_leave(slot);
        settle();
        assert_int_equal(held, 0);
        assert_int_equal(rows("holder <> 2"), 0);
        fake_store_sql(store, "DELETE FROM slot");
    }
}

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const moves[SHARED_SLOT_STATE_COUNT] = {
        /* asking waiting held left */
        [SHARED_SLOT_ASKING] = ".###",
        [SHARED_SLOT_WAITING] = "#..#",
        [SHARED_SLOT_HELD] = "...#",
        [SHARED_SLOT_LEFT] = "....",
    };
    for (unsigned from = 0; from < SHARED_SLOT_STATE_COUNT; from++) {
        for (unsigned to = 0; to < SHARED_SLOT_STATE_COUNT; to++)
            assert_int_equal(states_allow(shared_slot_states, from, to),
                             moves[from][to] == '#');
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        TEST(a_slot_is_held_and_given_back),
        TEST(it_is_waited_for_until_another_is_given_back),
        TEST(a_store_that_is_away_is_asked_again),
        TEST(one_that_is_left_before_it_is_held_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
