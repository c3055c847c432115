/* What loop.h promises, on a fake loop with a fake clock and on a real one with threads. */
#include "loop/loop.h"

#include "base/buf.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

static struct buf seen;

static int setup(void **state) {
    (void)state;
    buf_init(&seen, 4096);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_done(&seen);
    return 0;
}

static void assert_seen(const char *expected) {
    struct str text = buf_str(&seen);
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.at, expected, text.len);
}

static void say(const char *text) {
    buf_append(&seen, str_from(text));
}

/* A context is not const, so the letters that tests hand to note() are arrays. */
static char a_name[] = "a", b_name[] = "b", c_name[] = "c", d_name[] = "d";

static void note(void *ctx) {
    say(ctx);
}

/* --- deferred tasks ---------------------------------------------------------------------- */

static void deferred_tasks_run_once_in_order_at_the_end_of_the_turn(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct task a, b;
    task_init(&a, note, a_name);
    task_init(&b, note, b_name);
    loop_defer(loop, &b);
    loop_defer(loop, &a);
    loop_defer(loop, &b);
    assert_seen("");
    loop_turn(loop);
    assert_seen("ba");
    loop_turn(loop);
    assert_seen("ba");
    loop_free(loop);
}

static void a_cancelled_task_does_not_run(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct task a, b;
    task_init(&a, note, a_name);
    task_init(&b, note, b_name);
    task_cancel(&a);
    loop_defer(loop, &a);
    loop_defer(loop, &b);
    task_cancel(&a);
    task_cancel(&a);
    loop_turn(loop);
    assert_seen("b");
    loop_free(loop);
}

struct again {
    struct loop *loop;
    struct task task;
    int left;
};

static void run_again(void *ctx) {
    struct again *again = ctx;
    say("x");
    if (--again->left) loop_defer(again->loop, &again->task);
}

static void a_task_that_defers_itself_runs_again_in_the_same_turn(void **state) {
    (void)state;
    struct again again = {.loop = loop_new_fake(), .left = 3};
    task_init(&again.task, run_again, &again);
    loop_defer(again.loop, &again.task);
    loop_turn(again.loop);
    assert_seen("xxx");
    loop_free(again.loop);
}

/* --- timers ------------------------------------------------------------------------------ */

static void timers_fire_by_time_and_then_by_start(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct timer a, b, c, d;
    timer_init(&a, loop, note, a_name);
    timer_init(&b, loop, note, b_name);
    timer_init(&c, loop, note, c_name);
    timer_init(&d, loop, note, d_name);
    timer_start(&a, 20);
    timer_start(&b, 10);
    timer_start(&c, 20);
    timer_start(&d, 0);
    assert_true(timer_waits(&d));
    assert_seen("");
    loop_advance(loop, 0);
    assert_seen("d");
    loop_advance(loop, 9);
    assert_seen("d");
    loop_advance(loop, 1);
    assert_seen("db");
    loop_advance(loop, 100);
    assert_seen("dbac");
    assert_false(timer_waits(&a));
    assert_int_equal(loop_now_ms(loop), 110);
    loop_free(loop);
}

static void starting_a_timer_again_moves_it_and_stopping_forgets_it(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct timer a, b;
    timer_init(&a, loop, note, a_name);
    timer_init(&b, loop, note, b_name);
    timer_stop(&a);
    timer_start(&a, 10);
    timer_start(&b, 20);
    timer_start(&a, 30);
    loop_advance(loop, 25);
    assert_seen("b");
    timer_stop(&a);
    loop_advance(loop, 25);
    assert_seen("b");
    timer_start(&a, UINT64_MAX);
    loop_advance(loop, 1000000);
    assert_seen("b");
    timer_stop(&a);
    loop_free(loop);
}

struct restart {
    struct loop *loop;
    struct timer timer;
    uint64_t in_ms;
    int left;
    uint64_t moments[8];
    int count;
};

static void fire_and_restart(void *ctx) {
    struct restart *restart = ctx;
    restart->moments[restart->count++] = loop_now_ms(restart->loop);
    if (--restart->left) timer_start(&restart->timer, restart->in_ms);
}

static void each_timer_sees_its_own_moment(void **state) {
    (void)state;
    struct restart restart = {.loop = loop_new_fake(), .in_ms = 7, .left = 3};
    timer_init(&restart.timer, restart.loop, fire_and_restart, &restart);
    timer_start(&restart.timer, 7);
    loop_advance(restart.loop, 1000);
    assert_int_equal(restart.count, 3);
    assert_int_equal(restart.moments[0], 7);
    assert_int_equal(restart.moments[1], 14);
    assert_int_equal(restart.moments[2], 21);
    loop_free(restart.loop);
}

struct defers {
    struct loop *loop;
    struct task task;
};

static void defer_it(void *ctx) {
    struct defers *defers = ctx;
    say("t");
    loop_defer(defers->loop, &defers->task);
}

