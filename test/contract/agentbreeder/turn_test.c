/* /invoke, /stream and /resume over runs with a scripted model and tools: what the caller
 * reads, and what happens to the run when the caller leaves or stalls, or the daemon stops. */
#include "contract/agentbreeder/runtime.h"

#include "fake/exchange_fake.h"
#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "stream/stream.h"
#include "turn/fixture.h"

#define STALL_MS 5000
#define HEARTBEAT_MS 60000

static struct fixture f;
static struct runtime_settings settings;
static struct runtime_instance instance;
static struct route_table table;
static struct route_site *site;

static int setup(void **state) {
    (void)state;
    static const struct route_table *const tables[] = {&table};
    static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};
    fixture_init(&f, false);
    f.agents[0].tools = writing_asks;
    f.agents[0].tool_count = 1;
    settings =
        (struct runtime_settings){.guest = {.workspace = STR("w"),
                                            .body_max_bytes = 64 * KIB,
                                            .rules = {.busy = SESSION_REJECT,
                                                      .stall_ms = STALL_MS,
                                                      .heartbeat_ms = HEARTBEAT_MS,
                                                      .on_disconnect = {.how = LEAVING_CANCELS},
                                                      .keys_kept_ms = 60000,
                                                      .keyed_outlives = true}},
                                  .agent_name = STR("tiny"),
                                  .agent_version = STR("1")};
    guest_init(&instance.guest, &(struct contract_loop){.host = &f.host}, &settings.guest);
    guest_serving(&instance);
    runtime_table(&instance, &table);
    site = route_site_new(f.loop, tables, 1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    turns(&f);
    assert_true(list_empty(&instance.guest.site.turns));
    route_site_free(site);
    fixture_done(&f);
    return 0;
}

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

/* What a request may say beside its body; NULL: nothing. */
struct head {
    const char *key, *leaving;
};

/* The caller closes it with over(). */
static struct exchange *ask_with(const char *path, const char *body, struct head head) {
    struct exchange *x = fake_new(f.loop, "POST", path);
    fake_field(x, "content-type", "application/json");
    if (head.key) fake_field(x, "x-idempotency-key", head.key);
    if (head.leaving) fake_field(x, "x-weir-on-disconnect", head.leaving);
    fake_start(x, serve, site);
    fake_body(x, str_from(body));
    fake_body_end(x);
    turns(&f);
    return x;
}

static struct exchange *ask(const char *path, const char *body) {
    return ask_with(path, body, (struct head){NULL, NULL});
}

static void over(struct exchange *x) {
    turns(&f);
    assert_true(fake_closed(x));
    fake_free(x);
}

static bool says(const struct exchange *x, const char *words) {
    return str_find(fake_sent(x), str_from(words)) < fake_sent(x).len;
}

static void assert_says(const struct exchange *x, const char *words) {
    if (!says(x, words)) fail_msg("no '%s' in " STR_FMT, words, STR_ARG(fake_sent(x)));
}

static void assert_refused(struct exchange *x, int status, const char *words) {
    if (fake_status(x) != status)
        fail_msg("%d " STR_FMT, fake_status(x), STR_ARG(fake_sent(x)));
    assert_says(x, words);
    over(x);
}

#define HI "{\"input\":\"hi\",\"session_id\":\"s\"}"

/* --- what the caller reads ---------------------------------------------------------------- */

static void an_invoke_is_answered_once_with_all_that_was_said(void **state) {
    (void)state;
    struct exchange *x = ask("/invoke", HI);
    assert_int_equal(fake_status(x), 0); /* not before the run's end */
    assert_asked(&f, "user=hi");
    assert_true(fake_text(asked(&f), STR("hel")));
    turns(&f);
    assert_int_equal(fake_status(x), 0);
    reply(&f, "lo");
    assert_int_equal(fake_status(x), 200);
    assert_says(x, "{\"output\":\"hello\",\"session_id\":\"s\",");
    assert_true(fake_value(fake_head(x), "x-weir-run-id").len > 0);
    over(x);
}

static void a_stream_says_each_piece_as_it_comes_and_ends_with_done(void **state) {
    (void)state;
    struct exchange *x = ask("/stream", HI);
    assert_int_equal(fake_status(x), 200); /* before the model has said a word */
    assert_str(fake_value(fake_head(x), "content-type"), "text/event-stream");
    assert_true(fake_value(fake_head(x), "x-weir-run-id").len > 0);
    assert_true(fake_text(asked(&f), STR("hel")));
    turns(&f);
    assert_str(fake_sent(x), "data: {\"delta\":\"hel\"}\n\n");
    reply(&f, "lo");
    assert_str(fake_sent(x), "data: {\"delta\":\"hel\"}\n\n"
                             "data: {\"delta\":\"lo\"}\n\n"
                             "event: result\n"
                             "data: {\"output\":\"hello\",\"session_id\":\"s\","
                             "\"metadata\":{\"interrupted\":false},\"history\":[]}\n\n"
                             "data: [DONE]\n\n");
    over(x);
}

