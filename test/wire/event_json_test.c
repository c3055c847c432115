#include "wire/event_json.h"

#include "helper/assert_str.h"
#include "wire/base64.h"
#include "wire/json.h"

/* One object, with its numbers as they came; read back by our own reader. */
static void write_json(const struct event *event, struct buf *out, struct json *ret) {
    struct err e;
    buf_init(out, MIB);
    assert_true(event_to_json(event, out));
    if (!json_read(buf_str(out), ret, &e)) fail_msg("%s", e.text);
    assert_int_equal(ret->kind, JSON_OBJECT);
}

static void assert_json(const struct event *event, const char *expected) {
    struct buf out;
    struct json json;
    write_json(event, &out, &json);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

#define HEAD(type) "{\"seq\":7,\"at_ms\":12,\"type\":\"" type "\",\"agent\":\"manager\""

static struct event event_of(enum event_kind kind) {
    return (struct event){.seq = 7, .at_ms = 12, .kind = kind, .agent = STR("manager")};
}

/* --- each kind ---------------------------------------------------------------------------- */

static void a_start_names_whose_turn_it_is_and_its_parent_only_if_it_has_one(void **state) {
    (void)state;
    struct event event = event_of(EVENT_STARTED);
    event.started.workspace = STR("w");
    event.started.user = STR("u");
    event.started.session = STR("s");
    event.started.text = STR("say \"hi\"\n");
    event.started.contract = STR("crawbl");
    event.started.unix_ms = 1700000000123;
    assert_json(&event,
                HEAD("started") ",\"workspace\":\"w\",\"user\":\"u\",\"session\":\"s\","
                                "\"text\":\"say \\\"hi\\\"\\n\",\"contract\":\"crawbl\","
                                "\"unix_ms\":1700000000123}");
    event.started.parent = UINT64_MAX;
    assert_json(&event,
                HEAD("started") ",\"workspace\":\"w\",\"user\":\"u\",\"session\":\"s\","
                                "\"text\":\"say \\\"hi\\\"\\n\",\"contract\":\"crawbl\","
                                "\"parent\":\"18446744073709551615\","
                                "\"unix_ms\":1700000000123}");
}

static void words_and_thoughts_are_text(void **state) {
    (void)state;
    struct event event = event_of(EVENT_TEXT);
    event.text.text = STR("\xE2\x82\xAC 5");
    assert_json(&event, HEAD("text") ",\"text\":\"\xE2\x82\xAC 5\"}");
    event.kind = EVENT_THINKING;
    assert_json(&event, HEAD("thinking") ",\"text\":\"\xE2\x82\xAC 5\"}");
}

static void a_document_stays_json_and_anything_else_is_a_string(void **state) {
    (void)state;
    struct event event = event_of(EVENT_TOOL_CALL);
    event.tool_call.call_id = STR("c1");
    event.tool_call.tool = STR("search");
    event.tool_call.args = STR("{\"q\":18446744073709551615}");
    assert_json(&event, HEAD("tool_call") ",\"call_id\":\"c1\",\"tool\":\"search\","
                                          "\"args\":{\"q\":18446744073709551615}}");
    event.tool_call.args = STR("{\"q\":");
    assert_json(&event, HEAD("tool_call") ",\"call_id\":\"c1\",\"tool\":\"search\","
                                          "\"args\":\"{\\\"q\\\":\"}");
}

/* Sent on one line of an event stream: no document may bring line ends into it. */
static void a_document_on_several_lines_is_the_same_value(void **state) {
    (void)state;
    struct event event = event_of(EVENT_TOOL_RESULT);
    struct buf out;
    struct json json;
    event.tool_result.result = STR("{\r\n  \"a\": [1,\n 2]\n}");
    write_json(&event, &out, &json);
    struct json item = json_at(json_find(json_find(json, STR("result")), STR("a")), 1);
    int64_t two = 0;
    assert_true(json_i64(item, &two));
    assert_int_equal(two, 2);
    buf_done(&out);
}

static void a_result_has_a_message_only_when_it_is_an_error(void **state) {
    (void)state;
    struct event event = event_of(EVENT_TOOL_RESULT);
    event.tool_result.call_id = STR("c1");
    event.tool_result.result = STR("{}");
    assert_json(&event,
                HEAD("tool_result") ",\"call_id\":\"c1\",\"result\":{},\"error\":false}");
    event.tool_result.error = true;
    event.tool_result.message = STR("broken");
    assert_json(&event, HEAD("tool_result") ",\"call_id\":\"c1\",\"result\":{},\"error\":true,"
                                            "\"message\":\"broken\"}");
}

static void uncounted_tokens_are_null_and_none_is_zero(void **state) {
    (void)state;
    struct event event = event_of(EVENT_USAGE);
    event.usage = USAGE_UNKNOWN;
    event.usage.model = STR("m-1");
    event.usage.prompt = 3;
    event.usage.total = 0;
    event.usage.cached = 1;
    event.usage.call_sequence = 2;
    assert_json(&event, HEAD("usage") ",\"model\":\"m-1\",\"prompt_tokens\":3,"
                                      "\"completion_tokens\":null,\"total_tokens\":0,"
                                      "\"tool_use_prompt_tokens\":null,"
                                      "\"thoughts_tokens\":null,\"cached_tokens\":1,"
                                      "\"call_sequence\":2,\"cost_nano_usd\":null}");
}

static void a_step_has_a_result_once_there_is_one(void **state) {
    (void)state;
    struct event event = event_of(EVENT_STEP);
    event.step.description = STR("look");
    assert_json(&event, HEAD("step") ",\"description\":\"look\"}");
    event.step.result = STR("[1]");
    assert_json(&event, HEAD("step") ",\"description\":\"look\",\"result\":[1]}");
}

static void bytes_are_base64_and_come_back(void **state) {
    (void)state;
    static const enum event_kind kinds[] = {EVENT_AUDIO, EVENT_ITEM};
    char bytes[256];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)i;
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        struct event event = event_of(kinds[len % 2]);
        struct buf out, text;
        struct json json;
        char back[sizeof(bytes)];
        size_t back_len;
        event.item.type = STR("audio/wav");
        event.item.bytes = str_of(bytes, len);
        write_json(&event, &out, &json);
        assert_true(json_is(json_find(json, STR("content_type")), STR("audio/wav")));
        buf_init(&text, KIB);
        assert_true(json_text(json_find(json, STR("bytes")), &text));
        assert_true(
            base64_decode(buf_str(&text), BASE64_STANDARD, BASE64_PADDED, back, &back_len));
        assert_int_equal(back_len, len);
        assert_memory_equal(back, bytes, len);
        buf_done(&text);
        buf_done(&out);
    }
}

