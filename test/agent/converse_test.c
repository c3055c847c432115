/* What an AgentRuntime says, and where it is. Whole turns are met end to end
 * (test/e2e/test_far_runtimes.py). */
#include "agent/converse.h"

#include "agent/converse_event.h"
#include "agent/converse_turn.h"
#include "helper/moves.h"

static void a_turn_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"asking waiting", "asking reading", "asking over",
                                        "waiting asking", "waiting over",   "reading over"};
    assert_moves(converse_turn_states, CONVERSE_TURN_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void an_address_is_a_host_and_perhaps_a_port(void **state) {
    (void)state;
    static const struct {
        const char *address, *host;
        unsigned port; /* 0: refused */
    } rows[] = {
        {"agents.example:1234", "agents.example", 1234},
        {"agents.example", "agents.example", 42618},
        {"workspace-1.agents.svc.cluster.local:42618", "workspace-1.agents.svc.cluster.local",
         42618},
        {"127.0.0.1:1", "127.0.0.1", 1},
        {"[::1]:65535", "::1", 65535},
        {"[fd00::2]", "fd00::2", 42618},
        {"", NULL, 0},
        {":42618", NULL, 0},
        {"a:", NULL, 0},
        {"a:0", NULL, 0},
        {"a:65536", NULL, 0},
        {"a:-1", NULL, 0},
        {"a:1x", NULL, 0},
        {"::1", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]42618", NULL, 0},
        {"[]:1", NULL, 0},
        {"http://a:1", NULL, 0},
        {"a/b:1", NULL, 0},
        {"user@a:1", NULL, 0},
        {"two words:1", NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str host;
        uint16_t port;
        struct err e;
        bool good = converse_read_address(str_from(rows[i].address), &host, &port, &e);
        if (good != (rows[i].port != 0)) fail_msg("%s", rows[i].address);
        if (!good) {
            assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
            continue;
        }
        assert_str(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
}

/* --- events ------------------------------------------------------------------------------- */

static struct str encode(const struct crawbl_converse_event *event, struct buf *out) {
    buf_init(out, MIB);
    assert_true(pb_encode(&crawbl_converse_event_table, event, out));
    return buf_str(out);
}

static void a_done_event_may_be_a_failure(void **state) {
    (void)state;
    static const struct {
        const char *model;
        enum converse_kind kind;
        enum err_code code;
        const char *text; /* or the model */
    } rows[] = {
        {"gpt-4o", CONVERSE_DONE, ERR_NONE, "gpt-4o"},
        {"", CONVERSE_DONE, ERR_NONE, ""},
        {"ERRORS: model", CONVERSE_DONE, ERR_NONE, "ERRORS: model"},
        {"ERROR: INTERNAL: runner: context deadline exceeded", CONVERSE_ERROR, ERR_INTERNAL,
         "runner: context deadline exceeded"},
        {" ERROR:NotFound:  no such", CONVERSE_ERROR, ERR_NOT_FOUND, "no such"},
        {"ERROR: Canceled: x", CONVERSE_ERROR, ERR_CANCELLED, "x"},
        {"ERROR: UNKNOWN: x", CONVERSE_ERROR, ERR_UNKNOWN, "x"},
        {"ERROR: OK: x", CONVERSE_ERROR, ERR_UNKNOWN, "OK: x"},
        {"ERROR: something broke: badly", CONVERSE_ERROR, ERR_UNKNOWN,
         "something broke: badly"},
        {"ERROR: INTERNAL", CONVERSE_ERROR, ERR_UNKNOWN, "INTERNAL"},
        {"ERROR:", CONVERSE_ERROR, ERR_UNKNOWN, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct crawbl_done_event done = {.model = str_from(rows[i].model)};
        const struct crawbl_converse_event event = {.which_event = CRAWBL_CONVERSE_EVENT_DONE,
                                                    .done = &done};
        struct arena *arena = arena_new(64 * KIB);
        struct converse_event got;
        struct buf bytes;
        struct err e;
        assert_true(converse_event_read(lent_of(encode(&event, &bytes)), arena, &got, &e));
        if (got.kind != rows[i].kind || got.code != rows[i].code) fail_msg("%s", rows[i].model);
        assert_str(got.kind == CONVERSE_DONE ? got.model : got.text, rows[i].text);
        arena_free(arena);
        buf_done(&bytes);
    }
}

static void counts_of_nothing_are_unknown(void **state) {
    (void)state;
    const struct crawbl_usage_event usage = {.model = STR_INIT("m"),
                                             .prompt_tokens = 5,
                                             .completion_tokens = -1,
                                             .total_tokens = INT32_MAX,
                                             .cached_tokens = 2};
    const struct crawbl_converse_event event = {.which_event = CRAWBL_CONVERSE_EVENT_USAGE,
                                                .usage = &usage};
    struct arena *arena = arena_new(64 * KIB);
    struct converse_event got;
    struct buf bytes;
    struct err e;
    assert_true(converse_event_read(lent_of(encode(&event, &bytes)), arena, &got, &e));
    assert_int_equal(got.kind, CONVERSE_USAGE);
    assert_int_equal(got.usage.prompt, 5);
    assert_int_equal(got.usage.completion, TOKENS_UNKNOWN);
    assert_int_equal(got.usage.total, INT32_MAX);
    assert_int_equal(got.usage.cached, 2);
    assert_int_equal(got.usage.thoughts, TOKENS_UNKNOWN);
    arena_free(arena);
    buf_done(&bytes);
}

/* Each prefix reads as an event or is refused; none reads as another one's text. */
static void no_truncated_event_is_whole(void **state) {
    (void)state;
    const struct crawbl_tool_call_event call = {STR_INIT("manager"), STR_INIT("web_fetch"),
                                                STR_INIT("{\"url\":\"http://a\"}"),
                                                STR_INIT("call-1")};
    const struct crawbl_converse_event event = {.which_event = CRAWBL_CONVERSE_EVENT_TOOL_CALL,
                                                .tool_call = &call};
    struct buf bytes;
    struct str whole = encode(&event, &bytes);
    for (size_t len = 1; len < whole.len; len++) {
        struct arena *arena = arena_new(64 * KIB);
        struct converse_event got;
        struct err e;
        struct str copy = exact_copy(str_head(whole, len));
        assert_false(converse_event_read(lent_of(copy), arena, &got, &e));
        free((char *)(uintptr_t)copy.at);
        arena_free(arena);
    }
    buf_done(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_moves_as_drawn),
        cmocka_unit_test(an_address_is_a_host_and_perhaps_a_port),
        cmocka_unit_test(a_done_event_may_be_a_failure),
        cmocka_unit_test(counts_of_nothing_are_unknown),
        cmocka_unit_test(no_truncated_event_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
