/* The parts of a conversation that need no daemon: what a line means as a decision, and how
 * events look. */
#include "cli/chat.h"

#include "helper/assert_str.h"

#include <stdio.h>

/* --- decisions ---------------------------------------------------------------------------- */

static const struct {
    const char *line;
    const char *person, *program; /* the body, or NULL: it is no decision */
} lines[] = {
    {"y", "{\"decision\":\"approve\"}", "{\"decision\":\"approve\"}"},
    {"  YES ", "{\"decision\":\"approve\"}", "{\"decision\":\"approve\"}"},
    {"n", "{\"decision\":\"refuse\"}", "{\"decision\":\"refuse\"}"},
    {"no too \"dear\"", "{\"decision\":\"refuse\",\"reason\":\"too \\\"dear\\\"\"}",
     "{\"decision\":\"refuse\",\"reason\":\"too \\\"dear\\\"\"}"},
    {"e {\"a\": 1}", "{\"decision\":\"edit\",\"args\":{\"a\": 1}}",
     "{\"decision\":\"edit\",\"args\":{\"a\": 1}}"},
    {"{\"decision\":\"x\"}", "{\"decision\":\"edit\",\"args\":{\"decision\":\"x\"}}",
     "{\"decision\":\"x\"}"},
    {"{\"a\":1}", "{\"decision\":\"edit\",\"args\":{\"a\":1}}", NULL},
    {"", NULL, NULL},
    {"yes please", NULL, NULL},
    {"nothing", NULL, NULL},
    {"e", NULL, NULL},
    {"e [1]", NULL, NULL},
    {"e {\"a\":", NULL, NULL},
    {"{\"a\":1", NULL, NULL},
    {"maybe", NULL, NULL},
};

static void check_decision(const char *line, bool from_program, const char *expected) {
    struct buf out;
    buf_init(&out, KIB);
    bool decided = chat_decision(str_from(line), from_program, &out);
    assert_int_equal(decided, expected != NULL);
    if (expected) assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void a_line_decides_only_if_it_plainly_says_so(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        check_decision(lines[i].line, false, lines[i].person);
        check_decision(lines[i].line, true, lines[i].program);
    }
}

/* --- events ------------------------------------------------------------------------------- */

/* What both sides show of these events, ends with NULL. */
static void shown(const char *const *events, enum thinking_shown thinking, char **ret_said,
                  char **ret_done) {
    size_t said_len, done_len;
    struct event_show show;
    FILE *said = open_memstream(ret_said, &said_len),
         *done = open_memstream(ret_done, &done_len);
    event_show_init(&show, said, done, false, thinking);
    for (; *events; events++) {
        struct json event;
        struct err e;
        assert_true(json_read(str_from(*events), &event, &e));
        event_show(&show, event);
    }
    event_show_end_line(&show);
    event_show_done(&show);
    fclose(said);
    fclose(done);
}

static const char *const turn[] = {
    "{\"type\":\"started\",\"agent\":\"a\",\"text\":\"hi\"}",
    "{\"type\":\"thinking\",\"agent\":\"a\",\"text\":\"h\xc3\xa4?\"}",
    "{\"type\":\"text\",\"agent\":\"a\",\"text\":\"one \\u001b[2J\"}",
    "{\"type\":\"text\",\"agent\":\"a\",\"text\":\"two\"}",
    "{\"type\":\"tool_call\",\"agent\":\"a\",\"tool\":\"t\\n\",\"args\":{\"x\":\"\\u001b\"}}",
    "{\"type\":\"tool_result\",\"call_id\":\"c\",\"result\":{\"y\":1},\"error\":false}",
    "{\"type\":\"tool_result\",\"call_id\":\"approve-c\",\"result\":{},\"error\":false}",
    "{\"type\":\"tool_result\",\"call_id\":\"c\",\"result\":{},\"error\":true,\"message\":"
    "\"no\"}",
    "{\"type\":\"usage\",\"agent\":\"a\",\"model\":\"m\"}",
    "{\"type\":\"unheard of\"}",
    "{\"type\":7}",
    "[]",
    "{\"type\":\"text\",\"agent\":\"b\",\"text\":\"three\\n\"}",
    "{\"type\":\"done\",\"agent\":\"b\"}",
    NULL,
};

static void what_is_said_and_what_is_done_are_apart(void **state) {
    (void)state;
    char *said, *done;
    shown(turn, THINKING_SHOWN, &said, &done);
    assert_string_equal(said, "one ␛[2Jtwo\nthree\n");
    assert_string_equal(done,
                        "hä?\n* t  {\"x\":\"\\u001b\"}\n  -> {\"y\":1}\n  failed: no\nb\n");
    free(said);
    free(done);
}

static void thinking_may_be_folded_or_hidden(void **state) {
    (void)state;
    static const char *const thought[] = {
        "{\"type\":\"thinking\",\"agent\":\"a\",\"text\":\"h\xc3\xa4?\"}",
        "{\"type\":\"thinking\",\"agent\":\"a\",\"text\":\"\\n\"}", NULL};
    char *said, *done;
    shown(thought, THINKING_FOLDED, &said, &done);
    assert_string_equal(done, "(thinking: 4 characters)\n");
    free(said);
    free(done);
    shown(thought, THINKING_HIDDEN, &said, &done);
    assert_string_equal(done, "");
    free(said);
    free(done);
}

static void a_long_line_is_cut_between_characters(void **state) {
    (void)state;
    static char event[4096];
    const char *const one[] = {event, NULL};
    char *said, *done;
    size_t len =
        (size_t)snprintf(event, sizeof(event), "{\"type\":\"step\",\"description\":\"");
    for (int i = 0; i < 300; i++)
        len += (size_t)snprintf(event + len, sizeof(event) - len, "ä");
    snprintf(event + len, sizeof(event) - len, "\"}");
    shown(one, THINKING_SHOWN, &said, &done);
    assert_int_equal(strlen(done), strlen("* ") + 240 * 2 + strlen("…\n"));
    free(said);
    free(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_decides_only_if_it_plainly_says_so),
        cmocka_unit_test(what_is_said_and_what_is_done_are_apart),
        cmocka_unit_test(thinking_may_be_folded_or_hidden),
        cmocka_unit_test(a_long_line_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
