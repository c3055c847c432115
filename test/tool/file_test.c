#include "tool/file_tool.h"

#include "helper/assert_str.h"
#include "helper/test_folder.h"
#include "tool/local.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct stage {
    char folder[64];
    struct tool *reads, *writes;
    struct loop *loop;
    struct buf said;
    unsigned answers;
    enum err_code code; /* of the last answer */
};

static void init(struct stage *stage, struct loop *loop) {
    struct err e;
    *stage = (struct stage){.loop = loop};
    test_folder_make(stage->folder);
    struct str root = str_from(stage->folder);
    assert_true(file_tool_new_folder(&file_read_tool, root, &stage->reads, &e));
    assert_true(file_tool_new_folder(&file_write_tool, root, &stage->writes, &e));
    buf_init(&stage->said, MIB);
}

static void done(struct stage *stage) {
    tool_free(stage->reads);
    tool_free(stage->writes);
    loop_free(stage->loop);
    buf_done(&stage->said);
    test_folder_remove(stage->folder);
}

static void on_done(struct str result, const struct err *failed, void *ctx) {
    struct stage *stage = ctx;
    buf_clear(&stage->said);
    buf_append(&stage->said, failed ? err_text(failed) : result);
    stage->code = failed ? failed->code : ERR_NONE;
    stage->answers++;
}

static struct tool_call *begin(struct stage *stage, struct tool *tool, struct str workspace,
                               struct str args) {
    struct tool_request request = {.call_id = STR("c1"), .args = args, .workspace = workspace};
    unsigned before = stage->answers;
    struct tool_call *call = tool->kind->start(tool, stage->loop, &request, on_done, stage);
    assert_int_equal(stage->answers, before); /* never before start() has returned */
    return call;
}

/* What the tool says to `args`, which its schema must allow. */
static struct str ask_as(struct stage *stage, struct tool *tool, const char *workspace,
                         struct str args) {
    struct json value;
    struct err e;
    unsigned before = stage->answers;
    assert_true(json_read(args, &value, &e));
    if (!schema_check(tool->schema, value, &e)) fail_msg(STR_FMT ": %s", STR_ARG(args), e.text);
    begin(stage, tool, str_from(workspace), args);
    loop_turn(stage->loop);
    assert_int_equal(stage->answers, before + 1);
    return buf_str(&stage->said);
}

static struct str ask(struct stage *stage, struct tool *tool, const char *args) {
    return ask_as(stage, tool, "w", str_from(args));
}

static void write_bytes(struct stage *stage, const char *key, struct str bytes) {
    char path[256];
    ask(stage, stage->writes, "{\"key\":\"made/it\",\"content\":\"\"}"); /* for its folder */
    snprintf(path, sizeof(path), "%s/workspaces/w/files/%s", stage->folder, key);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.at, 1, bytes.len, file), bytes.len);
    fclose(file);
}

static void a_file_is_written_and_read(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    assert_str(ask(&stage, stage.writes,
                   "{\"key\":\"/notes/../plan.md\",\"content\":\"K\\u0079\\u014dto\\n\","
                   "\"description\":\"to remember\"}"),
               "{\"key\":\"/notes/../plan.md\",\"object_key\":\"workspaces/w/files/notes/"
               "plan.md\",\"content_type\":\"text/plain; charset=utf-8\",\"size_bytes\":7}");
    assert_str(ask(&stage, stage.reads, "{\"key\":\"notes/plan.md\",\"description\":\"\"}"),
               "{\"key\":\"notes/plan.md\",\"content\":\"Kyōto\\n\",\"content_type\":"
               "\"text/markdown; charset=utf-8\",\"encoding\":\"text\",\"size_bytes\":7}");
    assert_str(ask(&stage, stage.writes,
                   "{\"key\":\"notes/plan.md\",\"content\":\"\",\"content_type\":\"text/x\"}"),
               "{\"key\":\"notes/plan.md\",\"object_key\":\"workspaces/w/files/notes/plan.md\","
               "\"content_type\":\"text/x\",\"size_bytes\":0}");
    assert_str(ask(&stage, stage.reads, "{\"key\":\"notes/plan.md\"}"),
               "{\"key\":\"notes/plan.md\",\"content\":\"\",\"content_type\":"
               "\"text/markdown; charset=utf-8\",\"encoding\":\"text\",\"size_bytes\":0}");
    done(&stage);
}

