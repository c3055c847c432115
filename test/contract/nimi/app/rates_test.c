#include "contract/nimi/app/rates.h"

#include "base/attr.h"
#include "helper/assert_str.h"

#include <stdio.h>

#define A STR("app.a")
#define B STR("app.b")
#define START 5000

static int set_up(void **state) {
    *state = rates_new();
    return 0;
}

static int tear_down(void **state) {
    rates_free(*state);
    return 0;
}

/* To a new receiver each time, so that no pair is a loop. */
static enum rates_verdict send_anywhere(struct rates *rates, struct str from, unsigned i,
                                        uint64_t now_ms) {
    char to[32];
    snprintf(to, sizeof(to), "to.%u", i);
    return rates_send(rates, from, str_from(to), now_ms);
}

static void a_hundred_in_any_second(void **state) {
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(send_anywhere(*state, A, i, START + i * 5), RATES_OK);
    assert_int_equal(send_anywhere(*state, A, 100, START + 999), RATES_TOO_MANY);
    assert_int_equal(send_anywhere(*state, B, 100, START + 999), RATES_OK);
    assert_int_equal(send_anywhere(*state, A, 100, START + 1000), RATES_OK);
    assert_int_equal(send_anywhere(*state, A, 101, START + 1004), RATES_TOO_MANY);
    assert_int_equal(send_anywhere(*state, A, 101, START + 1005), RATES_OK);
}

static void a_pair_that_answers_itself_is_paused_for_a_minute(void **state) {
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(rates_send(*state, A, B, START + i), RATES_OK);
        assert_int_equal(rates_send(*state, B, A, START + i), RATES_OK);
    }
    assert_int_equal(rates_send(*state, A, B, START + 999), RATES_LOOP);
    assert_int_equal(rates_send(*state, B, A, START + 30000), RATES_LOOP);
    assert_int_equal(rates_send(*state, A, STR("app.c"), START + 30000), RATES_OK);
    assert_int_equal(rates_send(*state, A, B, START + 999 + 59999), RATES_LOOP);
    assert_int_equal(rates_send(*state, A, B, START + 999 + 60000), RATES_OK);
}

static void twenty_in_a_second_are_no_loop(void **state) {
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(rates_send(*state, A, B, START + i * 50), RATES_OK);
}

/* As upstream's own test has it: one asks, and the other streams what it has to say. */
static void a_stream_to_one_app_is_no_loop(void **state) {
    assert_int_equal(rates_send(*state, A, B, START), RATES_OK);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(rates_send(*state, B, A, START + i), RATES_OK);
    assert_int_equal(rates_send(*state, B, A, START + 100), RATES_TOO_MANY);
    assert_int_equal(rates_send(*state, A, B, START + 100), RATES_OK);
}

/* Each message is answered by two, so every third goes the other way. */
static void a_loop_that_multiplies_is_found_later(void **state) {
    for (unsigned i = 0; i < 20; i++) {
        struct str from = i % 2 ? B : A, to = i % 2 ? A : B;
        for (unsigned twice = 0; twice < 2; twice++)
            assert_int_equal(rates_send(*state, from, to, START + i), RATES_OK);
    }
    assert_int_equal(rates_send(*state, A, B, START + 20), RATES_LOOP);
}

static void an_app_may_send_to_itself(void **state) {
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rates_send(*state, A, A, START), RATES_OK);
    assert_int_equal(rates_send(*state, A, A, START), RATES_LOOP);
}

/* Invented names push out other names, and need no more memory. */
static void forgotten_senders_begin_again(void **state) {
    char name[32];
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(send_anywhere(*state, A, i, START), RATES_OK);
    assert_int_equal(send_anywhere(*state, A, 0, START), RATES_TOO_MANY);
    for (unsigned i = 0; i < RATES_KEYS_MAX; i++) {
        snprintf(name, sizeof(name), "x.%u", i);
        assert_int_equal(send_anywhere(*state, str_from(name), i, START), RATES_OK);
    }
    assert_int_equal(send_anywhere(*state, A, 0, START), RATES_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_hundred_in_any_second),
        TEST(a_pair_that_answers_itself_is_paused_for_a_minute),
        TEST(twenty_in_a_second_are_no_loop),
        TEST(a_stream_to_one_app_is_no_loop),
        TEST(a_loop_that_multiplies_is_found_later),
        TEST(an_app_may_send_to_itself),
        TEST(forgotten_senders_begin_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
