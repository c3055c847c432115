/* The table among replicas: a session of which a run waits here for a human stays when unused ones are
 * looked for, however often it was looked at. */
#include "session/session_table.h"

#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"
#include "journal/journal.h"
#include "session/waiting.h"

static const struct session_name name = {STR_INIT("w"), STR_INIT("u"), STR_INIT("s")};

static void on_granted(void *ctx) {
    ++*(int *)ctx;
}

static void on_refused(const struct err *why, void *ctx) {
    (void)ctx;
    fail_msg("%s", why->text);
}

static const struct lease_events events = {.granted = on_granted, .refused = on_refused};

static void take_answer(struct str text, void *ctx) {
    (void)text;
    (void)ctx;
}

static void settle(struct sessions *s) {
    for (size_t i = 0; i < 12; i++) {
        while (fake_store_loads(s->store)) fake_store_answer(s->store, 0);
        loop_turn(s->loop);
    }
}

static void an_unused_session_whose_run_waits_is_looked_at_once(void **state) {
    (void)state;
    struct sessions s = sessions_open(WITH_SHARED_STORE);
    struct err e;
    int granted = 0;
    session_table_wait(s.table, 30000);
    struct journal *journal = journal_new(&(struct journal_options){.loop = s.loop});
    struct pending_approval waits = {.name = name,
                                     .run = 7,
                                     .loop = s.loop,
                                     .journal = journal,
                                     .seq = 1,
                                     .answer = take_answer};
    struct lease lease = {.loop = s.loop, .run = 8, .events = &events, .ctx = &granted};
    session_park(s.table, &waits);
    assert_int_equal(session_acquire(s.table, &name, SESSION_QUEUE, &lease, &e), SESSION_WAITS);
    settle(&s);
    assert_int_equal(granted, 1);
    session_release(&lease, NULL);
    assert_int_equal(session_table_tidy(s.table, 0),
                     1); /* it stays: it went to the end again */
    assert_int_equal(session_table_tidy(s.table, 0), 1);
    assert_int_equal(session_table_tidy(s.table, 60000), 0);
    assert_true(session_unpark(s.table, &waits));
    assert_int_equal(session_table_tidy(s.table, 0), 1);
    assert_int_equal(session_table_tidy(s.table, 0), 0); /* it has gone */
    settle(&s);
    session_table_leave(s.table, s.loop);
    settle(&s);
    journal_unref(journal);
    sessions_shut(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_session_whose_run_waits_is_looked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
