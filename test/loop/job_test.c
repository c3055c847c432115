#include "loop/job.h"

#include "base/mem.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct piece {
    struct job job;
    struct loop *loop;
    pthread_t worker;
    pthread_mutex_t *gate; /* waited for by the work, or NULL */
    int worked, done, again;
    int *open; /* stops the loop at 0 */
};

static void work(void *ctx) {
    struct piece *piece = ctx;
    if (piece->gate) {
        pthread_mutex_lock(piece->gate);
        pthread_mutex_unlock(piece->gate);
    }
    piece->worker = pthread_self();
    piece->worked++;
}

static void done(void *ctx) {
    struct piece *piece = ctx;
    piece->done++;
    if (piece->again-- > 0) {
        job_start(&piece->job, piece->loop, work, done, piece);
        return;
    }
    if (piece->open && --*piece->open == 0) loop_stop(piece->loop);
}

static void a_job_works_on_another_thread_and_is_done_on_its_loop(void **state) {
    (void)state;
    struct loop *loop = loop_new();
    int open = 1;
    struct piece piece = {.loop = loop, .open = &open};
    job_start(&piece.job, loop, work, done, &piece);
    assert_int_equal(piece.done, 0);
    loop_run(loop);
    assert_int_equal(piece.worked, 1);
    assert_int_equal(piece.done, 1);
    assert_false(pthread_equal(piece.worker, pthread_self()));
    assert_true(job_cancel(&piece.job));
    loop_free(loop);
}

static void a_job_may_start_again_when_it_is_done(void **state) {
    (void)state;
    struct loop *loop = loop_new();
    int open = 1;
    struct piece piece = {.loop = loop, .open = &open, .again = 99};
    job_start(&piece.job, loop, work, done, &piece);
    loop_run(loop);
    assert_int_equal(piece.worked, 100);
    assert_int_equal(piece.done, 100);
    loop_free(loop);
}

/* Many more jobs than the pool has threads, all held up: the last ones wait. */
enum { MANY = 200 };

static void a_waiting_job_is_cancelled_and_its_owner_may_go(void **state) {
    (void)state;
    struct loop *loop = loop_new();
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    struct piece *pieces[MANY];
    int open = MANY;
    for (int i = 0; i < MANY; i++) {
        pieces[i] = MEM_NEW(struct piece);
        *pieces[i] = (struct piece){.loop = loop, .gate = &gate, .open = &open};
        job_start(&pieces[i]->job, loop, work, done, pieces[i]);
    }
    int cancelled = 0;
    for (int i = MANY - 1; i >= MANY / 2; i--) {
        if (!job_cancel(&pieces[i]->job)) continue;
        free(pieces[i]);
        pieces[i] = NULL;
        cancelled++;
        open--;
    }
    assert_in_range(cancelled, 1, MANY / 2);
    pthread_mutex_unlock(&gate);
    loop_run(loop);
    for (int i = 0; i < MANY; i++) {
        if (!pieces[i]) continue;
        assert_int_equal(pieces[i]->done, 1);
        free(pieces[i]);
    }
    loop_free(loop);
    pthread_mutex_destroy(&gate);
}

static void a_job_that_works_is_not_cancelled(void **state) {
    (void)state;
    struct loop *loop = loop_new();
    int open = 1;
    struct piece piece = {.loop = loop, .open = &open};
    /* Only the loop reports it as done, and it does not turn yet. */
    job_start(&piece.job, loop, work, done, &piece);
    while (job_cancel(&piece.job)) job_start(&piece.job, loop, work, done, &piece);
    loop_run(loop);
    assert_int_equal(piece.worked, 1);
    assert_int_equal(piece.done, 1);
    loop_free(loop);
}

static void a_fake_loop_does_the_work_in_its_turn(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct piece piece = {.loop = loop};
    job_start(&piece.job, loop, work, done, &piece);
    assert_int_equal(piece.worked, 0);
    loop_turn(loop);
    assert_int_equal(piece.worked, 1);
    assert_int_equal(piece.done, 1);

    job_start(&piece.job, loop, work, done, &piece);
    assert_true(job_cancel(&piece.job));
    assert_true(job_cancel(&piece.job));
    loop_turn(loop);
    assert_int_equal(piece.worked, 1);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_works_on_another_thread_and_is_done_on_its_loop),
        cmocka_unit_test(a_job_may_start_again_when_it_is_done),
        cmocka_unit_test(a_waiting_job_is_cancelled_and_its_owner_may_go),
        cmocka_unit_test(a_job_that_works_is_not_cancelled),
        cmocka_unit_test(a_fake_loop_does_the_work_in_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
