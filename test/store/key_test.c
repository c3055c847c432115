#include "store/fixture.h"

#include "base/clock.h"
#include "helper/assert_str.h"
#include "store/key.h"

#include <semaphore.h>

static int setup(void **state) {
    struct fixture *f = MEM_NEW(struct fixture);
    fixture_init(f);
    fixture_open(f);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture_done(*state);
    free(*state);
    return 0;
}

/* A run of this user that begins with a key. */
static void begin(struct fixture *f, uint64_t run, const char *user, const char *key,
                  int64_t unix_ms, const char *print) {
    struct row_text row;
    struct event begins = started("s");
    begins.started.user = str_from(user);
    begins.started.key = str_from(key);
    begins.started.print = str_from(print);
    begins.started.unix_ms = unix_ms;
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, begins);
    fixture_write(f, row_end(&row, run));
}

static void assert_means(struct fixture *f, const char *workspace, const char *user,
                         const char *key, uint64_t run, int64_t unix_ms, const char *print) {
    struct store_load load =
        fixture_load(f, (struct store_load){.question = STORE_KEY,
                                            .workspace = str_from(workspace),
                                            .user = str_from(user),
                                            .key = str_from(key)});
    assert_int_equal(load.key_means.run, run);
    assert_int_equal(load.key_means.started_ms, unix_ms);
    assert_str(load.key_means.print, print);
    arena_free(load.arena);
}

static void a_key_stands_for_its_run_and_for_its_owner_alone(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "k", 1000, "p7");
    begin(f, 8, "other", "k", 2000, "p8");
    begin(f, 9, "u", "", 3000, "");
    assert_means(f, "w", "u", "k", 7, 1000, "p7");
    assert_means(f, "w", "other", "k", 8, 2000, "p8");
    assert_means(f, "w", "u", "K", 0, 0, "");
    assert_means(f, "w", "u", "", 0, 0, "");
    assert_means(f, "w2", "u", "k", 0, 0, "");
}

static void a_key_that_is_used_again_stands_for_the_newest_run(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "k", 1000, "p7");
    assert_means(f, "w", "u", "k", 7, 1000, "p7");
    begin(f, 8, "u", "k", 90000000, "p8");
    assert_means(f, "w", "u", "k", 8, 90000000, "p8");
}

static void cancel(struct fixture *f, uint64_t run, uint64_t seq, bool left) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, seq);
    row_event(&row, text("a word before"));
    row_event(&row, (struct event){.kind = EVENT_CANCELLED,
                                   .agent = STR("manager"),
                                   .cancelled = {STR("enough"), left}});
    fixture_write(f, row_end(&row, run));
}

static void assert_given_back(struct fixture *f, const char *key, bool given_back) {
    struct store_load load = fixture_load(f, (struct store_load){.question = STORE_KEY,
                                                                 .workspace = STR("w"),
                                                                 .user = STR("u"),
                                                                 .key = str_from(key)});
    assert_int_not_equal(load.key_means.run, 0);
    assert_int_equal(load.key_means.given_back, given_back);
    assert_int_equal(load.section_count, 0);
    arena_free(load.arena);
}

static void a_run_whose_caller_left_has_given_its_key_back(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "left", 1000, "p7");
    begin(f, 8, "u", "asked", 1000, "p8");
    begin(f, 9, "u", "runs", 1000, "p9");
    cancel(f, 7, 2, true);
    cancel(f, 8, 2, false);
    for (int again = 0; again < 2; again++) {
        assert_given_back(f, "left", true);
        assert_given_back(f, "asked", false);
        assert_given_back(f, "runs", false);
        fixture_close(f);
        fixture_open(f);
    }
    begin(f, 10, "u", "left", 2000, "p10");
    assert_given_back(f, "left", false);
    assert_means(f, "w", "u", "left", 10, 2000, "p10");
}

static void keys_are_there_after_a_restart_and_when_the_tables_are_filled_anew(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "k", 1000, "p7");
    fixture_close(f);
    fixture_open(f);
    assert_means(f, "w", "u", "k", 7, 1000, "p7");
    fixture_close(f);
    fixture_sql(f, "DELETE FROM session; DELETE FROM run; DELETE FROM usage; DELETE FROM keyed;"
                   "UPDATE meta SET value = 0 WHERE name = 'projected'");
    fixture_open(f);
    assert_means(f, "w", "u", "k", 7, 1000, "p7");
}

