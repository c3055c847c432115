#include "session/directory.h"

#include "helper/assert_str.h"

#define RUNS 1000

static struct loop *loop;
static size_t cancelled;

static void count_cancel(struct leaving leaving, struct str why, void *ctx) {
    (void)ctx;
    assert_int_equal(leaving.how, LEAVING_NONE);
    assert_str(why, "enough");
    cancelled++;
}

static struct journal *new_journal(void) {
    return journal_new(&(struct journal_options){.loop = loop, .window_max_bytes = 4 * KIB});
}

static void a_run_is_found_from_its_start_to_its_end_and_not_after(void **state) {
    (void)state;
    static struct live lives[RUNS];
    loop = loop_new_fake();
    struct directory *directory = directory_new();
    struct journal *journal = new_journal();
    for (uint64_t i = 0; i < RUNS; i++) {
        lives[i] = (struct live){.run = (i << 20) + i % 7,
                                 .journal = journal,
                                 .loop = loop,
                                 .workspace = STR("w"),
                                 .user = STR("u"),
                                 .session = STR("s")};
        list_init(&lives[i].link);
        directory_add(directory, &lives[i]);
    }
    for (uint64_t i = 0; i < RUNS; i++) {
        struct live_view view;
        assert_true(directory_find(directory, lives[i].run, &view));
        assert_ptr_equal(view.journal, journal);
        assert_str(view.workspace, "w");
        assert_str(view.user, "u");
        assert_str(view.session, "s");
        live_view_done(&view);
        directory_remove(directory, &lives[i]);
        directory_remove(directory, &lives[i]); /* once more changes nothing */
        assert_false(directory_find(directory, lives[i].run, &view));
    }
    journal_unref(journal);
    directory_free(directory);
    loop_free(loop);
}

static void a_cancel_reaches_the_run_on_its_own_loop_if_it_is_still_there(void **state) {
    (void)state;
    loop = loop_new_fake();
    cancelled = 0;
    struct directory *directory = directory_new();
    struct live live = {
        .run = 7, .journal = new_journal(), .loop = loop, .leave = count_cancel};
    list_init(&live.link);
    directory_add(directory, &live);
    assert_false(directory_cancel(directory, 8, STR("enough")));
    assert_true(directory_cancel(directory, 7, STR("enough")));
    assert_int_equal(cancelled, 0); /* not from here: on its loop */
    loop_turn(loop);
    assert_int_equal(cancelled, 1);
    assert_true(directory_cancel(directory, 7, STR("enough")));
    directory_remove(directory, &live); /* it ended while the wish was on its way */
    loop_turn(loop);
    assert_int_equal(cancelled, 1);
    journal_unref(live.journal);
    directory_free(directory);
    loop_free(loop);
}

static void the_newest_runs_are_listed_first(void **state) {
    (void)state;
    static struct live lives[RUNS];
    uint64_t runs[5];
    loop = loop_new_fake();
    struct directory *directory = directory_new();
    struct journal *journal = new_journal();
    assert_int_equal(directory_newest(directory, UINT64_MAX, 5, runs), 0);
    for (uint64_t i = 0; i < RUNS; i++) {
        lives[i] = (struct live){.run = 1 + i * 7 % RUNS, .journal = journal, .loop = loop};
        list_init(&lives[i].link);
        directory_add(directory, &lives[i]);
    }
    assert_int_equal(directory_newest(directory, UINT64_MAX, 5, runs), 5);
    for (uint64_t i = 0; i < 5; i++) assert_int_equal(runs[i], RUNS - i);
    assert_int_equal(directory_newest(directory, 4, 5, runs), 3);
    for (uint64_t i = 0; i < 3; i++) assert_int_equal(runs[i], 3 - i);
    assert_int_equal(directory_newest(directory, UINT64_MAX, 0, runs), 0);
    for (uint64_t i = 0; i < RUNS; i++) directory_remove(directory, &lives[i]);
    journal_unref(journal);
    directory_free(directory);
    loop_free(loop);
}

static void hear(struct str words, struct str print, void *ctx) {
    assert_str(words, "why?");
    assert_str(print, "p");
    (*(size_t *)ctx)++;
}

