/* Runs that wait for a human: who finds them, in which order, and that nobody is found twice.
 */
#include "run/parking.h"

#include "helper/assert_str.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static struct session_name named(const char *workspace, const char *user, const char *session) {
    return (struct session_name){str_from(workspace), user ? str_from(user) : ANY_USER,
                                 str_from(session)};
}

static void add(struct parking *parking, struct parked *parked, const char *workspace,
                const char *user, const char *session) {
    *parked = (struct parked){.name = named(workspace, user, session)};
    parking_add(parking, parked);
}

static struct parked *take(struct parking *parking, const char *workspace, const char *user,
                           const char *session) {
    struct session_name name = named(workspace, user, session);
    bool had = parking_has(parking, &name);
    struct parked *parked = parking_take(parking, &name);
    assert_int_equal(had, parked != NULL);
    return parked;
}

static void a_run_is_found_by_its_whole_name_or_without_the_user(void **state) {
    (void)state;
    struct parking *parking = parking_new();
    struct parked ann, bob;
    for (size_t round = 0; round < 2; round++) {
        add(parking, &ann, "w", "ann", "s");
        add(parking, &bob, "w", "bob", "s");
        assert_null(take(parking, "w", "cid", "s"));
        assert_null(take(parking, "w", "ann", "t"));
        assert_null(take(parking, "ws", NULL, ""));
        assert_null(take(parking, "", NULL, "ws"));
        if (round == 0) assert_ptr_equal(take(parking, "w", "bob", "s"), &bob);
        assert_ptr_equal(take(parking, "w", NULL, "s"), &ann);
        if (round == 1) assert_ptr_equal(take(parking, "w", NULL, "s"), &bob);
        assert_null(take(parking, "w", NULL, "s"));
    }
    parking_free(parking);
}

static void who_was_taken_or_went_away_is_not_there_any_more(void **state) {
    (void)state;
    struct parking *parking = parking_new();
    struct parked runs[3];
    for (size_t i = 0; i < 3; i++) add(parking, &runs[i], "w", "u", "s");
    assert_ptr_equal(take(parking, "w", "u", "s"), &runs[0]);
    assert_false(parking_remove(parking, &runs[0]));
    assert_true(parking_remove(parking, &runs[1]));
    assert_false(parking_remove(parking, &runs[1]));
    assert_ptr_equal(take(parking, "w", "u", "s"), &runs[2]);
    assert_null(take(parking, "w", "u", "s"));
    parking_free(parking);
}

static void a_name_that_is_too_long_for_a_session_finds_nobody(void **state) {
    (void)state;
    struct parking *parking = parking_new();
    static char name[64 * KIB + 1];
    memset(name, 'x', sizeof(name) - 1);
    assert_null(take(parking, "w", NULL, name));
    parking_free(parking);
}

/* --- two threads -------------------------------------------------------------------------- */

#define RUNS 2000

struct race {
    struct parking *parking;
    struct parked *runs;
    _Atomic size_t taken;
};

static void *take_all(void *ctx) {
    struct race *race = ctx;
    struct session_name name = named("w", NULL, "s");
    while (parking_take(race->parking, &name)) atomic_fetch_add(&race->taken, 1);
    return NULL;
}

static void *remove_all(void *ctx) {
    struct race *race = ctx;
    for (size_t i = RUNS; i > 0; i--) {
        if (parking_remove(race->parking, &race->runs[i - 1]))
            atomic_fetch_add(&race->taken, 1);
    }
    return NULL;
}

static void of_those_who_want_the_same_run_exactly_one_gets_it(void **state) {
    (void)state;
    static struct parked runs[RUNS];
    struct race race = {.parking = parking_new(), .runs = runs};
    for (size_t i = 0; i < RUNS; i++) add(race.parking, &runs[i], "w", "u", "s");
    pthread_t threads[3];
    assert_int_equal(pthread_create(&threads[0], NULL, take_all, &race), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, remove_all, &race), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, take_all, &race), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    assert_int_equal(race.taken, RUNS);
    parking_free(race.parking);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_found_by_its_whole_name_or_without_the_user),
        cmocka_unit_test(who_was_taken_or_went_away_is_not_there_any_more),
        cmocka_unit_test(a_name_that_is_too_long_for_a_session_finds_nobody),
        cmocka_unit_test(of_those_who_want_the_same_run_exactly_one_gets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
