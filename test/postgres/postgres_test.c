/* With a server: test/e2e/postgres.py build/test/postgres/postgres_test */
#include "postgres/postgres.h"

#include "base/mem.h"
#include "helper/moves.h"
#include "postgres/sqlstate.h"

#include <stdlib.h>
#include <unistd.h>

#define LINES 20

struct scene {
    struct loop *loop;
    struct postgres *postgres;
    int open; /* requests; the loop stops at 0 */
    int connected, lost;
    struct err why;
};

struct asked {
    struct postgres_request request;
    struct postgres_step steps[POSTGRES_STEPS_MAX];
    struct scene *scene;
    int done;
    struct err failed;
    size_t count;          /* rows of the last step */
    char lines[LINES][32]; /* its first column, as text */
    int64_t number;        /* the same of the first row, as a number */
    int64_t affected;
};

static const char *address(void) {
    return getenv("WEIR_TEST_POSTGRES"); /* NOLINT(concurrency-mt-unsafe) */
}

static void on_state(const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    if (failed) scene->why = *failed;
    scene->connected += !failed;
    scene->lost += failed != NULL;
}

static void open_at(struct scene *scene, const char *url) {
    *scene = (struct scene){.loop = loop_new()};
    scene->postgres = postgres_open(&(struct postgres_options){
        .loop = scene->loop,
        .url = str_from(url),
        .waiting_max = 100,
        .on_state = on_state,
        .ctx = scene,
    });
}

/* False: there is no server, and the test is to be skipped. */
static bool begin(struct scene *scene) {
    if (!address()) return false;
    open_at(scene, address());
    return true;
}

static void on_closed(void *ctx) {
    struct scene *scene = ctx;
    loop_stop(scene->loop);
}

static void end(struct scene *scene) {
    postgres_close(scene->postgres, on_closed, scene);
    loop_run(scene->loop);
    loop_free(scene->loop);
}

static void keep_rows(struct asked *asked) {
    struct postgres_rows rows = postgres_rows(&asked->request, asked->request.step_count - 1);
    asked->count = rows.count;
    asked->affected = rows.affected;
    for (size_t i = 0; i < rows.count && i < LINES; i++) {
        struct str text = postgres_content(rows, i, 0);
        snprintf(asked->lines[i], sizeof(asked->lines[i]), STR_FMT, STR_ARG(text));
    }
    if (rows.count && postgres_content(rows, 0, 0).len <= 8)
        asked->number = postgres_number(rows, 0, 0);
}

static void on_done(struct postgres_request *request, const struct err *failed, void *ctx) {
    struct asked *asked = ctx;
    asked->done++;
    if (failed) asked->failed = *failed;
    if (!failed) keep_rows(CONTAINER_OF(request, struct asked, request));
    if (--asked->scene->open == 0) loop_stop(asked->scene->loop);
}

static void add(struct asked *asked, const char *sql, const struct postgres_value *values,
                size_t count) {
    asked->steps[asked->request.step_count++] =
        (struct postgres_step){.sql = sql, .values = values, .value_count = count};
    asked->request.steps = asked->steps;
}

static void ask(struct scene *scene, struct asked *asked) {
    asked->scene = scene;
    asked->request.on_done = on_done;
    asked->request.ctx = asked;
    scene->open++;
    postgres_ask(scene->postgres, &asked->request);
    assert_int_equal(asked->done, 0);
}

/* Ask one statement and wait. */
static struct asked *answer(struct scene *scene, const char *sql,
                            const struct postgres_value *values, size_t count) {
    struct asked *asked = MEM_NEW(struct asked);
    add(asked, sql, values, count);
    ask(scene, asked);
    loop_run(scene->loop);
    assert_int_equal(asked->done, 1);
    return asked;
}

static int64_t number(struct scene *scene, const char *sql) {
    struct asked *asked = answer(scene, sql, NULL, 0);
    int64_t found = asked->number;
    assert_int_equal(asked->failed.code, ERR_NONE);
    free(asked);
    return found;
}

static void run(struct scene *scene, const char *sql) {
    struct asked *asked = answer(scene, sql, NULL, 0);
    if (asked->failed.code) fail_msg("%s", asked->failed.text);
    free(asked);
}

