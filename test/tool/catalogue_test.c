#include "tool/catalogue.h"

#include "fixture.h"

#include "fake/http_fake.h"

#include "base/clock.h"

static void every_row_is_made_and_says_the_same_as_its_tool(void **state) {
    (void)state;
    struct err e;
    size_t count;
    struct http_pool *pool = http_pool_new();
    struct catalogue_options options = {
        .pool = pool,
        .search = {.backend = STR("searxng"), .base_url = STR("http://s")},
        .file_root = STR("/tmp"),
        .store = (struct store *)&count, /* only kept: no call is made */
        .exec = {.root = STR("/tmp"),
                 .limits = {.memory_bytes = 64 * MIB,
                            .cpu_s = 1,
                            .processes = 16,
                            .file_bytes = MIB,
                            .scratch_bytes = MIB},
                 .at_once = 1},
    };
    const struct catalogue_row *rows = catalogue_rows(&count);
    for (size_t i = 0; i < count; i++) {
        struct tool *tool;
        if (!catalogue_make(rows[i].name, &options, &tool, &e)) {
            /* exec is off on a machine without namespaces, and says so. */
            if (e.code == ERR_UNIMPLEMENTED && str_equal(rows[i].name, STR("exec"))) continue;
            fail_msg("%s", e.text);
        }
        assert_true(str_equal(tool->name, rows[i].name));
        assert_int_equal(tool->idempotent, rows[i].idempotent);
        assert_int_equal(tool->asks, rows[i].guarded);
        assert_true(tool->description.len && rows[i].summary.len && tool->schema);
        assert_ptr_equal(catalogue_find(rows[i].name), &rows[i]);
        tool_free(tool);
    }
    http_pool_free(pool);
}

static void every_tool_takes_a_description_and_nothing_unknown(void **state) {
    (void)state;
    static const char *const names[] = {"calculator", "current_time"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err e;
        struct tool *tool;
        struct stage stage;
        struct catalogue_options options = {0};
        assert_true(catalogue_make(str_from(names[i]), &options, &tool, &e));
        stage_init(&stage, tool);
        assert_true(stage_accepts(&stage, i ? "{\"description\":\"d\",\"zone\":\"UTC\"}"
                                            : "{\"description\":\"d\",\"expression\":\"1\"}"));
        assert_false(stage_accepts(&stage, "{\"expression\":\"1\",\"zone\":\"UTC\"}"));
        stage_done(&stage);
    }
}

