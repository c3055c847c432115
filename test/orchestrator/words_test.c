/* What is reckoned without a socket: names of services, pauses, messages without mentions,
 * vendors, answers as text, and JSON as clients see it. */
#include "base/id.h"
#include "orchestrator/jetstream.h"
#include "orchestrator/runtimes_child.h"
#include "orchestrator/shown.h"
#include "orchestrator/sockets.h"
#include "orchestrator/tool_line.h"

#include "helper/moves.h"

static void a_child_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"starting serving", "starting gone", "serving ending",
                                        "serving gone", "ending gone"};
    assert_moves(child_runtime_states, CHILD_RUNTIME_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_service_is_named_as_operators_name_it(void **state) {
    (void)state;
    static const struct {
        const char *workspace, *name;
    } rows[] = {
        {"9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d",
         "agent-runtime-workspace-9a8b7c6d-5e4f-4a3-21249dcbd1"},
        {"9A8B7C6D-5E4F-4A3B-8C2D-1E0F9A8B7C6D",
         "agent-runtime-workspace-9a8b7c6d-5e4f-4a3-21249dcbd1"},
        {"w1", "agent-runtime-workspace-w1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf name;
        buf_init(&name, KIB);
        runtimes_service_name(str_from(rows[i].workspace), &name);
        assert_str(buf_str(&name), rows[i].name);
        buf_done(&name);
    }
}

static void no_two_workspaces_have_one_subject_in_nats(void **state) {
    (void)state;
    static const char *const ids[] = {"ws-1", "a_b", "a.b", "a%2Eb",    "a b",     "a*b",
                                      "a>b",  "a/b", "A_b", "\xC3\xA9", "\xC3\xA8"};
    static const char *const tokens[] = {"ws-1",  "a_b",   "a%2Eb", "a%252Eb", "a%20b", "a%2Ab",
                                         "a%3Eb", "a%2Fb", "A_b",   "%C3%A9",  "%C3%A8"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct buf subject;
        buf_init(&subject, KIB);
        jetstream_subject(str_from(ids[i]), &subject);
        assert_true(str_starts(buf_str(&subject), STR("crawbl.usage.v1.")));
        assert_str(str_skip(buf_str(&subject), 16), tokens[i]);
        buf_done(&subject);
    }
}

static void the_longest_id_is_a_whole_subject(void **state) {
    (void)state;
    char id[ID_MAX_BYTES];
    struct buf subject;
    memset(id, '.', sizeof(id));
    buf_init(&subject, KIB); /* as jetstream_publish() has it */
    jetstream_subject(str_of(id, sizeof(id)), &subject);
    assert_true(buf_ok(&subject));
    assert_int_equal(subject.len, 16 + 3 * sizeof(id));
    buf_done(&subject);
}

/* Each byte of the URL is a control character, which takes six as JSON. */
static void what_a_tool_is_called_with_is_json_however_long_it_is(void **state) {
    (void)state;
    for (size_t count = 1000; count <= 64000; count *= 4) {
        struct buf args, line;
        struct json json = {.kind = JSON_NONE};
        struct err e = {0};
        buf_init(&args, MIB);
        buf_init(&line, MIB);
        buf_append(&args, STR("{\"url\":\"x"));
        for (size_t i = 0; i < count; i++) buf_append(&args, STR("\\u0001"));
        buf_append(&args, STR("x\"}"));
        tool_line_args(STR("web_fetch"), buf_str(&args), &line);
        assert_true(json_read(buf_str(&line), &json, &e));
        assert_int_equal(line.len, args.len);
        buf_done(&line);
        buf_done(&args);
    }
}

static void a_template_is_filled_once(void **state) {
    (void)state;
    const struct runtimes_word words[] = {{STR("{a}"), STR("{b}")}, {STR("{b}"), STR("2")}};
    struct buf filled;
    buf_init(&filled, KIB);
    runtimes_fill(STR("x{a}{b}{c}{"), words, ARRAY_LEN(words), &filled);
    assert_str(buf_str(&filled), "x{b}2{c}{");
    buf_done(&filled);
}

static void pauses_grow_and_end_at_five_seconds(void **state) {
    (void)state;
    assert_int_equal(drive_pause_ms(0, 12345), 0);
    for (unsigned failures = 1; failures < 100; failures++) {
        for (uint64_t random = 0; random < 5000; random += 7) {
            uint64_t pause = drive_pause_ms(failures, random);
            assert_true(pause >= 150 && pause <= 6250);
            if (failures == 1) assert_true(pause <= 250);
            if (failures > 5) assert_true(pause >= 3750);
        }
    }
}

static void mentions_leave_no_gap(void **state) {
    (void)state;
    static const struct {
        const char *text, *rest;
        struct talk_mention mentions[2];
    } rows[] = {
        {"@Wally  find  it", "find it", {{0, 0, 6}, {0, 0, 0}}},
        {"ask @Wally and @Eve ", "ask and", {{0, 4, 6}, {0, 15, 4}}},
        {"é @W ü", "é ü", {{0, 2, 2}, {0, 0, 0}}},
        {"short", "short", {{0, 90, 5}, {0, UINT64_MAX, UINT64_MAX}}},
        {"@W", "", {{0, 0, UINT64_MAX}, {0, 0, 0}}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf rest;
        buf_init(&rest, KIB);
        talk_without_mentions(str_from(rows[i].text), rows[i].mentions, 2, &rest);
        assert_str(buf_str(&rest), rows[i].rest);
        buf_done(&rest);
    }
}

static void a_model_is_some_vendors(void **state) {
    (void)state;
    assert_str(rows_provider(STR("gpt-4o")), "openai");
    assert_str(rows_provider(STR("o3-mini")), "openai");
    assert_str(rows_provider(STR("claude-x")), "anthropic");
    assert_str(rows_provider(STR("eu.anthropic.claude")), "bedrock");
    assert_str(rows_provider(STR("")), "");
}

static void a_time_has_six_digits_after_the_point(void **state) {
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {{0, "1970-01-01T00:00:00.000000Z"},
                {1772366400000001, "2026-03-01T12:00:00.000001Z"},
                {-1, "1969-12-31T23:59:59.999999Z"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text;
        buf_init(&text, KIB);
        shown_time(&text, rows[i].us);
        assert_str(buf_str(&text), rows[i].text);
        buf_done(&text);
    }
}

/* "always" means also when empty or 0: mobile clients end without these keys. */
static void keys_that_are_always_there_are_there_when_empty(void **state) {
    (void)state;
    const struct event_usage usage = USAGE_UNKNOWN;
    struct buf json;
    buf_init(&json, KIB);
    shown_usage(&json, STR(""), STR(""), STR(""), &usage);
    assert_str(buf_str(&json),
               "{\"agent_id\":\"\",\"conversation_id\":\"\",\"message_id\":\"\",\"model\":\"\","
               "\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0,"
               "\"call_sequence\":0}");
    buf_clear(&json);
    shown_message_status(&json, STR(""), STR(""), STR(""), MESSAGE_READ);
    assert_str(buf_str(&json),
               "{\"message_id\":\"\",\"conversation_id\":\"\",\"status\":\"read\"}");
    buf_done(&json);
}

static void answers_read_as_a_person_would_write_them(void **state) {
    (void)state;
    struct json content, answers;
    struct err e;
    struct buf text;
    buf_init(&text, KIB);
    assert_true(json_read(
        STR("{\"turns\":[{\"questions\":[{\"id\":\"q1\",\"prompt\":\"Where\",\"options\":"
            "[{\"id\":\"a\",\"label\":\"Kyoto\"},{\"id\":\"b\",\"label\":\"Nara\"}]},"
            "{\"id\":\"q2\",\"prompt\":\"When\",\"options\":[]}]}]}"),
        &content, &e));
    assert_true(json_read(STR("[{\"question_id\":\"q2\",\"custom_text\":\"soon\"},"
                              "{\"question_id\":\"q1\",\"option_ids\":[\"b\",\"x\",\"a\"]},"
                              "{\"question_id\":\"q9\"}]"),
                          &answers, &e));
    sockets_answer_text(content, answers, &text);
    assert_str(buf_str(&text), "Where: Nara, Kyoto\nWhen: soon");
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_moves_as_drawn),
        cmocka_unit_test(a_service_is_named_as_operators_name_it),
        cmocka_unit_test(no_two_workspaces_have_one_subject_in_nats),
        cmocka_unit_test(the_longest_id_is_a_whole_subject),
        cmocka_unit_test(what_a_tool_is_called_with_is_json_however_long_it_is),
        cmocka_unit_test(a_template_is_filled_once),
        cmocka_unit_test(pauses_grow_and_end_at_five_seconds),
        cmocka_unit_test(mentions_leave_no_gap),
        cmocka_unit_test(a_model_is_some_vendors),
        cmocka_unit_test(a_time_has_six_digits_after_the_point),
        cmocka_unit_test(keys_that_are_always_there_are_there_when_empty),
        cmocka_unit_test(answers_read_as_a_person_would_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
