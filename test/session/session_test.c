#include "session/session.h"

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "helper/moves.h"
#include "journal/journal.h"
#include "session/waiting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"idle waiting", "idle held", "waiting held",
                                        "waiting idle", "held lent", "held idle",
                                        "lent held",    "lent idle"};
    assert_moves(lease_states, LEASE_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- a turn that wants a session ---------------------------------------------------------- */

struct turn {
    struct session_table *table;
    struct lease lease;
    const char *session;
    size_t granted, refused, children_done;
    enum err_code code;
};

static void granted(void *ctx) {
    ((struct turn *)ctx)->granted++;
}

static void refused(const struct err *why, void *ctx) {
    struct turn *turn = ctx;
    turn->refused++;
    turn->code = why->code;
}

static void children_done(void *ctx) {
    ((struct turn *)ctx)->children_done++;
}

static const struct lease_events lease_events = {granted, refused, children_done};

static struct session_name name_of(const char *session) {
    return (struct session_name){STR("w"), STR("u"), str_from(session)};
}

static void turn_init(struct turn *turn, struct session_table *table, struct loop *loop,
                      uint64_t run) {
    *turn = (struct turn){.table = table, .session = "s"};
    turn->lease =
        (struct lease){.loop = loop, .run = run, .events = &lease_events, .ctx = turn};
}

static enum session_answer ask_with(struct turn *turn, enum session_policy policy) {
    struct session_name name = name_of(turn->session);
    struct err e;
    enum session_answer answer = session_acquire(turn->table, &name, policy, &turn->lease, &e);
    if (answer == SESSION_REFUSED) turn->code = e.code;
    if (answer == SESSION_GRANTED) turn->granted++;
    return answer;
}

static enum session_answer ask(struct turn *turn) {
    return ask_with(turn, SESSION_QUEUE);
}

/* --- what is remembered: one user message a turn ------------------------------------------ */

static struct turn_record *record_of(const char *text) {
    struct message message = {.role = MESSAGE_USER, .text = str_from(text)};
    return turn_record_new(1, &message, 1);
}

static void release(struct turn *turn, const char *text) {
    session_release(&turn->lease, text ? record_of(text) : NULL);
}

static void lend(struct turn *turn, const char *so_far) {
    session_lend(&turn->lease, history_with(turn->lease.history, record_of(so_far)));
}

static void assert_history(const struct history *history, const char *expected) {
    struct buf out;
    buf_init(&out, 64 * KIB);
    struct message *messages = mem_zero(history->message_count + 1, sizeof(*messages));
    history_messages(history, messages);
    for (size_t i = 0; i < history->message_count; i++) {
        if (i) buf_append_byte(&out, ' ');
        buf_append(&out, messages[i].text);
    }
    assert_str(buf_str(&out), expected);
    free(messages);
    buf_done(&out);
}

static void assert_sees(const struct turn *turn, const char *expected) {
    assert_int_equal(turn->granted, 1);
    assert_history(turn->lease.history, expected);
}

/* What a new turn would see. */
static void assert_remembers(struct session_table *table, struct loop *loop,
                             const char *expected) {
    struct turn turn;
    turn_init(&turn, table, loop, 99);
    assert_int_equal(ask(&turn), SESSION_GRANTED);
    assert_sees(&turn, expected);
    release(&turn, NULL);
}

#define TURNS 6

struct fixture {
    struct loop *loop;
    struct store *store; /* NULL: none */
    struct session_table *table;
    struct turn t[TURNS];
};

static void fixture_init(struct fixture *f, struct store *store) {
    f->loop = loop_new_fake();
    f->store = store;
    f->table = session_table_new(store);
    for (uint64_t i = 0; i < TURNS; i++) turn_init(&f->t[i], f->table, f->loop, i + 1);
}

static void fixture_done(struct fixture *f) {
    loop_turn(f->loop);
    session_table_free(f->table);
    fake_store_free(f->store);
    loop_free(f->loop);
}

static int setup_with(void **state, struct store *store) {
    struct fixture *f = MEM_NEW(struct fixture);
    fixture_init(f, store);
    *state = f;
    return 0;
}

static int setup(void **state) {
    return setup_with(state, NULL);
}

static int setup_stored(void **state) {
    return setup_with(state, fake_store_new());
}

static int teardown(void **state) {
    struct fixture *f = *state;
    fixture_done(f);
    free(f);
    return 0;
}

/* --- one writer --------------------------------------------------------------------------- */

static void turns_have_the_session_in_the_order_they_asked(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_sees(&f->t[0], "");
    assert_int_equal(ask(&f->t[1]), SESSION_WAITS);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    release(&f->t[0], "a");
    assert_int_equal(f->t[1].granted, 0); /* by mail, never from inside */
    loop_turn(f->loop);
    assert_sees(&f->t[1], "a");
    assert_int_equal(f->t[2].granted, 0);
    release(&f->t[1], "b");
    loop_turn(f->loop);
    assert_sees(&f->t[2], "a b");
    release(&f->t[2], NULL);
    assert_remembers(f->table, f->loop, "a b");
}

static void sessions_do_not_wait_for_each_other(void **state) {
    struct fixture *f = *state;
    f->t[1].session = "other";
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    release(&f->t[0], "a");
    release(&f->t[1], "b");
    assert_remembers(f->table, f->loop, "a");
}

static void names_that_look_alike_are_different_sessions(void **state) {
    struct fixture *f = *state;
    static const struct session_name names[] = {
        {STR_INIT("ab"), STR_INIT("c"), STR_INIT("d")},
        {STR_INIT("a"), STR_INIT("bc"), STR_INIT("d")},
        {STR_INIT("a"), STR_INIT("b"), STR_INIT("cd")},
        {STR_INIT("a"), STR_INIT(""), STR_INIT("bcd")},
        {STR_INIT("1:1:a"), STR_INIT("b"), STR_INIT("cd")},
    };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(
            session_acquire(f->table, &names[i], SESSION_REJECT, &f->t[i].lease, &e),
            SESSION_GRANTED);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) release(&f->t[i], NULL);
}

