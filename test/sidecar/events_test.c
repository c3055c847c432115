#include "sidecar/events.h"

#include "helper/assert_str.h"

#include <stdlib.h>

#define ROOM (1 * MIB)
#define EVENT_MAX (64 * KIB)

#define RULES 4

/* The default rules and one that blocks. */
static struct guardrail *rules[RULES];

static int make_rules(void **state) {
    (void)state;
    struct err e;
    const struct guardrail_rule bomb = {.name = STR("bombs"),
                                        .kind = GUARDRAIL_KEYWORD,
                                        .pattern = STR("bomb"),
                                        .action = GUARDRAIL_BLOCK};
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++) {
        if (!guardrail_new(&guardrail_personal[i], &rules[i], &e)) return -1;
    }
    return guardrail_new(&bomb, &rules[RULES - 1], &e) ? 0 : -1;
}

static int free_rules(void **state) {
    (void)state;
    for (size_t i = 0; i < RULES; i++) guardrail_free(rules[i]);
    return 0;
}

static void on_event(struct json object, void *ctx) {
    (void)object;
    (void)ctx;
}

static void write_done(struct json own, struct buf *out, void *ctx) {
    (void)ctx;
    buf_printf(out, "{\"ours\":" STR_FMT "}", STR_ARG(own.raw.len ? own.raw : STR("0")));
}

static void start(struct events *events, size_t rule_count) {
    events_init(events,
                &(struct events_options){.terminates = true,
                                         .event_max_bytes = EVENT_MAX,
                                         .rules = {rules + RULES - rule_count, rule_count},
                                         .sink = {on_event, write_done, NULL}});
}

static bool feed(struct events *events, struct str piece, struct buf *out) {
    struct str copy = exact_copy(piece);
    bool more = events_feed(events, copy, out);
    free((void *)copy.at);
    return more;
}

static void assert_comes_out_in(struct str stream, size_t piece, size_t rule_count,
                                const char *expected) {
    struct events events;
    struct buf out;
    bool more = true;
    buf_init(&out, ROOM);
    start(&events, rule_count);
    for (struct str rest = stream; rest.len && more; rest = str_skip(rest, piece))
        more = feed(&events, str_head(rest, piece), &out);
    if (more) events_end(&events, NULL, &out);
    assert_str(buf_str(&out), expected);
    events_done(&events);
    buf_done(&out);
}

/* The same, however the stream is cut. */
static void assert_comes_out(struct str stream, size_t rule_count, const char *expected) {
    for (size_t piece = 1; piece <= stream.len; piece++)
        assert_comes_out_in(stream, piece, rule_count, expected);
}

#define DELTA(text) "data: {\"delta\":\"" text "\"}\n\n"
#define END(own) "event: done\ndata: {\"ours\":" own "}\n\ndata: [DONE]\n\n"

static void events_pass_as_they_came(void **state) {
    (void)state;
    const struct str stream = STR(
        "data: {\"delta\" : \"a \"}\n\n: ping\n\nevent: step\nid: 3\ndata: {\"description\":"
        "\"b\"}\n\ndata:[DONE]\n\ndata: {\"delta\":\"late\"}\n\n");
    const char *expected =
        "data: {\"delta\" : \"a \"}\n\n: ping\n\nevent: step\nid: 3\ndata: {\"description\":"
        "\"b\"}\n\n" END("0");
    assert_comes_out(stream, 0, expected);
    assert_comes_out(stream, RULES, expected);
}

static void the_agents_own_done_is_merged(void **state) {
    (void)state;
    assert_comes_out(STR("event: done\ndata: {\"a\":1}\n\n" DELTA("b") "data: [DONE]\n\n"), 0,
                     DELTA("b") END("{\"a\":1}"));
    assert_comes_out(STR("event: done\ndata: [1]\n\ndata: [DONE]\n\n"), 0, END("0"));
}

static void a_match_across_events_is_redacted(void **state) {
    (void)state;
    assert_comes_out(STR(DELTA("ssn 123-4") DELTA("5-67") DELTA("89 ok") "data: [DONE]\n\n"),
                     RULES, DELTA("ssn ") DELTA("[REDACTED-SSN] ") DELTA("ok") END("0"));
}

