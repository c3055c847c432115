/* Objects that are listed as doomed are deleted from a bucket that the test plays. */
#include "store/sweep.h"

#include "fake/http_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "store/doomed.h"

#define ROUNDS_MAX 20 /* looks at all that is locked, before it is given up as stuck */

static struct fixture f;
static struct http_pool *pool;
static struct bucket *bucket;
static struct timer answer_timer;
static size_t locked, deleted, refused; /* objects; answers to requests that delete one */

static int setup(void **state) {
    struct err e;
    (void)state;
    fixture_init(&f);
    fixture_open(&f);
    fixture_close(&f); /* its tables are there */
    pool = http_pool_new();
    const struct bucket_options options = {.pool = pool,
                                           .endpoint = STR("http://127.0.0.1:9"),
                                           .name = STR("files"),
                                           .region = STR("r"),
                                           .access_key = STR("A"),
                                           .secret_key = STR("S")};
    if (!bucket_new(&options, &bucket, &e)) fail_msg("%s", e.text);
    locked = deleted = refused = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    bucket_free(bucket);
    http_pool_free(pool);
    fixture_done(&f);
    return 0;
}

static void doom(const char *name, int count, int64_t due_ms) {
    struct database db;
    struct err e;
    char key[32];
    fixture_database(&f, &db);
    for (int i = 0; i < count; i++) {
        int len = snprintf(key, sizeof(key), "%s%d", name, i);
        if (!database_run_with(
                &db, "INSERT INTO object_doomed(object, due_ms, flags) VALUES(?, ?, 0)",
                VALUES(sql_bytes(str_of(key, (size_t)len)), sql_number(due_ms)), &e))
            fail_msg("%s", e.text);
    }
    database_close(&db);
}

static void doom_locked(int count) {
    doom("locked", count, 1);
    locked = (size_t)count;
}

/* The bucket holds on to what is locked. */
static void answer(void *ctx) {
    size_t wanted = *(const size_t *)ctx;
    timer_start(&answer_timer, 1);
    while (fake_http_calls(pool)) {
        struct http_call *call = fake_http_call(pool, 0);
        struct str url = fake_http_request(call)->url;
        bool is_locked = str_find(url, STR("locked")) < url.len;
        if (is_locked)
            refused++;
        else
            deleted++;
        assert_true(fake_http_head(call, is_locked ? 403 : 204, ""));
        fake_http_end(call);
    }
    if (deleted >= wanted || refused > ROUNDS_MAX * locked) loop_stop(f.loop);
}

static void sweep_until(size_t wanted) {
    fixture_open(&f);
    struct sweep *sweep = sweep_start(f.store, bucket, f.loop, 1);
    timer_init(&answer_timer, f.loop, answer, &wanted);
    timer_start(&answer_timer, 1);
    loop_run(f.loop);
    timer_stop(&answer_timer);
    sweep_stop(sweep);
    fixture_close(&f);
}

static void what_cannot_be_deleted_holds_up_nothing_else(void **state) {
    (void)state;
    doom_locked(64);
    doom("free", 40, 2);
    sweep_until(40);
    assert_int_equal(deleted, 40);
}

static void what_is_refused_is_tried_again(void **state) {
    (void)state;
    doom_locked(1);
    sweep_until(1); /* which it never is */
    assert_int_equal(deleted, 0);
    assert_true(refused > ROUNDS_MAX);
}

/* A sweep deletes it first, and only then says so. */
static void what_is_due_is_not_taken_any_more(void **state) {
    struct database db;
    struct err e;
    (void)state;
    doom("early", 1, 1000);
    doom("late", 1, 1000);
    fixture_database(&f, &db);
    assert_true(doomed_take(&db, STR("early0"), 999, &e));
    assert_false(doomed_take(&db, STR("early0"), 999, &e));
    assert_int_equal(e.code, ERR_ABORTED);
    assert_false(doomed_take(&db, STR("late0"), 1000, &e));
    assert_int_equal(e.code, ERR_ABORTED);
    database_close(&db);
    sweep_until(1);
    assert_int_equal(deleted, 1); /* it stays listed, so that a sweep deletes it */
}

/* Its storage may have deleted it, and the answer was lost. */
static void what_a_sweep_has_tried_to_delete_is_not_taken_any_more(void **state) {
    struct database db;
    struct err e;
    (void)state;
    doom_locked(1);
    sweep_until(1); /* which it never is, so it is due again later */
    assert_true(refused > 0);
    fixture_database(&f, &db);
    assert_false(doomed_take(&db, STR("locked0"), 1, &e));
    assert_int_equal(e.code, ERR_ABORTED);
    database_close(&db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_cannot_be_deleted_holds_up_nothing_else, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_due_is_not_taken_any_more, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_sweep_has_tried_to_delete_is_not_taken_any_more,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