static void a_turn_that_will_not_wait_is_refused(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_int_equal(ask_with(&f->t[1], SESSION_REJECT), SESSION_REFUSED);
    assert_int_equal(f->t[1].code, ERR_ABORTED);
    release(&f->t[0], NULL);
    assert_int_equal(ask_with(&f->t[1], SESSION_REJECT), SESSION_GRANTED);
    release(&f->t[1], NULL);
}

static void a_withdrawn_turn_is_passed_over(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_int_equal(ask(&f->t[1]), SESSION_WAITS);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    assert_true(session_withdraw(&f->t[1].lease));
    release(&f->t[0], NULL);
    assert_false(session_withdraw(&f->t[2].lease)); /* the answer is on its way */
    loop_turn(f->loop);
    assert_int_equal(f->t[1].granted, 0);
    assert_int_equal(f->t[2].granted, 1);
    release(&f->t[2], NULL);
}

static void names_that_are_too_long_are_refused(void **state) {
    struct fixture *f = *state;
    char *text = mem_zero(1, 70 * KIB);
    struct session_name name = {STR("w"), STR("u"), str_of(text, 70 * KIB)};
    struct err e;
    assert_int_equal(session_acquire(f->table, &name, SESSION_QUEUE, &f->t[0].lease, &e),
                     SESSION_REFUSED);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_false(session_has_pending(f->table, &name));
    free(text);
}

/* --- lending ------------------------------------------------------------------------------ */

/* K11 */
static void a_lent_session_is_had_by_a_child(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    lend(&f->t[0], "parent");
    assert_int_equal(ask_with(&f->t[1], SESSION_REJECT),
                     SESSION_GRANTED); /* beats the policy */
    assert_sees(&f->t[1], "parent");
    assert_int_equal(f->t[1].lease.parent, 1);
    assert_false(session_reclaim(&f->t[0].lease));
    release(&f->t[1], "child");
    assert_int_equal(f->t[0].children_done, 0);
    loop_turn(f->loop);
    assert_int_equal(f->t[0].children_done, 1);
    assert_true(session_reclaim(&f->t[0].lease));
    release(&f->t[0], "whole");
    assert_remembers(f->table, f->loop, "whole child");
}

static void a_second_child_sees_what_the_first_one_said(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    lend(&f->t[0], "p");
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS); /* one writer at a time, below too */
    release(&f->t[1], "c1");
    loop_turn(f->loop);
    assert_sees(&f->t[2], "p c1");
    assert_int_equal(f->t[2].lease.parent, 1);
    release(&f->t[2], "c2");
    assert_true(session_reclaim(&f->t[0].lease));
    release(&f->t[0], NULL);
    assert_remembers(f->table, f->loop, "c1 c2");
}

static void children_stand_three_deep_and_no_deeper(void **state) {
    struct fixture *f = *state;
    static const char *const seen[] = {"", "0", "0 1", "0 1 2"};
    for (size_t i = 0; i <= SESSION_DEPTH_MAX; i++) {
        char text[2] = {(char)('0' + i), 0};
        assert_int_equal(ask(&f->t[i]), SESSION_GRANTED);
        assert_sees(&f->t[i], seen[i]);
        assert_int_equal(f->t[i].lease.depth, i);
        lend(&f->t[i], text);
    }
    assert_int_equal(ask(&f->t[4]), SESSION_REFUSED);
    assert_int_equal(f->t[4].code, ERR_RESOURCE_EXHAUSTED);
    for (size_t i = SESSION_DEPTH_MAX + 1; i-- > 0;) {
        assert_true(session_reclaim(&f->t[i].lease));
        release(&f->t[i], NULL);
    }
}

/* Who asked before the deepest turn lent the session is not what that turn waits for. */
static void a_turn_that_queued_before_the_deepest_lent_waits_on(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < SESSION_DEPTH_MAX; i++) {
        assert_int_equal(ask(&f->t[i]), SESSION_GRANTED);
        lend(&f->t[i], "x");
    }
    assert_int_equal(ask(&f->t[3]), SESSION_GRANTED);
    assert_int_equal(ask(&f->t[4]), SESSION_WAITS);
    lend(&f->t[3], "x");
    loop_turn(f->loop);
    assert_int_equal(f->t[4].granted + f->t[4].refused, 0);
    assert_true(session_reclaim(&f->t[3].lease));
    release(&f->t[3], NULL);
    loop_turn(f->loop);
    assert_int_equal(f->t[4].granted, 1); /* as a child of the next one up */
    assert_int_equal(f->t[4].lease.depth, 3);
    release(&f->t[4], NULL);
    for (size_t i = SESSION_DEPTH_MAX; i-- > 0;) release(&f->t[i], NULL);
}

static void while_a_lender_takes_it_back_no_other_turn_gets_it(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    lend(&f->t[0], "p");
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_false(session_reclaim(&f->t[0].lease));
    release(&f->t[1], NULL);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    loop_turn(f->loop);
    assert_int_equal(f->t[2].granted, 0);
    assert_true(session_reclaim(&f->t[0].lease));
    release(&f->t[0], NULL);
    loop_turn(f->loop);
    assert_int_equal(f->t[2].granted, 1);
    release(&f->t[2], NULL);
}

