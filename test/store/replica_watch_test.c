#include "store/replica_watch.h"

#include "store/changes.h"
#include "store/fixture.h"

#include <pthread.h>

#define NEEDS_A_SERVER()                                                                       \
    if (!fixture_postgres().len) skip()

#define LEASE_MS 600 /* short: what is not told is found out after a third of it */

/* What the watch's thread has said. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t more;
    size_t written, freed, died, lost, living;
};

static void hear(struct heard *heard, size_t *count) {
    pthread_mutex_lock(&heard->lock);
    (*count)++;
    pthread_cond_broadcast(&heard->more);
    pthread_mutex_unlock(&heard->lock);
}

static void on_changed(uint64_t what, void *ctx) {
    struct heard *heard = ctx;
    assert_false(what & ~(CHANGE_ANY | CHANGE_NAMES));
    if (what & CHANGE_WRITTEN) hear(heard, &heard->written);
    if (what & CHANGE_FREED) hear(heard, &heard->freed);
}

static void on_living(size_t count, void *ctx) {
    struct heard *heard = ctx;
    pthread_mutex_lock(&heard->lock);
    heard->living = count;
    pthread_cond_broadcast(&heard->more);
    pthread_mutex_unlock(&heard->lock);
}

static void on_died(void *ctx) {
    struct heard *heard = ctx;
    hear(heard, &heard->died);
}

static void on_lost(void *ctx) {
    struct heard *heard = ctx;
    hear(heard, &heard->lost);
}

static void await(struct heard *heard, const size_t *count, size_t at_least) {
    pthread_mutex_lock(&heard->lock);
    while (*count < at_least) pthread_cond_wait(&heard->more, &heard->lock);
    pthread_mutex_unlock(&heard->lock);
}

struct scene {
    struct fixture f;
    struct database db;
    struct heard heard;
    struct replica_watch *watch;
};

static void run(struct scene *scene, const char *sql) {
    struct err e;
    if (!database_run(&scene->db, sql, &e)) fail_msg("%s", e.text);
}

static int64_t number(struct scene *scene, const char *sql) {
    struct err e;
    int64_t ret = -1;
    if (!database_number(&scene->db, sql, &ret, &e)) fail_msg("%s", e.text);
    return ret;
}

#define LOCK "pg_advisory_xact_lock(1935764852, hashtext(current_schema()))"
#define CHANNEL "'weir_' || to_hex(hashtext(current_schema()))"

static void notify(struct scene *scene, enum change what) {
    char sql[96];
    snprintf(sql, sizeof(sql), "SELECT pg_notify(" CHANNEL ", '%d')", what);
    run(scene, sql);
}

/* This replica is number 7, and its time is over long ago. */
static int set_up(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    *state = scene;
    if (!fixture_postgres().len) return 0;
    fixture_init(&scene->f);
    fixture_database(&scene->f, &scene->db);
    pthread_mutex_init(&scene->heard.lock, NULL);
    pthread_cond_init(&scene->heard.more, NULL);
    run(scene, "INSERT INTO replica VALUES(7, '', 0, '-infinity', 0, 0, NULL, NULL)");
    return 0;
}

static void begin(struct scene *scene) {
    const struct replica_watch_options options = {.url = fixture_postgres(),
                                                  .schema = str_from(scene->f.schema),
                                                  .replica = 7,
                                                  .lease_ms = LEASE_MS,
                                                  .changed = on_changed,
                                                  .living = on_living,
                                                  .died = on_died,
                                                  .lost = on_lost,
                                                  .ctx = &scene->heard};
    size_t freed = scene->heard.freed;
    scene->watch = replica_watch_start(&options);
    await(&scene->heard, &scene->heard.freed,
          freed + 1); /* it listens, and missed what came before */
}

static int tear_down(void **state) {
    struct scene *scene = *state;
    replica_watch_stop(scene->watch);
    if (fixture_postgres().len) {
        database_close(&scene->db);
        fixture_done(&scene->f);
    }
    free(scene);
    return 0;
}

#define ALIVE "SELECT count(*) FROM replica WHERE id = 7 AND until > clock_timestamp()"

static void await_renewal(struct scene *scene) {
    run(scene, "UPDATE replica SET until = '-infinity' WHERE id = 7");
    while (!number(scene, ALIVE)) run(scene, "SELECT pg_sleep(0.02)");
}

static void its_row_is_renewed_for_as_long_as_it_runs(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    begin(scene);
    for (int i = 0; i < 3; i++) await_renewal(scene);
    assert_int_equal(scene->heard.lost, 0);
}

