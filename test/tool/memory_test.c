/* The memory tools on a fake store that has the real tables: the result that a model reads, and
 * that the workspace is the run's own. */
#include "tool/memory.h"

#include "base/buf.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "wire/json.h"

enum { SEARCH, LIST, WRITE, DELETE, TOOLS };

static struct loop *loop;
static struct store *store;
static struct tool *tools[TOOLS];
static struct buf result;
static struct err failed;
static int answers;

static void on_done(struct str text, const struct err *why, void *ctx) {
    assert_ptr_equal(ctx, &result);
    buf_clear(&result);
    buf_append(&result, text);
    failed.code = ERR_NONE;
    if (why) failed = *why;
    answers++;
}

static struct tool_call *start_in(struct str workspace, int tool, const char *args) {
    struct tool_request request = {
        .args = str_from(args), .agent = STR("manager"), .workspace = workspace};
    return tools[tool]->kind->start(tools[tool], loop, &request, on_done, &result);
}

static void ask_in(struct str workspace, int tool, const char *args) {
    answers = 0;
    start_in(workspace, tool, args);
    assert_int_equal(answers, 0); /* never before start returns */
    loop_turn(loop);
    loop_turn(loop);
    assert_int_equal(answers, 1);
    struct json json;
    struct err e;
    if (!failed.code) assert_true(json_read(buf_str(&result), &json, &e));
}

static void ask(int tool, const char *args) {
    ask_in(STR("w"), tool, args);
}

static void assert_says(const char *text) {
    if (failed.code) fail_msg("%s", failed.text);
    if (str_find(buf_str(&result), str_from(text)) == result.len)
        fail_msg("%s is not in " STR_FMT, text, STR_ARG(buf_str(&result)));
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_always_commit(store);
    tools[SEARCH] = memory_tool_new(&memory_search_tool, store);
    tools[LIST] = memory_tool_new(&memory_list_tool, store);
    tools[WRITE] = memory_tool_new(&memory_write_tool, store);
    tools[DELETE] = memory_tool_new(&memory_delete_tool, store);
    buf_init(&result, MIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < TOOLS; i++) tool_free(tools[i]);
    buf_done(&result);
    fake_store_free(store);
    loop_free(loop);
    return 0;
}

static void a_written_memory_is_found_listed_and_deleted(void **state) {
    (void)state;
    ask(WRITE, "{\"key\":\"airline\",\"content\":\"window seat, Finnair\"}");
    assert_says("\"category\":\"core\"");
    ask(WRITE, "{\"key\":\"tea\",\"content\":\"no sugar\",\"category\":\"daily\","
               "\"description\":\"so that I know\"}");
    ask(SEARCH, "{\"query\":\"Which seat and airline does she like?\"}");
    assert_says("{\"memories\":[{\"key\":\"airline\",\"content\":\"window seat, Finnair\"");
    assert_says("\"more\":false}");
    ask(SEARCH, "{\"query\":\"sugar\",\"category\":\"core\"}");
    assert_str(buf_str(&result), "{\"memories\":[],\"more\":false}");
    ask(LIST, "{\"limit\":1}");
    assert_says("\"more\":true}");
    ask(LIST, "{\"category\":\"daily\"}");
    assert_says("\"no sugar\"");
    ask(DELETE, "{\"key\":\"tea\"}");
    assert_str(buf_str(&result), "{\"deleted\":1}");
    ask(DELETE, "{\"key\":\"tea\"}");
    assert_int_equal(failed.code, ERR_NOT_FOUND);
    ask(LIST, "{\"offset\":1}");
    assert_str(buf_str(&result), "{\"memories\":[],\"more\":false}");
}

/* M6, X10 */
static void no_argument_reaches_another_workspace(void **state) {
    (void)state;
    ask_in(STR("a"), WRITE, "{\"key\":\"k\",\"content\":\"canary\"}");
    static const char *const searches[] = {
        "{\"query\":\"canary\"}",
        "{\"query\":\"canary\",\"workspace\":\"a\"}",
        "{\"query\":\"place:w61 OR canary\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(searches); i++) {
        ask_in(STR("b"), SEARCH, searches[i]);
        assert_str(buf_str(&result), "{\"memories\":[],\"more\":false}");
    }
    ask_in(STR("b"), DELETE, "{\"key\":\"k\",\"workspace\":\"a\"}");
    assert_int_equal(failed.code, ERR_NOT_FOUND);
    ask_in(STR("a"), SEARCH, "{\"query\":\"canary\"}");
    assert_says("canary");
}