/* The news that the children are done may find their lender gone. */
static void a_lender_may_leave_while_its_notice_is_on_the_way(void **state) {
    struct fixture *f = *state;
    struct turn *lender = mem_alloc(sizeof(*lender));
    turn_init(lender, f->table, f->loop, 77);
    assert_int_equal(ask(lender), SESSION_GRANTED);
    lend(lender, "p");
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_false(session_reclaim(&lender->lease));
    release(&f->t[1], "c");
    release(lender, NULL);
    free(lender);
    loop_turn(f->loop);
    assert_remembers(f->table, f->loop, "c"); /* the child's turn was done all the same */
}

static void a_lender_may_go_while_its_children_run(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    lend(&f->t[0], "0");
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    lend(&f->t[1], "1");
    assert_int_equal(ask(&f->t[2]), SESSION_GRANTED);
    assert_false(session_reclaim(&f->t[0].lease));
    release(&f->t[1], NULL); /* fails in the middle of the stack */
    loop_turn(f->loop);
    assert_int_equal(f->t[0].children_done, 0); /* it got the grandchild instead */
    release(&f->t[2], "2");
    loop_turn(f->loop);
    assert_int_equal(f->t[0].children_done, 1);
    assert_true(session_reclaim(&f->t[0].lease));
    release(&f->t[0], NULL);
    assert_remembers(f->table, f->loop, "2");
}

static void the_outermost_may_go_while_its_children_run(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    lend(&f->t[0], "0");
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    release(&f->t[0], NULL);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    assert_sees(&f->t[1], "0");
    release(&f->t[1], "1");
    loop_turn(f->loop);
    assert_sees(&f->t[2], "1");
    release(&f->t[2], NULL);
}

/* --- what is kept, and for how long ------------------------------------------------------- */

/* L5 */
static void idle_sessions_are_forgotten_the_longest_unused_first(void **state) {
    struct fixture *f = *state;
    struct turn held;
    turn_init(&held, f->table, f->loop, 500);
    held.session = "held";
    assert_int_equal(ask(&held), SESSION_GRANTED);
    char session[32];
    for (size_t i = 0; i < 3 * SESSIONS_RESIDENT_MAX; i++) {
        snprintf(session, sizeof(session), "s%zu", i);
        f->t[0].session = session;
        assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
        release(&f->t[0], "x");
    }
    f->t[0].granted = 0;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_sees(&f->t[0], "x"); /* the newest is still there */
    release(&f->t[0], NULL);
    f->t[0].granted = 0;
    f->t[0].session = "s0";
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_sees(&f->t[0], ""); /* the oldest is not */
    release(&f->t[0], NULL);
    release(&held, "kept");
    assert_int_equal(ask(&held), SESSION_GRANTED);
    assert_history(held.lease.history, "kept");
    release(&held, NULL);
}

static void fill(struct fixture *f, size_t count) {
    char session[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(session, sizeof(session), "s%zu", i);
        f->t[0].session = session;
        assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
        release(&f->t[0], "0123456789");
    }
    f->t[0].session = "s";
}

static void where_memory_is_short_idle_sessions_go_and_no_other(void **state) {
    struct fixture *f = *state;
    fill(f, 100);
    f->t[1].session = "s7";
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_sees(&f->t[1], "0123456789");
    assert_int_equal(session_table_shed(f->table, 25), 30); /* whole ones */
    assert_int_equal(session_table_shed(f->table, SIZE_MAX), 990 - 30);
    assert_int_equal(session_table_shed(f->table, SIZE_MAX), 0);
    release(&f->t[1], "more");
    f->t[2].session = "s7";
    assert_int_equal(ask(&f->t[2]), SESSION_GRANTED);
    assert_sees(&f->t[2], "0123456789 more");
    release(&f->t[2], NULL);
}

static void a_stored_session_leaves_memory_when_unused_for_long(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_WAITS);
    assert_int_equal(session_table_tidy(f->table, 0), 0); /* it is being read */
    fake_store_answer(f->store, 0);
    loop_turn(f->loop);
    loop_turn(f->loop);
    release(&f->t[0], "ten bytes!");
    assert_int_equal(session_table_tidy(f->table, 60000), 0);
    assert_int_equal(session_table_tidy(f->table, 0), 1);
    assert_int_equal(ask(&f->t[1]), SESSION_WAITS); /* it is read again */
    fake_store_answer(f->store, 0);
    loop_turn(f->loop);
    loop_turn(f->loop);
    release(&f->t[1], NULL);
}

static void without_a_store_nothing_goes_for_its_age(void **state) {
    struct fixture *f = *state;
    fill(f, 3);
    assert_int_equal(session_table_tidy(f->table, 0), 0);
    assert_int_equal(session_table_shed(f->table, SIZE_MAX), 30);
}

/* --- many idle sessions ------------------------------------------------------------------- */

static void count_call(void *ctx) {
    ++*(size_t *)ctx;
}

/* A turn of a session that may have left memory. Returns whether it was read from the store, where the fake
 * has nothing. */
static bool take_turn(struct fixture *f, size_t number, size_t bytes) {
    char session[32];
    struct turn *turn = &f->t[0];
    char *text = mem_alloc(bytes + 1);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    snprintf(session, sizeof(session), "s%zu", number);
    turn->session = session;
    enum session_answer answer = ask(turn);
    if (answer == SESSION_WAITS) {
        fake_store_answer(f->store, 0);
        loop_turn(f->loop);
        loop_turn(f->loop);
    }
    release(turn, text);
    turn->session = "s";
    free(text);
    return answer == SESSION_WAITS;
}

/* As many calls as a window has while idle sessions hold `bytes`. */
static void pass_window(struct fixture *f, size_t bytes) {
    for (size_t i = 1; i * bytes < SESSIONS_WINDOW_BYTES; i++)
        assert_int_equal(session_table_trim(f->table, 0), SESSIONS_TRIM_MS);
}