static void a_store_of_the_version_before_gets_the_table(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "", 1000, "");
    fixture_close(f);
    fixture_sql(f, FIXTURE_BACK_TO_8
                "DROP TABLE keyed; DROP TABLE upload; DROP TABLE upload_piece;"
                "UPDATE meta SET value = 6 WHERE name = 'schema'");
    fixture_open(f);
    assert_means(f, "w", "u", "k", 0, 0, "");
    begin(f, 8, "u", "k", 2000, "p8");
    assert_means(f, "w", "u", "k", 8, 2000, "p8");
}

/* --- forgetting old ones ------------------------------------------------------------------ */

#define DAY_MS INT64_C(86400000)

static void open_table(const struct fixture *f, struct database *db, struct key_table *table) {
    char path[96];
    struct err e;
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_true(database_open(db, path, &e));
    assert_true(key_open(table, db, &e));
}

static void close_table(struct database *db, struct key_table *table) {
    key_close(table);
    database_close(db);
}

static void put(struct key_table *table, const char *user, size_t number, int64_t started_ms) {
    char key[16];
    struct err e;
    snprintf(key, sizeof(key), "k%04zu", number);
    const struct key_entry entry = {
        .workspace = STR("w"),
        .user = str_from(user),
        .key = str_from(key),
        .means = {.run = number + 1, .started_ms = started_ms, .print = STR("p")}};
    assert_true(key_write(table, &entry, &e));
}

/* How many steps one walk took. */
static size_t walk(struct key_table *table, int64_t before_ms) {
    bool end = false;
    struct err e;
    size_t steps = 0;
    for (; !end; steps++) assert_true(key_prune(table, before_ms, &end, &e));
    return steps;
}

static void old_keys_are_deleted_step_by_step_and_others_stay(void **state) {
    struct fixture *f = *state;
    struct database db;
    struct key_table table;
    fixture_close(f);
    open_table(f, &db, &table);
    for (size_t i = 0; i < KEY_WALK_ENTRIES; i++) {
        put(&table, "u", i, i % 3 ? 1000 : 2000);
        put(&table, "", i, i % 2 ? 1000 : 2000);
        put(&table, "\xFF", i, 1000);
    }
    assert_int_equal(walk(&table, 1000),
                     4); /* what began then is not older; the last is empty */
    assert_sql(f, "SELECT count(*) FROM keyed", "768 ");
    assert_int_equal(walk(&table, 1001), 4);
    assert_sql(f, "SELECT count(*), min(started_ms) FROM keyed", "214 2000 ");
    put(&table, "u", 9000, 1000); /* behind all others */
    put(&table, "", 0, 1000);     /* before them: an old one again */
    assert_int_equal(walk(&table, 2000), 1);
    assert_sql(f, "SELECT count(*), min(started_ms) FROM keyed", "213 2000 ");
    assert_int_equal(walk(&table, 2001), 1);
    assert_sql(f, "SELECT count(*) FROM keyed", "0 ");
    assert_int_equal(walk(&table, 2001), 1);
    close_table(&db, &table);
    fixture_open(f);
}

static sem_t pruned;

static void post_when_pruned(const char *step, void *ctx) {
    (void)ctx;
    if (strcmp(step, "keys pruned") == 0) sem_post(&pruned);
}

static void an_open_store_forgets_keys_that_are_no_longer_valid(void **state) {
    struct fixture *f = *state;
    int64_t now_ms = clock_unix_ms();
    fixture_close(f);
    assert_int_equal(sem_init(&pruned, 0, 0), 0);
    f->at_step = post_when_pruned;
    fixture_open(f);
    begin(f, 7, "u", "old", now_ms - DAY_MS, "p");
    begin(f, 8, "u", "young", now_ms, "p");
    assert_means(f, "w", "u", "old", 7, now_ms - DAY_MS, "p"); /* in the table by now */
    store_keep_keys(f->store, (uint64_t)DAY_MS / 2);
    assert_int_equal(sem_wait(&pruned), 0);
    assert_means(f, "w", "u", "old", 0, 0, "");
    assert_means(f, "w", "u", "young", 8, now_ms, "p");
    fixture_close(f);
    sem_destroy(&pruned);
    f->at_step = NULL;
    fixture_open(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_key_stands_for_its_run_and_for_its_owner_alone),
        TEST(a_key_that_is_used_again_stands_for_the_newest_run),
        TEST(a_run_whose_caller_left_has_given_its_key_back),
        TEST(keys_are_there_after_a_restart_and_when_the_tables_are_filled_anew),
        TEST(old_keys_are_deleted_step_by_step_and_others_stay),
        TEST(an_open_store_forgets_keys_that_are_no_longer_valid),
        TEST(a_store_of_the_version_before_gets_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