static void a_tool_describes_its_arguments(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    static const struct {
        bool writes;
        const char *args, *why;
    } cases[] = {
        {false, "{}", "the property 'key' is missing"},
        {false, "{\"key\":1}", "/key: expected a string, got a number"},
        {false, "{\"kye\":\"a\"}", "/kye: there is no such property; did you mean 'key'?"},
        {true, "{\"key\":\"a\"}", "the property 'content' is missing"},
        {true, "{\"key\":\"a\",\"content\":[]}", "/content: expected a string, got an array"},
        {true, "{\"key\":\"a\",\"content\":\"\",\"mode\":1}",
         "/mode: there is no such property"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tool *tool = cases[i].writes ? stage.writes : stage.reads;
        struct json value;
        struct err e;
        assert_true(json_read(str_from(cases[i].args), &value, &e));
        assert_false(schema_check(tool->schema, value, &e));
        assert_string_equal(e.text, cases[i].why);
        /* Unchecked arguments are refused too, and nothing crashes. */
        begin(&stage, tool, STR("w"), str_from(cases[i].args));
        loop_turn(stage.loop);
    }
    assert_true(str_equal(stage.reads->name, STR("file_read")));
    assert_true(str_equal(stage.writes->name, STR("file_write")));
    assert_true(stage.reads->idempotent && stage.writes->idempotent);
    done(&stage);
}

static void an_unreadable_file_says_why(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    static const struct {
        const char *args, *why;
        enum err_code code;
    } cases[] = {
        {"{\"key\":\"no/such\"}", "file_read: no file at key \"no/such\" in this workspace",
         ERR_NOT_FOUND},
        {"{\"key\":\"made/it/x\"}", "file_read: no file at key \"made/it/x\" in this workspace",
         ERR_NOT_FOUND},
        {"{\"key\":\"made\"}", "file_read: read key \"made\": it is a folder and not a file",
         ERR_INVALID_ARGUMENT},
        {"{\"key\":\"..\"}", "file_read: the key names no file", ERR_INVALID_ARGUMENT},
        {"{\"key\":\"a\\u0000b\"}", "file_read: the key holds a control byte",
         ERR_INVALID_ARGUMENT},
    };
    write_bytes(&stage, "here", STR("x"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_str(ask(&stage, stage.reads, cases[i].args), cases[i].why);
        assert_int_equal(stage.code, cases[i].code);
    }
    assert_str(ask(&stage, stage.writes, "{\"key\":\"made\",\"content\":\"\"}"),
               "file_write: write key \"made\": it is a folder and not a file");
    assert_str(ask_as(&stage, stage.reads, "", STR("{\"key\":\"a\"}")),
               "file_read: the call belongs to no workspace");
    done(&stage);
}

static void the_name_of_a_file_tells_its_type(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    static const struct {
        const char *key;
        struct str bytes;
        const char *type, *encoding, *content;
    } cases[] = {
        {"a.json", STR_INIT("{}"), "application/json", "text", "{}"},
        {"a.JSON", STR_INIT("{}"), "application/json", "text", "{}"},
        {"a.ndjson", STR_INIT("1"), "application/x-ndjson", "text", "1"},
        {"a.xml", STR_INIT("<a/>"), "application/xml", "text", "<a/>"},
        {"a.yml", STR_INIT("a: 1"), "application/yaml", "text", "a: 1"},
        {"a.js", STR_INIT("1"), "text/javascript; charset=utf-8", "text", "1"},
        {"a.csv", STR_INIT("1,2"), "text/csv; charset=utf-8", "text", "1,2"},
        {"noname", STR_INIT("words"), "text/plain; charset=utf-8", "text", "words"},
        {"json", STR_INIT("words"), "text/plain; charset=utf-8", "text", "words"},
        {"a.xyz", STR_INIT("\xff\x00"), "application/octet-stream", "base64", "/wA="},
        {"nul", STR_INIT("a\0"), "application/octet-stream", "base64", "YQA="},
        {"a.png", STR_INIT("\x89PNG"), "image/png", "base64", "iVBORw=="},
        {"b.png", STR_INIT("text"), "image/png", "base64", "dGV4dA=="},
        {"bad.txt", STR_INIT("a\xff"), "text/plain; charset=utf-8", "base64", "Yf8="},
        {"cut.txt", STR_INIT("\xe2\x82"), "text/plain; charset=utf-8", "base64", "4oI="},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char args[128], expected[256];
        struct buf content;
        buf_init(&content, KIB);
        json_put_str(&content, str_from(cases[i].content));
        write_bytes(&stage, cases[i].key, cases[i].bytes);
        snprintf(args, sizeof(args), "{\"key\":\"%s\"}", cases[i].key);
        snprintf(expected, sizeof(expected),
                 "{\"key\":\"%s\",\"content\":" STR_FMT
                 ",\"content_type\":\"%s\",\"encoding\":\"%s\",\"size_bytes\":%zu}",
                 cases[i].key, STR_ARG(buf_str(&content)), cases[i].type, cases[i].encoding,
                 cases[i].bytes.len);
        assert_str(ask(&stage, stage.reads, args), expected);
        buf_done(&content);
    }
    done(&stage);
}

/* A file of `size` bytes that repeats `unit`, read: the result stays within its limit, is
 * JSON, and its content is the beginning of the file. */
static void assert_cut(struct stage *stage, const char *key, struct str unit, size_t size) {
    struct buf bytes;
    char args[64];
    buf_init(&bytes, size + unit.len);
    while (bytes.len < size) buf_append(&bytes, unit);
    write_bytes(stage, key, buf_str(&bytes));
    snprintf(args, sizeof(args), "{\"key\":\"%s\"}", key);
    struct str said = ask(stage, stage->reads, args);
    assert_int_equal(stage->code, ERR_NONE);
    assert_true(said.len <= LOCAL_RESULT_MAX_BYTES);

    struct json result;
    struct err e;
    struct arena *arena = arena_new(64 * KIB);
    struct str content;
    bool cut;
    int64_t reported;
    assert_true(json_read(said, &result, &e));
    assert_true(json_str(json_find(result, STR("content")), arena, &content));
    assert_true(json_i64(json_find(result, STR("size_bytes")), &reported));
    assert_int_equal(reported, bytes.len);
    if (json_is(json_find(result, STR("encoding")), STR("text"))) {
        assert_true(str_starts(buf_str(&bytes), content));
        assert_int_equal(content.len % unit.len, 0);
    }
    cut = json_find(result, STR("truncated")).kind == JSON_TRUE;
    assert_int_equal(cut, said.len > LOCAL_RESULT_MAX_BYTES - 64 && reported > 20000);
    if (cut) assert_true(said.len > LOCAL_RESULT_MAX_BYTES - 64); /* and uses its room */
    arena_free(arena);
    buf_done(&bytes);
}

static void a_long_file_is_cut_to_what_a_result_may_hold(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    static const size_t sizes[] = {1000, 22000, 29000, 29999, 30000, 30001, 40000, 100000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_cut(&stage, "plain.txt", STR("x"), sizes[i]);
        assert_cut(&stage, "euro.txt", STR("\xe2\x82\xac"), sizes[i]);
        assert_cut(&stage, "lines.txt", STR("\n"), sizes[i] / 2 + 20000);
        assert_cut(&stage, "bytes.bin", STR("\xff"), sizes[i]);
    }
    done(&stage);
}

static void two_workspaces_never_see_each_other(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    static const char *const names[] = {"a", "A", ".", "..", "a/b", "a%2Fb", "b", "a ", "%2E"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char args[64];
        snprintf(args, sizeof(args), "{\"key\":\"f\",\"content\":\"%zu\"}", i);
        ask_as(&stage, stage.writes, names[i], str_from(args));
        assert_int_equal(stage.code, ERR_NONE);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char expected[64];
        snprintf(expected, sizeof(expected), "{\"key\":\"f\",\"content\":\"%zu\"", i);
        assert_true(str_starts(ask_as(&stage, stage.reads, names[i], STR("{\"key\":\"f\"}")),
                               str_from(expected)));
        assert_str(ask_as(&stage, stage.reads, names[i], STR("{\"key\":\"../../a/files/g\"}")),
                   "file_read: no file at key \"../../a/files/g\" in this workspace");
    }
    done(&stage);
}

static void a_call_that_is_cancelled_answers_nothing(void **state) {
    (void)state;
    struct stage stage;
    init(&stage, loop_new_fake());
    struct tool_call *call =
        begin(&stage, stage.writes, STR("w"), STR("{\"key\":\"a\",\"content\":\"x\"}"));
    stage.writes->kind->cancel(call);
    loop_turn(stage.loop);
    assert_int_equal(stage.answers, 0);
    assert_str(ask(&stage, stage.reads, "{\"key\":\"a\"}"),
               "file_read: no file at key \"a\" in this workspace");
    done(&stage);
}

/* ---- On a real loop, with a thread that works ---- */

static void stop_when_answered(struct str result, const struct err *failed, void *ctx) {
    struct stage *stage = ctx;
    on_done(result, failed, ctx);
    loop_stop(stage->loop);
}

static void wait_for_one(struct stage *stage, struct str args) {
    struct tool_request request = {.args = args, .workspace = STR("w")};
    stage->reads->kind->start(stage->reads, stage->loop, &request, stop_when_answered, stage);
    loop_run(stage->loop);
}

static void a_call_may_be_cancelled_at_any_moment(void **state) {
    (void)state;
    struct stage stage;
    struct buf args;
    init(&stage, loop_new());
    buf_init(&args, 2 * MIB);
    buf_append(&args, STR("{\"key\":\"a\",\"content\":\""));
    for (size_t i = 0; i < MIB; i++) buf_append_byte(&args, 'x');
    buf_append(&args, STR("\"}"));
    for (unsigned round = 0; round < 40; round++) {
        unsigned before = stage.answers;
        struct tool_call *call = begin(&stage, stage.writes, STR("w"), buf_str(&args));
        for (volatile unsigned spin = 0; spin < round * round * 2000; spin++) {
        }
        stage.writes->kind->cancel(call);
        /* One thread works in order: a later call sees the result. */
        wait_for_one(&stage, STR("{\"key\":\"a\"}"));
        assert_int_equal(stage.answers, before + 1);
        bool whole =
            stage.code == ERR_NONE &&
            str_find(buf_str(&stage.said), STR("\"size_bytes\":1048576,")) < stage.said.len;
        assert_true(whole || stage.code == ERR_NOT_FOUND);
    }
    char command[160];
    snprintf(command, sizeof(command), "test -z \"$(find '%s' -name '.part*')\"", stage.folder);
    assert_int_equal(system(command), 0);
    buf_done(&args);
    done(&stage);
}

static void a_tool_may_go_while_a_cancelled_call_still_works(void **state) {
    (void)state;
    struct stage stage;
    struct err e;
    init(&stage, loop_new());
    struct tool *gone;
    assert_true(file_tool_new_folder(&file_write_tool, str_from(stage.folder), &gone, &e));
    struct tool_call *call =
        begin(&stage, gone, STR("w"), STR("{\"key\":\"a\",\"content\":\"x\"}"));
    gone->kind->cancel(call);
    tool_free(gone);
    wait_for_one(&stage, STR("{\"key\":\"b\"}"));
    assert_int_equal(stage.answers, 1);
    done(&stage);
}

static void a_tool_without_its_folder_is_not_made(void **state) {
    (void)state;
    struct tool *tool = NULL;
    struct err e;
    assert_false(file_tool_new_folder(&file_read_tool, STR("/nowhere/at/all"), &tool, &e));
    assert_string_equal(e.text, "file_read: the folder of files '/nowhere/at/all': there is no "
                                "such folder; make it or name another");
    assert_false(file_tool_new_folder(&file_write_tool, STR("/dev/null"), &tool, &e));
    assert_null(tool);
}

int main(void) {
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_written_and_read),
        cmocka_unit_test(a_tool_describes_its_arguments),
        cmocka_unit_test(an_unreadable_file_says_why),
        cmocka_unit_test(the_name_of_a_file_tells_its_type),
        cmocka_unit_test(a_long_file_is_cut_to_what_a_result_may_hold),
        cmocka_unit_test(two_workspaces_never_see_each_other),
        cmocka_unit_test(a_call_that_is_cancelled_answers_nothing),
        cmocka_unit_test(a_call_may_be_cancelled_at_any_moment),
        cmocka_unit_test(a_tool_may_go_while_a_cancelled_call_still_works),
        cmocka_unit_test(a_tool_without_its_folder_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