static void after_a_burst_idle_sessions_leave_memory(void **state) {
    struct fixture *f = *state;
    size_t asked = 0;
    session_table_many_with(f->table, count_call, &asked);
    for (size_t i = 0; i < 40; i++) {
        assert_true(take_turn(f, i, 100 * KIB));
        assert_int_equal(asked, session_table_idle_bytes(f->table) > SESSIONS_IDLE_BYTES);
    }
    assert_in_range(session_table_idle_bytes(f->table), 40 * 100 * KIB, 40 * 102 * KIB);
    f->t[1].session = "s0";
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED); /* it is not idle */
    size_t bytes = session_table_idle_bytes(f->table);
    pass_window(f, session_table_idle_bytes(f->table));
    assert_int_equal(session_table_trim(f->table, 0), SESSIONS_TRIM_MS);
    assert_int_equal(session_table_idle_bytes(f->table), bytes);
    pass_window(f, session_table_idle_bytes(f->table));
    assert_int_equal(session_table_trim(f->table, 60000), SESSIONS_TRIM_MS); /* too young */
    assert_int_equal(session_table_idle_bytes(f->table), bytes);
    pass_window(f, session_table_idle_bytes(f->table));
    assert_int_equal(session_table_trim(f->table, 0), 0); /* nothing came meanwhile */
    assert_in_range(session_table_idle_bytes(f->table), SESSIONS_IDLE_BYTES * 7 / 8,
                    SESSIONS_IDLE_BYTES);
    assert_int_equal(asked, 1);
    release(&f->t[1], NULL);
    assert_false(take_turn(f, 0, 1));
    size_t read_again = 0; /* which ones is a matter of their stripes */
    for (size_t i = 1; i < 40; i++) read_again += take_turn(f, i, 1);
    assert_in_range(read_again, 40 - SESSIONS_IDLE_BYTES / (100 * KIB) - 1,
                    40 - SESSIONS_IDLE_BYTES * 7 / 8 / (102 * KIB));
    take_turn(f, 2, SESSIONS_IDLE_BYTES);
    assert_int_equal(asked, 2);
    session_table_shed(f->table, SIZE_MAX);
    assert_int_equal(session_table_idle_bytes(f->table), 0);
}

static void a_steady_load_keeps_its_sessions(void **state) {
    struct fixture *f = *state;
    size_t asked = 0;
    session_table_many_with(f->table, count_call, &asked);
    for (size_t i = 0; i < 320; i++) assert_true(take_turn(f, i, 100 * KIB));
    session_table_trim(f->table, 0);
    for (size_t second = 0; second < 100; second++) { /* each is asked every 32 s */
        for (size_t i = 0; i < 10; i++) assert_false(take_turn(f, (second * 10 + i) % 320, 0));
        assert_int_equal(session_table_trim(f->table, 0), SESSIONS_TRIM_MS);
    }
    assert_int_equal(asked, 1);
    assert_int_equal(session_table_trim(f->table, 0), 0); /* it has ended */
    assert_in_range(session_table_idle_bytes(f->table), 1, SESSIONS_IDLE_BYTES);
}

static void many_sessions_leave_in_several_calls(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < 2000; i++) assert_true(take_turn(f, i, 9 * KIB));
    session_table_trim(f->table, 0);
    size_t calls = 1;
    for (uint64_t again; (again = session_table_trim(f->table, 0)); calls++)
        assert_true(again < SESSIONS_TRIM_MS / 100);
    assert_in_range(calls, 3, 5);
    assert_in_range(session_table_idle_bytes(f->table), 1, SESSIONS_IDLE_BYTES);
}

static void what_idle_sessions_hold_is_counted_exactly(void **state) {
    struct fixture *f = *state;
    struct session_name name = name_of("s0");
    take_turn(f, 0, 1000);
    size_t bytes = session_table_idle_bytes(f->table);
    session_remember(f->table, &name, record_of("a run that waited for a human"));
    assert_true(session_table_idle_bytes(f->table) > bytes + 29);
    bytes = session_table_idle_bytes(f->table);
    f->t[1].session = "s0";
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_int_equal(session_table_idle_bytes(f->table), 0);
    session_remember(f->table, &name, record_of("another"));
    assert_int_equal(session_table_idle_bytes(f->table), 0);
    session_forget(&f->t[1].lease);
    release(&f->t[1], NULL);
    assert_in_range(session_table_idle_bytes(f->table), 1, bytes - 1000);
    assert_int_equal(session_table_tidy(f->table, 0), 1);
    assert_int_equal(session_table_idle_bytes(f->table), 0);
}

static void without_a_store_nothing_is_trimmed(void **state) {
    struct fixture *f = *state;
    size_t asked = 0;
    session_table_many_with(f->table, count_call, &asked);
    for (size_t i = 0; i < 20; i++) assert_false(take_turn(f, i, 100 * KIB));
    for (size_t i = 0; i < 20; i++) assert_int_equal(session_table_trim(f->table, 0), 0);
    assert_int_equal(session_table_shed(f->table, SIZE_MAX), 20 * 100 * KIB);
    assert_int_equal(asked, 0);
}

