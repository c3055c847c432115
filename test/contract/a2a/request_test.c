/* What clients send, in each dialect, and what is wrong with it. */
#include "contract/a2a/request.h"

#include "helper/assert_str.h"

#include <stdio.h>

static struct arena *arena;
static struct a2a_request request;
static struct err e;

static int setup(void **state) {
    (void)state;
    arena = arena_new(1 * MIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static bool read_as(enum a2a_operation operation, enum a2a_dialect dialect, const char *text) {
    struct json params;
    assert_true(json_read(str_from(text), &params, &e));
    return a2a_request_read(operation, dialect, params, arena, &request, &e);
}

static void assert_read(enum a2a_operation operation, enum a2a_dialect dialect,
                        const char *text) {
    if (!read_as(operation, dialect, text)) fail_msg("%s", e.text);
}

static void assert_refused(enum a2a_operation operation, enum a2a_dialect dialect,
                           const char *text, enum err_code code, const char *says) {
    assert_false(read_as(operation, dialect, text));
    assert_int_equal(e.code, code);
    if (!strstr(e.text, says)) fail_msg("no '%s' in: %s", says, e.text);
}

static void a_message_of_0_3_is_read(void **state) {
    (void)state;
    assert_read(A2A_SEND, A2A_0_3,
                "{\"message\":{\"kind\":\"message\",\"messageId\":\"m\",\"role\":\"user\","
                "\"contextId\":\"c\",\"taskId\":\"12\",\"metadata\":{\"a\":1},\"parts\":["
                "{\"kind\":\"text\",\"text\":\"one\"},{\"kind\":\"data\",\"data\":{\"x\": 2}},"
                "{\"kind\":\"file\",\"file\":{\"bytes\":\"aGk=\",\"mimeType\":\"text/plain\","
                "\"name\":\"a.txt\"}}]},"
                "\"configuration\":{\"blocking\":false,\"historyLength\":2}}");
    assert_str(request.text, "one\n\n{\"x\":2}\n\na.txt:\nhi");
    assert_null(request.pictured);
    assert_str(request.context, "c");
    assert_int_equal(request.task, 12);
    assert_true(request.immediately);
    assert_int_equal(request.history_max, 2);
    assert_str(request.extras, "{\"metadata\":{\"a\":1,\"a2a\":{\"messageId\":\"m\"}}}");
}

static void a_webhook_is_read_in_each_version(void **state) {
    (void)state;
    assert_read(A2A_WEBHOOK_PUT, A2A_0_3,
                "{\"taskId\":\"7\",\"pushNotificationConfig\":{\"url\":\"https://a/b\","
                "\"token\":\"t\",\"authentication\":{\"schemes\":[\"Bearer\",\"Basic\"],"
                "\"credentials\":\"c d\"}}}");
    assert_int_equal(request.task, 7);
    assert_str(request.webhook.url, "https://a/b");
    assert_str(request.webhook.scheme, "Bearer");
    assert_str(request.webhook.credentials, "c d");
    assert_read(A2A_WEBHOOK_PUT, A2A_1_0,
                "{\"taskId\":\"7\",\"id\":\"i\",\"url\":\"HTTP://a/b\",\"authentication\":{"
                "\"scheme\":\"Basic\"}}");
    assert_str(request.webhook.id, "i");
    assert_str(request.webhook.scheme, "Basic");
    assert_str(request.webhook.token, "");
    assert_read(A2A_WEBHOOK_GET, A2A_0_3, "{\"id\":\"7\"}");
    assert_str(request.webhook_id, "");
    assert_read(A2A_WEBHOOK_DELETE, A2A_1_0, "{\"taskId\":\"7\",\"id\":\"i\"}");
    assert_str(request.webhook_id, "i");
    assert_read(A2A_WEBHOOK_LIST, A2A_1_0, "{\"taskId\":\"7\"}");
}

static void a_webhook_that_cannot_be_called_is_refused(void **state) {
    (void)state;
    static const struct {
        enum a2a_operation operation;
        const char *text, *says;
    } rows[] = {
        {A2A_WEBHOOK_PUT, "{\"url\":\"https://a\"}", "taskId is missing"},
        {A2A_WEBHOOK_PUT, "{\"taskId\":\"7\"}", "url must begin"},
        {A2A_WEBHOOK_PUT, "{\"taskId\":\"7\",\"url\":\"file:///etc/passwd\"}",
         "url must begin"},
        {A2A_WEBHOOK_PUT, "{\"taskId\":\"7\",\"url\":\"https://a b\"}", "printable"},
        {A2A_WEBHOOK_PUT, "{\"taskId\":\"7\",\"url\":7}", "must be a string"},
        {A2A_WEBHOOK_PUT, "{\"taskId\":\"7\",\"url\":\"https://a\",\"token\":\"\\r\\n\"}",
         "printable"},
        {A2A_WEBHOOK_PUT,
         "{\"taskId\":\"7\",\"url\":\"https://a\",\"authentication\":{\"scheme\":\"a:b\"}}",
         "no word"},
        {A2A_WEBHOOK_PUT, "{\"taskId\":\"7\",\"url\":\"https://a\",\"authentication\":[]}",
         "must be an object"},
        {A2A_WEBHOOK_GET, "{\"taskId\":\"7\"}", "id is missing"},
        {A2A_WEBHOOK_DELETE, "{\"id\":\"7\"}", "taskId is missing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(rows[i].operation, A2A_1_0, rows[i].text, ERR_INVALID_ARGUMENT,
                       rows[i].says);
}

static void a_message_of_1_0_is_read(void **state) {
    (void)state;
    assert_read(A2A_STREAM, A2A_1_0,
                "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"taskId\":\"\","
                "\"parts\":[{\"text\":\"look\"},{\"raw\":\"aGk=\",\"mediaType\":\"image/png\"},"
                "{\"url\":\"https://a.example/b.png\",\"mediaType\":\"image/png\"}]},"
                "\"configuration\":{\"returnImmediately\":true}}");
    assert_str(request.text, "look");
    assert_non_null(request.pictured);
    assert_str(request.pictured->parts,
               "[{\"type\":\"text\",\"text\":\"look\"},"
               "{\"type\":\"image\",\"media_type\":\"image/png\",\"data\":\"aGk=\"},"
               "{\"type\":\"image\",\"url\":\"https://a.example/b.png\"}]");
    assert_false(request.names_task);
    assert_true(request.immediately);
    assert_int_equal(request.history_max, A2A_ALL_HISTORY);
}

static void agentbreeders_message_is_a_text(void **state) {
    (void)state;
    assert_read(
        A2A_SEND, A2A_BREEDER,
        "{\"message\":\"hi\",\"task_id\":\"their-own\",\"context\":{\"session_id\":\"s\"}}");
    assert_str(request.text, "hi");
    assert_str(request.context, "s");
    assert_false(request.names_task);
    assert_read(A2A_SEND, A2A_BREEDER, "{\"message\":\"yes\",\"task_id\":\"7\"}");
    assert_int_equal(request.task, 7);
    assert_refused(A2A_SEND, A2A_BREEDER, "{}", ERR_INVALID_ARGUMENT, "message is missing");
}

#define MESSAGE(more) "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\"" more "}}"

static void each_mistake_is_named(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
        const char *says;
    } rows[] = {
        {"{}", ERR_INVALID_ARGUMENT, "message must be an object, not nothing"},
        {"{\"message\":{\"role\":\"ROLE_USER\"}}", ERR_INVALID_ARGUMENT,
         "messageId is missing"},
        {"{\"message\":{\"messageId\":\"m\",\"role\":\"user\"}}", ERR_INVALID_ARGUMENT,
         "message.role must be \"ROLE_USER\", not \"user\""},
        {MESSAGE(""), ERR_INVALID_ARGUMENT, "message.parts must be an array"},
        {MESSAGE(",\"parts\":[]"), ERR_INVALID_ARGUMENT, "not an empty one"},
        {MESSAGE(",\"parts\":[{\"text\":\"a\"},{}]"), ERR_INVALID_ARGUMENT, "message.parts[1]"},
        {MESSAGE(",\"parts\":[{\"text\":7}]"), ERR_INVALID_ARGUMENT, "text must be a string"},
        {MESSAGE(",\"parts\":[{\"raw\":\"aGk=\",\"mediaType\":\"video/mp4\"}]"),
         ERR_UNIMPLEMENTED, "'video/mp4'"},
        {MESSAGE(",\"parts\":[{\"raw\":\"?\",\"mediaType\":\"text/plain\"}]"),
         ERR_INVALID_ARGUMENT, "not base64"},
        {MESSAGE(",\"parts\":[{\"raw\":\"/w==\",\"mediaType\":\"text/plain\"}]"),
         ERR_INVALID_ARGUMENT, "not text in UTF-8"},
        {MESSAGE(",\"parts\":[{\"url\":\"https://a.example\",\"mediaType\":\"text/plain\"}]"),
         ERR_UNIMPLEMENTED, "not fetched"},
        {MESSAGE(",\"contextId\":\"a\\nb\",\"parts\":[{\"text\":\"a\"}]"), ERR_INVALID_ARGUMENT,
         "message.contextId"},
        {MESSAGE(",\"metadata\":3,\"parts\":[{\"text\":\"a\"}]"), ERR_INVALID_ARGUMENT,
         "message.metadata"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(A2A_SEND, A2A_1_0, rows[i].text, rows[i].code, rows[i].says);
}

static void a_task_is_named_by_the_id_of_its_run(void **state) {
    (void)state;
    assert_read(A2A_GET, A2A_1_0, "{\"id\":\"42\",\"historyLength\":\"3\"}");
    assert_int_equal(request.task, 42);
    assert_int_equal(request.history_max, 3);
    assert_read(A2A_GET, A2A_0_3, "{\"id\":\"some-uuid\"}");
    assert_true(request.names_task);
    assert_int_equal(request.task, 0);
    assert_read(A2A_GET, A2A_BREEDER, "{\"task_id\":\"42\"}");
    assert_refused(A2A_CANCEL, A2A_1_0, "{}", ERR_INVALID_ARGUMENT, "id is missing");
    assert_refused(A2A_GET, A2A_1_0, "{\"id\":\"1\",\"historyLength\":-1}",
                   ERR_INVALID_ARGUMENT, "historyLength");
}

static void a_page_begins_where_its_token_says(void **state) {
    (void)state;
    assert_read(A2A_LIST, A2A_1_0,
                "{\"pageToken\":\"5-77\",\"pageSize\":10,\"status\":\"TASK_STATE_FAILED\","
                "\"includeArtifacts\":true}");
    assert_int_equal(request.before_session, 5);
    assert_int_equal(request.before, 77);
    assert_int_equal(request.page_size, 10);
    assert_true(request.with_artifacts);
    assert_read(A2A_LIST, A2A_1_0, "{}");
    assert_int_equal(request.page_size, A2A_PAGE_USUAL);
    static const char *const tokens[] = {"x", "5", "-1-7", "5-", "9223372036854775807-1"};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        char text[80];
        snprintf(text, sizeof(text), "{\"pageToken\":\"%s\"}", tokens[i]);
        assert_refused(A2A_LIST, A2A_1_0, text, ERR_INVALID_ARGUMENT, "pageToken");
    }
    assert_refused(A2A_LIST, A2A_1_0, "{\"pageSize\":101}", ERR_INVALID_ARGUMENT, "pageSize");
    assert_refused(A2A_LIST, A2A_1_0, "{\"status\":\"done\"}", ERR_INVALID_ARGUMENT, "status");
}

static void an_arena_that_is_full_is_said(void **state) {
    (void)state;
    struct json params;
    assert_true(json_read(STR(MESSAGE(",\"parts\":[{\"text\":\"a\"}]")), &params, &e));
    for (size_t room = 0; room < 64; room += 8) {
        struct arena *small = arena_new(room);
        assert_false(a2a_request_read(A2A_SEND, A2A_1_0, params, small, &request, &e));
        assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
        arena_free(small);
    }
}

static void tasks_are_asked_for_from_a_moment_on(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t from_ms;
    } moments[] = {{"1970-01-01T00:00:01Z", 1000},
                   {"1970-01-01T00:00:01.25Z", 1250},
                   {"1970-01-01T00:00:01.250000Z", 1250},
                   {"1970-01-01T00:00:01.2500001Z", 1251},
                   {"1970-01-01T01:00:00+01:00", 0},
                   {"1969-12-31T23:59:59Z", -1000},
                   {"", INT64_MIN}};
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        char text[100];
        snprintf(text, sizeof(text), "{\"statusTimestampAfter\":\"%s\"}", moments[i].text);
        assert_read(A2A_LIST, A2A_1_0, text);
        assert_true(request.status_from_ms == moments[i].from_ms);
    }
    assert_read(A2A_LIST, A2A_1_0, "{}");
    assert_true(request.status_from_ms == INT64_MIN);
    assert_refused(A2A_LIST, A2A_1_0, "{\"statusTimestampAfter\":\"bogus\"}",
                   ERR_INVALID_ARGUMENT, "statusTimestampAfter");
    assert_refused(A2A_LIST, A2A_1_0, "{\"statusTimestampAfter\":7}", ERR_INVALID_ARGUMENT,
                   "statusTimestampAfter must be a string");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_of_0_3_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_webhook_is_read_in_each_version, setup, teardown),
        cmocka_unit_test_setup_teardown(a_webhook_that_cannot_be_called_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_message_of_1_0_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(agentbreeders_message_is_a_text, setup, teardown),
        cmocka_unit_test_setup_teardown(each_mistake_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_task_is_named_by_the_id_of_its_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_begins_where_its_token_says, setup, teardown),
        cmocka_unit_test_setup_teardown(an_arena_that_is_full_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(tasks_are_asked_for_from_a_moment_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