static void a_tool_that_cannot_be_made_says_what_is_missing(void **state) {
    (void)state;
    struct err e;
    struct tool *tool;
    struct http_pool *pool = http_pool_new();
    struct catalogue_options none = {0}, some = {.pool = pool};
    assert_false(catalogue_make(STR("calculater"), &none, &tool, &e));
    assert_str(err_text(&e), "no tool named 'calculater'; did you mean 'calculator'?");
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_false(catalogue_make(STR("web_fetch"), &none, &tool, &e));
    assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    assert_false(catalogue_make(STR("file_read"), &none, &tool, &e));
    assert_str(err_text(&e),
               "tool 'file_read': no folder for files is set, and no object storage");
    assert_false(catalogue_make(STR("exec"), &none, &tool, &e));
    assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    assert_false(catalogue_make(STR("memory_list"), &none, &tool, &e));
    assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    assert_false(catalogue_make(STR("web_search_tool"), &some, &tool, &e));
    assert_str(err_text(&e), "tool 'web_search_tool': no search backend is set; name one "
                             "(searxng or brave)");
    some.search.backend = STR("other");
    assert_false(catalogue_make(STR("web_search_tool"), &some, &tool, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    http_pool_free(pool);
}

static void said_by(const char *name, const char *args, bool failed, const char *expected) {
    struct err e;
    struct tool *tool;
    struct stage stage;
    struct catalogue_options options = {0};
    assert_true(catalogue_make(str_from(name), &options, &tool, &e));
    stage_init(&stage, tool);
    stage_call(&stage, args);
    loop_turn(stage.loop);
    stage_said(&stage, failed, expected);
    stage_done(&stage);
}

static void a_state_is_written_by_members(void **state) {
    (void)state;
    said_by("state_write", "{\"state\":{\"a\":1,\"b\":null},\"description\":\"why\"}", false,
            "{\"written\":[\"a\",\"b\"]}");
    said_by("state_write", "{\"state\":{}}", true,
            "'state' must be an object with the members that change");
    said_by("state_write", "{\"state\":[1]}", true,
            "'state' must be an object with the members that change");
    said_by("state_write", "{}", true,
            "'state' must be an object with the members that change");
}

static void the_calculator_counts(void **state) {
    (void)state;
    said_by("calculator", "{\"expression\":\"(12.5 + 3) * 4\",\"description\":\"why\"}", false,
            "{\"expression\":\"(12.5 + 3) * 4\",\"result\":62}");
    said_by("calculator", "{\"expression\":\"1/0\"}", true, "column 2: division by zero");
    said_by("calculator", "{\"expression\":\"\"}", true,
            "column 1: expected a number, a name or '('");
    said_by("calculator", "{}", true, "'expression' must be a string");
    said_by("calculator", "7", true, "the arguments must be an object, not a number");
}

static void the_clock_of_a_zone_is_given_for_a_moment(void **state) {
    (void)state;
    said_by("current_time", "{\"at\":\"2026-03-01T13:00:00+01:00\"}", false,
            "{\"time\":\"2026-03-01T12:00:00Z\",\"zone\":\"UTC\",\"weekday\":\"Sunday\","
            "\"unix\":1772366400}");
    said_by("current_time", "{\"zone\":\"Asia/Tokyo\",\"at\":\"2026-03-01T16:00:00Z\"}", false,
            "{\"time\":\"2026-03-02T01:00:00+09:00\",\"zone\":\"Asia/Tokyo\",\"weekday\":"
            "\"Monday\",\"unix\":1772380800}");
    said_by("current_time", "{\"zone\":\"America/New_York\",\"at\":\"2099-07-01T12:00:00Z\"}",
            false,
            "{\"time\":\"2099-07-01T08:00:00-04:00\",\"zone\":\"America/New_York\",\"weekday\":"
            "\"Wednesday\",\"unix\":4086590400}");
}

static void without_a_moment_it_is_now(void **state) {
    (void)state;
    struct err e;
    struct tool *tool;
    struct stage stage;
    struct json result;
    int64_t unix_s = 0;
    struct catalogue_options options = {0};
    int64_t before = clock_unix_ms() / 1000;
    assert_true(catalogue_make(STR("current_time"), &options, &tool, &e));
    stage_init(&stage, tool);
    stage_call(&stage, "{\"zone\":\"Europe/Berlin\"}");
    loop_turn(stage.loop);
    assert_true(json_read(buf_str(&stage.said), &result, &e));
    assert_true(json_i64(json_find(result, STR("unix")), &unix_s));
    assert_true(unix_s >= before && unix_s <= clock_unix_ms() / 1000);
    stage_done(&stage);
}

static void a_zone_is_a_name_and_no_path(void **state) {
    (void)state;
    static const char *const names[] = {
        "../../etc/passwd", "/etc/passwd",    "Europe/../UTC", "Europe", "Europe/", "/UTC",
        "Europe//Berlin",   "tzdata.zi",      "zone.tab",      "Mars",   "",        "right/UTC",
        "leapseconds",      "Europe/Ber lin",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf args, expected;
        buf_init(&args, KIB);
        buf_init(&expected, KIB);
        buf_printf(&args, "{\"zone\":\"%s\"}", names[i]);
        buf_printf(&expected,
                   "no time zone '%s'; use an IANA name such as Europe/Berlin or UTC%c",
                   names[i], '\0');
        buf_append_byte(&args, '\0');
        said_by("current_time", args.at, true, expected.at);
        buf_done(&expected);
        buf_done(&args);
    }
}

static void a_moment_that_is_none_is_an_error(void **state) {
    (void)state;
    said_by(
        "current_time", "{\"at\":\"tomorrow\"}", true,
        "'tomorrow' is not a time like 2026-03-01T12:00:00+01:00 (with Z or an offset at its "
        "end)");
    said_by("current_time", "{\"zone\":\"Asia/Tokyo\",\"at\":\"9999-12-31T23:00:00Z\"}", true,
            "there the year has no four digits");
}

static void a_cancelled_call_answers_nothing(void **state) {
    (void)state;
    struct err e;
    struct tool *tool;
    struct stage stage;
    struct catalogue_options options = {0};
    assert_true(catalogue_make(STR("calculator"), &options, &tool, &e));
    stage_init(&stage, tool);
    tool->kind->cancel(stage_call(&stage, "{\"expression\":\"1\"}"));
    loop_advance(stage.loop, 1000);
    assert_int_equal(stage.answers, 0);
    stage_done(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_made_and_says_the_same_as_its_tool),
        cmocka_unit_test(every_tool_takes_a_description_and_nothing_unknown),
        cmocka_unit_test(a_tool_that_cannot_be_made_says_what_is_missing),
        cmocka_unit_test(a_state_is_written_by_members),
        cmocka_unit_test(the_calculator_counts),
        cmocka_unit_test(the_clock_of_a_zone_is_given_for_a_moment),
        cmocka_unit_test(without_a_moment_it_is_now),
        cmocka_unit_test(a_zone_is_a_name_and_no_path),
        cmocka_unit_test(a_moment_that_is_none_is_an_error),
        cmocka_unit_test(a_cancelled_call_answers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