static void a_history_drops_its_oldest_turns_and_keeps_the_newest(void **state) {
    (void)state;
    struct history *history = history_new();
    char *large = mem_alloc(HISTORY_MAX_BYTES + 2);
    memset(large, 'x', HISTORY_MAX_BYTES + 1);
    large[HISTORY_MAX_BYTES + 1] = '\0';
    for (size_t i = 0; i < HISTORY_TURNS_MAX + 10; i++) {
        char text[8];
        snprintf(text, sizeof(text), "%zu", i);
        struct history *longer = history_with(history, record_of(text));
        history_unref(history);
        history = longer;
    }
    assert_int_equal(history->record_count, HISTORY_TURNS_LEFT + 9); /* dropped once, at 65 */
    assert_str(history->records[0]->messages[0].text, "17");
    struct history *longer = history_with(history, record_of(large));
    assert_int_equal(longer->record_count, 1);
    struct history *longest = history_with(longer, record_of("after"));
    assert_int_equal(longest->record_count, 1);
    assert_str(longest->records[0]->messages[0].text, "after");
    assert_int_equal(longest->text_bytes, 5);
    history_unref(history);
    history_unref(longer);
    history_unref(longest);
    free(large);
}

/* --- the store ---------------------------------------------------------------------------- */

static void a_turn_that_arrives_during_a_load_waits_for_it(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask_with(&f->t[0], SESSION_REJECT), SESSION_WAITS);
    assert_int_equal(ask(&f->t[1]), SESSION_WAITS);
    assert_int_equal(ask_with(&f->t[2], SESSION_REJECT), SESSION_REFUSED);
    assert_int_equal(fake_store_loads(f->store), 1); /* once */
    fake_store_answer(f->store, 0);
    loop_turn(f->loop);
    loop_turn(f->loop);
    assert_sees(&f->t[0], "");
    assert_int_equal(f->t[1].granted, 0);
    release(&f->t[0], "a");
    loop_turn(f->loop);
    assert_sees(&f->t[1], "a");
    release(&f->t[1], NULL);
    assert_int_equal(fake_store_loads(f->store), 0); /* it is resident */
}

static void a_load_that_fails_refuses_who_waits_and_the_next_tries_again(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_WAITS);
    assert_int_equal(ask(&f->t[1]), SESSION_WAITS);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    assert_true(session_withdraw(&f->t[2].lease));
    fake_store_refuse(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    assert_false(session_withdraw(&f->t[1].lease)); /* its session is gone already */
    loop_turn(f->loop);
    assert_int_equal(f->t[0].refused + f->t[1].refused, 2);
    assert_int_equal(f->t[2].refused, 0);
    assert_int_equal(f->t[1].code, ERR_UNAVAILABLE);
    assert_int_equal(ask(&f->t[3]), SESSION_WAITS);
    assert_int_equal(fake_store_loads(f->store), 1);
    fake_store_answer(f->store, 0);
    loop_turn(f->loop);
    loop_turn(f->loop);
    assert_int_equal(f->t[3].granted, 1);
    release(&f->t[3], NULL);
}

static void every_waiter_may_have_left_when_the_store_answers(void **state) {
    (void)state;
    for (size_t fails = 0; fails < 2; fails++) {
        struct fixture f;
        fixture_init(&f, fake_store_new());
        assert_int_equal(ask(&f.t[0]), SESSION_WAITS);
        assert_true(session_withdraw(&f.t[0].lease));
        if (fails) {
            fake_store_refuse(f.store, 0, ERR_UNAVAILABLE);
        } else {
            fake_store_answer(f.store, 0);
        }
        loop_turn(f.loop);
        fixture_done(&f);
    }
}

static void a_session_that_was_forgotten_begins_anew(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    release(&f->t[0], "first");
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_sees(&f->t[1], "first");
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    session_forget(&f->t[1].lease);
    release(&f->t[1], NULL);
    loop_turn(f->loop);
    assert_int_equal(f->t[2].granted, 1);
    assert_sees(&f->t[2], "");
    release(&f->t[2], "second");
    assert_remembers(f->table, f->loop, "second");
}

/* --- pending approvals -------------------------------------------------------------------- */

struct waiting {
    struct session_table *table;
    struct pending_approval parked;
    char text[16];
    struct turn *back; /* asks for its session again; NULL: its run has ended */
};

static enum session_answer come_back(struct waiting *waiting) {
    struct turn *turn = waiting->back;
    struct err e;
    enum session_answer answer =
        session_return(turn->table, &waiting->parked, &turn->lease, &e);
    if (answer == SESSION_REFUSED) turn->code = e.code;
    if (answer == SESSION_GRANTED) turn->granted++;
    return answer;
}

static void take_answer(struct str text, void *ctx) {
    struct waiting *waiting = ctx;
    assert_true(text.len > 0 && text.len < sizeof(waiting->text));
    assert_string_equal(waiting->text, "");
    memcpy(waiting->text, text.at, text.len);
    if (waiting->back)
        (void)come_back(waiting);
    else
        session_forgo(waiting->table, &waiting->parked);
}

static void park(struct fixture *f, size_t i, struct waiting *waiting,
                 struct journal *journal) {
    assert_int_equal(ask(&f->t[i]), SESSION_GRANTED);
    waiting->table = f->table;
    waiting->parked = (struct pending_approval){.name = name_of(f->t[i].session),
                                                .loop = f->loop,
                                                .journal = journal,
                                                .run = f->t[i].lease.run,
                                                .seq = i + 1,
                                                .after_seq = i + 10,
                                                .answer = take_answer,
                                                .ctx = waiting};
    session_park(f->table, &waiting->parked);
    release(&f->t[i], NULL);
}