/* --- without a server ---------------------------------------------------------------------- */

static void only_the_drawn_moves_are_allowed(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "connecting ready", "connecting paused", "connecting closed", "ready paused",
        "ready closed",     "paused connecting", "paused closed",
    };
    assert_moves(postgres_states, POSTGRES_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_request_makes_only_the_drawn_moves(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "idle waiting", "idle failing", "waiting sent", "waiting failing",
        "sent waiting", "sent failing", "sent idle",    "failing idle",
    };
    assert_moves(postgres_request_states, POSTGRES_REQUEST_STATE_COUNT, drawn,
                 ARRAY_LEN(drawn));
}

static void a_servers_error_has_one_meaning(void **state) {
    (void)state;
    assert_int_equal(sqlstate_means(STR("40001")).way, SQLSTATE_AGAIN);
    assert_int_equal(sqlstate_means(STR("40P01")).way, SQLSTATE_AGAIN);
    assert_int_equal(sqlstate_means(STR("40003")).way, SQLSTATE_FINAL);
    assert_int_equal(sqlstate_means(STR("25006")).way, SQLSTATE_RECONNECT);
    assert_int_equal(sqlstate_means(STR("57P01")).way, SQLSTATE_RECONNECT);
    assert_int_equal(sqlstate_means(STR("57014")).code, ERR_DEADLINE_EXCEEDED);
    assert_int_equal(sqlstate_means(STR("23505")).code, ERR_ALREADY_EXISTS);
    assert_int_equal(sqlstate_means(STR("23503")).code, ERR_FAILED_PRECONDITION);
    assert_int_equal(sqlstate_means(STR("42P01")).code, ERR_FAILED_PRECONDITION);
    assert_int_equal(sqlstate_means(STR("99999")).code, ERR_INTERNAL);
    assert_int_equal(sqlstate_means(STR_EMPTY).code, ERR_INTERNAL);
}

static void without_a_server_a_request_fails_and_says_why(void **state) {
    (void)state;
    struct scene scene;
    open_at(&scene, "postgres://weir:hush@127.0.0.1:1/none");
    struct asked *asked = answer(&scene, "SELECT 1", NULL, 0);
    assert_int_equal(asked->failed.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(asked->failed.text, "127.0.0.1"));
    assert_non_null(strstr(asked->failed.text, "check its address"));
    assert_null(strstr(asked->failed.text, "hush"));
    assert_true(scene.lost > 1);
    assert_int_equal(scene.connected, 0);
    free(asked);
    end(&scene);
}

static void a_connection_may_be_closed_while_it_is_made(void **state) {
    (void)state;
    struct scene scene;
    struct asked asked = {0};
    open_at(&scene, "postgres://weir@127.0.0.1:1/none");
    add(&asked, "SELECT 1", NULL, 0);
    ask(&scene, &asked);
    scene.open++; /* so that only on_closed stops the loop */
    end(&scene);
    assert_int_equal(asked.done, 1);
    assert_int_equal(asked.failed.code, ERR_UNAVAILABLE);
}

static void too_many_requests_are_refused(void **state) {
    (void)state;
    struct scene scene;
    static struct asked asked[101];
    open_at(&scene, "postgres://weir@127.0.0.1:1/none");
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        add(&asked[i], "SELECT 1", NULL, 0);
        ask(&scene, &asked[i]);
    }
    loop_run(scene.loop);
    assert_non_null(strstr(asked[100].failed.text, "too many"));
    assert_null(strstr(asked[99].failed.text, "too many"));
    end(&scene);
}

/* --- with a server --------------------------------------------------------------------------- */