/* Texts that wait together are sent in one go, as the same bytes. */
static void a_stream_says_what_came_at_once_as_it_says_each(void **state) {
    (void)state;
    static const char *const texts[] = {
        "a",
        "\"quoted\"",
        "two\nlines\r",
        "\\",
        "\x01",
        "\xC3\xA9 and \xF0\x9F\x8C\x8A",
        "long enough that it needs more than one look at it \t."};
    struct exchange *apart = ask("/stream", HI);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_true(fake_text(asked(&f), str_from(texts[i])));
        turns(&f);
    }
    struct exchange *other = ask("/stream", "{\"input\":\"hi\",\"session_id\":\"t\"}");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_true(fake_text(asked(&f), str_from(texts[i])));
    turns(&f);
    assert_says(apart, "data: {\"delta\":\"\\\"quoted\\\"\"}\n\n"
                       "data: {\"delta\":\"two\\nlines\\r\"}\n\n"
                       "data: {\"delta\":\"\\\\\"}\n\n"
                       "data: {\"delta\":\"\\u0001\"}\n\n");
    assert_true(str_equal(fake_sent(apart), fake_sent(other)));
    fake_done(fake_call(f.model, 0), "m");
    fake_done(fake_call(f.model, 0), "m");
    over(apart);
    over(other);
}

static void a_stream_shows_the_tools_at_work(void **state) {
    (void)state;
    struct exchange *x = ask("/stream", HI);
    fake_tool_call(asked(&f), "c1", "search", "{\"q\":1}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_str(fake_sent(x), "event: tool_call\n"
                             "data: {\"name\":\"search\",\"args\":{\"q\":1}}\n\n");
    fake_tool_answer(f.search, 0, "{\"hit\":1}");
    turns(&f);
    assert_says(x, "event: step\ndata: {\"description\":\"tool answered\","
                   "\"result\":{\"hit\":1},\"agent\":\"manager\"}\n\n");
    fake_tool_call(asked(&f), "c2", "search", "{}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_false(says(x, "tool failed"));
    fake_tool_fail(f.search, 0, ERR_UNAVAILABLE);
    turns(&f);
    assert_says(x, "{\"description\":\"tool failed\",");
    reply(&f, "ok");
    over(x);
}

/* Bytes that a proxy sees while nothing happens. */
static void a_quiet_stream_has_a_heartbeat(void **state) {
    (void)state;
    struct exchange *x = ask("/stream", HI);
    loop_advance(f.loop, HEARTBEAT_MS - 1);
    assert_str(fake_sent(x), "");
    loop_advance(f.loop, 1);
    assert_str(fake_sent(x), ": keep-alive\n\n");
    reply(&f, "ok");
    over(x);
}

static const struct {
    enum err_code code;
    const char *reason;
    int status;
    const char *name, *framed;
} failures[] = {
    {ERR_INTERNAL, "BROKEN", 500, "\"code\":\"INTERNAL_ERROR\"", "\"error\":\"INTERNAL: "},
    {ERR_UNAVAILABLE, "GONE", 503, "\"code\":\"UNAVAILABLE\"", "\"error\":\"UNAVAILABLE: "},
    {ERR_INVALID_ARGUMENT, "MODEL_CANNOT_CARRY", 422, "\"code\":\"INVALID_INPUT\"",
     "\"error\":\"INVALID_ARGUMENT: "},
};

static void a_failed_run_shows_in_the_status_of_an_invoke(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct exchange *x = ask("/invoke", HI);
        fake_fail(asked(&f), failures[i].code, failures[i].reason);
        turns(&f);
        assert_int_equal(fake_value(fake_head(x), "retry-after").len > 0,
                         failures[i].status == 503);
        assert_says(x, failures[i].reason);
        assert_refused(x, failures[i].status, failures[i].name);
    }
}

static void a_failed_run_is_reported_once_on_a_stream_before_done(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct exchange *x = ask("/stream", HI);
        fake_fail(asked(&f), failures[i].code, failures[i].reason);
        turns(&f);
        assert_says(x, failures[i].framed);
        struct str rest = str_skip(fake_sent(x), str_find(fake_sent(x), STR("\n\n")) + 2);
        assert_str(rest, "data: [DONE]\n\n");
        over(x);
    }
}

static void a_session_that_is_busy_refuses_a_second_turn(void **state) {
    (void)state;
    struct exchange *x = ask("/stream", HI);
    assert_refused(ask("/invoke", HI), 409, "\"SESSION_BUSY\"");
    assert_refused(ask("/stream", HI), 409, "\"SESSION_BUSY\"");
    reply(&f, "ok");
    over(x);
}