static void parked_runs_are_answered_the_oldest_first(void **state) {
    struct fixture *f = *state;
    struct session_name name = name_of("s");
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    struct waiting waiting[3] = {0};
    assert_false(session_has_pending(f->table, &name));
    for (size_t i = 0; i < 3; i++) park(f, i, &waiting[i], journal);
    assert_true(session_has_pending(f->table, &name));
    assert_true(session_unpark(f->table, &waiting[1].parked));
    struct journal *found;
    uint64_t seq;
    struct err e;
    assert_int_equal(session_answer_pending(f->table, &name, STR("yes"), &found, &seq, &e),
                     PENDING_TAKEN);
    assert_int_equal(seq, 10);
    assert_ptr_equal(found, journal);
    journal_unref(found);
    assert_false(session_unpark(f->table, &waiting[0].parked)); /* on its way */
    assert_string_equal(waiting[0].text, "");
    loop_turn(f->loop);
    assert_string_equal(waiting[0].text, "yes");
    assert_int_equal(session_answer_pending(f->table, &name, STR("no"), &found, &seq, &e),
                     PENDING_TAKEN);
    assert_int_equal(seq, 12);
    journal_unref(found);
    loop_turn(f->loop);
    assert_string_equal(waiting[2].text, "no");
    assert_int_equal(session_answer_pending(f->table, &name, STR("no"), &found, &seq, &e),
                     PENDING_NONE);
    assert_false(session_has_pending(f->table, &name));
    journal_unref(journal);
}

static void an_answer_without_a_user_reaches_the_run_that_waits_in_the_session(void **state) {
    struct fixture *f = *state;
    struct journal *journal =
        journal_new(&(struct journal_options){.loop = f->loop, .run = 77});
    struct waiting waiting = {0};
    park(f, 0, &waiting, journal);
    struct session_name someone = {STR("w"), ANY_USER, STR("s")};
    struct session_name elsewhere = {STR("x"), ANY_USER, STR("s")};
    struct session_name stranger = {STR("w"), STR("v"), STR("s")};
    struct journal *found;
    uint64_t seq;
    struct err e;
    assert_int_equal(session_answer_pending(f->table, &elsewhere, STR("no"), &found, &seq, &e),
                     PENDING_NONE);
    assert_int_equal(session_answer_pending(f->table, &stranger, STR("no"), &found, &seq, &e),
                     PENDING_NONE);
    assert_int_equal(session_answer_pending(f->table, &someone, STR("yes"), &found, &seq, &e),
                     PENDING_TAKEN);
    assert_int_equal(journal_run(found), 77);
    journal_unref(found);
    assert_int_equal(session_answer_pending(f->table, &someone, STR("no"), &found, &seq, &e),
                     PENDING_NONE); /* one wins */
    loop_turn(f->loop);
    assert_string_equal(waiting.text, "yes");
    journal_unref(journal);
}

/* A run that waits has what it saw of its session; the next turn reads that anew. */
static void a_run_that_waits_for_a_human_keeps_no_session_in_memory(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    struct waiting waiting = {0};
    f->t[0].session = "asked";
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    release(&f->t[0], "kept");
    park(f, 0, &waiting, journal);
    char session[32];
    for (size_t i = 0; i < 3 * SESSIONS_RESIDENT_MAX; i++) {
        snprintf(session, sizeof(session), "s%zu", i);
        f->t[1].session = session;
        assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
        release(&f->t[1], NULL);
    }
    assert_int_equal(ask(&f->t[0]), SESSION_GRANTED);
    assert_history(f->t[0].lease.history, "");
    release(&f->t[0], NULL);
    assert_true(session_unpark(f->table, &waiting.parked));
    journal_unref(journal);
}

static void answer(struct fixture *f, const char *session) {
    const struct session_name name = name_of(session);
    struct journal *found;
    uint64_t seq;
    struct err e;
    assert_int_equal(session_answer_pending(f->table, &name, STR("yes"), &found, &seq, &e),
                     PENDING_TAKEN);
    journal_unref(found);
}

/* Its answer is on the way to it: whoever comes now comes after it. */
static void a_run_that_was_answered_has_its_session_before_new_turns(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    struct waiting first = {.back = &f->t[0]}, second = {.back = &f->t[1]};
    uint64_t before[4] = {0};
    park(f, 0, &first, journal);
    f->t[0].granted = 0;
    park(f, 1, &second, journal);
    f->t[1].granted = 0;
    answer(f, "s");
    answer(f, "s");
    f->t[5].session = "other";
    assert_int_equal(ask(&f->t[5]), SESSION_GRANTED); /* another session does not wait */
    release(&f->t[5], NULL);
    f->t[5].session = "s";
    assert_int_equal(ask_with(&f->t[5], SESSION_REJECT), SESSION_REFUSED);
    assert_int_equal(f->t[5].code, ERR_ABORTED);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    assert_int_equal(session_before(&f->t[2].lease, before, 4), 2);
    assert_int_equal(before[0], f->t[0].lease.run);
    assert_int_equal(before[1], f->t[1].lease.run);
    loop_turn(f->loop);
    assert_string_equal(first.text, "yes");
    assert_string_equal(second.text, "yes");
    assert_int_equal(f->t[0].granted, 1);
    assert_int_equal(f->t[1].granted, 0);
    release(&f->t[0], "first");
    loop_turn(f->loop);
    assert_sees(&f->t[1], "first");
    assert_int_equal(f->t[2].granted, 0);
    release(&f->t[1], "second");
    loop_turn(f->loop);
    assert_sees(&f->t[2], "first second");
    release(&f->t[2], NULL);
    journal_unref(journal);
}

static void a_run_that_was_answered_passes_turns_that_wait(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    struct waiting waiting = {.back = &f->t[0]};
    park(f, 0, &waiting, journal);
    f->t[0].granted = 0;
    assert_int_equal(ask(&f->t[1]), SESSION_GRANTED);
    assert_int_equal(ask(&f->t[2]), SESSION_WAITS);
    answer(f, "s");
    release(&f->t[1], NULL); /* before the answer has reached the run */
    loop_turn(f->loop);
    assert_string_equal(waiting.text, "yes");
    assert_int_equal(f->t[0].granted, 1);
    assert_int_equal(f->t[2].granted, 0);
    release(&f->t[0], NULL);
    loop_turn(f->loop);
    assert_int_equal(f->t[2].granted, 1);
    release(&f->t[2], NULL);
    journal_unref(journal);
}

