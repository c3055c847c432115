/* The usual cost of a call: a percentile of the newest calls, by agent and model. */
#include "budget/usual.h"

#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "loop/loop.h"

#include <stdio.h>

static struct str a, b, m;

static int setup(void **state) {
    (void)state;
    a = STR("a");
    b = STR("b");
    m = STR("m");
    return 0;
}

static void assert_usual(struct usuals *usuals, struct str agent, struct str model,
                         size_t known, int64_t cost, int64_t tokens) {
    struct usual usual = usuals_of(usuals, agent, model);
    assert_int_equal(usual.known, known);
    assert_int_equal(usual.amount.cost_nano, cost);
    assert_int_equal(usual.amount.tokens, tokens);
}

static void nineteen_of_twenty_cost_no_more(void **state) {
    (void)state;
    struct usuals *usuals = usuals_new(NULL, NULL);
    assert_usual(usuals, a, m, 0, 0, 0);
    for (int i = 1; i <= 20; i++) usuals_add(usuals, a, m, (struct amount){i * 10, 100 - i});
    assert_usual(usuals, a, m, 20, 190, 98);
    assert_usual(usuals, b, m, 0, 0, 0);
    assert_usual(usuals, a, STR("n"), 0, 0, 0);
    usuals_add(usuals, STR("am"), STR_EMPTY, (struct amount){1, 1}); /* no other's key */
    assert_usual(usuals, a, m, 20, 190, 98);
    usuals_free(usuals);
}

static void old_calls_are_forgotten(void **state) {
    (void)state;
    struct usuals *usuals = usuals_new(NULL, NULL);
    for (int i = 0; i < USUAL_KEPT; i++) usuals_add(usuals, a, m, (struct amount){1000, 1000});
    for (int i = 0; i < USUAL_KEPT; i++) usuals_add(usuals, a, m, (struct amount){7, 8});
    assert_usual(usuals, a, m, USUAL_KEPT, 7, 8);
    usuals_free(usuals);
}

static void pairs_without_end_stay_unknown(void **state) {
    (void)state;
    struct usuals *usuals = usuals_new(NULL, NULL);
    for (int i = 0; i <= USUAL_PAIRS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        usuals_add(usuals, str_from(name), m, (struct amount){5, 5});
        assert_usual(usuals, str_from(name), m, i < USUAL_PAIRS, i < USUAL_PAIRS ? 5 : 0,
                     i < USUAL_PAIRS ? 5 : 0);
    }
    usuals_free(usuals);
}

static void what_is_known_stays_over_a_restart(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct store *store = fake_store_new();
    fake_store_always_commit(store);
    struct usuals *usuals = usuals_new(store, loop);
    loop_turn(loop);
    for (int i = 1; i <= 24; i++) usuals_add(usuals, a, m, (struct amount){i, 1});
    for (int i = 1; i <= 3; i++) usuals_add(usuals, b, m, (struct amount){2, i});
    loop_turn(loop);
    usuals_free(usuals);
    usuals = usuals_new(store, loop);
    assert_usual(usuals, a, m, 0, 0, 0); /* until the store has answered */
    loop_turn(loop);
    assert_usual(usuals, a, m, 24, 23, 1);
    assert_usual(usuals, b, m, 3, 2, 3);
    usuals_free(usuals);
    usuals = usuals_new(store, loop);
    usuals_add(usuals, b, m, (struct amount){9, 9}); /* it ends before the store answers */
    loop_turn(loop);
    assert_usual(usuals, b, m, 1, 9, 9);
    usuals_free(usuals);
    usuals_free(usuals_new(store, loop));
    loop_turn(loop);
    fake_store_free(store);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nineteen_of_twenty_cost_no_more, setup),
        cmocka_unit_test_setup(old_calls_are_forgotten, setup),
        cmocka_unit_test_setup(pairs_without_end_stay_unknown, setup),
        cmocka_unit_test_setup(what_is_known_stays_over_a_restart, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