static void held_text_comes_before_the_result(void **state) {
    (void)state;
    assert_comes_out(
        STR(DELTA("to a@b.example") "event: result\ndata: {\"output\":\"a@b.example\"}\n\n"
                                    "data: [DONE]\n\n"),
        RULES,
        DELTA("to ") "data: {\"delta\":\"[REDACTED-EMAIL]\"}\n\nevent: result\ndata: "
                     "{\"output\":\"[REDACTED-EMAIL]\"}\n\n" END("0"));
}

static void other_members_of_a_text_are_read_as_well(void **state) {
    (void)state;
    assert_comes_out(
        STR("data: {\"n\":1.50,\"text\":\"hi x\",\"by\":\"a@b.example\"}\n\ndata: [DONE]\n\n"),
        RULES,
        "data: {\"n\":1.50,\"text\":\"hi \",\"by\":\"[REDACTED-EMAIL]\"}\n\n"
        "data: {\"delta\":\"x\"}\n\n" END("0"));
}

static void data_that_is_no_json_is_text(void **state) {
    (void)state;
    assert_comes_out(STR("data: hello 123-45-\n\ndata: 6789 there \n\ndata: [DONE]\n\n"), RULES,
                     "data: hello \n\ndata: [REDACTED-SSN] there \n\n" END("0"));
}

#define BLOCKED                                                                                \
    "event: error\ndata: {\"error\":\"the answer was blocked by guardrail 'bombs'\",\"code\":" \
    "\"GUARDRAIL_BLOCKED\"}\n\n"

static void a_block_ends_the_stream(void **state) {
    (void)state;
    assert_comes_out(STR(DELTA("a bo") DELTA("mb") DELTA("more")), RULES,
                     DELTA("a ") BLOCKED END("0"));
    assert_comes_out(STR("event: step\ndata: {\"description\":\"Bomb\"}\n\n" DELTA("more")),
                     RULES, BLOCKED END("0"));
    assert_comes_out(STR("event: result\ndata: {\"output\":[\"bomb\"]}\n\n" DELTA("more")),
                     RULES, BLOCKED END("0"));
    assert_comes_out(STR("event: done\ndata: {\"x\":\"bomb\"}\n\n" DELTA("more")), RULES,
                     BLOCKED END("0"));
}

#define EARLY                                                                                  \
    "event: error\ndata: {\"error\":\"the agent ended its stream without "                     \
    "[DONE]\",\"code\":\"UPSTREAM_UNREACHABLE\"}\n\n"

static void a_stream_without_its_end_has_failed(void **state) {
    (void)state;
    assert_comes_out(STR(DELTA("a")), 0, DELTA("a") EARLY END("0"));
    assert_comes_out(STR(DELTA("a") "data: {\"del"), 0, DELTA("a") EARLY END("0"));
    assert_comes_out(STR("event: result\ndata: {\"output\":1}\n\n"), 0,
                     "event: result\ndata: {\"output\":1}\n\n" END("0"));
    assert_comes_out(STR("data: {\"error\":\"x\"}\n\n"), 0,
                     "data: {\"error\":\"x\"}\n\n" END("0"));
}

#define INVALID(why)                                                                           \
    "event: error\ndata: {\"error\":\"" why "\",\"code\":\"UPSTREAM_INVALID\"}\n\n"

/* `event: result`, `bytes` long in all. */
static void write_result(struct buf *ret, size_t bytes) {
    buf_init(ret, bytes + KIB);
    buf_append(ret, STR("event: result\ndata: {\"output\":\""));
    while (ret->len < bytes - 3) buf_append_byte(ret, 'x');
    buf_append(ret, STR("\"}\n"));
}

static void an_event_as_long_as_allowed_passes(void **state) {
    (void)state;
    struct events events;
    struct buf out, big;
    buf_init(&out, ROOM);
    write_result(&big, EVENT_MAX);
    start(&events, RULES);
    assert_true(feed(&events, str_head(buf_str(&big), EVENT_MAX / 2), &out));
    assert_int_equal(events_waiting(&events), EVENT_MAX / 2);
    assert_true(feed(&events, str_skip(buf_str(&big), EVENT_MAX / 2), &out));
    assert_int_equal(out.len, 0);
    assert_true(feed(&events, STR("\n"), &out));
    assert_int_equal(events_waiting(&events), 0);
    assert_false(feed(&events, STR("data: [DONE]\n\n"), &out));
    buf_append(&big, STR("\n" END("0")));
    assert_true(str_equal(buf_str(&out), buf_str(&big)));
    assert_true(events_ended_well(&events));
    events_done(&events);
    buf_done(&big);
    buf_done(&out);
}

