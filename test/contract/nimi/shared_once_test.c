/* A write that is made once, among replicas: claimed, waited for, and free again when it failed. */
#include "contract/nimi/shared_once.h"

#include "base/clock.h"
#include "fake/store_fake.h" /* named here: the build links it */
#include "helper/assert_str.h"
#include "loop/loop.h"
#include "store/changes.h"

#include <stdio.h>

static const uint8_t print[ONCE_REPLY_KEY_BYTES] = {1}, other[ONCE_REPLY_KEY_BYTES] = {2};
static struct loop *loop;
static struct store *store;
static struct answer {
    size_t count;
    enum once_claimed found;
    bool failed;
    char reply[32];
} answer;

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_share(store);
    fake_store_always_commit(store);
    answer = (struct answer){0};
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

static void on_answer(enum once_claimed found, struct str reply, const struct err *failed,
                      void *ctx) {
    (void)ctx;
    answer.count++;
    answer.found = found;
    answer.failed = failed != NULL;
    snprintf(answer.reply, sizeof(answer.reply), STR_FMT, STR_ARG(reply));
}

static struct shared_once *claim(const uint8_t *of) {
    char key[] = "k";
    struct shared_once *once =
        shared_once_start(&(struct shared_once_options){.store = store,
                                                        .loop = loop,
                                                        .key = str_from(key),
                                                        .print = of,
                                                        .on_answer = on_answer});
    key[0] = '#';
    return once;
}

static size_t kept_count;

static void on_kept(void *ctx) {
    (void)ctx;
    kept_count++;
}

static void keep(struct shared_once *once, const char *reply, int64_t until_ms) {
    kept_count = 0;
    shared_once_keep(once, str_from(reply), until_ms, on_kept);
    assert_int_equal(kept_count, 0); /* never before it returns */
    settle();
    assert_int_equal(kept_count, 1);
}

static int64_t rows(void) {
    return fake_store_number(store, "SELECT count(*) FROM once_reply");
}

static void one_makes_it_and_the_next_has_its_reply(void **state) {
    (void)state;
    struct shared_once *first = claim(print);
    assert_int_equal(answer.count, 0); /* never before it returns */
    settle();
    assert_int_equal(answer.found, ONCE_NEW);
    claim(print);
    settle();
    assert_int_equal(answer.count, 1); /* it waits */
    keep(first, "made", clock_unix_ms() + 60000);
    changes_tell(store_changes(store), CHANGE_FREED);
    settle();
    assert_int_equal(answer.count, 2);
    assert_int_equal(answer.found, ONCE_KEPT);
    assert_string_equal(answer.reply, "made");
    claim(other);
    settle();
    assert_int_equal(answer.count, 3);
    assert_int_equal(answer.found, ONCE_OTHER);
}

static void a_key_is_free_when_its_write_failed_or_its_time_is_over(void **state) {
    (void)state;
    struct shared_once *first = claim(print);
    settle();
    struct shared_once *second = claim(print);
    settle();
    shared_once_end(first);
    loop_advance(loop, 500); /* the notification was lost */
    settle();
    assert_int_equal(answer.count, 2);
    assert_int_equal(answer.found, ONCE_NEW);
    keep(second, "made", clock_unix_ms() - 1);
    struct shared_once *third = claim(other);
    settle();
    assert_int_equal(answer.found, ONCE_NEW);
    shared_once_end(third);
    settle();
    assert_int_equal(rows(), 0);
}

/* While it asks, and while it waits. */
static void one_that_is_ended_before_its_answer_leaves_nothing(void **state) {
    (void)state;
    struct shared_once *asking = claim(print);
    shared_once_end(asking);
    settle();
    assert_int_equal(answer.count, 0);
    assert_int_equal(rows(), 0);
    struct shared_once *first = claim(print);
    settle();
    struct shared_once *waiting = claim(print);
    settle();
    shared_once_end(waiting);
    settle();
    assert_int_equal(answer.count, 1);
    assert_int_equal(rows(), 1); /* that of the one that makes it */
    shared_once_end(first);
    settle();
    assert_int_equal(rows(), 0);
}

static void without_the_store_nobody_knows(void **state) {
    (void)state;
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    claim(print);
    settle();
    assert_int_equal(answer.count, 1);
    assert_true(answer.failed);
}

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const moves[SHARED_ONCE_STATE_COUNT] = {
        /* asking waiting mine keeping ended */
        [SHARED_ONCE_ASKING] = ".##.#", [SHARED_ONCE_WAITING] = "#...#",
        [SHARED_ONCE_MINE] = "...##",   [SHARED_ONCE_KEEPING] = "....#",
        [SHARED_ONCE_ENDED] = ".....",
    };
    for (unsigned from = 0; from < SHARED_ONCE_STATE_COUNT; from++) {
        for (unsigned to = 0; to < SHARED_ONCE_STATE_COUNT; to++)
            assert_int_equal(states_allow(shared_once_states, from, to),
                             moves[from][to] == '#');
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        TEST(one_makes_it_and_the_next_has_its_reply),
        TEST(a_key_is_free_when_its_write_failed_or_its_time_is_over),
        TEST(one_that_is_ended_before_its_answer_leaves_nothing),
        TEST(without_the_store_nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