static void a_question_names_what_is_asked_for(void **state) {
    (void)state;
    struct event event = event_of(EVENT_APPROVAL);
    event.approval.call_id = STR("a1");
    event.approval.question = STR("May I?");
    event.approval.args = STR("{}");
    assert_json(&event, HEAD("approval") ",\"call_id\":\"a1\",\"question\":\"May I?\","
                                         "\"tool\":\"\",\"args\":{}}");
}

static void a_turn_that_is_done_lists_what_was_said(void **state) {
    (void)state;
    struct event event = event_of(EVENT_DONE);
    struct buf turns;
    buf_init(&turns, KIB);
    event.done.model = STR("m-1");
    assert_json(&event, HEAD("done") ",\"model\":\"m-1\",\"turns\":[]}");
    assert_true(event_turn_append(&turns, STR("manager"), STR("one")));
    assert_true(event_turn_append(&turns, STR("wally"), STR("two")));
    event.done.turns = buf_str(&turns);
    assert_json(&event, HEAD("done") ",\"model\":\"m-1\",\"turns\":["
                                     "{\"agent\":\"manager\",\"text\":\"one\"},"
                                     "{\"agent\":\"wally\",\"text\":\"two\"}]}");
    buf_done(&turns);
}

static void other_ends_say_why(void **state) {
    (void)state;
    struct event event = event_of(EVENT_FAILED);
    event.failed.code = ERR_DEADLINE_EXCEEDED;
    event.failed.reason = STR("TURN_TIMEOUT");
    event.failed.message = STR("too long");
    struct buf out;
    struct json json;
    write_json(&event, &out, &json);
    assert_true(json_is(json_find(json, STR("code")), err_name(ERR_DEADLINE_EXCEEDED)));
    assert_true(json_is(json_find(json, STR("reason")), STR("TURN_TIMEOUT")));
    assert_true(json_is(json_find(json, STR("message")), STR("too long")));
    buf_done(&out);
    event = event_of(EVENT_CANCELLED);
    event.cancelled.message = STR("enough");
    assert_json(&event, HEAD("cancelled") ",\"message\":\"enough\"}");
    event.cancelled.left = true;
    assert_json(&event, HEAD("cancelled") ",\"message\":\"enough\",\"left\":true}");
}

/* --- all kinds ---------------------------------------------------------------------------- */

/* Also fields that a later version adds: everything reads as one object. */
static void every_kind_is_one_object_with_its_place_and_its_name(void **state) {
    (void)state;
    for (int kind = EVENT_STARTED; kind < EVENT_KIND_COUNT; kind++) {
        struct event event = {.kind = (enum event_kind)kind, .agent = STR("\xFF\"")};
        struct buf out;
        struct json json;
        int64_t number = -1;
        write_json(&event, &out, &json); /* every other field is empty */
        assert_true(json_is(json_find(json, STR("type")), event_kind_name(event.kind)));
        assert_true(json_is(json_find(json, STR("agent")), STR("\xEF\xBF\xBD\"")));
        assert_true(json_i64(json_find(json, STR("seq")), &number));
        assert_int_equal(number, 0);
        buf_done(&out);
    }
}

static void it_says_so_at_every_limit_that_is_too_small(void **state) {
    (void)state;
    struct event event = event_of(EVENT_TEXT);
    struct buf out;
    event.text.text = STR("hello");
    size_t whole = sizeof(HEAD("text") ",\"text\":\"hello\"}") - 1;
    for (size_t limit = 0; limit <= whole; limit++) {
        buf_init(&out, limit);
        assert_int_equal(event_to_json(&event, &out), limit == whole);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_names_whose_turn_it_is_and_its_parent_only_if_it_has_one),
        cmocka_unit_test(words_and_thoughts_are_text),
        cmocka_unit_test(a_document_stays_json_and_anything_else_is_a_string),
        cmocka_unit_test(a_document_on_several_lines_is_the_same_value),
        cmocka_unit_test(a_result_has_a_message_only_when_it_is_an_error),
        cmocka_unit_test(uncounted_tokens_are_null_and_none_is_zero),
        cmocka_unit_test(a_step_has_a_result_once_there_is_one),
        cmocka_unit_test(bytes_are_base64_and_come_back),
        cmocka_unit_test(a_question_names_what_is_asked_for),
        cmocka_unit_test(a_turn_that_is_done_lists_what_was_said),
        cmocka_unit_test(other_ends_say_why),
        cmocka_unit_test(every_kind_is_one_object_with_its_place_and_its_name),
        cmocka_unit_test(it_says_so_at_every_limit_that_is_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