static void values_come_back_as_they_were_sent(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    struct postgres_value n = postgres_int(INT64_MIN);
    struct asked *asked = answer(&scene, "SELECT $1", &n, 1);
    assert_true(asked->number == INT64_MIN);
    free(asked);
    struct postgres_value text = postgres_text(STR("a'b\\c\xC3\xA9"));
    asked = answer(&scene, "SELECT $1", &text, 1);
    assert_string_equal(asked->lines[0], "a'b\\c\xC3\xA9");
    free(asked);
    struct postgres_value bytes = postgres_bytes(str_of("\0\xFF\1", 3));
    asked = answer(&scene, "SELECT length($1::bytea) + get_byte($1, 1)", &bytes, 1);
    assert_int_equal(asked->number, 3 + 255);
    free(asked);
    struct postgres_value null = postgres_null();
    asked = answer(&scene, "SELECT $1::bigint IS NULL", &null, 1);
    assert_int_equal(asked->number, 1);
    free(asked);
    assert_int_equal(number(&scene, "SELECT -2::smallint"), -2);
    assert_int_equal(number(&scene, "SELECT -2::integer"), -2);
    end(&scene);
}

static void text_with_a_nul_is_refused(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    struct postgres_value text = postgres_text(str_of("a\0b", 3));
    struct asked *asked = answer(&scene, "SELECT $1", &text, 1);
    assert_int_equal(asked->failed.code, ERR_INVALID_ARGUMENT);
    assert_string_equal(asked->request.sqlstate, "22021");
    free(asked);
    end(&scene);
}

static void a_request_takes_effect_as_a_whole_or_not_at_all(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    run(&scene, "DROP TABLE IF EXISTS whole");
    run(&scene, "CREATE TABLE whole (id bigint PRIMARY KEY)");
    struct postgres_value one = postgres_int(1), two = postgres_int(2);
    static const char insert[] = "INSERT INTO whole VALUES ($1)";
    struct asked bad = {0}, good = {0}, after = {0};
    add(&bad, insert, &one, 1);
    add(&bad, insert, &one, 1);
    add(&bad, "SELECT 'never'", NULL, 0);
    add(&good, insert, &one, 1);
    add(&good, insert, &two, 1);
    add(&after, "SELECT count(*) FROM whole", NULL, 0);
    ask(&scene, &bad);
    ask(&scene, &good);
    ask(&scene, &after);
    loop_run(scene.loop);
    assert_int_equal(bad.failed.code, ERR_ALREADY_EXISTS);
    assert_string_equal(bad.request.sqlstate, "23505");
    assert_int_equal(good.failed.code, ERR_NONE);
    assert_int_equal(good.affected, 1);
    assert_int_equal(after.number, 2);
    end(&scene);
}

/* A preparation that is skipped because one before it failed must not be relied upon. */
static void statements_behind_a_failed_one_still_work(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    static const char third[] = "SELECT 3::bigint";
    static struct asked asked[9];
    memset(asked, 0, sizeof(asked));
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        if (i % 2 == 0) add(&asked[i], "SELECT * FROM there_is_none", NULL, 0);
        add(&asked[i], third, NULL, 0);
        ask(&scene, &asked[i]);
    }
    loop_run(scene.loop);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        if (i % 2 == 0) {
            assert_int_equal(asked[i].failed.code, ERR_FAILED_PRECONDITION);
            assert_string_equal(asked[i].request.sqlstate, "42P01");
        } else {
            assert_int_equal(asked[i].failed.code, ERR_NONE);
            assert_int_equal(asked[i].number, 3);
        }
    }
    end(&scene);
}

static void a_commit_that_fails_has_no_effect(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    run(&scene, "DROP TABLE IF EXISTS late");
    run(&scene, "CREATE TABLE late (id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    struct postgres_value one = postgres_int(1);
    static const char insert[] = "INSERT INTO late VALUES ($1)";
    struct asked twice = {0}, once = {0};
    add(&twice, insert, &one, 1);
    add(&twice, insert, &one, 1);
    once.request.repeatable = true;
    add(&once, "SELECT count(*) FROM late", NULL, 0);
    ask(&scene, &twice);
    ask(&scene, &once);
    loop_run(scene.loop);
    assert_int_equal(twice.failed.code, ERR_ALREADY_EXISTS);
    assert_int_equal(once.failed.code, ERR_NONE);
    assert_int_equal(once.number, 0);
    end(&scene);
}

/* pg_terminate_backend() is the server's way to end a connection: it says FATAL first. Requests that
 * it has not read yet make its kernel reset the connection, and then that word may be lost: so
 * the ones behind are such as may be repeated. */
static void requests_go_on_with_a_new_connection(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    static struct asked asked[10];
    memset(asked, 0, sizeof(asked));
    struct asked ending = {0};
    int64_t before = number(&scene, "SELECT pg_backend_pid()");
    ending.request.repeatable = true;
    add(&ending, "SELECT pg_terminate_backend(pg_backend_pid()) WHERE pg_backend_pid() = $1",
        &(struct postgres_value){.type = POSTGRES_INT, .number = before}, 1);
    ask(&scene, &ending);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        asked[i].request.repeatable = true;
        add(&asked[i], "SELECT pg_backend_pid()", NULL, 0);
        ask(&scene, &asked[i]);
    }
    loop_run(scene.loop);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        if (asked[i].failed.code) fail_msg("%s", asked[i].failed.text);
        assert_true(asked[i].number != before);
    }
    assert_int_equal(scene.connected, 2);
    assert_int_equal(scene.lost, 1);
    end(&scene);
}

