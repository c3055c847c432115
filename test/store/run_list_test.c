/* Runs are listed from the newest on, page by page, and filtered. */
#include "store/run_list.h"

#include "fixture.h"
#include "helper/assert_str.h"

#define ROOM 16

struct listed {
    struct loop *loop;
    size_t count;
    uint64_t next, ids[ROOM];
    int64_t states[ROOM];
};

static void on_listed(const struct run_list_page *page, const struct err *failed, void *ctx) {
    struct listed *listed = ctx;
    assert_null(failed);
    assert_true(page->count <= ROOM);
    listed->count = page->count;
    listed->next = page->next;
    for (size_t i = 0; i < page->count; i++) {
        listed->ids[i] = page->runs[i].id;
        listed->states[i] = page->runs[i].state;
        assert_str(page->runs[i].workspace, "w");
        assert_str(page->runs[i].user, "u");
    }
    loop_stop(listed->loop);
}

static struct listed list(struct fixture *f, struct run_list_filter filter) {
    struct listed listed = {.loop = f->loop};
    run_list_start(f->store, f->loop, &filter, on_listed, &listed);
    loop_run(f->loop);
    return listed;
}

#define ANY .state = -1, .limit = 4

static void runs_are_listed_newest_first_and_page_by_page(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    assert_int_equal(list(f, (struct run_list_filter){ANY}).count, 0);
    for (uint64_t run = 1; run <= 9; run++)
        fixture_write(f, whole_run(run, run % 2 ? "odd" : "even", "hi"));
    uint64_t before = 0, expect = 9;
    do {
        struct listed page = list(f, (struct run_list_filter){ANY, .before = before});
        for (size_t i = 0; i < page.count; i++) assert_int_equal(page.ids[i], expect--);
        before = page.next;
    } while (before);
    assert_int_equal(expect, 0);
}

static void a_filter_lets_pass_what_it_names(void **state) {
    struct fixture *f = *state;
    struct row_text row;
    fixture_open(f);
    for (uint64_t run = 1; run <= 6; run++)
        fixture_write(f, whole_run(run, run % 2 ? "odd" : "even", "hi"));
    row_begin(&row);
    row_section(&row, 7, 1);
    row_event(&row, started("odd"));
    fixture_write(f, row_end(&row, 7));
    struct listed odd = list(f, (struct run_list_filter){ANY, .session = STR("odd")});
    assert_int_equal(odd.count, 4);
    assert_int_equal(odd.ids[0], 7);
    assert_int_equal(odd.states[0], 0);
    assert_int_equal(odd.states[1], EVENT_DONE);
    struct listed open = list(f, (struct run_list_filter){.state = 0, .limit = 4});
    assert_int_equal(open.count, 1);
    assert_int_equal(open.ids[0], 7);
    assert_int_equal(list(f, (struct run_list_filter){ANY, .workspace = STR("x")}).count, 0);
    assert_int_equal(list(f, (struct run_list_filter){ANY, .user = STR("x")}).count, 0);
    assert_int_equal(list(f, (struct run_list_filter){ANY, .contract = STR("x")}).count, 0);
}

static void a_request_that_is_forgotten_is_not_answered(void **state) {
    struct fixture *f = *state;
    struct listed never = {.loop = f->loop};
    struct run_list_filter filter = {ANY};
    fixture_open(f);
    run_list_forget(run_list_start(f->store, f->loop, &filter, on_listed, &never));
    run_list_forget(NULL);
    fixture_write(f, whole_run(1, "s", "hi")); /* comes after it */
    assert_int_equal(never.count, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(runs_are_listed_newest_first_and_page_by_page),
        TEST(a_filter_lets_pass_what_it_names),
        TEST(a_request_that_is_forgotten_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
