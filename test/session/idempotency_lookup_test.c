/* What a request's idempotency key stands for, among live runs and those in the store. */
#include "session/idempotency_lookup.h"

#include "base/clock.h"
#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"

#include <stdio.h>

#define HOUR_MS UINT64_C(3600000)

struct scene {
    struct sessions s;
    struct idempotency_lookup_result result;
    bool failures_free;
    enum err_code failed;
    size_t answers;
};

static void open_scene(struct scene *scene, enum fixture_store with) {
    *scene = (struct scene){.s = sessions_open(with)};
}

static void on_answer(const struct idempotency_lookup_result *result, const struct err *failed,
                      void *ctx) {
    struct scene *scene = ctx;
    scene->result = *result;
    scene->failed = failed ? failed->code : ERR_NONE;
    scene->answers++;
}

/* What the caller says is gone when this returns. */
static struct idempotency_lookup *look(struct scene *scene, const char *key,
                                       const char *print) {
    char key_room[16], print_room[16];
    snprintf(key_room, sizeof(key_room), "%s", key);
    snprintf(print_room, sizeof(print_room), "%s", print);
    struct idempotency_lookup *lookup = idempotency_lookup_start(
        &(struct idempotency_lookup_options){.loop = scene->s.loop,
                                             .sessions = scene->s.table,
                                             .name = {STR("w"), STR("u"), str_from(key_room)},
                                             .print = str_from(print_room),
                                             .kept_ms = HOUR_MS,
                                             .failures_free = scene->failures_free,
                                             .on_answer = on_answer,
                                             .ctx = scene});
    memset(key_room, '#', sizeof(key_room));
    memset(print_room, '#', sizeof(print_room));
    return lookup;
}

/* Asked and answered; `stored`: only the store knows. */
static void assert_means(struct scene *scene, const char *key, const char *print, bool stored,
                         enum idempotency_answer answer, uint64_t run) {
    scene->answers = 0;
    look(scene, key, print);
    assert_int_equal(scene->answers, 0); /* never before it returns */
    if (scene->s.store) assert_int_equal(fake_store_loads(scene->s.store), stored);
    if (stored) fake_store_answer(scene->s.store, 0);
    loop_turn(scene->s.loop);
    assert_int_equal(scene->answers, 1);
    assert_int_equal(scene->result.answer, answer);
    assert_int_equal(scene->result.run, run);
}

static const struct event he_left = {
    .kind = EVENT_CANCELLED,
    .cancelled = {.message = STR_INIT("he left"), .left = true, .acted = false}};
static const struct event he_left_a_payment = {
    .kind = EVENT_CANCELLED,
    .cancelled = {.message = STR_INIT("he left"), .left = true, .acted = true}};
static const struct event it_failed = {.kind = EVENT_FAILED, .failed = {.code = ERR_INTERNAL}};
static const struct event it_failed_behind_a_payment = {
    .kind = EVENT_FAILED, .failed = {.code = ERR_INTERNAL, .acted = true}};

/* A run with a key, as the store has it, and how it ended; NULL: not yet. */
static void write_run(struct scene *scene, uint64_t run, const char *key, int64_t started_ms,
                      const struct event *ends) {
    struct event begins = {.kind = EVENT_STARTED,
                           .started = {.workspace = STR("w"),
                                       .user = STR("u"),
                                       .session = STR("s"),
                                       .unix_ms = started_ms,
                                       .key = str_from(key),
                                       .print = STR("p")}};
    struct buf events;
    buf_init(&events, KIB);
    assert_true(event_encode(&begins, &events));
    if (ends) assert_true(event_encode(ends, &events));
    fake_store_put(scene->s.store, run, 1, buf_str(&events));
    buf_done(&events);
}

/* A run that is alive has the key. */
static void claim(struct scene *scene, struct claim *claim, const char *key, uint64_t run) {
    struct idempotency_claims *claims = session_table_claims(scene->s.table);
    struct claim_view view;
    *claim = (struct claim){
        .name = {STR("w"), STR("u"), str_from(key)}, .print = STR("p"), .run = run};
    idempotency_claims_look(claims, &claim->name, &view);
    assert_true(idempotency_claims_begin(claims, &claim->name, view.mark));
    idempotency_claims_end(claims, &claim->name, claim);
}

static void an_unused_key_is_free_and_brings_the_mark(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct scene scene;
        struct claim other;
        open_scene(&scene, with_store ? WITH_STORE : NO_STORE);
        claim(&scene, &other, "k", 7);
        idempotency_claims_remove(session_table_claims(scene.s.table), &other);
        assert_means(&scene, "k", "p", with_store, IDEMPOTENCY_FREE, 0);
        assert_int_equal(scene.result.mark, 1); /* one was given back here */
        sessions_shut(&scene.s);
    }
}

