/* What the store has of a turn whose rest it refused gets an end (checks.md T1, K27). */
#include "turn/late_ends.h"

#include "base/log.h"
#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "helper/log_heard.h"

struct seen {
    struct buf text;
    bool open;
};

static void late_ends_test_on_loaded(struct store_load *load, const struct err *failed,
                                     void *ctx) {
    struct seen *seen = ctx;
    assert_null(failed);
    seen->open = load->open;
    for (size_t i = 0; i < load->section_count; i++) {
        struct str events = load->sections[i].events;
        struct event event = {0};
        struct err e;
        while (events.len) {
            assert_true(event_decode(&events, &event, &e));
            write_event(&seen->text, &event);
        }
    }
    arena_free(load->arena);
}

static void assert_stored(struct fixture *f, uint64_t run, const char *expected, bool open) {
    struct seen seen = {.open = !open};
    struct store_load load = {.question = STORE_RUN,
                              .run = run,
                              .max_bytes = MIB,
                              .home = f->loop,
                              .on_loaded = late_ends_test_on_loaded,
                              .ctx = &seen};
    buf_init(&seen.text, MIB);
    store_load(f->store, &load);
    turns(f);
    assert_str(buf_str(&seen.text), expected);
    assert_int_equal(seen.open, open);
    buf_done(&seen.text);
}

/* The beginning is stored, the answer is not. */
static uint64_t lose_a_turn(struct fixture *f, struct run_request request, enum err_code code) {
    struct turn turn;
    request.promised = true;
    fake_store_always_commit(f->store);
    start(&turn, f, &request);
    uint64_t run = run_id(turn.run);
    fake_store_always_lose(f->store, code);
    reply(f, "an answer");
    end(&turn);
    assert_stored(f, run, "started(x)", true);
    return run;
}

static void pass_a_pause(struct fixture *f) {
    loop_advance(f->loop, LATE_ENDS_PAUSE_MS);
    turns(f);
}

#define ENDED "started(x) failed(UNAVAILABLE STORE_UNAVAILABLE)"

static void what_the_store_has_of_a_lost_turn_is_ended(void **state) {
    struct fixture *f = *state;
    uint64_t run = lose_a_turn(f, request_of("x"), ERR_UNAVAILABLE);
    fake_store_always_commit(f->store);
    assert_stored(f, run, "started(x)", true);
    pass_a_pause(f);
    assert_stored(f, run, ENDED, false);
    size_t sent = fake_store_sent(f->store);
    pass_a_pause(f);
    assert_int_equal(fake_store_sent(f->store), sent); /* once */
}

static void it_is_tried_until_the_store_takes_it(void **state) {
    struct fixture *f = *state;
    uint64_t runs[3];
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        runs[i] = lose_a_turn(f, request_of("x"), ERR_UNAVAILABLE);
    for (int again = 0; again < 5; again++) pass_a_pause(f);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) assert_stored(f, runs[i], "started(x)", true);
    fake_store_always_commit(f->store);
    pass_a_pause(f);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) assert_stored(f, runs[i], ENDED, false);
}

/* However often it was tried before. */
static void that_it_is_ended_is_said_once_and_when_it_is(void **state) {
    struct fixture *f = *state;
    struct log_heard log;
    log_begin(&log);
    log_setup(LOG_INFO, LOG_PLAIN);
    lose_a_turn(f, request_of("x"), ERR_UNAVAILABLE);
    for (int again = 0; again < 5; again++) pass_a_pause(f);
    bool early = log_holds(&log, "is ended");
    fake_store_always_commit(f->store);
    pass_a_pause(f);
    bool said = log_holds(&log, "what the store has of it is ended");
    log_setup(LOG_WARNING, LOG_PLAIN);
    log_end(&log);
    assert_false(early);
    assert_true(said);
}

/* The store said that it did not know, and it was there. */
static void a_turn_that_has_its_end_gets_no_other(void **state) {
    struct fixture *f = *state;
    uint64_t run = lose_a_turn(f, request_of("x"), ERR_OUTCOME_UNKNOWN);
    struct event done = {.kind = EVENT_DONE, .done = {.model = STR_INIT("m-1")}};
    struct buf bytes;
    buf_init(&bytes, KIB);
    assert_true(event_encode(&done, &bytes));
    fake_store_put(f->store, run, 2, buf_str(&bytes));
    buf_done(&bytes);
    fake_store_always_commit(f->store);
    size_t sent = fake_store_sent(f->store);
    pass_a_pause(f);
    assert_int_equal(fake_store_sent(f->store), sent);
    assert_stored(f, run, "started(x) done(m-1)", false);
}

static void a_turn_of_which_nothing_is_stored_is_forgotten(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    fake_store_always_lose(f->store, ERR_UNAVAILABLE);
    say(&turn, f, "x");
    uint64_t run = run_id(turn.run);
    reply(f, "an answer");
    end(&turn);
    fake_store_always_commit(f->store);
    size_t sent = fake_store_sent(f->store);
    pass_a_pause(f);
    assert_int_equal(fake_store_sent(f->store), sent);
    assert_stored(f, run, "", false);
}

static void nothing_is_begun_after_the_stop(void **state) {
    struct fixture *f = *state;
    uint64_t run = lose_a_turn(f, request_of("x"), ERR_UNAVAILABLE);
    late_ends_stop(&f->host);
    fake_store_always_commit(f->store);
    pass_a_pause(f);
    assert_stored(f, run, "started(x)", true);
    run = lose_a_turn(f, request_of("x"), ERR_UNAVAILABLE);
    fake_store_always_commit(f->store);
    pass_a_pause(f);
    assert_stored(f, run, "started(x)", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORED_TURN_TEST(what_the_store_has_of_a_lost_turn_is_ended),
        STORED_TURN_TEST(it_is_tried_until_the_store_takes_it),
        STORED_TURN_TEST(that_it_is_ended_is_said_once_and_when_it_is),
        STORED_TURN_TEST(a_turn_that_has_its_end_gets_no_other),
        STORED_TURN_TEST(a_turn_of_which_nothing_is_stored_is_forgotten),
        STORED_TURN_TEST(nothing_is_begun_after_the_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