static void what_a_timer_defers_runs_before_the_next_moment(void **state) {
    (void)state;
    struct defers defers = {.loop = loop_new_fake()};
    task_init(&defers.task, note, d_name);
    struct timer a, b, c;
    timer_init(&a, defers.loop, defer_it, &defers);
    timer_init(&b, defers.loop, defer_it, &defers);
    timer_init(&c, defers.loop, defer_it, &defers);
    timer_start(&a, 1);
    timer_start(&b, 1);
    timer_start(&c, 2);
    loop_advance(defers.loop, 5);
    assert_seen("ttdtd");
    loop_free(defers.loop);
}

struct stopper {
    struct timer *other;
};

static void stop_other(void *ctx) {
    struct stopper *stopper = ctx;
    say("s");
    timer_stop(stopper->other);
}

static void a_timer_may_stop_another_of_the_same_moment(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct timer a, b;
    struct stopper stopper = {&b};
    timer_init(&a, loop, stop_other, &stopper);
    timer_init(&b, loop, note, b_name);
    timer_start(&a, 1);
    timer_start(&b, 1);
    loop_advance(loop, 5);
    assert_seen("s");
    loop_free(loop);
}

#define MANY 500

struct tick {
    struct timer timer;
    uint64_t due_ms;
    uint64_t fired_ms;
};

static void keep_moment(void *ctx) {
    struct tick *tick = ctx;
    tick->fired_ms = loop_now_ms(tick->timer.loop);
}

static void many_timers_started_moved_and_stopped_at_random_fire_when_due(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct tick *ticks = mem_zero(MANY, sizeof(struct tick));
    unsigned seed = 7;
    for (size_t i = 0; i < MANY; i++) timer_init(&ticks[i].timer, loop, keep_moment, &ticks[i]);
    for (size_t step = 0; step < 20 * MANY; step++) {
        struct tick *tick = &ticks[(size_t)rand_r(&seed) % MANY];
        uint64_t in_ms = 1 + (uint64_t)rand_r(&seed) % 1000;
        tick->due_ms = in_ms;
        timer_start(&tick->timer, in_ms);
        if (in_ms % 5 == 0) timer_stop(&tick->timer);
    }
    loop_advance(loop, 2000);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(ticks[i].fired_ms, ticks[i].due_ms % 5 ? ticks[i].due_ms : 0);
    free(ticks);
    loop_free(loop);
}

/* What its callback does to itself and to others, chosen at random. */
struct restless {
    struct timer timer;
    struct restless *all;
    unsigned *seed;
    uint64_t due_ms; /* 0: it does not wait */
    size_t fired;
};

static void start_restless(struct restless *one) {
    uint64_t in_ms = (uint64_t)rand_r(one->seed) % 50;
    one->due_ms = loop_now_ms(one->timer.loop) + in_ms;
    timer_start(&one->timer, in_ms);
}

static void be_restless(void *ctx) {
    struct restless *one = ctx;
    struct restless *other = &one->all[(size_t)rand_r(one->seed) % MANY];
    assert_int_equal(one->due_ms, loop_now_ms(one->timer.loop));
    assert_false(timer_waits(&one->timer));
    one->due_ms = 0;
    one->fired++;
    int choice = rand_r(one->seed) % 8;
    if (choice == 0) {
        timer_stop(&other->timer);
        other->due_ms = 0;
    }
    if (choice == 1) start_restless(other);
    if (choice != 2) start_restless(one);
    if (choice == 3) timer_stop(&one->timer);
    if (choice == 3) one->due_ms = 0;
    if (choice == 4) start_restless(other);
}

static void timers_that_restart_and_stop_each_other_fire_when_due(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct restless *all = mem_zero(MANY, sizeof(struct restless));
    unsigned seed = 11;
    for (size_t i = 0; i < MANY; i++) {
        all[i] = (struct restless){.all = all, .seed = &seed};
        timer_init(&all[i].timer, loop, be_restless, &all[i]);
    }
    size_t fired = 0;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < MANY; i++) start_restless(&all[i]);
        loop_advance(loop, 20);
        for (size_t i = 0; i < MANY; i++) {
            assert_int_equal(timer_waits(&all[i].timer), all[i].due_ms != 0);
            assert_true(!all[i].due_ms || all[i].due_ms > loop_now_ms(loop));
        }
    }
    for (size_t i = 0; i < MANY; i++) {
        fired += all[i].fired;
        timer_stop(&all[i].timer);
    }
    assert_true(fired > MANY);
    free(all);
    loop_free(loop);
}

/* --- mail -------------------------------------------------------------------------------- */

struct echo {
    struct loop *loop;
    struct mail mail, reply;
};

static void post_reply(void *ctx) {
    struct echo *echo = ctx;
    say("m");
    loop_post(echo->loop, &echo->reply, note, c_name);
}

static void mail_is_read_in_a_later_turn_in_the_order_posted(void **state) {
    (void)state;
    struct echo echo = {.loop = loop_new_fake()};
    struct mail last;
    loop_post(echo.loop, &echo.mail, post_reply, &echo);
    loop_post(echo.loop, &last, note, b_name);
    assert_seen("");
    loop_turn(echo.loop);
    assert_seen("mb");
    loop_turn(echo.loop);
    assert_seen("mbc");
    loop_free(echo.loop);
}