static void a_run_that_is_alive_says_itself_what_its_key_stands_for(void **state) {
    (void)state;
    struct scene scene;
    struct claim alive;
    open_scene(&scene, WITH_STORE);
    claim(&scene, &alive, "k", 7);
    assert_means(&scene, "k", "p", false, IDEMPOTENCY_RUN, 7);
    assert_means(&scene, "k", "another", false, IDEMPOTENCY_OTHER, 7);
    assert_means(&scene, "K", "p", true, IDEMPOTENCY_FREE, 0);
    idempotency_claims_remove(session_table_claims(scene.s.table), &alive);
    sessions_shut(&scene.s);
}

static void one_that_is_over_is_in_the_store_as_long_as_its_key_counts(void **state) {
    (void)state;
    struct scene scene;
    int64_t now_ms = clock_unix_ms();
    open_scene(&scene, WITH_STORE);
    write_run(&scene, 7, "young", now_ms - (int64_t)HOUR_MS / 2, NULL);
    write_run(&scene, 8, "old", now_ms - (int64_t)HOUR_MS, NULL);
    assert_means(&scene, "young", "p", true, IDEMPOTENCY_RUN, 7);
    assert_means(&scene, "young", "another", true, IDEMPOTENCY_OTHER, 7);
    assert_means(&scene, "old", "p", true, IDEMPOTENCY_FREE, 0);
    assert_means(&scene, "old", "another", true, IDEMPOTENCY_FREE, 0);
    sessions_shut(&scene.s);
}

static void the_key_of_a_turn_whose_caller_left_is_free(void **state) {
    (void)state;
    struct scene scene;
    struct claim first, second;
    int64_t now_ms = clock_unix_ms();
    open_scene(&scene, WITH_STORE);
    struct idempotency_claims *claims = session_table_claims(scene.s.table);
    claim(&scene, &first, "k", 7);
    write_run(&scene, 7, "k", now_ms, NULL); /* its end is not on disk yet */
    idempotency_claims_give_back(claims, &first);
    assert_means(&scene, "k", "p", true, IDEMPOTENCY_FREE, 0);
    assert_means(&scene, "k", "another", true, IDEMPOTENCY_FREE, 0);
    claim(&scene, &second, "k", 9); /* he asks again while the first one ends */
    assert_means(&scene, "k", "p", false, IDEMPOTENCY_RUN, 9);
    idempotency_claims_remove(claims, &first);
    write_run(&scene, 9, "k", now_ms, NULL);
    idempotency_claims_remove(claims, &second);
    assert_means(&scene, "k", "p", true, IDEMPOTENCY_RUN, 9);
    write_run(&scene, 11, "left", now_ms, &he_left);
    assert_means(&scene, "left", "p", true, IDEMPOTENCY_FREE, 0);
    sessions_shut(&scene.s);
}

/* K28: asked again it runs again, unless what it did would be done twice. */
static void a_failure_gives_its_key_back_unless_it_left_an_effect(void **state) {
    (void)state;
    struct scene scene;
    int64_t now_ms = clock_unix_ms();
    for (int failures_free = 0; failures_free < 2; failures_free++) {
        open_scene(&scene, WITH_STORE);
        scene.failures_free = failures_free;
        write_run(&scene, 7, "failed", now_ms, &it_failed);
        write_run(&scene, 8, "paid", now_ms, &it_failed_behind_a_payment);
        write_run(&scene, 9, "left", now_ms, &he_left);
        write_run(&scene, 10, "left a payment", now_ms, &he_left_a_payment);
        assert_means(&scene, "failed", "p", true,
                     failures_free ? IDEMPOTENCY_FREE : IDEMPOTENCY_RUN, failures_free ? 0 : 7);
        assert_means(&scene, "failed", "another", true,
                     failures_free ? IDEMPOTENCY_FREE : IDEMPOTENCY_OTHER,
                     failures_free ? 0 : 7);
        assert_means(&scene, "paid", "p", true, IDEMPOTENCY_RUN, 8);
        assert_means(&scene, "paid", "another", true, IDEMPOTENCY_OTHER, 8);
        assert_means(&scene, "left", "p", true, IDEMPOTENCY_FREE, 0);
        assert_means(&scene, "left a payment", "p", true, IDEMPOTENCY_RUN, 10);
        sessions_shut(&scene.s);
    }
}

static void the_key_of_an_answer_says_which_question_it_answered(void **state) {
    (void)state;
    struct scene scene;
    struct claim_view view;
    open_scene(&scene, WITH_STORE);
    struct idempotency_claims *claims = session_table_claims(scene.s.table);
    const struct claim_name name = {STR("w"), STR("u"), STR("k")};
    struct claim *claim = claim_new(&name, STR("p"));
    claim_mean(claim, 7, 41);
    idempotency_claims_look(claims, &name, &view);
    assert_true(idempotency_claims_begin(claims, &name, view.mark));
    idempotency_claims_end(claims, &name, claim);
    assert_means(&scene, "k", "p", false, IDEMPOTENCY_RUN, 7);
    assert_int_equal(scene.result.seq, 41);
    assert_means(&scene, "k", "another", false, IDEMPOTENCY_OTHER, 7);
    idempotency_claims_remove(claims, claim);
    claim_free(claim);
    sessions_shut(&scene.s);
}