static void an_error_is_reported_to_the_model(void **state) {
    (void)state;
    static const struct {
        int tool;
        const char *args;
        enum err_code code;
    } rows[] = {
        {SEARCH, "{}", ERR_INVALID_ARGUMENT},
        {SEARCH, "{\"query\":\"  \"}", ERR_INVALID_ARGUMENT},
        {SEARCH, "{\"query\":5}", ERR_INVALID_ARGUMENT},
        {LIST, "[]", ERR_INVALID_ARGUMENT},
        {LIST, "{", ERR_MALFORMED},
        {WRITE, "{\"content\":\"x\"}", ERR_INVALID_ARGUMENT},
        {WRITE, "{\"key\":\"\",\"content\":\"x\"}", ERR_INVALID_ARGUMENT},
        {DELETE, "{}", ERR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ask(rows[i].tool, rows[i].args);
        assert_int_equal(failed.code, rows[i].code);
    }
    ask_in(STR_EMPTY, LIST, "{}");
    assert_int_equal(failed.code, ERR_INVALID_ARGUMENT);
}

static void a_store_that_fails_is_not_quoted(void **state) {
    (void)state;
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    ask(WRITE, "{\"key\":\"k\",\"content\":\"v\"}");
    assert_int_equal(failed.code, ERR_UNAVAILABLE);
    assert_null(strstr(failed.text, "fake"));
}

static void a_cancelled_call_is_never_answered(void **state) {
    (void)state;
    answers = 0;
    struct tool_call *call = start_in(STR("w"), WRITE, "{\"key\":\"k\",\"content\":\"v\"}");
    tools[WRITE]->kind->cancel(call);
    call = start_in(STR("w"), WRITE, "{}");
    tools[WRITE]->kind->cancel(call);
    loop_turn(loop);
    loop_turn(loop);
    assert_int_equal(answers, 0);
}

static void long_contents_are_cut_so_that_every_entry_is_shown(void **state) {
    (void)state;
    struct buf args;
    buf_init(&args, 64 * KIB);
    for (int i = 0; i < 20; i++) {
        buf_clear(&args);
        buf_printf(&args, "{\"key\":\"k%d\",\"content\":\"", i);
        for (int n = 0; n < 8000; n++) buf_append(&args, STR("\xC3\xA9"));
        buf_append(&args, STR("\"}\0"));
        ask(WRITE, args.at);
    }
    ask(LIST, "{}");
    struct json json;
    struct err e;
    assert_true(json_read(buf_str(&result), &json, &e));
    assert_int_equal(json_count(json_find(json, STR("memories"))), 20);
    assert_true(result.len <= 30000);
    assert_says("\"content_is_cut\":true");
    buf_done(&args);
}

static void the_schemas_take_what_the_tools_take(void **state) {
    (void)state;
    struct json args;
    struct err e;
    static const struct {
        int tool;
        const char *args;
        bool ok;
    } rows[] = {
        {SEARCH, "{\"query\":\"x\",\"limit\":5,\"category\":\"core\"}", true},
        {SEARCH, "{\"query\":\"x\",\"workspace\":\"a\"}", false},
        {SEARCH, "{}", false},
        {LIST, "{\"limit\":51}", false},
        {LIST, "{\"description\":\"why\"}", true},
        {WRITE, "{\"key\":\"k\",\"content\":\"c\"}", true},
        {WRITE, "{\"key\":\"k\"}", false},
        {DELETE, "{\"key\":\"k\"}", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(json_read(str_from(rows[i].args), &args, &e));
        assert_int_equal(schema_check(tools[rows[i].tool]->schema, args, &e), rows[i].ok);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_written_memory_is_found_listed_and_deleted),
        TEST(no_argument_reaches_another_workspace),
        TEST(an_error_is_reported_to_the_model),
        TEST(a_store_that_fails_is_not_quoted),
        TEST(a_cancelled_call_is_never_answered),
        TEST(long_contents_are_cut_so_that_every_entry_is_shown),
        TEST(the_schemas_take_what_the_tools_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
