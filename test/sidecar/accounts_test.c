#include "sidecar/accounts.h"

#include "helper/assert_str.h"

struct scene {
    struct price_book *prices;
    struct accounts *accounts;
    struct spent found;
};

static void set_up(struct scene *scene) {
    static const struct price prices[] = {
        {STR_INIT("m"), 0, 1000000, 2000000, TOKENS_UNKNOWN, TOKENS_UNKNOWN, TOKENS_UNKNOWN}};
    scene->prices = price_book_new(prices, ARRAY_LEN(prices));
    scene->accounts = accounts_new(scene->prices);
    spent_init(&scene->found);
}

static void tear_down(struct scene *scene) {
    spent_done(&scene->found);
    accounts_free(scene->accounts);
    price_book_free(scene->prices);
}

static void post(const struct scene *scene, int64_t input, int64_t output) {
    const struct spent_usage usage = {STR("m"), input, output, input + output, 5};
    assert_true(accounts_post(scene->accounts, STR("t"), &usage));
}

static struct spent_usage read_it(const struct scene *scene, const struct account *account) {
    return accounts_read(scene->accounts, account, &scene->found, 0);
}

static void what_is_posted_is_summed_and_wins(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    struct account *account = accounts_open(scene.accounts, STR("t"));
    spent_find(&scene.found, &(struct spent_usage){STR("m"), 7, 7, 14, TOKENS_UNKNOWN});
    post(&scene, 1, 2);
    post(&scene, 10, 20);
    struct spent_usage usage = read_it(&scene, account);
    assert_int_equal(usage.input, 11);
    assert_int_equal(usage.total, 33);
    assert_int_equal(usage.cost_nano, 10);
    accounts_close(scene.accounts, account);
    tear_down(&scene);
}

static void two_with_one_trace_id_are_not_told_what_the_other_has_spent(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    struct account *first = accounts_open(scene.accounts, STR("t"));
    post(&scene, 1, 2);
    struct account *second = accounts_open(scene.accounts, STR("t"));
    post(&scene, 10, 20);
    assert_int_equal(read_it(&scene, second).total, TOKENS_UNKNOWN);
    assert_int_equal(read_it(&scene, second).cost_nano, TOKENS_UNKNOWN);
    assert_int_equal(read_it(&scene, second).model.len, 0);
    accounts_close(scene.accounts, second);
    assert_int_equal(read_it(&scene, first).total, TOKENS_UNKNOWN);
    accounts_close(scene.accounts, first);

    struct account *third = accounts_open(scene.accounts, STR("t"));
    assert_int_equal(read_it(&scene, third).total, TOKENS_UNKNOWN);
    post(&scene, 3, 4);
    assert_int_equal(read_it(&scene, third).total, 7);
    accounts_close(scene.accounts, third);
    tear_down(&scene);
}

static void what_its_own_answer_says_is_priced_even_then(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    struct account *first = accounts_open(scene.accounts, STR("t"));
    struct account *second = accounts_open(scene.accounts, STR("t"));
    post(&scene, 10, 20);
    spent_find(&scene.found, &(struct spent_usage){STR("m"), 3, 4, 7, TOKENS_UNKNOWN});
    assert_int_equal(read_it(&scene, first).total, 7);
    assert_int_equal(read_it(&scene, first).cost_nano, 11);
    accounts_close(scene.accounts, first);
    accounts_close(scene.accounts, second);
    tear_down(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_posted_is_summed_and_wins),
        cmocka_unit_test(two_with_one_trace_id_are_not_told_what_the_other_has_spent),
        cmocka_unit_test(what_its_own_answer_says_is_priced_even_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