/* It ended while its answer was on the way; or nobody answered, and it ends of that. */
static void turns_do_not_wait_for_a_run_that_does_not_come_back(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    for (int expires = 0; expires < 2; expires++) {
        struct waiting waiting = {0};
        park(f, 0, &waiting, journal);
        if (expires)
            assert_true(session_expire(f->table, &waiting.parked));
        else
            answer(f, "s");
        assert_false(session_unpark(f->table, &waiting.parked));
        assert_false(session_expire(f->table, &waiting.parked));
        f->t[1].granted = 0;
        assert_int_equal(ask(&f->t[1]), SESSION_WAITS);
        if (expires) session_forgo(f->table, &waiting.parked);
        loop_turn(f->loop);
        loop_turn(f->loop);
        assert_int_equal(f->t[1].granted, 1);
        release(&f->t[1], NULL);
    }
    journal_unref(journal);
}

/* A run that waits for a human, of a session that is not in memory. */
static void park_stored(struct fixture *f, struct waiting *waiting, struct journal *journal) {
    waiting->parked = (struct pending_approval){.name = name_of("s"),
                                                .loop = f->loop,
                                                .journal = journal,
                                                .run = f->t[0].lease.run,
                                                .seq = 1,
                                                .answer = take_answer,
                                                .ctx = waiting};
    session_park(f->table, &waiting->parked);
}

/* The session left memory while its run waited, and is read again; until then it is not idle. */
static void a_turn_refused_for_an_answered_one_leaves_the_session_to_its_read(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    struct waiting waiting = {.table = f->table, .back = &f->t[0]};
    park_stored(f, &waiting, journal);
    answer(f, "s");
    assert_int_equal(ask_with(&f->t[1], SESSION_REJECT), SESSION_REFUSED);
    assert_int_equal(f->t[1].code, ERR_ABORTED);
    assert_int_equal(session_table_tidy(f->table, 0), 0);
    loop_turn(f->loop);
    assert_string_equal(waiting.text, "yes");
    assert_int_equal(f->t[0].granted, 0);
    assert_int_equal(fake_store_loads(f->store), 1);
    fake_store_answer(f->store, 0);
    loop_turn(f->loop);
    loop_turn(f->loop);
    assert_int_equal(f->t[0].granted, 1);
    release(&f->t[0], NULL);
    assert_int_equal(session_table_tidy(f->table, 0), 1);
    journal_unref(journal);
}

/* It waits for the read alone, and not for the run that is answered meanwhile. */
static void a_turn_that_will_not_wait_does_not_wait_for_an_answered_one(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_new(&(struct journal_options){.loop = f->loop});
    for (int back = 0; back < 2; back++) { /* before the session was read, or after it */
        struct waiting waiting = {.table = f->table, .back = &f->t[0]};
        park_stored(f, &waiting, journal);
        f->t[0].granted = f->t[1].refused = 0;
        assert_int_equal(ask_with(&f->t[1], SESSION_REJECT), SESSION_WAITS);
        answer(f, "s");
        if (back) loop_turn(f->loop);
        fake_store_answer(f->store, 0);
        loop_turn(f->loop);
        loop_turn(f->loop);
        assert_string_equal(waiting.text, "yes");
        assert_int_equal(f->t[0].granted, 1);
        assert_int_equal(f->t[1].granted, 0);
        assert_int_equal(f->t[1].refused, 1);
        assert_int_equal(f->t[1].code, ERR_ABORTED);
        release(&f->t[0], NULL);
        assert_int_equal(session_table_tidy(f->table, 0), 1);
    }
    journal_unref(journal);
}

/* --- two loops, and two threads ----------------------------------------------------------- */

static void each_waiter_is_notified_on_its_own_loop(void **state) {
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    struct loop *other = loop_new_fake();
    turn_init(&f.t[1], f.table, other, 2);
    turn_init(&f.t[3], f.table, other, 4);
    assert_int_equal(ask(&f.t[0]), SESSION_GRANTED);
    assert_int_equal(ask(&f.t[1]), SESSION_WAITS);
    lend(&f.t[0], "p");
    loop_turn(f.loop);
    assert_int_equal(f.t[1].granted, 0);
    loop_turn(other);
    assert_sees(&f.t[1], "p");
    assert_false(session_reclaim(&f.t[0].lease));
    release(&f.t[1], "c");
    loop_turn(other);
    assert_int_equal(f.t[0].children_done, 0);
    loop_turn(f.loop);
    assert_int_equal(f.t[0].children_done, 1);
    release(&f.t[0], NULL);
    fixture_done(&f);
    loop_free(other);
}

/* Turns on several real loops that take, lend, take back, withdraw and release. */
#define PLAYERS 4
#define ROUNDS 3000

struct player {
    struct loop *loop;
    struct session_table *table;
    struct lease lease;
    struct task next;
    struct timer again;
    atomic_uint *alone; /* how many hold the one session now */
    size_t rounds;
    bool waits, lent;
};

static void play(void *ctx);

static void play_release(struct player *p) {
    assert_int_equal(atomic_fetch_sub(p->alone, 1), 1);
    session_release(&p->lease, p->rounds % 3 ? record_of("x") : NULL);
    timer_start(&p->again, 0);
}

