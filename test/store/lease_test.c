#include "store/lease.h"

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"

#include <stdio.h>
#include <stdlib.h>

/* The other replica is number 2, this one number 1. */
struct scene {
    struct loop *loop;
    struct store *store;
    struct lease_request request;
    size_t answers;
    enum err_code failed;
};

static int set_up(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    scene->loop = loop_new_fake();
    scene->store = fake_store_new();
    fake_store_always_commit(scene->store);
    fake_store_share(scene->store);
    *state = scene;
    return 0;
}

static int tear_down(void **state) {
    struct scene *scene = *state;
    loop_turn(scene->loop);
    loop_free(scene->loop);
    fake_store_free(scene->store);
    free(scene);
    return 0;
}

static struct lease_key key_of(const char *name) {
    const struct str text = str_from(name);
    return lease_key(LEASE_OF_SESSION, &text, 1);
}

static void on_asked(struct lease_request *request, const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    assert_ptr_equal(request, &scene->request);
    scene->answers++;
    scene->failed = failed ? failed->code : ERR_NONE;
}

static bool ask(struct scene *scene, const char *name, bool recovers) {
    size_t answers = scene->answers;
    scene->request = (struct lease_request){
        .key = key_of(name), .recovers = recovers, .on_done = on_asked, .ctx = scene};
    lease_ask(scene->store, scene->loop, &scene->request);
    assert_int_equal(scene->answers, answers);
    loop_turn(scene->loop);
    assert_int_equal(scene->answers, answers + 1);
    return scene->request.held;
}

static void give_to(struct scene *scene, const char *holder) {
    char sql[64];
    snprintf(sql, sizeof(sql), "UPDATE lease SET holder = %s", holder);
    fake_store_sql(scene->store, sql);
}

static bool same(struct lease_key a, struct lease_key b) {
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

static void no_two_lists_of_texts_share_a_key(void **state) {
    (void)state;
    const struct str lists[][3] = {{STR("ab"), STR("c"), STR("")},
                                   {STR("a"), STR("bc"), STR("")},
                                   {STR("abc"), STR(""), STR("")},
                                   {STR(""), STR("abc"), STR("")},
                                   {STR(""), STR(""), STR("abc")}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        for (size_t n = 0; n < ARRAY_LEN(lists); n++)
            assert_int_equal(same(lease_key(LEASE_OF_SESSION, lists[i], 3),
                                  lease_key(LEASE_OF_SESSION, lists[n], 3)),
                             i == n);
        assert_false(same(lease_key(LEASE_OF_SESSION, lists[i], 3),
                          lease_key(LEASE_OF_KEY, lists[i], 3)));
        assert_false(same(lease_key(LEASE_OF_SESSION, lists[i], 3),
                          lease_key(LEASE_OF_SESSION, lists[i], 2)));
    }
}

static void it_is_had_once_and_asked_for_at_will(void **state) {
    struct scene *scene = *state;
    assert_true(ask(scene, "s", false));
    assert_true(ask(scene, "s", false));
    assert_true(ask(scene, "t", false));
    assert_int_equal(fake_store_number(scene->store, "SELECT count(*) FROM lease"), 2);
}

static void another_one_s_has_its_name(void **state) {
    struct scene *scene = *state;
    assert_true(ask(scene, "s", false));
    give_to(scene, "2");
    assert_false(ask(scene, "s", false));
    assert_string_equal(scene->request.holder, "other");
    assert_false(ask(scene, "s", true));
}

/* Below zero it waits for the end of a dead replica's turns. */
static void one_that_waits_is_for_a_run_that_waits_here(void **state) {
    struct scene *scene = *state;
    assert_true(ask(scene, "s", false));
    give_to(scene, "-2");
    assert_false(ask(scene, "s", false));
    assert_false(ask(scene, "s", true));
    assert_string_equal(scene->request.holder, "other");
    give_to(scene, "-1");
    assert_false(ask(scene, "s", false));
    assert_string_equal(scene->request.holder, "this");
    assert_true(ask(scene, "s", true));
    assert_int_equal(fake_store_number(scene->store, "SELECT holder FROM lease"), 1);
}

static void only_one_s_own_can_be_given_back(void **state) {
    struct scene *scene = *state;
    const struct lease_key key = key_of("s");
    assert_true(ask(scene, "s", false));
    give_to(scene, "2");
    lease_give_back(scene->store, scene->loop, &key);
    assert_int_equal(fake_store_number(scene->store, "SELECT count(*) FROM lease"), 1);
    give_to(scene, "1");
    lease_give_back(scene->store, scene->loop, &key);
    assert_int_equal(fake_store_number(scene->store, "SELECT count(*) FROM lease"), 0);
    assert_true(ask(scene, "s", false));
}

static void a_store_that_cannot_answer_says_so(void **state) {
    struct scene *scene = *state;
    const struct lease_key key = key_of("s");
    fake_store_always_lose(scene->store, ERR_UNAVAILABLE);
    assert_false(ask(scene, "s", false));
    assert_int_equal(scene->failed, ERR_UNAVAILABLE);
    lease_give_back(scene->store, scene->loop, &key);
    loop_turn(scene->loop);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_lists_of_texts_share_a_key),
        TEST(it_is_had_once_and_asked_for_at_will),
        TEST(another_one_s_has_its_name),
        TEST(one_that_waits_is_for_a_run_that_waits_here),
        TEST(only_one_s_own_can_be_given_back),
        TEST(a_store_that_cannot_answer_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
