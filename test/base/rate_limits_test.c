#include "base/rate_limits.h"

#include "helper/assert_str.h"

#include <pthread.h>

static struct rate_limit limit_of(const char *text) {
    struct rate_limit limit;
    struct err e;
    assert_true(rate_limit_read(str_from(text), &limit, &e));
    return limit;
}

static bool take(struct rate_limits *rates, enum rate_scope scope, const char *key) {
    struct rate_room room;
    return rate_limits_take(rates, scope, str_from(key), 1000, &room);
}

static void each_scope_counts_by_itself(void **state) {
    (void)state;
    struct rate_limits *rates = rate_limits_new((struct rate_limit[RATE_SCOPES]){
        [RATE_ADDRESS] = limit_of("1/h"), [RATE_AGENT] = limit_of("2/h")});
    assert_true(take(rates, RATE_ADDRESS, "a"));
    assert_false(take(rates, RATE_ADDRESS, "a"));
    assert_true(take(rates, RATE_AGENT, "a"));
    assert_true(take(rates, RATE_AGENT, "a"));
    assert_false(take(rates, RATE_AGENT, "a"));
    for (int i = 0; i < 100; i++) assert_true(take(rates, RATE_TOKEN, "a"));
    rate_limits_free(rates);
}

static void what_has_no_key_is_not_limited(void **state) {
    (void)state;
    struct rate_limits *rates = rate_limits_new(
        (struct rate_limit[RATE_SCOPES]){limit_of("1/h"), limit_of("1/h"), limit_of("1/h")});
    for (int i = 0; i < 3; i++) assert_true(take(rates, RATE_TOKEN, ""));
    for (int i = 0; i < 3; i++) assert_true(take(NULL, RATE_TOKEN, "a"));
    rate_limits_free(rates);
}

/* A reload that leaves a limit as it was gives nobody a new burst. */
static void a_limit_that_stays_keeps_its_buckets(void **state) {
    (void)state;
    struct rate_limit limits[RATE_SCOPES] = {limit_of("1/h"), limit_of("1/h"), limit_of("off")};
    struct rate_limits *rates = rate_limits_new(limits);
    assert_true(take(rates, RATE_ADDRESS, "a"));
    assert_true(take(rates, RATE_TOKEN, "a"));
    limits[RATE_TOKEN] = limit_of("2/h");
    limits[RATE_AGENT] = limit_of("1/h");
    rate_limits_use(rates, limits);
    assert_false(take(rates, RATE_ADDRESS, "a"));
    assert_true(take(rates, RATE_TOKEN, "a"));
    assert_true(take(rates, RATE_AGENT, "a"));
    assert_false(take(rates, RATE_AGENT, "a"));
    limits[RATE_ADDRESS] = limit_of("off");
    rate_limits_use(rates, limits);
    assert_true(take(rates, RATE_ADDRESS, "a"));
    rate_limits_free(rates);
}

struct taker {
    struct rate_limits *rates;
    pthread_t thread;
    size_t taken;
};

static void *take_many(void *ctx) {
    struct taker *taker = ctx;
    for (int i = 0; i < 5000; i++) taker->taken += take(taker->rates, RATE_TOKEN, "a");
    return NULL;
}

/* Loops share the limits, and a reload comes in the middle. */
static void two_loops_get_no_more_than_one(void **state) {
    (void)state;
    struct rate_limit limits[RATE_SCOPES] = {limit_of("5/h"), limit_of("1000/h"), {0}};
    struct rate_limits *rates = rate_limits_new(limits);
    struct taker takers[2] = {{.rates = rates}, {.rates = rates}};
    for (size_t i = 0; i < ARRAY_LEN(takers); i++)
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
    for (int i = 0; i < 100; i++) {
        limits[RATE_ADDRESS].count = i % 2 ? 1 : 2;
        rate_limits_use(rates, limits);
    }
    for (size_t i = 0; i < ARRAY_LEN(takers); i++) pthread_join(takers[i].thread, NULL);
    assert_int_equal(takers[0].taken + takers[1].taken, 1000);
    rate_limits_free(rates);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_scope_counts_by_itself),
        cmocka_unit_test(what_has_no_key_is_not_limited),
        cmocka_unit_test(a_limit_that_stays_keeps_its_buckets),
        cmocka_unit_test(two_loops_get_no_more_than_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
