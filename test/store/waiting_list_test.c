/* The runs that wait for a person, and what each asks. */
#include "store/waiting_list.h"

#include "helper/assert_str.h"
#include "replicas.h"
#include "store/task.h"

#include "postgres/session.h"

#define RUNS_MAX 1000

struct scene {
    struct fixture *f;
    struct store *store;
    uint64_t runs[RUNS_MAX], seqs[RUNS_MAX];
    size_t count;
    bool more;
};

static void on_listed(const struct waiting_list_page *page, const struct err *failed,
                      void *ctx) {
    struct scene *scene = ctx;
    scene->count = page->count;
    scene->more = page->more;
    for (size_t i = 0; i < page->count; i++) {
        scene->runs[i] = page->runs[i].run;
        scene->seqs[i] = page->runs[i].seq;
        assert_str(page->runs[i].question, "May I?");
        assert_str(page->runs[i].tool, "pay");
        assert_str(page->runs[i].args, "{\"eur\":3}");
        assert_str(page->runs[i].guards, "c");
        assert_str(page->runs[i].agent, "manager");
        assert_int_equal(page->runs[i].asked_unix_ms, started("").started.unix_ms + 70);
        assert_true(page->runs[i].session.len > 0);
    }
    fixture_opened(failed, scene->f);
}

static void list(struct scene *scene, struct waiting_list_filter filter) {
    waiting_list_start(scene->store, scene->f->loop, &filter, on_listed, scene);
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
}

static const struct waiting_list_filter all = {.limit = RUNS_MAX};

static const struct event asks = {.kind = EVENT_APPROVAL,
                                  .agent = STR_INIT("manager"),
                                  .at_ms = 70,
                                  .approval = {.call_id = STR_INIT("a"),
                                               .question = STR_INIT("May I?"),
                                               .tool = STR_INIT("pay"),
                                               .args = STR_INIT("{\"eur\":3}"),
                                               .guards = STR_INIT("c")}};

/* A run that waits, or that went on with `after`. */
static struct store_row waiting_run(uint64_t run, const char *session,
                                    const struct event *after) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, started(session));
    row_event(&row, asks);
    if (after) row_event(&row, *after);
    return row_end(&row, run);
}

static struct store_row more_of(uint64_t run, uint64_t seq, struct event event) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, seq);
    row_event(&row, event);
    return row_end(&row, run);
}

static struct scene open_scene(struct fixture *f) {
    fixture_open(f);
    return (struct scene){.f = f, .store = f->store};
}

static void they_are_listed_the_lowest_first(void **state) {
    struct scene scene = open_scene(*state);
    for (uint64_t run = 9; run >= 7; run--) fixture_write(scene.f, waiting_run(run, "s", NULL));
    list(&scene, all);
    assert_int_equal(scene.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(scene.runs[i], 7 + i);
        assert_int_equal(scene.seqs[i], 2);
    }
    assert_false(scene.more);
    list(&scene, (struct waiting_list_filter){.limit = 1});
    assert_int_equal(scene.count, 1);
    assert_int_equal(scene.runs[0], 7);
    assert_true(scene.more);
}

static void what_came_after_the_question_ends_the_wait(void **state) {
    const struct event goes_on = text("on"), over = done();
    const struct event aside = {.kind = EVENT_ITEM, .item = {.type = STR("aside")}};
    struct scene scene = open_scene(*state);
    fixture_write(scene.f, waiting_run(1, "s1", &goes_on));
    fixture_write(scene.f, waiting_run(2, "s2", &over));
    fixture_write(scene.f, waiting_run(3, "s3", &aside));
    fixture_write(scene.f, waiting_run(4, "s4", NULL));
    fixture_write(scene.f, more_of(4, 3, goes_on));
    fixture_write(scene.f, waiting_run(5, "s5", NULL));
    for (uint64_t seq = 3; seq < 7; seq++) fixture_write(scene.f, more_of(5, seq, aside));
    fixture_write(scene.f, waiting_run(6, "s6", &goes_on)); /* an aside of no question */
    fixture_write(scene.f, more_of(6, 4, aside));
    fixture_write(scene.f, waiting_run(7, "s7", &goes_on)); /* the second one waits */
    fixture_write(scene.f, more_of(7, 4, asks));
    list(&scene, all);
    static const uint64_t wanted[][2] = {{3, 2}, {5, 2}, {7, 4}};
    assert_int_equal(scene.count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_int_equal(scene.runs[i], wanted[i][0]);
        assert_int_equal(scene.seqs[i], wanted[i][1]);
    }
}