/* --- a real loop ------------------------------------------------------------------------- */

struct script {
    struct loop *loop;
    struct task task;
    struct timer timer;
    struct mail mail;
};

static void end_of_script(void *ctx) {
    struct script *script = ctx;
    say("stop;");
    loop_stop(script->loop);
}

static void script_mail(void *ctx) {
    struct script *script = ctx;
    say("mail;");
    task_init(&script->task, end_of_script, script);
    loop_defer(script->loop, &script->task);
}

static void script_task(void *ctx) {
    struct script *script = ctx;
    say("task;");
    loop_post(script->loop, &script->mail, script_mail, script);
}

static void script_timer(void *ctx) {
    struct script *script = ctx;
    say("timer;");
    task_init(&script->task, script_task, script);
    loop_defer(script->loop, &script->task);
}

static void script_begin(void *ctx) {
    struct script *script = ctx;
    say("begin;");
    timer_start(&script->timer, 1);
}

static void a_real_loop_runs_timers_tasks_and_mail_and_then_stops(void **state) {
    (void)state;
    struct script script = {.loop = loop_new()};
    assert_non_null(loop_uv(script.loop));
    timer_init(&script.timer, script.loop, script_timer, &script);
    task_init(&script.task, script_begin, &script);
    loop_defer(script.loop, &script.task);
    loop_run(script.loop);
    assert_seen("begin;timer;task;mail;stop;");
    loop_free(script.loop);
}

static void a_real_timer_that_restarts_at_once_lets_other_things_happen(void **state) {
    (void)state;
    struct script script = {.loop = loop_new()};
    struct restart restart = {.loop = script.loop, .in_ms = 0, .left = 5};
    timer_init(&restart.timer, script.loop, fire_and_restart, &restart);
    timer_init(&script.timer, script.loop, end_of_script, &script);
    timer_start(&restart.timer, 0);
    timer_start(&script.timer, 20);
    loop_run(script.loop);
    assert_int_equal(restart.count, 5);
    loop_free(script.loop);
}

#define POSTERS 4
#define POSTS 2000

struct letter {
    struct mail mail;
    struct post_office *office;
    size_t poster, number;
};

struct post_office {
    struct loop *loop;
    size_t next[POSTERS];
    size_t total;
    bool in_order;
};

struct poster {
    struct post_office *office;
    struct letter *letters;
    size_t number;
};

static void read_letter(void *ctx) {
    struct letter *letter = ctx;
    struct post_office *office = letter->office;
    if (office->next[letter->poster]++ != letter->number) office->in_order = false;
    if (++office->total == (size_t)POSTERS * POSTS) loop_stop(office->loop);
}

static void *post_all(void *ctx) {
    struct poster *poster = ctx;
    for (size_t i = 0; i < POSTS; i++) {
        struct letter *letter = &poster->letters[i];
        *letter =
            (struct letter){.office = poster->office, .poster = poster->number, .number = i};
        loop_post(poster->office->loop, &letter->mail, read_letter, letter);
    }
    return NULL;
}

static void mail_of_many_threads_arrives_whole_and_in_each_ones_order(void **state) {
    (void)state;
    struct post_office office = {.loop = loop_new(), .in_order = true};
    struct poster posters[POSTERS];
    pthread_t threads[POSTERS];
    for (size_t i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){&office, mem_zero(POSTS, sizeof(struct letter)), i};
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    loop_run(office.loop);
    for (size_t i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
        free(posters[i].letters);
    }
    assert_int_equal(office.total, POSTERS * POSTS);
    assert_true(office.in_order);
    loop_free(office.loop);
}

static void stop_it(void *ctx) {
    say("stopped");
    loop_stop(ctx);
}

/* Posted while the loop stopped, so that it is delivered by loop_free(). */
static void a_loop_is_freed_whose_last_mail_stops_it(void **state) {
    (void)state;
    struct loop *loop = loop_new();
    struct mail mail;
    loop_post(loop, &mail, stop_it, loop);
    loop_free(loop);
    assert_seen("stopped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deferred_tasks_run_once_in_order_at_the_end_of_the_turn,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_task_does_not_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_task_that_defers_itself_runs_again_in_the_same_turn,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(timers_fire_by_time_and_then_by_start, setup, teardown),
        cmocka_unit_test_setup_teardown(starting_a_timer_again_moves_it_and_stopping_forgets_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(each_timer_sees_its_own_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_timer_defers_runs_before_the_next_moment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_timer_may_stop_another_of_the_same_moment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            many_timers_started_moved_and_stopped_at_random_fire_when_due, setup, teardown),
        cmocka_unit_test_setup_teardown(timers_that_restart_and_stop_each_other_fire_when_due,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(mail_is_read_in_a_later_turn_in_the_order_posted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_real_loop_runs_timers_tasks_and_mail_and_then_stops,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_real_timer_that_restarts_at_once_lets_other_things_happen, setup, teardown),
        cmocka_unit_test_setup_teardown(
            mail_of_many_threads_arrives_whole_and_in_each_ones_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loop_is_freed_whose_last_mail_stops_it, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