static void a_statement_that_hangs_ends_at_its_deadline(void **state) {
    if (!address()) skip();
    (void)state;
    struct scene scene = {.loop = loop_new()};
    scene.postgres = postgres_open(&(struct postgres_options){.loop = scene.loop,
                                                              .url = str_from(address()),
                                                              .timeout_ms = 300,
                                                              .on_state = on_state,
                                                              .ctx = &scene});
    struct asked *asked = answer(&scene, "SELECT pg_sleep(60)", NULL, 0);
    assert_int_equal(asked->failed.code, ERR_DEADLINE_EXCEEDED);
    free(asked);
    assert_int_equal(number(&scene, "SELECT 5"), 5);
    assert_int_equal(scene.connected, 1);
    end(&scene);
}

static void many_requests_share_one_connection(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    static struct asked asked[100];
    memset(asked, 0, sizeof(asked));
    static struct postgres_value values[100];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
            asked[i] = (struct asked){0};
            values[i] = postgres_int((int64_t)i);
            add(&asked[i], "SELECT $1 * 2", &values[i], 1);
            ask(&scene, &asked[i]);
        }
        loop_run(scene.loop);
        for (size_t i = 0; i < ARRAY_LEN(asked); i++) assert_int_equal(asked[i].number, 2 * i);
    }
    assert_int_equal(scene.connected, 1);
    end(&scene);
}

static void large_values_travel_both_ways(void **state) {
    struct scene scene;
    if (!begin(&scene)) skip();
    (void)state;
    static char bytes[4 * MIB];
    memset(bytes, 'x', sizeof(bytes));
    struct postgres_value value = postgres_bytes(str_of(bytes, sizeof(bytes)));
    static struct asked asked[8];
    memset(asked, 0, sizeof(asked));
    size_t before = mem_counted();
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        add(&asked[i], "SELECT $1::bytea, length($1)", &value, 1);
        ask(&scene, &asked[i]);
    }
    loop_run(scene.loop);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        assert_int_equal(asked[i].failed.code, ERR_NONE);
        assert_int_equal(asked[i].count, 1);
    }
    assert_true(mem_counted() <= before + 64 * KIB);
    end(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_allowed),
        cmocka_unit_test(a_request_makes_only_the_drawn_moves),
        cmocka_unit_test(a_servers_error_has_one_meaning),
        cmocka_unit_test(without_a_server_a_request_fails_and_says_why),
        cmocka_unit_test(a_connection_may_be_closed_while_it_is_made),
        cmocka_unit_test(too_many_requests_are_refused),
        cmocka_unit_test(values_come_back_as_they_were_sent),
        cmocka_unit_test(text_with_a_nul_is_refused),
        cmocka_unit_test(a_request_takes_effect_as_a_whole_or_not_at_all),
        cmocka_unit_test(statements_behind_a_failed_one_still_work),
        cmocka_unit_test(a_commit_that_fails_has_no_effect),
        cmocka_unit_test(requests_go_on_with_a_new_connection),
        cmocka_unit_test(a_statement_that_hangs_ends_at_its_deadline),
        cmocka_unit_test(many_requests_share_one_connection),
        cmocka_unit_test(large_values_travel_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
