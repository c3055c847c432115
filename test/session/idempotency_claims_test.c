#include "session/idempotency_claims.h"

#include "helper/assert_str.h"

#include <pthread.h>
#include <stdio.h>

static const struct claim_name name = {STR_INIT("w"), STR_INIT("u"), STR_INIT("k")};

static void look(struct idempotency_claims *claims, const struct claim_name *of, uint64_t run,
                 struct claim_view *ret) {
    idempotency_claims_look(claims, of, ret);
    assert_int_equal(ret->run, run);
}

static void a_key_is_taken_once_and_for_its_owner_alone(void **state) {
    (void)state;
    struct idempotency_claims *claims = idempotency_claims_new();
    struct claim claim = {.name = name, .print = STR("p"), .run = 7};
    struct claim_view view;
    look(claims, &name, 0, &view);
    assert_true(idempotency_claims_begin(claims, &name, view.mark));
    idempotency_claims_end(claims, &name, &claim);
    assert_false(idempotency_claims_begin(claims, &name, view.mark));
    look(claims, &name, 7, &view);
    assert_str(str_of(view.print, view.print_len), "p");
    look(claims, &(struct claim_name){STR("w2"), STR("u"), STR("k")}, 0, &view);
    look(claims, &(struct claim_name){STR("w"), STR("u2"), STR("k")}, 0, &view);
    look(claims, &(struct claim_name){STR("w"), STR("u"), STR("k2")}, 0, &view);
    idempotency_claims_remove(claims, &claim);
    look(claims, &name, 0, &view);
    idempotency_claims_free(claims);
}

static void a_look_up_before_a_key_was_given_back_must_be_repeated(void **state) {
    (void)state;
    struct idempotency_claims *claims = idempotency_claims_new();
    struct claim claim = {.name = name, .run = 7};
    struct claim_view before, after;
    look(claims, &name, 0, &before);
    assert_true(idempotency_claims_begin(claims, &name, before.mark));
    idempotency_claims_end(claims, &name, &claim);
    idempotency_claims_remove(claims, &claim); /* it ended while the store was asked */
    assert_false(idempotency_claims_begin(claims, &name, before.mark));
    look(claims, &name, 0, &after);
    assert_true(idempotency_claims_begin(claims, &name, after.mark));
    idempotency_claims_end(claims, &name, NULL); /* its run could not be started */
    look(claims, &name, 0, &after);
    idempotency_claims_free(claims);
}

/* --- chosen keys -------------------------------------------------------------------------- */

#define CHOSEN 32

/* FNV-1a, which anybody can compute. */
static uint64_t known_hash(struct str key) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.at[i]) * UINT64_C(0x100000001b3);
    return (hash ^ hash >> 32) % 1024;
}

static void keys_cannot_be_chosen_to_collide(void **state) {
    (void)state;
    static char keys[CHOSEN][16];
    struct idempotency_claims *claims = idempotency_claims_new();
    struct claim_name of = name;
    struct claim_view view;
    size_t count = 0, together = 0;
    for (unsigned i = 0; count < CHOSEN; i++) {
        snprintf(keys[count], sizeof(keys[count]), "key-%u", i);
        if (known_hash(str_from(keys[count])) == 7) count++;
    }
    of.key = str_from(keys[0]);
    struct claim claim = {.name = of, .run = 7};
    idempotency_claims_look(claims, &of, &view);
    assert_true(idempotency_claims_begin(claims, &of, view.mark));
    idempotency_claims_end(claims, &of, &claim);
    idempotency_claims_remove(claims, &claim);
    for (size_t i = 1; i < CHOSEN; i++) { /* the mark is that of all who share a lock */
        of.key = str_from(keys[i]);
        idempotency_claims_look(claims, &of, &view);
        together += view.mark > 0;
    }
    assert_true(together < CHOSEN / 2);
    idempotency_claims_free(claims);
}

/* --- two loops ---------------------------------------------------------------------------- */

#define ROUNDS 20000

struct racer {
    struct idempotency_claims *claims;
    pthread_barrier_t *gate;
    struct claim claim;
    bool won[ROUNDS];
};

static void *race(void *ctx) {
    struct racer *racer = ctx;
    for (size_t i = 0; i < ROUNDS; i++) {
        struct claim_view view;
        pthread_barrier_wait(racer->gate);
        idempotency_claims_look(racer->claims, &name, &view);
        racer->won[i] = !view.run && idempotency_claims_begin(racer->claims, &name, view.mark);
        if (racer->won[i]) idempotency_claims_end(racer->claims, &name, &racer->claim);
        pthread_barrier_wait(racer->gate);
        if (racer->won[i]) idempotency_claims_remove(racer->claims, &racer->claim);
    }
    return NULL;
}

static void a_key_given_back_is_free_while_its_run_still_ends(void **state) {
    (void)state;
    struct idempotency_claims *claims = idempotency_claims_new();
    struct claim first = {.name = name, .run = 7}, second = {.name = name, .run = 9};
    struct claim_view view;
    look(claims, &name, 0, &view);
    assert_int_equal(view.given_back, 0);
    assert_true(idempotency_claims_begin(claims, &name, view.mark));
    idempotency_claims_end(claims, &name, &first);
    idempotency_claims_give_back(claims, &first);
    look(claims, &name, 0, &view);
    assert_int_equal(view.given_back, 7); /* what the store may still say is not so */
    assert_true(idempotency_claims_begin(claims, &name, view.mark));
    idempotency_claims_end(claims, &name, &second);
    look(claims, &name, 9, &view);
    idempotency_claims_give_back(claims, &second);
    look(claims, &name, 0, &view);
    assert_int_equal(view.given_back, 9);
    look(claims, &(struct claim_name){STR("w"), STR("u"), STR("k2")}, 0, &view);
    assert_int_equal(view.given_back, 0);
    idempotency_claims_remove(claims, &first);
    idempotency_claims_remove(claims, &second);
    look(claims, &name, 0, &view);
    assert_int_equal(view.given_back, 0);
    idempotency_claims_free(claims);
}

static void of_two_at_the_same_moment_one_gets_it(void **state) {
    (void)state;
    static struct racer racers[2];
    struct idempotency_claims *claims = idempotency_claims_new();
    pthread_barrier_t gate;
    pthread_t threads[2];
    pthread_barrier_init(&gate, NULL, 2);
    for (size_t i = 0; i < 2; i++) {
        racers[i] = (struct racer){
            .claims = claims, .gate = &gate, .claim = {.name = name, .run = i + 1}};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    /* A key that was just given back may be seen by neither; never is it given to both. */
    size_t won = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        assert_false(racers[0].won[i] && racers[1].won[i]);
        won += racers[0].won[i] || racers[1].won[i];
    }
    assert_true(won > 0);
    pthread_barrier_destroy(&gate);
    idempotency_claims_free(claims);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_taken_once_and_for_its_owner_alone),
        cmocka_unit_test(keys_cannot_be_chosen_to_collide),
        cmocka_unit_test(a_look_up_before_a_key_was_given_back_must_be_repeated),
        cmocka_unit_test(a_key_given_back_is_free_while_its_run_still_ends),
        cmocka_unit_test(of_two_at_the_same_moment_one_gets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