static void play_granted(void *ctx) {
    struct player *p = ctx;
    p->waits = false;
    assert_int_equal(atomic_fetch_add(p->alone, 1), 0);
    if (p->rounds % 2) {
        play_release(p);
        return;
    }
    /* Lent: another turn may write meanwhile. */
    p->lent = true;
    atomic_fetch_sub(p->alone, 1);
    session_lend(&p->lease, history_with(p->lease.history, record_of("p")));
    timer_start(&p->again, 0);
}

static void play_back(struct player *p) {
    if (p->rounds % 8 == 0) { /* it goes without looking back */
        p->lent = false;
        session_release(&p->lease, NULL);
        timer_start(&p->again, 0);
        return;
    }
    if (!session_reclaim(&p->lease)) return; /* children_done */
    p->lent = false;
    assert_int_equal(atomic_fetch_add(p->alone, 1), 0);
    play_release(p);
}

static void play_refused(const struct err *why, void *ctx) {
    (void)why;
    struct player *p = ctx;
    p->waits = false;
    timer_start(&p->again, 0);
}

static void play_children_done(void *ctx) {
    play_back(ctx);
}

static const struct lease_events player_events = {play_granted, play_refused,
                                                  play_children_done};

static void play(void *ctx) {
    struct player *p = ctx;
    if (p->lent) {
        play_back(p);
        return;
    }
    if (p->waits && session_withdraw(&p->lease)) p->waits = false;
    if (p->waits) return;
    if (p->rounds++ == ROUNDS) {
        loop_stop(p->loop);
        return;
    }
    struct session_name name = name_of("one");
    struct err e;
    switch (session_acquire(p->table, &name, p->rounds % 5 ? SESSION_QUEUE : SESSION_REJECT,
                            &p->lease, &e)) {
    case SESSION_GRANTED: play_granted(p); break;
    case SESSION_REFUSED: timer_start(&p->again, 0); break;
    case SESSION_WAITS:
        p->waits = true;
        if (p->rounds % 7 == 0) timer_start(&p->again, 0); /* loses patience */
        break;
    }
}

static void *run_loop(void *ctx) {
    loop_run(((struct player *)ctx)->loop);
    return NULL;
}

static void loops_on_threads_share_a_session_one_at_a_time(void **state) {
    (void)state;
    struct session_table *table = session_table_new(NULL);
    struct player players[PLAYERS] = {0};
    pthread_t threads[PLAYERS];
    atomic_uint alone = 0;
    for (size_t i = 0; i < PLAYERS; i++) {
        struct player *p = &players[i];
        *p = (struct player){.loop = loop_new(), .table = table, .alone = &alone};
        p->lease =
            (struct lease){.loop = p->loop, .run = i + 1, .events = &player_events, .ctx = p};
        timer_init(&p->again, p->loop, play, p);
        timer_start(&p->again, 0);
    }
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_loop, &players[i]), 0);
    }
    for (size_t i = 0; i < PLAYERS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_int_equal(players[i].rounds, ROUNDS + 1);
        loop_free(players[i].loop);
    }
    session_table_free(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define STORED(name) cmocka_unit_test_setup_teardown(name, setup_stored, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        TEST(turns_have_the_session_in_the_order_they_asked),
        TEST(sessions_do_not_wait_for_each_other),
        TEST(names_that_look_alike_are_different_sessions),
        TEST(a_turn_that_will_not_wait_is_refused),
        TEST(a_withdrawn_turn_is_passed_over),
        TEST(names_that_are_too_long_are_refused),
        TEST(a_lent_session_is_had_by_a_child),
        TEST(a_second_child_sees_what_the_first_one_said),
        TEST(children_stand_three_deep_and_no_deeper),
        TEST(a_turn_that_queued_before_the_deepest_lent_waits_on),
        TEST(while_a_lender_takes_it_back_no_other_turn_gets_it),
        TEST(a_lender_may_leave_while_its_notice_is_on_the_way),
        TEST(a_lender_may_go_while_its_children_run),
        TEST(the_outermost_may_go_while_its_children_run),
        TEST(idle_sessions_are_forgotten_the_longest_unused_first),
        TEST(where_memory_is_short_idle_sessions_go_and_no_other),
        STORED(a_stored_session_leaves_memory_when_unused_for_long),
        TEST(without_a_store_nothing_goes_for_its_age),
        STORED(after_a_burst_idle_sessions_leave_memory),
        STORED(a_steady_load_keeps_its_sessions),
        STORED(many_sessions_leave_in_several_calls),
        STORED(what_idle_sessions_hold_is_counted_exactly),
        TEST(without_a_store_nothing_is_trimmed),
        cmocka_unit_test(a_history_drops_its_oldest_turns_and_keeps_the_newest),
        STORED(a_turn_that_arrives_during_a_load_waits_for_it),
        STORED(a_load_that_fails_refuses_who_waits_and_the_next_tries_again),
        cmocka_unit_test(every_waiter_may_have_left_when_the_store_answers),
        TEST(a_session_that_was_forgotten_begins_anew),
        TEST(parked_runs_are_answered_the_oldest_first),
        TEST(an_answer_without_a_user_reaches_the_run_that_waits_in_the_session),
        TEST(a_run_that_waits_for_a_human_keeps_no_session_in_memory),
        TEST(a_run_that_was_answered_has_its_session_before_new_turns),
        TEST(a_run_that_was_answered_passes_turns_that_wait),
        TEST(turns_do_not_wait_for_a_run_that_does_not_come_back),
        STORED(a_turn_refused_for_an_answered_one_leaves_the_session_to_its_read),
        STORED(a_turn_that_will_not_wait_does_not_wait_for_an_answered_one),
        cmocka_unit_test(each_waiter_is_notified_on_its_own_loop),
        cmocka_unit_test(loops_on_threads_share_a_session_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
