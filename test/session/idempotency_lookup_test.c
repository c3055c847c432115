/* What a request's idempotency key stands for, among live runs and those in the store. */
#include "session/idempotency_lookup.h"

#include "base/clock.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"

#include <stdio.h>

#define HOUR_MS UINT64_C(3600000)

struct house {
    struct loop *loop;
    struct store *store;
    struct session_table *sessions;
    struct idempotency_lookup_result result;
    bool failures_free;
    enum err_code failed;
    size_t answers;
};

static void open_house(struct house *house, bool with_store) {
    *house = (struct house){.loop = loop_new_fake()};
    if (with_store) {
        house->store = fake_store_new();
        fake_store_always_commit(house->store);
    }
    house->sessions = session_table_new(house->store);
}

static void shut_house(struct house *house) {
    session_table_free(house->sessions);
    fake_store_free(house->store);
    loop_free(house->loop);
}

static void on_answer(const struct idempotency_lookup_result *result, const struct err *failed,
                      void *ctx) {
    struct house *house = ctx;
    house->result = *result;
    house->failed = failed ? failed->code : ERR_NONE;
    house->answers++;
}

/* What the caller says is gone when this returns. */
static struct idempotency_lookup *look(struct house *house, const char *key,
                                       const char *print) {
    char key_room[16], print_room[16];
    snprintf(key_room, sizeof(key_room), "%s", key);
    snprintf(print_room, sizeof(print_room), "%s", print);
    struct idempotency_lookup *lookup = idempotency_lookup_start(
        &(struct idempotency_lookup_options){.loop = house->loop,
                                             .sessions = house->sessions,
                                             .name = {STR("w"), STR("u"), str_from(key_room)},
                                             .print = str_from(print_room),
                                             .kept_ms = HOUR_MS,
                                             .failures_free = house->failures_free,
                                             .on_answer = on_answer,
                                             .ctx = house});
    memset(key_room, '#', sizeof(key_room));
    memset(print_room, '#', sizeof(print_room));
    return lookup;
}

/* Asked and answered; `stored`: only the store knows. */
static void assert_means(struct house *house, const char *key, const char *print, bool stored,
                         enum idempotency_answer answer, uint64_t run) {
    house->answers = 0;
    look(house, key, print);
    assert_int_equal(house->answers, 0); /* never before it returns */
    if (house->store) assert_int_equal(fake_store_loads(house->store), stored);
    if (stored) fake_store_answer(house->store, 0);
    loop_turn(house->loop);
    assert_int_equal(house->answers, 1);
    assert_int_equal(house->result.answer, answer);
    assert_int_equal(house->result.run, run);
}

static void on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write, (void)ctx;
    assert_null(failed);
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
static void write_run(struct house *house, uint64_t run, const char *key, int64_t started_ms,
                      const struct event *ends) {
    struct event begins = {.kind = EVENT_STARTED,
                           .started = {.workspace = STR("w"),
                                       .user = STR("u"),
                                       .session = STR("s"),
                                       .unix_ms = started_ms,
                                       .key = str_from(key),
                                       .print = STR("p")}};
    struct buf events;
    struct store_row row = {.run = run};
    buf_init(&events, KIB);
    buf_init(&row.bytes, KIB);
    assert_true(event_encode(&begins, &events));
    if (ends) assert_true(event_encode(ends, &events));
    assert_true(store_section_append(&row.bytes, run, 1, buf_str(&events)));
    struct store_write write = {
        .rows = &row, .row_count = 1, .home = house->loop, .on_written = on_written};
    store_write(house->store, &write);
    loop_turn(house->loop);
    buf_done(&row.bytes);
    buf_done(&events);
}

/* A run that is alive has the key. */
static void claim(struct house *house, struct claim *claim, const char *key, uint64_t run) {
    struct idempotency_claims *claims = session_table_claims(house->sessions);
    struct claim_view view;
    *claim = (struct claim){
        .name = {STR("w"), STR("u"), str_from(key)}, .print = STR("p"), .run = run};
    idempotency_claims_look(claims, &claim->name, &view);
    assert_true(idempotency_claims_begin(claims, &claim->name, view.mark));
    idempotency_claims_end(claims, &claim->name, claim);
}

static void a_key_nobody_used_is_free_and_brings_the_mark(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct house house;
        struct claim other;
        open_house(&house, with_store);
        claim(&house, &other, "k", 7);
        idempotency_claims_remove(session_table_claims(house.sessions), &other);
        assert_means(&house, "k", "p", with_store, IDEMPOTENCY_FREE, 0);
        assert_int_equal(house.result.mark, 1); /* one was given back here */
        shut_house(&house);
    }
}

static void a_run_that_is_alive_says_itself_what_its_key_stands_for(void **state) {
    (void)state;
    struct house house;
    struct claim alive;
    open_house(&house, true);
    claim(&house, &alive, "k", 7);
    assert_means(&house, "k", "p", false, IDEMPOTENCY_RUN, 7);
    assert_means(&house, "k", "another", false, IDEMPOTENCY_OTHER, 7);
    assert_means(&house, "K", "p", true, IDEMPOTENCY_FREE, 0);
    idempotency_claims_remove(session_table_claims(house.sessions), &alive);
    shut_house(&house);
}