/* Its last rows have no place of their own in the table of runs. */
static void the_question_of_a_long_run_is_found(void **state) {
    const struct event aside = {.kind = EVENT_ITEM, .item = {.type = STR("aside")}};
    struct scene scene = open_scene(*state);
    uint64_t seq = 2;
    fixture_write(scene.f, more_of(1, 1, started("long")));
    for (; seq < 4300; seq++) fixture_write(scene.f, more_of(1, seq, text("on")));
    fixture_write(scene.f, more_of(1, seq, asks));
    fixture_write(scene.f, more_of(1, seq + 1, aside));
    fixture_write(scene.f, more_of(1, seq + 2, aside));
    list(&scene, all);
    assert_int_equal(scene.count, 1);
    assert_int_equal(scene.seqs[0], seq);
}

static void only_those_of_the_filter_are_listed(void **state) {
    struct scene scene = open_scene(*state);
    fixture_write(scene.f, waiting_run(7, "s7", NULL));
    fixture_write(scene.f, waiting_run(8, "s8", NULL));
    const struct event first = started("s7");
    const struct {
        struct waiting_list_filter filter;
        size_t count;
    } cases[] = {
        {{.workspace = first.started.workspace, .limit = 5}, 2},
        {{.workspace = STR("other"), .limit = 5}, 0},
        {{.user = first.started.user, .limit = 5}, 2},
        {{.user = STR("other"), .limit = 5}, 0},
        {{.session = STR("s8"), .limit = 5}, 1},
        {{.workspace = STR_EMPTY, .limit = 5}, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        list(&scene, cases[i].filter);
        assert_int_equal(scene.count, cases[i].count);
    }
}

/* --- how often the store is asked ---------------------------------------------------------- */

struct asked {
    struct store_task task;
    struct scene *scene;
    uint64_t count;
};

static bool count_asked(struct database *db, void *ctx, struct err *e) {
    struct asked *asked = ctx;
    (void)e;
    asked->count = postgres_session_asked(db->postgres);
    return true;
}

static void on_counted(const struct err *failed, void *ctx) {
    struct asked *asked = ctx;
    fixture_opened(failed, asked->scene->f);
}

/* The statements that PostgreSQL has been asked so far. */
static uint64_t asked_so_far(struct scene *scene) {
    struct asked asked = {.scene = scene};
    asked.task =
        (struct store_task){.reads_only = true, .fn = count_asked, .on_done = on_counted};
    store_run(scene->store, scene->f->loop, &asked.task, &asked);
    loop_run(scene->f->loop);
    return asked.count;
}

static uint64_t asked_for_a_list(struct scene *scene, size_t wait) {
    list(scene, all); /* the tables have all rows, every statement is prepared */
    assert_int_equal(scene->count, wait);
    uint64_t before = asked_so_far(scene), counting = asked_so_far(scene) - before;
    before = asked_so_far(scene);
    list(scene, all);
    return asked_so_far(scene) - before - counting;
}

static void the_store_is_asked_as_often_for_a_hundred_as_for_one(void **state) {
    REPLICAS_NEED_A_SERVER();
    const struct event aside = {.kind = EVENT_ITEM, .item = {.type = STR("aside")}};
    struct scene scene = open_scene(*state);
    fixture_write(scene.f, waiting_run(1, "s", NULL));
    fixture_write(scene.f, more_of(1, 3, aside));
    uint64_t for_one = asked_for_a_list(&scene, 1);
    for (uint64_t run = 2; run <= 100; run++) {
        fixture_write(scene.f, waiting_run(run, "s", NULL));
        fixture_write(scene.f, more_of(run, 3, aside));
    }
    assert_int_equal(asked_for_a_list(&scene, 100), for_one);
    for (uint64_t run = 101; run <= 3 * WAITING_PAGE; run++)
        fixture_write(scene.f, waiting_run(run, "s", NULL));
    /* Three full pages, the last of which may not be the last. */
    assert_in_range(asked_for_a_list(&scene, 3 * WAITING_PAGE), for_one + 4, for_one + 8);
}

/* --- replicas ------------------------------------------------------------------------------- */

static void those_of_all_replicas_are_listed_at_each(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    replica_write(&a, waiting_run(9, "s9", NULL));
    replica_write(&a, waiting_run(7, "s7", NULL));
    replica_write(&b, waiting_run(8, "s8", NULL));
    struct store *const stores[] = {a.store, b.store};
    for (size_t i = 0; i < 2; i++) {
        struct scene scene = {.f = f, .store = stores[i]};
        list(&scene, all);
        assert_int_equal(scene.count, 3);
        for (size_t at = 0; at < 3; at++) assert_int_equal(scene.runs[at], 7 + at);
    }
    replica_close(&a);
    replica_close(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(they_are_listed_the_lowest_first),
        TEST(what_came_after_the_question_ends_the_wait),
        TEST(the_question_of_a_long_run_is_found),
        TEST(only_those_of_the_filter_are_listed),
        TEST(the_store_is_asked_as_often_for_a_hundred_as_for_one),
        TEST(those_of_all_replicas_are_listed_at_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
