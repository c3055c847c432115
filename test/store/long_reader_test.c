/* The reader's thread: questions in steps, pauses of the store's thread, and its end. */
#include "store/long_reader.h"

#include "fixture.h"
#include "helper/assert_str.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define STEPS 5

struct question {
    struct long_reader_task task;
    struct fixture *f;
    char letter;
    int steps;
    bool fails;
    enum err_code code;
    bool answered;
};

/* Written by the reader's thread; read when it rests. */
static struct {
    _Atomic int steps, inside, opens;
    _Atomic bool blocks;
    char order[64];
    sqlite3 *handle;
} seen;

static bool step(struct database *db, void *ctx, bool *ret_more, struct err *e) {
    struct question *question = ctx;
    int64_t value = 0;
    assert_int_equal(atomic_fetch_add(&seen.inside, 1), 0);
    while (atomic_load(&seen.blocks)) sched_yield();
    if (db->handle != seen.handle) atomic_fetch_add(&seen.opens, 1);
    seen.handle = db->handle;
    bool ok = database_number(db, "SELECT count(*) FROM meta", &value, e);
    assert_true(value > 0);
    int number = atomic_fetch_add(&seen.steps, 1);
    if (number < (int)sizeof(seen.order) - 1) seen.order[number] = question->letter;
    *ret_more = ++question->steps < STEPS;
    atomic_fetch_sub(&seen.inside, 1);
    if (question->fails && !*ret_more) return err_set(e, ERR_NOT_FOUND, "not there");
    return ok;
}

static void on_done(const struct err *failed, void *ctx) {
    struct question *question = ctx;
    assert_false(question->answered);
    question->answered = true;
    question->code = failed ? failed->code : ERR_NONE;
    loop_stop(question->f->loop);
}

static struct question question_of(struct fixture *f, char letter) {
    return (struct question){
        .task = {.step = step, .home = f->loop, .on_done = on_done}, .f = f, .letter = letter};
}

static void ask(struct long_reader *reader, struct question *question) {
    question->task.ctx = question;
    long_reader_ask(reader, &question->task);
}

static void wait_for(struct question *question) {
    while (!question->answered) loop_run(question->f->loop);
}

static struct long_reader *reader_of(const struct fixture *f) {
    char path[128];
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    return long_reader_new(str_from(path));
}

static int setup(void **state) {
    struct fixture *f = MEM_NEW(struct fixture);
    fixture_init(f);
    fixture_open(f);
    memset(&seen, 0, sizeof(seen));
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture_done(*state);
    free(*state);
    return 0;
}

static void questions_take_turns(void **state) {
    struct fixture *f = *state;
    struct long_reader *reader = reader_of(f);
    struct question a = question_of(f, 'a'), b = question_of(f, 'b');
    ask(reader, &a);
    ask(reader, &b);
    assert_int_equal(atomic_load(&seen.steps), 0); /* it is closed until it is resumed */
    long_reader_resume(reader, LONG_READER_CLOSED);
    wait_for(&a);
    wait_for(&b);
    assert_string_equal(seen.order, "ababababab");
    assert_int_equal(a.code, ERR_NONE);
    long_reader_free(reader);
}

static void a_question_that_fails_says_why_and_the_next_is_answered(void **state) {
    struct fixture *f = *state;
    struct long_reader *reader = reader_of(f);
    struct question a = question_of(f, 'a'), b = question_of(f, 'b');
    a.fails = true;
    long_reader_resume(reader, LONG_READER_CLOSED);
    ask(reader, &a);
    wait_for(&a);
    ask(reader, &b);
    wait_for(&b);
    assert_int_equal(a.code, ERR_NOT_FOUND);
    assert_int_equal(b.code, ERR_NONE);
    long_reader_free(reader);
}

static void *let_go(void *ctx) {
    (void)ctx;
    for (int i = 0; i < 1000; i++) sched_yield();
    atomic_store(&seen.blocks, false);
    return NULL;
}

static void a_pause_waits_for_the_step_and_holds_the_next(void **state) {
    struct fixture *f = *state;
    struct long_reader *reader = reader_of(f);
    for (int how = 0; how < LONG_READER_PAUSES; how++) {
        struct question a = question_of(f, 'a');
        pthread_t thread;
        long_reader_resume(reader, LONG_READER_CLOSED);
        atomic_store(&seen.blocks, true);
        ask(reader, &a);
        while (!atomic_load(&seen.inside)) sched_yield();
        assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
        long_reader_pause(reader, (enum long_reader_pause)how);
        int steps = atomic_load(&seen.steps);
        assert_int_equal(atomic_load(&seen.inside), 0);
        pthread_join(thread, NULL);
        for (int i = 0; i < 1000; i++) sched_yield();
        assert_int_equal(atomic_load(&seen.steps), steps);
        /* Resuming from the other pause changes nothing. */
        long_reader_resume(reader, how == LONG_READER_CLOSED ? LONG_READER_LOOKS_AWAY
                                                             : LONG_READER_CLOSED);
        for (int i = 0; i < 1000; i++) sched_yield();
        assert_int_equal(atomic_load(&seen.steps), steps);
        long_reader_resume(reader, (enum long_reader_pause)how);
        wait_for(&a);
        assert_int_equal(a.steps, STEPS);
    }
    long_reader_free(reader);
}

static void what_cannot_be_read_is_refused_until_it_can(void **state) {
    struct fixture *f = *state;
    struct long_reader *reader = reader_of(f);
    struct question a = question_of(f, 'a'), b = question_of(f, 'b'), c = question_of(f, 'c');
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "the disk is broken");
    ask(reader, &a);
    long_reader_refuse(reader, &why);
    ask(reader, &b);
    wait_for(&a);
    wait_for(&b);
    assert_int_equal(a.code, ERR_UNAVAILABLE);
    assert_int_equal(b.code, ERR_UNAVAILABLE);
    long_reader_resume(reader, LONG_READER_CLOSED);
    ask(reader, &c);
    wait_for(&c);
    assert_int_equal(c.code, ERR_NONE);
    assert_int_equal(atomic_load(&seen.steps), STEPS);
    long_reader_free(reader);
}

static void what_is_left_at_the_end_is_answered(void **state) {
    struct fixture *f = *state;
    struct long_reader *reader = reader_of(f);
    struct question a = question_of(f, 'a'), b = question_of(f, 'b');
    ask(reader, &a);
    ask(reader, &b);
    long_reader_free(reader);
    wait_for(&a);
    wait_for(&b);
    assert_int_equal(a.code, ERR_UNAVAILABLE);
    assert_int_equal(b.code, ERR_UNAVAILABLE);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(questions_take_turns),
        TEST(a_question_that_fails_says_why_and_the_next_is_answered),
        TEST(a_pause_waits_for_the_step_and_holds_the_next),
        TEST(what_cannot_be_read_is_refused_until_it_can),
        TEST(what_is_left_at_the_end_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