static void an_endless_event_ends_the_stream(void **state) {
    (void)state;
    struct events events;
    struct buf out, big;
    buf_init(&out, ROOM);
    write_result(&big, EVENT_MAX + 2);
    start(&events, 0);
    assert_false(feed(&events, buf_str(&big), &out));
    assert_str(buf_str(&out), INVALID("an event is longer than 65536 bytes") END("0"));
    assert_int_equal(events.fault.code, ERR_TOO_LARGE);
    assert_false(events_ended_well(&events));
    assert_false(feed(&events, STR(DELTA("late")), &out));
    events_done(&events);
    buf_done(&big);
    buf_done(&out);
}

static void json_that_no_rule_can_read_ends_the_stream(void **state) {
    (void)state;
    assert_comes_out(STR("event: result\ndata: {\"output\":NaN}\n\n" DELTA("late")), RULES,
                     INVALID("the agent sent JSON that the guardrails cannot read") END("0"));
    /* A result says that all has come; here something was withheld after it. */
    assert_comes_out(STR("event: result\ndata: {\"output\":1}\n\ndata: {\"a\":NaN}\n\n"), RULES,
                     "event: result\ndata: {\"output\":1}\n\n" INVALID(
                         "the agent sent JSON that the guardrails cannot read") END("0"));
}

/* What a rule makes of an event may be far longer than the event. */
static void text_that_grows_too_much_ends_the_stream(void **state) {
    (void)state;
    struct events events;
    struct guardrail *swell;
    struct buf out, big, long_text;
    struct err e;
    buf_init(&out, 16 * MIB);
    buf_init(&long_text, KIB);
    while (long_text.len < KIB) buf_append_byte(&long_text, 'y');
    const struct guardrail_rule rule = {.name = STR("swell"),
                                        .kind = GUARDRAIL_KEYWORD,
                                        .pattern = STR("x"),
                                        .action = GUARDRAIL_REDACT,
                                        .replacement = buf_str(&long_text)};
    assert_true(guardrail_new(&rule, &swell, &e));
    write_result(&big, EVENT_MAX);
    buf_append_byte(&big, '\n');
    events_init(&events, &(struct events_options){.terminates = true,
                                                  .event_max_bytes = EVENT_MAX,
                                                  .rules = {&swell, 1},
                                                  .sink = {on_event, write_done, NULL}});
    assert_false(feed(&events, buf_str(&big), &out));
    assert_str(buf_str(&out), INVALID("an event is too large once it is redacted") END("0"));
    events_done(&events);
    guardrail_free(swell);
    buf_done(&big);
    buf_done(&long_text);
    buf_done(&out);
}

static void another_stream_ends_as_the_agent_ends_it(void **state) {
    (void)state;
    struct events events;
    struct buf out;
    buf_init(&out, ROOM);
    events_init(&events, &(struct events_options){.event_max_bytes = EVENT_MAX,
                                                  .rules = {rules, RULES},
                                                  .sink = {on_event, write_done, NULL}});
    assert_true(feed(&events, STR("data: {\"x\":\"a@b.example\"}\n\ndata: [DONE]\n\n"), &out));
    events_end(&events, NULL, &out);
    assert_str(buf_str(&out), "data: {\"x\":\"[REDACTED-EMAIL]\"}\n\ndata: [DONE]\n\n");
    events_done(&events);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_pass_as_they_came),
        cmocka_unit_test(the_agents_own_done_is_merged),
        cmocka_unit_test(a_match_across_events_is_redacted),
        cmocka_unit_test(held_text_comes_before_the_result),
        cmocka_unit_test(other_members_of_a_text_are_read_as_well),
        cmocka_unit_test(data_that_is_no_json_is_text),
        cmocka_unit_test(a_block_ends_the_stream),
        cmocka_unit_test(a_stream_without_its_end_has_failed),
        cmocka_unit_test(an_event_as_long_as_allowed_passes),
        cmocka_unit_test(an_endless_event_ends_the_stream),
        cmocka_unit_test(json_that_no_rule_can_read_ends_the_stream),
        cmocka_unit_test(text_that_grows_too_much_ends_the_stream),
        cmocka_unit_test(another_stream_ends_as_the_agent_ends_it),
    };
    return cmocka_run_group_tests(tests, make_rules, free_rules);
}