static void a_store_that_cannot_say_is_no_free_key(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_STORE);
    look(&scene, "k", "p");
    fake_store_refuse(scene.s.store, 0, ERR_UNAVAILABLE);
    loop_turn(scene.s.loop);
    assert_int_equal(scene.answers, 1);
    assert_int_equal(scene.result.answer, IDEMPOTENCY_FAILED);
    assert_int_equal(scene.failed, ERR_UNAVAILABLE);
    sessions_shut(&scene.s);
}

static void a_cancelled_look_up_has_no_callback(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct scene scene;
        open_scene(&scene, with_store ? WITH_STORE : NO_STORE);
        idempotency_lookup_cancel(look(&scene, "k", "p"));
        if (with_store) fake_store_answer(scene.s.store, 0); /* the answer comes too late */
        loop_turn(scene.s.loop);
        assert_int_equal(scene.answers, 0);
        sessions_shut(&scene.s);
    }
    idempotency_lookup_cancel(NULL);
}

/* --- among replicas ----------------------------------------------------------------------- */

#define LEASES "SELECT count(*) FROM lease WHERE holder = 1"

/* The store knows nothing of the key, so this replica asks for the lease. */
static struct idempotency_lookup *look_and_ask(struct scene *scene) {
    struct idempotency_lookup *lookup = look(scene, "k", "p");
    fake_store_answer(scene->s.store, 0);
    loop_turn(scene->s.loop);
    loop_turn(scene->s.loop);
    return lookup;
}

static void give_all_to_the_other(struct scene *scene) {
    fake_store_sql(scene->s.store, "UPDATE lease SET holder = 2");
}

static void one_that_waits_for_another_replica_may_be_cancelled(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_SHARED_STORE);
    session_table_wait(scene.s.table, 30000);
    struct idempotency_lookup *first = look_and_ask(&scene); /* it knows the lease's key */
    assert_int_equal(fake_store_number(scene.s.store, LEASES), 1);
    give_all_to_the_other(&scene);
    struct idempotency_lookup *second = look(&scene, "k", "p");
    fake_store_answer(scene.s.store, 1);
    loop_turn(scene.s.loop);
    loop_turn(scene.s.loop);
    assert_int_equal(fake_store_number(scene.s.store, LEASES), 0);
    assert_int_equal(fake_store_loads(scene.s.store), 1); /* the first one's */
    idempotency_lookup_cancel(second);
    idempotency_lookup_cancel(first);
    fake_store_answer(scene.s.store, 0);
    loop_advance(scene.s.loop, 1000);
    assert_int_equal(scene.answers, 0);
    session_table_leave(scene.s.table, scene.s.loop);
    sessions_shut(&scene.s);
}

/* However long the store takes: what is found free must still be this replica's. */
static void a_lease_is_kept_while_a_look_up_needs_it(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_SHARED_STORE);
    look_and_ask(&scene);
    for (size_t i = 0; i < 10; i++) loop_advance(scene.s.loop, 10000);
    assert_int_equal(fake_store_number(scene.s.store, LEASES), 1);
    fake_store_answer(scene.s.store, 0); /* nor does it know it now */
    loop_turn(scene.s.loop);
    assert_int_equal(scene.answers, 1);
    assert_int_equal(scene.result.answer, IDEMPOTENCY_FREE);
    loop_advance(scene.s.loop, 4000); /* time to begin */
    assert_int_equal(fake_store_number(scene.s.store, LEASES), 1);
    for (size_t i = 0; i < 3; i++) loop_advance(scene.s.loop, 10000);
    assert_int_equal(fake_store_number(scene.s.store, LEASES), 0);
    loop_turn(scene.s.loop);
    sessions_shut(&scene.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_key_is_free_and_brings_the_mark),
        cmocka_unit_test(a_run_that_is_alive_says_itself_what_its_key_stands_for),
        cmocka_unit_test(one_that_is_over_is_in_the_store_as_long_as_its_key_counts),
        cmocka_unit_test(the_key_of_a_turn_whose_caller_left_is_free),
        cmocka_unit_test(a_failure_gives_its_key_back_unless_it_left_an_effect),
        cmocka_unit_test(the_key_of_an_answer_says_which_question_it_answered),
        cmocka_unit_test(a_store_that_cannot_say_is_no_free_key),
        cmocka_unit_test(a_cancelled_look_up_has_no_callback),
        cmocka_unit_test(one_that_waits_for_another_replica_may_be_cancelled),
        cmocka_unit_test(a_lease_is_kept_while_a_look_up_needs_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