/* --- readers that leave, and one that does not read --------------------------------------- */

/* Its stream just ends: a notice would come after all that it has not read. */
static void a_reader_that_stalls_is_cut_off_without_an_ending(void **state) {
    (void)state;
    struct exchange *x = ask("/stream", HI);
    assert_true(fake_text(asked(&f), STR("first")));
    turns(&f);
    fake_stop_reading(x);
    char *text = mem_alloc(2 * STREAM_HIGH_BYTES);
    memset(text, 'x', 2 * STREAM_HIGH_BYTES);
    assert_true(fake_text(asked(&f), str_of(text, 2 * STREAM_HIGH_BYTES)));
    assert_true(fake_text(asked(&f), STR("more")));
    free(text);
    turns(&f);
    loop_advance(f.loop, STALL_MS - 1);
    assert_int_equal(fake_aborted(x), -1);
    assert_int_equal(fake_calls(f.model), 1);
    loop_advance(f.loop, 1);
    turns(&f);
    assert_true(fake_aborted(x) >= 0);
    fake_read_all(x);
    turns(&f);
    assert_str(fake_sent(x), "data: {\"delta\":\"first\"}\n\n");
    assert_false(fake_ended(x));
    assert_int_equal(fake_calls(f.model), 0); /* the run has no other reader */
    over(x);
}

/* What goes on without its caller ends by itself. */
static void a_caller_that_leaves_ends_the_run_unless_it_was_detached(void **state) {
    (void)state;
    static const struct {
        struct head head;
        bool goes_on;
    } rows[] = {
        {{NULL, NULL}, false},
        {{.leaving = "cancel"}, false},
        {{.leaving = "detach"}, true},
        {{.key = "k"}, true},
        {{.key = "l", .leaving = "cancel"}, false}, /* his word counts */
    };
    static const char *const paths[] = {"/invoke", "/stream"};
    for (size_t i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(paths); i++) {
        size_t row = i / ARRAY_LEN(paths);
        struct exchange *x = ask_with(paths[i % ARRAY_LEN(paths)], HI, rows[row].head);
        assert_int_equal(fake_calls(f.model), 1);
        fake_leave(x);
        turns(&f);
        assert_int_equal(fake_calls(f.model), rows[row].goes_on);
        if (rows[row].goes_on) reply(&f, "to nobody");
        assert_int_equal(f.host.run_count, 0);
        over(x);
    }
}

static void the_settings_decide_for_callers_that_do_not_say_what_leaving_means(void **state) {
    (void)state;
    settings.guest.rules.on_disconnect = (struct leaving){.how = LEAVING_DETACHES};
    guest_use(&instance, &settings);
    struct exchange *x = ask("/stream", HI);
    fake_leave(x);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 1);
    reply(&f, "to nobody");
    over(x);
    x = ask_with("/stream", HI, (struct head){.leaving = "cancel"});
    fake_leave(x);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 0);
    over(x);
}

static void a_wish_for_leaving_that_cannot_be_read_is_400_before_a_run(void **state) {
    (void)state;
    static const char *const paths[] = {"/invoke", "/stream", "/resume"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = ask_with(paths[i], HI, (struct head){.leaving = "perhaps"});
        assert_says(x, "\"INVALID_INPUT\"");
        assert_refused(x, 400, "X-Weir-On-Disconnect");
    }
    assert_int_equal(fake_calls_ever(f.model), 0);
}

/* --- keys --------------------------------------------------------------------------------- */

static void the_same_key_asks_once_and_is_answered_each_time(void **state) {
    (void)state;
    struct exchange *first = ask_with("/invoke", HI, (struct head){.key = "k"});
    struct exchange *second = ask_with("/invoke", HI, (struct head){.key = "k"});
    struct exchange *third = ask_with("/stream", HI, (struct head){.key = "k"});
    assert_int_equal(fake_calls_ever(f.model), 1);
    reply(&f, "hello");
    assert_says(first, "\"output\":\"hello\"");
    assert_true(str_equal(fake_sent(second), fake_sent(first)));
    assert_says(third, "data: {\"delta\":\"hello\"}\n\n");
    over(first);
    over(second);
    over(third);
}

static void the_same_key_for_other_words_is_refused(void **state) {
    (void)state;
    struct exchange *x = ask_with("/invoke", HI, (struct head){.key = "k"});
    assert_refused(ask_with("/invoke", "{\"input\":\"ho\",\"session_id\":\"s\"}",
                            (struct head){.key = "k"}),
                   409, "\"IDEMPOTENCY_KEY_REUSED\"");
    reply(&f, "hello");
    over(x);
}