static void what_others_commit_is_heard_of(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    begin(scene);
    size_t written = scene->heard.written, freed = scene->heard.freed;
    notify(scene, CHANGE_WRITTEN);
    await(&scene->heard, &scene->heard.written, written + 1);
    notify(scene, CHANGE_FREED);
    await(&scene->heard, &scene->heard.freed, freed + 1);
    notify(scene, CHANGE_ANY);
    await(&scene->heard, &scene->heard.written, written + 2);
    await(&scene->heard, &scene->heard.freed, freed + 2);
}

static void a_connection_that_breaks_is_made_again_and_all_is_looked_at(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    begin(scene);
    for (int i = 0; i < 3; i++) {
        size_t written = scene->heard.written;
        run(scene, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                   " application_name = 'weir' AND pid <> pg_backend_pid()");
        await(&scene->heard, &scene->heard.written, written + 1);
    }
    await_renewal(scene);
}

static void one_that_was_fenced_hears_so_once_and_renews_no_more(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    begin(scene);
    run(scene, "UPDATE replica SET fenced = 1, until = '-infinity' WHERE id = 7");
    await(&scene->heard, &scene->heard.lost, 1);
    replica_watch_stop(scene->watch);
    scene->watch = NULL;
    assert_int_equal(scene->heard.lost, 1);
    assert_int_equal(number(scene, ALIVE), 0);
}

static void a_dead_one_is_told_of_until_another_has_taken_over(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    run(scene, "INSERT INTO replica VALUES(6, '', 1, '-infinity', 0, 0, NULL, NULL)");
    begin(scene);
    await(&scene->heard, &scene->heard.died, 2);
    run(scene, "DELETE FROM replica WHERE id = 6");
    run(scene, "INSERT INTO replica VALUES(8, '', 1, 'infinity', 0, 0, NULL, NULL)");
    replica_watch_stop(scene->watch); /* what it says of 6 is said */
    size_t died = scene->heard.died;
    begin(scene);
    size_t written = scene->heard.written;
    notify(scene, CHANGE_WRITTEN);
    await(&scene->heard, &scene->heard.written, written + 1); /* it has looked by then */
    assert_int_equal(scene->heard.died, died);
}

static void the_living_are_counted(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    run(scene, "INSERT INTO replica VALUES(8, '', 1, 'infinity', 0, 0, NULL, NULL),"
               " (9, '', 2, 'infinity', 1, 0, NULL, NULL)");
    begin(scene);
    await(&scene->heard, &scene->heard.living, 2);
    run(scene, "INSERT INTO replica VALUES(10, '', 3, 'infinity', 0, 0, NULL, NULL)");
    await(&scene->heard, &scene->heard.living, 3);
    assert_int_equal(scene->heard.living, 3);
}

static void leases_that_wait_here_for_nothing_are_told_of(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    run(scene, "INSERT INTO lease VALUES('k', -7)");
    begin(scene);
    await(&scene->heard, &scene->heard.died, 1);
}

static void one_that_ends_in_order_is_looked_for_at_once(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    begin(scene);
    run(scene, "INSERT INTO replica VALUES(6, '', 1, '-infinity', 1, 0, NULL, NULL)");
    notify(scene, CHANGE_LEFT);
    await(&scene->heard, &scene->heard.died, 1);
}

/* It may stand still within a transaction, with the lock that all others wait for. */
static void the_connection_of_a_dead_one_is_ended(void **state) {
    NEEDS_A_SERVER();
    struct scene *scene = *state;
    struct database dead;
    struct err e;
    fixture_database(&scene->f, &dead);
    bool ok = database_run(&dead,
                           "INSERT INTO replica SELECT 6, '', 1, '-infinity', 0, 0, pid,"
                           " backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()",
                           &e) &&
              database_run(&dead, "BEGIN; SELECT " LOCK, &e);
    if (!ok) fail_msg("%s", e.text);
    begin(scene);
    run(scene, "BEGIN; SELECT " LOCK "; COMMIT");
    assert_false(database_run(&dead, "COMMIT", &e));
    database_close(&dead);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(its_row_is_renewed_for_as_long_as_it_runs),
        TEST(what_others_commit_is_heard_of),
        TEST(a_connection_that_breaks_is_made_again_and_all_is_looked_at),
        TEST(one_that_was_fenced_hears_so_once_and_renews_no_more),
        TEST(a_dead_one_is_told_of_until_another_has_taken_over),
        TEST(the_living_are_counted),
        TEST(leases_that_wait_here_for_nothing_are_told_of),
        TEST(one_that_ends_in_order_is_looked_for_at_once),
        TEST(the_connection_of_a_dead_one_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
