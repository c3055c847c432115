/* The table of unfinished runs: a run that waits for a human leaves it, its question stays, and
 * the bytes of both have a limit. */
#include "helper/assert_str.h"

#include "store/audit_run.h"

static struct audit_run *put(struct audit_runs *runs, uint64_t id, const char *user) {
    return audit_runs_put(runs, id, STR("w"), str_from(user), STR("nimi"));
}

static void wait_since(struct audit_runs *runs, struct audit_run *run, int64_t row) {
    audit_questions_put(&runs->questions, run->id, STR("c1"));
    run->row = row;
    list_append(&runs->waiting, &run->waiting);
}

static void a_run_is_found_with_its_owner_until_it_is_removed(void **state) {
    (void)state;
    struct audit_runs runs;
    audit_runs_init(&runs);
    for (uint64_t id = 1; id <= 5000; id++) put(&runs, id, "u");
    put(&runs, 7, "another"); /* replaces */
    assert_str(audit_runs_find(&runs, 7)->user, "another");
    assert_str(audit_runs_find(&runs, 5000)->workspace, "w");
    assert_null(audit_runs_find(&runs, 5001));
    for (uint64_t id = 1; id <= 5000; id++) audit_runs_remove(&runs, id);
    assert_null(audit_runs_find(&runs, 7));
    assert_int_equal(runs.bytes, 0);
    audit_runs_clear(&runs);
}

static void a_run_that_waits_leaves_when_the_tables_have_its_question(void **state) {
    (void)state;
    struct audit_runs runs;
    audit_runs_init(&runs);
    wait_since(&runs, put(&runs, 1, "u"), 10);
    wait_since(&runs, put(&runs, 2, "u"), 11);
    put(&runs, 3, "u");
    audit_runs_leave(&runs, 9);
    assert_non_null(audit_runs_find(&runs, 1));
    audit_runs_leave(&runs, 10);
    assert_null(audit_runs_find(&runs, 1));
    assert_non_null(audit_runs_find(&runs, 2)); /* its question is not in the tables */
    assert_non_null(audit_runs_find(&runs, 3)); /* it does not wait */
    assert_true(audit_question_is(audit_questions_find(&runs.questions, 1), STR("c1")));
    audit_runs_remove(&runs, 1);
    assert_null(audit_questions_find(&runs.questions, 1));
    audit_runs_clear(&runs);
}

static void a_run_that_ends_while_it_waits_is_not_met_again(void **state) {
    (void)state;
    struct audit_runs runs;
    audit_runs_init(&runs);
    wait_since(&runs, put(&runs, 1, "u"), 10);
    wait_since(&runs, put(&runs, 2, "u"), 10);
    audit_runs_remove(&runs, 1);
    put(&runs, 2, "again"); /* the entry that waited is gone, this one does not wait */
    audit_runs_leave(&runs, 10);
    assert_non_null(audit_runs_find(&runs, 2));
    assert_true(list_empty(&runs.waiting));
    audit_runs_clear(&runs);
}

static void owners_have_so_many_bytes_and_no_more(void **state) {
    (void)state;
    struct audit_runs runs;
    char user[257];
    audit_runs_init(&runs);
    memset(user, 'u', 256);
    user[256] = '\0';
    size_t highest = 0;
    for (uint64_t id = 1; id <= 100000; id++) {
        put(&runs, id, user);
        if (runs.bytes > highest) highest = runs.bytes;
        assert_true(runs.bytes <= AUDIT_RUNS_MAX_BYTES);
    }
    assert_true(highest > AUDIT_RUNS_MAX_BYTES - 1024);
    assert_non_null(audit_runs_find(&runs, 100000)); /* the newest is there */
    audit_runs_clear(&runs);
}

static void one_that_waits_is_not_lost_when_the_owners_are_emptied(void **state) {
    (void)state;
    struct audit_runs runs;
    audit_runs_init(&runs);
    wait_since(&runs, put(&runs, 1, "u"), 10);
    for (uint64_t id = 2; audit_runs_find(&runs, 1); id++) put(&runs, id, "u");
    assert_true(list_empty(&runs.waiting));
    assert_non_null(audit_questions_find(&runs.questions, 1));
    audit_runs_clear(&runs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_found_with_its_owner_until_it_is_removed),
        cmocka_unit_test(a_run_that_waits_leaves_when_the_tables_have_its_question),
        cmocka_unit_test(a_run_that_ends_while_it_waits_is_not_met_again),
        cmocka_unit_test(owners_have_so_many_bytes_and_no_more),
        cmocka_unit_test(one_that_waits_is_not_lost_when_the_owners_are_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
