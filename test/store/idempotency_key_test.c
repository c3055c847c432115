#include "store/fixture.h"

#include "base/clock.h"
#include "helper/assert_str.h"
#include "store/idempotency_key.h"

#include <semaphore.h>

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

static void end(struct fixture *f, uint64_t run, uint64_t seq, struct event event) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, seq);
    row_event(&row, text("a word before"));
    event.agent = STR("manager");
    row_event(&row, event);
    fixture_write(f, row_end(&row, run));
}

/* "left", "failed", and "acted" after it; "" for a run that ended otherwise. */
static void assert_end(struct fixture *f, const char *key, const char *expected) {
    struct store_load load = fixture_load(f, (struct store_load){.question = STORE_KEY,
                                                                 .workspace = STR("w"),
                                                                 .user = STR("u"),
                                                                 .key = str_from(key)});
    assert_int_not_equal(load.key_means.run, 0);
    const struct store_key *means = &load.key_means;
    struct buf end;
    buf_init(&end, 64);
    if (means->left) buf_append(&end, STR("left"));
    if (means->failed) buf_append(&end, STR("failed"));
    if (means->acted) buf_append(&end, STR(" acted"));
    assert_str(buf_str(&end), expected);
    buf_done(&end);
    assert_int_equal(load.section_count, 0);
    arena_free(load.arena);
}

static void how_its_run_ended_stands_beside_a_key(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "left", 1000, "p7");
    begin(f, 8, "u", "asked", 1000, "p8");
    begin(f, 9, "u", "runs", 1000, "p9");
    begin(f, 11, "u", "failed", 1000, "p11");
    begin(f, 12, "u", "failed after a payment", 1000, "p12");
    begin(f, 13, "u", "left after a payment", 1000, "p13");
    end(f, 7, 2,
        (struct event){.kind = EVENT_CANCELLED,
                       .cancelled = {.message = STR("x"), .left = true, .acted = false}});
    end(f, 8, 2,
        (struct event){.kind = EVENT_CANCELLED,
                       .cancelled = {.message = STR("x"), .left = false, .acted = true}});
    end(f, 11, 2, (struct event){.kind = EVENT_FAILED, .failed = {.reason = STR("R")}});
    end(f, 12, 2,
        (struct event){.kind = EVENT_FAILED, .failed = {.reason = STR("R"), .acted = true}});
    end(f, 13, 2,
        (struct event){.kind = EVENT_CANCELLED,
                       .cancelled = {.message = STR("x"), .left = true, .acted = true}});
    for (int again = 0; again < 2; again++) {
        assert_end(f, "left", "left");
        assert_end(f, "left after a payment", "left acted");
        assert_end(f, "asked", "");
        assert_end(f, "runs", "");
        assert_end(f, "failed", "failed");
        assert_end(f, "failed after a payment", "failed acted");
        fixture_close(f);
        fixture_open(f);
    }
    begin(f, 20, "u", "left", 2000, "p10");
    assert_end(f, "left", "");
    assert_means(f, "w", "u", "left", 20, 2000, "p10");
}

/* A human answers the run's question, and his request has a key. */
static void answer_with(struct fixture *f, uint64_t run, uint64_t seq,
                        const struct key_item *item) {
    struct row_text row;
    struct buf bytes;
    buf_init(&bytes, KIB);
    assert_true(key_item_append(item, &bytes));
    row_begin(&row);
    row_section(&row, run, seq);
    row_event(&row, (struct event){.kind = EVENT_ITEM,
                                   .at_ms = 500,
                                   .item = {STR(KEY_ITEM), buf_str(&bytes)}});
    fixture_write(f, row_end(&row, run));
    buf_done(&bytes);
}

static void assert_answers(struct fixture *f, const char *user, const char *key, uint64_t run,
                           uint64_t seq) {
    struct store_load load = fixture_load(f, (struct store_load){.question = STORE_KEY,
                                                                 .workspace = STR("w"),
                                                                 .user = str_from(user),
                                                                 .key = str_from(key)});
    assert_int_equal(load.key_means.run, run);
    assert_int_equal(load.key_means.seq, seq);
    arena_free(load.arena);
}

static void a_key_may_stand_for_an_answer_to_a_run(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "u", "k", 1000, "p7");
    answer_with(f, 7, 2, &(struct key_item){STR("u"), STR("yes"), STR("p"), 41});
    answer_with(f, 7, 3, &(struct key_item){STR("anonymous"), STR("yes"), STR("q"), 42});
    for (int again = 0; again < 3; again++) {
        assert_answers(f, "u", "k", 7, 0);
        assert_answers(f, "u", "yes", 7, 41);
        assert_answers(f, "anonymous", "yes", 7, 42);
        assert_answers(f, "other", "yes", 0, 0);
        assert_means(f, "w", "u", "yes", 7, 1500, "p");
        fixture_close(f);
        if (again == 1)
            fixture_sql(f, "DELETE FROM session; DELETE FROM run; DELETE FROM usage;"
                           "DELETE FROM keyed;"
                           "UPDATE meta SET value = 0 WHERE name = 'projected'");
        fixture_open(f);
    }
}