static void an_answer_reaches_a_run_that_can_wait_for_it(void **state) {
    (void)state;
    size_t heard = 0;
    loop = loop_new_fake();
    struct directory *directory = directory_new();
    struct live waits = {
        .run = 7, .journal = new_journal(), .loop = loop, .say = hear, .ctx = &heard};
    struct live job = {.run = 8, .journal = new_journal(), .loop = loop, .ctx = &heard};
    list_init(&waits.link);
    list_init(&job.link);
    directory_add(directory, &waits);
    directory_add(directory, &job);
    char words[] = "why?";
    directory_say(directory, 7, str_from(words), STR("p"));
    directory_say(directory, 8, str_from(words), STR_EMPTY);
    directory_say(directory, 9, str_from(words), STR_EMPTY);
    memset(words, '#', sizeof(words) - 1);
    assert_int_equal(heard, 0);
    loop_turn(loop);
    assert_int_equal(heard, 1);
    directory_say(directory, 7, STR("why?"), STR_EMPTY);
    directory_remove(directory, &waits); /* it is over before it hears */
    directory_remove(directory, &job);
    loop_turn(loop);
    assert_int_equal(heard, 1);
    journal_unref(waits.journal);
    journal_unref(job.journal);
    directory_free(directory);
    loop_free(loop);
}

static void a_thread_may_be_several_users(void **state) {
    (void)state;
    loop = loop_new_fake();
    struct directory *directory = directory_new();
    struct journal *journal = new_journal();
    struct live lives[3];
    static const char *const users[] = {"ann", "bob", "ann"};
    for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
        lives[i] = (struct live){.run = i + 1,
                                 .journal = journal,
                                 .loop = loop,
                                 .workspace = STR("w"),
                                 .user = str_from(users[i]),
                                 .session = STR("s")};
        list_init(&lives[i].link);
        directory_add(directory, &lives[i]);
    }
    struct session_runs runs;
    directory_of_session(directory, STR("w"), STR("ann"), STR("s"), &runs);
    assert_int_equal(runs.count, 2);
    directory_of_session(directory, STR("w"), (struct str){NULL, 0}, STR("s"), &runs);
    assert_int_equal(runs.count, 3);
    directory_of_session(directory, STR("w"), STR_EMPTY, STR("s"), &runs);
    assert_int_equal(runs.count, 0);
    for (size_t i = 0; i < ARRAY_LEN(lives); i++) directory_remove(directory, &lives[i]);
    journal_unref(journal);
    directory_free(directory);
    loop_free(loop);
}

static void of_a_session_with_many_runs_the_newest_are_found(void **state) {
    (void)state;
    static struct live lives[RUNS];
    struct session_runs runs;
    loop = loop_new_fake();
    struct directory *directory = directory_new();
    struct journal *journal = new_journal();
    for (uint64_t i = 0; i < RUNS; i++) {
        lives[i] = (struct live){.run = 1 + i * 7 % RUNS,
                                 .journal = journal,
                                 .loop = loop,
                                 .workspace = STR("w"),
                                 .user = STR("u"),
                                 .session = STR("s")};
        list_init(&lives[i].link);
        directory_add(directory, &lives[i]);
    }
    directory_of_session(directory, STR("w"), STR("u"), STR("s"), &runs);
    assert_int_equal(runs.count, SESSION_RUNS_MAX);
    for (uint64_t i = 0; i < SESSION_RUNS_MAX; i++)
        assert_int_equal(runs.runs[i], RUNS - SESSION_RUNS_MAX + 1 + i);
    for (uint64_t i = 0; i < RUNS; i++) directory_remove(directory, &lives[i]);
    journal_unref(journal);
    directory_free(directory);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_runs_are_listed_first),
        cmocka_unit_test(a_run_is_found_from_its_start_to_its_end_and_not_after),
        cmocka_unit_test(a_cancel_reaches_the_run_on_its_own_loop_if_it_is_still_there),
        cmocka_unit_test(an_answer_reaches_a_run_that_can_wait_for_it),
        cmocka_unit_test(a_thread_may_be_several_users),
        cmocka_unit_test(of_a_session_with_many_runs_the_newest_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