/* The first of two who read the same run may go. */
static void one_of_two_with_the_same_key_may_leave(void **state) {
    (void)state;
    settings.guest.rules.keyed_outlives = false;
    guest_use(&instance, &settings);
    struct exchange *first = ask_with("/invoke", HI, (struct head){.key = "k"});
    struct exchange *second = ask_with("/invoke", HI, (struct head){.key = "k"});
    fake_leave(first);
    turns(&f);
    assert_int_equal(fake_calls(f.model), 1);
    reply(&f, "hello");
    assert_says(second, "\"output\":\"hello\"");
    over(first);
    over(second);
}

/* --- a human's decision ------------------------------------------------------------------- */

/* The run waits; the answer to `path` says for what. */
static struct exchange *ask_to_write(const char *path) {
    struct exchange *x = ask(path, HI);
    fake_tool_call(asked(&f), "c1", "write", "{\"k\":1}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    return x;
}

static void a_question_ends_the_answer_and_resume_brings_the_rest(void **state) {
    (void)state;
    struct exchange *x = ask_to_write("/invoke");
    assert_int_equal(fake_status(x), 200);
    assert_says(x, "\"interrupted\":true");
    assert_says(x, "May 'manager' use the tool 'write' with {\\\"k\\\":1}? (yes or no)");
    over(x);
    assert_int_equal(fake_tool_calls(f.write), 0);
    x = ask("/resume", "{\"thread_id\":\"s\",\"human_input\":\"yes\"}");
    assert_int_equal(fake_tool_calls(f.write), 1);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "saved");
    assert_int_equal(fake_status(x), 200);
    assert_says(x, "\"output\":\"saved\"");
    assert_says(x, "\"history\":[{\"name\":\"write\"");
    over(x);
}

static void a_question_on_a_stream_is_a_step_and_a_result_before_done(void **state) {
    (void)state;
    struct exchange *x = ask_to_write("/stream");
    size_t step =
        str_find(fake_sent(x), STR("event: step\ndata: {\"description\":\"approval\""));
    size_t result = str_find(fake_sent(x), STR("event: result\n"));
    assert_true(step < result && result < fake_sent(x).len);
    assert_true(str_ends(fake_sent(x), STR("\n\ndata: [DONE]\n\n")));
    assert_false(says(x, "event: error"));
    over(x);
    x = ask("/stream", "{\"input\":\"no\",\"session_id\":\"s\"}");
    assert_int_equal(fake_tool_calls(f.write), 0);
    reply(&f, "then not");
    assert_says(x, "\"output\":\"then not\"");
    over(x);
}

static void a_thread_without_a_question_is_404(void **state) {
    (void)state;
    assert_refused(ask("/resume", "{\"thread_id\":\"s\",\"human_input\":\"yes\"}"), 404,
                   "\"THREAD_NOT_FOUND\"");
}

/* --- the daemon stops --------------------------------------------------------------------- */

static void a_daemon_that_stops_tells_every_open_turn(void **state) {
    (void)state;
    struct exchange *stream = ask("/stream", HI);
    struct exchange *invoke = ask("/invoke", "{\"input\":\"hi\",\"session_id\":\"other\"}");
    guest_cut(&instance);
    turns(&f);
    assert_str(fake_sent(stream), "event: error\n"
                                  "data: {\"error\":\"CANCELLED: the turn was cut short\"}\n\n"
                                  "data: [DONE]\n\n");
    over(stream);
    assert_true(fake_value(fake_head(invoke), "retry-after").len > 0);
    assert_refused(invoke, 503, "\"UNAVAILABLE\"");
    assert_int_equal(fake_calls(f.model), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_invoke_is_answered_once_with_all_that_was_said),
        TEST(a_stream_says_each_piece_as_it_comes_and_ends_with_done),
        TEST(a_stream_says_what_came_at_once_as_it_says_each),
        TEST(a_stream_shows_the_tools_at_work),
        TEST(a_quiet_stream_has_a_heartbeat),
        TEST(a_failed_run_shows_in_the_status_of_an_invoke),
        TEST(a_failed_run_is_reported_once_on_a_stream_before_done),
        TEST(a_session_that_is_busy_refuses_a_second_turn),
        TEST(a_reader_that_stalls_is_cut_off_without_an_ending),
        TEST(a_caller_that_leaves_ends_the_run_unless_it_was_detached),
        TEST(the_settings_decide_for_callers_that_do_not_say_what_leaving_means),
        TEST(a_wish_for_leaving_that_cannot_be_read_is_400_before_a_run),
        TEST(the_same_key_asks_once_and_is_answered_each_time),
        TEST(the_same_key_for_other_words_is_refused),
        TEST(one_of_two_with_the_same_key_may_leave),
        TEST(a_question_ends_the_answer_and_resume_brings_the_rest),
        TEST(a_question_on_a_stream_is_a_step_and_a_result_before_done),
        TEST(a_thread_without_a_question_is_404),
        TEST(a_daemon_that_stops_tells_every_open_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
