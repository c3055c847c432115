#include "base/striped.h"

#include "base/map.h"
#include "helper/assert_str.h"

#include <pthread.h>
#include <stdio.h>

struct stripe {
    size_t count;
    pthread_mutex_t lock; /* wherever it stands */
};

#define STRIPES 16
#define THREADS 4
#define ROUNDS 20000
#define KEYS 7

static struct str key_of(size_t number, char room[32]) {
    snprintf(room, 32, "key %zu", number);
    return str_from(room);
}

static void a_key_is_always_in_the_same_stripe(void **state) {
    (void)state;
    char room[32], other[32];
    struct striped *striped = STRIPED_NEW(STRIPES, struct stripe);
    for (size_t i = 0; i < 100; i++) {
        const struct stripe *stripe = striped_of(striped, key_of(i, room));
        assert_ptr_equal(striped_of(striped, key_of(i, other)), stripe);
    }
    striped_free(striped);
}

static void keys_lie_in_all_stripes_and_a_walk_meets_each_once(void **state) {
    (void)state;
    char room[32];
    size_t stripes = 0, all = 0;
    struct striped *striped = STRIPED_NEW(STRIPES, struct stripe);
    for (size_t i = 0; i < 1000; i++) {
        struct stripe *stripe = striped_lock(striped, key_of(i, room));
        stripe->count++;
        pthread_mutex_unlock(&stripe->lock);
    }
    for (const struct stripe *stripe; (stripe = striped_at(striped, stripes)); stripes++) {
        assert_in_range(stripe->count, 1, 200); /* 62 or so each */
        all += stripe->count;
    }
    assert_int_equal(stripes, STRIPES);
    assert_int_equal(all, 1000);
    striped_free(striped);
}

/* Keys that end alike in the keyed hash can only be found by who knows its secret. */
static void the_stripe_is_chosen_by_the_hash_with_a_secret(void **state) {
    (void)state;
    char room[32];
    struct striped *striped = STRIPED_NEW(STRIPES, struct stripe);
    for (size_t i = 0; i < 100; i++) {
        struct str key = key_of(i, room);
        assert_ptr_equal(striped_of(striped, key),
                         striped_at(striped, map_hash(key) >> 32 & (STRIPES - 1)));
    }
    striped_free(striped);
}

static void one_stripe_is_enough(void **state) {
    (void)state;
    struct striped *striped = STRIPED_NEW(1, struct stripe);
    struct stripe *stripe = striped_lock(striped, STR_EMPTY);
    pthread_mutex_unlock(&stripe->lock);
    assert_ptr_equal(striped_of(striped, STR("any")), stripe);
    assert_null(striped_at(striped, 1));
    striped_free(striped);
    striped_free(NULL);
}

static void *count_up(void *ctx) {
    char room[32];
    for (size_t i = 0; i < ROUNDS; i++) {
        struct stripe *stripe = striped_lock(ctx, key_of(i % KEYS, room));
        stripe->count++;
        pthread_mutex_unlock(&stripe->lock);
    }
    return NULL;
}

static void threads_that_hold_the_lock_lose_nothing(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    size_t all = 0, at = 0;
    struct striped *striped = STRIPED_NEW(STRIPES, struct stripe);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, striped), 0);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (const struct stripe *stripe; (stripe = striped_at(striped, at)); at++)
        all += stripe->count;
    assert_int_equal(all, THREADS * ROUNDS);
    striped_free(striped);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_always_in_the_same_stripe),
        cmocka_unit_test(keys_lie_in_all_stripes_and_a_walk_meets_each_once),
        cmocka_unit_test(the_stripe_is_chosen_by_the_hash_with_a_secret),
        cmocka_unit_test(one_stripe_is_enough),
        cmocka_unit_test(threads_that_hold_the_lock_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