/* The table of runs and that of keys are filled from one batch, and neither says more than the
 * other. */
static void a_run_that_starts_twice_keeps_its_first_key(void **state) {
    struct fixture *f = *state;
    struct row_text row;
    struct event first = started("s"), second = started("s");
    first.started.key = STR("k1");
    second.started.key = STR("k2");
    row_begin(&row);
    row_section(&row, 7, 1);
    row_event(&row, first);
    row_event(&row, second);
    fixture_write(f, row_end(&row, 7));
    begin(f, 7, "u", "k3", 2000, "p");
    assert_answers(f, "u", "k1", 7, 0);
    assert_answers(f, "u", "k2", 0, 0);
    assert_answers(f, "u", "k3", 0, 0);
}

static void an_answer_is_newer_than_the_beginning_of_a_run(void **state) {
    struct fixture *f = *state;
    struct row_text row;
    struct buf bytes;
    struct event begins = started("s");
    begins.started.key = STR("k");
    buf_init(&bytes, KIB);
    assert_true(key_item_append(&(struct key_item){STR("u"), STR("k"), STR("p"), 1}, &bytes));
    row_begin(&row);
    row_section(&row, 7, 1);
    row_event(&row, begins);
    row_event(&row, (struct event){.kind = EVENT_ITEM,
                                   .at_ms = 500,
                                   .item = {STR(KEY_ITEM), buf_str(&bytes)}});
    fixture_write(f, row_end(&row, 7));
    assert_answers(f, "u", "k", 7, 1);
    buf_done(&bytes);
}

static void an_item_of_a_key_reads_as_it_was_written(void **state) {
    (void)state;
    const struct key_item item = {STR("u"), STR("k"), str_of("p\0q", 3), UINT64_MAX};
    struct key_item read;
    struct buf bytes;
    buf_init(&bytes, KIB);
    assert_true(key_item_append(&item, &bytes));
    assert_true(key_item_read(buf_str(&bytes), &read));
    assert_str(read.user, "u");
    assert_str(read.key, "k");
    assert_int_equal(read.print.len, 3);
    assert_true(read.seq == UINT64_MAX);
    for (size_t cut = 0; cut < bytes.len; cut++)
        assert_false(key_item_read(str_head(buf_str(&bytes), cut), &read));
    buf_append_byte(&bytes, 'x');
    assert_false(key_item_read(buf_str(&bytes), &read));
    buf_done(&bytes);
}

/* --- threads ------------------------------------------------------------------------------ */

static void assert_threads(struct fixture *f, struct str user, const char *session,
                           const char *expected) {
    struct store_load load = fixture_load(f, (struct store_load){.question = STORE_THREAD,
                                                                 .workspace = STR("w"),
                                                                 .user = user,
                                                                 .session = str_from(session),
                                                                 .max_bytes = KIB});
    struct buf seen;
    buf_init(&seen, KIB);
    for (size_t i = 0; i < load.section_count; i++) {
        buf_append(&seen, load.sections[i].events);
        buf_printf(&seen, "=%d ", (int)load.sections[i].run);
    }
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
    arena_free(load.arena);
}

static void a_thread_is_found_by_its_name_and_by_its_user(void **state) {
    struct fixture *f = *state;
    begin(f, 7, "ann", "", 1000, "");
    begin(f, 8, "bob", "", 1000, "");
    begin(f, 9, "ann", "", 1000, "");
    assert_threads(f, STR("ann"), "s", "ann=9 ");
    assert_threads(f, STR("cid"), "s", "");
    assert_threads(f, (struct str){NULL, 0}, "s", "ann=9 bob=8 ");
    assert_threads(f, (struct str){NULL, 0}, "t", "");
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
    struct err e;
    fixture_database(f, db);
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
    put(&table, "u", 9000, 1000); /* after all others */
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup_open, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_key_stands_for_its_run_and_for_its_owner_alone),
        TEST(a_key_that_is_used_again_stands_for_the_newest_run),
        TEST(how_its_run_ended_stands_beside_a_key),
        TEST(keys_are_there_after_a_restart_and_when_the_tables_are_filled_anew),
        TEST(old_keys_are_deleted_step_by_step_and_others_stay),
        TEST(an_open_store_forgets_keys_that_are_no_longer_valid),
        TEST(a_key_may_stand_for_an_answer_to_a_run),
        TEST(a_run_that_starts_twice_keeps_its_first_key),
        TEST(an_answer_is_newer_than_the_beginning_of_a_run),
        TEST(an_item_of_a_key_reads_as_it_was_written),
        TEST(a_thread_is_found_by_its_name_and_by_its_user),
        TEST(a_store_of_the_version_before_gets_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