static void one_that_is_over_is_in_the_store_as_long_as_its_key_counts(void **state) {
    (void)state;
    struct house house;
    int64_t now_ms = clock_unix_ms();
    open_house(&house, true);
    write_run(&house, 7, "young", now_ms - (int64_t)HOUR_MS / 2, NULL);
    write_run(&house, 8, "old", now_ms - (int64_t)HOUR_MS, NULL);
    assert_means(&house, "young", "p", true, IDEMPOTENCY_RUN, 7);
    assert_means(&house, "young", "another", true, IDEMPOTENCY_OTHER, 7);
    assert_means(&house, "old", "p", true, IDEMPOTENCY_FREE, 0);
    assert_means(&house, "old", "another", true, IDEMPOTENCY_FREE, 0);
    shut_house(&house);
}

static void who_left_a_cancelled_turn_finds_his_key_free(void **state) {
    (void)state;
    struct house house;
    struct claim first, second;
    int64_t now_ms = clock_unix_ms();
    open_house(&house, true);
    struct idempotency_claims *claims = session_table_claims(house.sessions);
    claim(&house, &first, "k", 7);
    write_run(&house, 7, "k", now_ms, NULL); /* its end is not on disk yet */
    idempotency_claims_give_back(claims, &first);
    assert_means(&house, "k", "p", true, IDEMPOTENCY_FREE, 0);
    assert_means(&house, "k", "another", true, IDEMPOTENCY_FREE, 0);
    claim(&house, &second, "k", 9); /* he asks again while the first one ends */
    assert_means(&house, "k", "p", false, IDEMPOTENCY_RUN, 9);
    idempotency_claims_remove(claims, &first);
    write_run(&house, 9, "k", now_ms, NULL);
    idempotency_claims_remove(claims, &second);
    assert_means(&house, "k", "p", true, IDEMPOTENCY_RUN, 9);
    write_run(&house, 11, "left", now_ms, &he_left);
    assert_means(&house, "left", "p", true, IDEMPOTENCY_FREE, 0);
    shut_house(&house);
}

/* K28: asked again it runs again, unless what it did would be done twice. */
static void a_failure_gives_its_key_back_unless_it_left_an_effect(void **state) {
    (void)state;
    struct house house;
    int64_t now_ms = clock_unix_ms();
    for (int failures_free = 0; failures_free < 2; failures_free++) {
        open_house(&house, true);
        house.failures_free = failures_free;
        write_run(&house, 7, "failed", now_ms, &it_failed);
        write_run(&house, 8, "paid", now_ms, &it_failed_behind_a_payment);
        write_run(&house, 9, "left", now_ms, &he_left);
        write_run(&house, 10, "left a payment", now_ms, &he_left_a_payment);
        assert_means(&house, "failed", "p", true,
                     failures_free ? IDEMPOTENCY_FREE : IDEMPOTENCY_RUN, failures_free ? 0 : 7);
        assert_means(&house, "failed", "another", true,
                     failures_free ? IDEMPOTENCY_FREE : IDEMPOTENCY_OTHER,
                     failures_free ? 0 : 7);
        assert_means(&house, "paid", "p", true, IDEMPOTENCY_RUN, 8);
        assert_means(&house, "paid", "another", true, IDEMPOTENCY_OTHER, 8);
        assert_means(&house, "left", "p", true, IDEMPOTENCY_FREE, 0);
        assert_means(&house, "left a payment", "p", true, IDEMPOTENCY_RUN, 10);
        shut_house(&house);
    }
}

static void the_key_of_an_answer_says_which_question_it_answered(void **state) {
    (void)state;
    struct house house;
    struct claim_view view;
    open_house(&house, true);
    struct idempotency_claims *claims = session_table_claims(house.sessions);
    const struct claim_name name = {STR("w"), STR("u"), STR("k")};
    struct claim *claim = claim_new(&name, STR("p"));
    claim_mean(claim, 7, 41);
    idempotency_claims_look(claims, &name, &view);
    assert_true(idempotency_claims_begin(claims, &name, view.mark));
    idempotency_claims_end(claims, &name, claim);
    assert_means(&house, "k", "p", false, IDEMPOTENCY_RUN, 7);
    assert_int_equal(house.result.seq, 41);
    assert_means(&house, "k", "another", false, IDEMPOTENCY_OTHER, 7);
    idempotency_claims_remove(claims, claim);
    claim_free(claim);
    shut_house(&house);
}

static void a_store_that_cannot_say_is_no_free_key(void **state) {
    (void)state;
    struct house house;
    open_house(&house, true);
    look(&house, "k", "p");
    fake_store_refuse(house.store, 0, ERR_UNAVAILABLE);
    loop_turn(house.loop);
    assert_int_equal(house.answers, 1);
    assert_int_equal(house.result.answer, IDEMPOTENCY_FAILED);
    assert_int_equal(house.failed, ERR_UNAVAILABLE);
    shut_house(&house);
}

static void who_gives_up_hears_nothing(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct house house;
        open_house(&house, with_store);
        idempotency_lookup_cancel(look(&house, "k", "p"));
        if (with_store) fake_store_answer(house.store, 0); /* it comes, and finds nobody */
        loop_turn(house.loop);
        assert_int_equal(house.answers, 0);
        shut_house(&house);
    }
    idempotency_lookup_cancel(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_nobody_used_is_free_and_brings_the_mark),
        cmocka_unit_test(a_run_that_is_alive_says_itself_what_its_key_stands_for),
        cmocka_unit_test(one_that_is_over_is_in_the_store_as_long_as_its_key_counts),
        cmocka_unit_test(who_left_a_cancelled_turn_finds_his_key_free),
        cmocka_unit_test(a_failure_gives_its_key_back_unless_it_left_an_effect),
        cmocka_unit_test(the_key_of_an_answer_says_which_question_it_answered),
        cmocka_unit_test(a_store_that_cannot_say_is_no_free_key),
        cmocka_unit_test(who_gives_up_hears_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
