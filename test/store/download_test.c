/* Downloads on a real store: rows are written over, kept across starts, and dropped. */
#include "store/download.h"

#include "fixture.h"
#include "helper/assert_str.h"

static struct fixture f;
static struct buf seen; /* rows in words */
static int puts_done;

static int setup(void **state) {
    (void)state;
    fixture_init(&f);
    f.durability = STORE_NORMAL;
    fixture_open(&f);
    buf_init(&seen, MIB);
    puts_done = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_done(&seen);
    fixture_done(&f);
    return 0;
}

static void on_put(const struct err *failed, void *ctx) {
    assert_ptr_equal(ctx, &f);
    assert_null(failed);
    puts_done++;
    loop_stop(f.loop);
}

static void put(const char *id, const char *message, int64_t state, int64_t created_ms) {
    const struct download_row row = {.id = str_from(id),
                                     .connector = STR("home"),
                                     .model = STR("team/x:7b"),
                                     .owner = STR(""),
                                     .reason = STR("AI_PROVIDER_TIMEOUT"),
                                     .message = str_from(message),
                                     .state = state,
                                     .received = 40,
                                     .total = INT64_MAX,
                                     .created_ms = created_ms,
                                     .updated_ms = created_ms + 1,
                                     .retryable = state == 3};
    download_put_start(f.store, f.loop, &row, on_put, &f);
    loop_run(f.loop);
}

static void on_rows(const struct download_row *rows, size_t count, const struct err *failed,
                    void *ctx) {
    assert_ptr_equal(ctx, &f);
    assert_null(failed);
    buf_clear(&seen);
    for (size_t i = 0; i < count; i++) {
        assert_str(rows[i].connector, "home");
        assert_str(rows[i].model, "team/x:7b");
        assert_str(rows[i].owner, "");
        assert_str(rows[i].reason, "AI_PROVIDER_TIMEOUT");
        assert_int_equal(rows[i].received, 40);
        assert_true(rows[i].total == INT64_MAX);
        assert_int_equal(rows[i].updated_ms, rows[i].created_ms + 1);
        buf_printf(&seen, STR_FMT "=" STR_FMT "/%d%s ", STR_ARG(rows[i].id),
                   STR_ARG(rows[i].message), (int)rows[i].state, rows[i].retryable ? "!" : "");
    }
    loop_stop(f.loop);
}

static void assert_rows(const char *expected) {
    download_list_start(f.store, f.loop, on_rows, &f);
    loop_run(f.loop);
    assert_str(buf_str(&seen), expected);
}

static void rows_are_the_oldest_first_and_written_over(void **state) {
    (void)state;
    assert_rows("");
    put("b", "second", 1, 200);
    put("a", "first", 0, 100);
    put("b", "failed", 3, 200);
    assert_rows("a=first/0 b=failed/3! ");
}

static void rows_are_there_after_a_start(void **state) {
    (void)state;
    put("a", "here", 2, 100);
    fixture_close(&f);
    fixture_open(&f);
    assert_rows("a=here/2 ");
}

static void a_dropped_row_is_gone(void **state) {
    (void)state;
    put("a", "stays", 4, 100);
    put("b", "goes", 4, 200);
    download_drop(f.store, f.loop, STR("b"));
    assert_rows("a=stays/4 ");
}

/* It is written all the same. */
static void a_caller_may_stop_waiting(void **state) {
    (void)state;
    const struct download_row row = {.id = STR("x"),
                                     .connector = STR("home"),
                                     .model = STR("team/x:7b"),
                                     .owner = STR(""),
                                     .reason = STR("AI_PROVIDER_TIMEOUT"),
                                     .message = STR("kept"),
                                     .received = 40,
                                     .total = INT64_MAX,
                                     .updated_ms = 1};
    download_forget(download_put_start(f.store, f.loop, &row, on_put, &f));
    assert_rows("x=kept/0 ");
    assert_int_equal(puts_done, 0);
}

/* More than are read at once stay in the store. */
static void a_list_is_bounded(void **state) {
    (void)state;
    char id[16];
    size_t rows = 0;
    for (int i = 0; i < DOWNLOAD_ROWS_MAX + 2; i++) {
        snprintf(id, sizeof(id), "%d", i);
        put(id, "", 0, i);
    }
    download_list_start(f.store, f.loop, on_rows, &f);
    loop_run(f.loop);
    for (size_t i = 0; i < seen.len; i++) rows += seen.at[i] == ' ';
    assert_int_equal(rows, DOWNLOAD_ROWS_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(rows_are_the_oldest_first_and_written_over),
        TEST(rows_are_there_after_a_start),
        TEST(a_dropped_row_is_gone),
        TEST(a_caller_may_stop_waiting),
        TEST(a_list_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
