/* Chat completions and responses over runs with a scripted model: what the caller reads, byte by
 * byte, and what happens when it leaves or does not read, or the daemon stops. */
#include "contract/openai/openai.h"

#include "fake/exchange_fake.h"
#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "stream/stream.h"
#include "turn/fixture.h"

#define STALL_MS 5000
#define HEARTBEAT_MS 60000

static struct fixture f;
static struct openai_settings settings;
static struct openai_instance instance;
static struct route_table table;
static struct route_site *site;
static bool secured;

static bool is_secured(void *ctx) {
    (void)ctx;
    return secured;
}

static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    (void)ctx;
    ret->workspace = STR("w");
    ret->user = STR("ann");
    return str_equal(bearer, STR("right"));
}

static int setup(void **state) {
    (void)state;
    static const struct route_table *const tables[] = {&table};
    static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};
    fixture_init(&f, false);
    f.agents[0].tools = writing_asks;
    f.agents[0].tool_count = 1;
    secured = false;
    settings =
        (struct openai_settings){.guest = {.workspace = STR("w"),
                                           .body_max_bytes = 64 * KIB,
                                           .rules = {.busy = SESSION_REJECT,
                                                     .stall_ms = STALL_MS,
                                                     .heartbeat_ms = HEARTBEAT_MS,
                                                     .on_disconnect = {.how = LEAVING_CANCELS},
                                                     .keys_kept_ms = 60000,
                                                     .keyed_outlives = true}}};
    const struct contract_loop loop = {
        .loop = f.loop, .host = &f.host, .callers = {is_secured, identify, NULL}};
    instance = (struct openai_instance){.started_unix_s = 1};
    guest_init(&instance.guest, &loop, &settings.guest);
    guest_serving(&instance);
    openai_table(&instance, &table);
    assert_true(route_table_ok(&table));
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

/* The caller closes it with over(). */
static struct exchange *request(const char *method, const char *path, const char *body,
                                const char *name, const char *value) {
    struct exchange *x = fake_new(f.loop, method, path);
    if (body) fake_field(x, "content-type", "application/json");
    if (name) fake_field(x, name, value);
    fake_start(x, serve, site);
    if (body) fake_body(x, str_from(body));
    fake_body_end(x);
    turns(&f);
    return x;
}

static struct exchange *ask(const char *path, const char *body) {
    return request("POST", path, body, NULL, NULL);
}

static void over(struct exchange *x) {
    turns(&f);
    assert_true(fake_closed(x));
    fake_free(x);
}

static void assert_says(const struct exchange *x, const char *words) {
    if (str_find(fake_sent(x), str_from(words)) >= fake_sent(x).len)
        fail_msg("no '%s' in " STR_FMT, words, STR_ARG(fake_sent(x)));
}

static void assert_refused(struct exchange *x, int status, const char *words) {
    if (fake_status(x) != status)
        fail_msg("%d " STR_FMT, fake_status(x), STR_ARG(fake_sent(x)));
    assert_says(x, words);
    over(x);
}

#define CHAT "/v1/chat/completions"
#define RESPONSES "/v1/responses"
#define LIST "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define HI "{" LIST "}"
#define STREAMED "{\"stream\":true," LIST "}"
#define ITEMS "{\"input\":\"hi\"}"
#define EVENTS "{\"stream\":true,\"input\":\"hi\"}"

/* Each answer begins with ids and times; what follows is compared. */
static struct str after(struct str text, const char *mark) {
    size_t at = str_find(text, str_from(mark));
    assert_true(at < text.len);
    return str_skip(text, at);
}

/* --- what the caller reads ---------------------------------------------------------------- */

static void a_completion_is_answered_once_with_what_was_said(void **state) {
    (void)state;
    struct exchange *x = ask(CHAT, HI);
    assert_asked(&f, "user=hi");
    assert_true(fake_text(asked(&f), STR("hel")));
    turns(&f);
    assert_int_equal(fake_status(x), 0);
    reply(&f, "lo");
    assert_int_equal(fake_status(x), 200);
    assert_says(x, "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                   "\"content\":\"hello\",\"refusal\":null},\"logprobs\":null,"
                   "\"finish_reason\":\"stop\"}],");
    assert_true(fake_value(fake_head(x), "x-weir-run-id").len > 0);
    assert_true(fake_value(fake_head(x), "x-session-id").len > 0);
    over(x);
}

static void chunks_have_one_delta_each_and_end_with_done(void **state) {
    (void)state;
#define CHUNK(delta)                                                                           \
    "[{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":null}]}\n\n"
    struct exchange *x = ask(CHAT, STREAMED);
    assert_int_equal(fake_status(x), 200); /* before the model has said a word */
    assert_true(
        str_ends(fake_sent(x), STR(CHUNK("{\"role\":\"assistant\",\"content\":\"\"}"))));
    size_t begun = fake_sent(x).len;
    assert_true(fake_text(asked(&f), STR("a\"b")));
    turns(&f);
    assert_true(str_starts(str_skip(fake_sent(x), begun), STR("data: {\"id\":\"chatcmpl-")));
    assert_true(str_ends(fake_sent(x), STR(CHUNK("{\"content\":\"a\\\"b\"}"))));
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_says(x, "\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"weir\":{");
    assert_true(str_ends(fake_sent(x), STR("\n\ndata: [DONE]\n\n")));
    over(x);
}

static void what_came_at_once_reads_as_what_came_piece_by_piece(void **state) {
    (void)state;
    static const char *const texts[] = {"a", "two\nlines", "\xC3\xA9", "\x01"};
    struct exchange *x = ask(CHAT, STREAMED);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_true(fake_text(asked(&f), str_from(texts[i])));
    turns(&f);
    assert_says(x, CHUNK("{\"content\":\"a\"}"));
    assert_says(x, CHUNK("{\"content\":\"two\\nlines\"}"));
    assert_says(x, CHUNK("{\"content\":\"\xC3\xA9\"}"));
    assert_says(x, CHUNK("{\"content\":\"\\u0001\"}"));
    fake_done(asked(&f), "m-1");
    over(x);
}

/* The kinds of events alone, in order. */
static void assert_events(struct exchange *x, const char *expected) {
    struct str rest = fake_sent(x), line;
    struct buf kinds;
    buf_init(&kinds, 4 * KIB);
    while (rest.len) {
        line = str_split(rest, '\n', &rest);
        if (!str_starts(line, STR("event: response."))) continue;
        if (kinds.len) buf_append_byte(&kinds, ' ');
        buf_append(&kinds, str_skip(line, STR("event: response.").len));
    }
    assert_str(buf_str(&kinds), expected);
    buf_done(&kinds);
}

static void a_response_has_its_typed_events_in_order(void **state) {
    (void)state;
    struct exchange *x = ask(RESPONSES, EVENTS);
    assert_events(x, "created in_progress");
    assert_true(fake_text(asked(&f), STR("hel")));
    turns(&f);
    reply(&f, "lo");
    assert_events(x, "created in_progress output_item.added content_part.added "
                     "output_text.delta output_text.delta output_text.done content_part.done "
                     "output_item.done completed");
    struct str last = after(fake_sent(x), "event: response.completed");
    assert_true(str_find(last, STR("\"sequence_number\":9,")) < last.len);
    assert_true(str_find(last, STR("\"text\":\"hello\"")) < last.len);
    over(x);
}

static void a_call_of_the_agents_own_is_an_item_and_no_tool_call(void **state) {
    (void)state;
    struct exchange *x = ask(RESPONSES, EVENTS), *chat = ask(CHAT, HI);
    for (size_t i = 0; i < 2; i++) {
        fake_tool_call(asked(&f), "c1", "search", "{\"q\":1}");
        fake_done(asked(&f), "m-1");
        turns(&f);
        fake_tool_answer(f.search, 0, "{\"hit\":1}");
        turns(&f);
        reply(&f, "found");
    }
    assert_events(x, "created in_progress output_item.added mcp_call.in_progress "
                     "mcp_call_arguments.delta mcp_call_arguments.done mcp_call.completed "
                     "output_item.done output_item.added content_part.added output_text.delta "
                     "output_text.done content_part.done output_item.done completed");
    assert_says(chat, "\"content\":\"found\"");
    assert_true(str_find(fake_sent(chat), STR("tool_calls")) == fake_sent(chat).len);
    over(x);
    over(chat);
}

static void a_call_of_the_callers_ends_the_answer(void **state) {
    (void)state;
#define TOOL                                                                                   \
    "{" LIST ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get_time\"}}]}"
    struct exchange *x = ask(CHAT, TOOL);
    fake_tool_call(asked(&f), "t1", "get_time", "{\"at\":\"Rome\"}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_says(x, "\"content\":null,\"refusal\":null,\"tool_calls\":[{\"id\":\"t1\","
                   "\"type\":\"function\",\"function\":{\"name\":\"get_time\","
                   "\"arguments\":\"{\\\"at\\\":\\\"Rome\\\"}\"}}]}");
    assert_says(x, "\"finish_reason\":\"tool_calls\"");
    over(x);
}

/* --- failures ----------------------------------------------------------------------------- */

static void a_failed_run_is_a_status_or_the_last_frame(void **state) {
    (void)state;
    struct exchange *x = ask(CHAT, HI);
    fake_fail(asked(&f), ERR_UNAVAILABLE, "GONE");
    turns(&f);
    assert_true(fake_value(fake_head(x), "x-should-retry").len > 0);
    assert_refused(x, 503, "{\"error\":{\"message\":");
    x = ask(CHAT, STREAMED);
    fake_fail(asked(&f), ERR_INTERNAL, "BROKEN");
    turns(&f);
    assert_says(x, "data: {\"error\":{\"message\":");
    assert_true(fake_ended(x));
    assert_true(str_find(fake_sent(x), STR("[DONE]")) == fake_sent(x).len);
    over(x);
    x = ask(RESPONSES, EVENTS);
    fake_fail(asked(&f), ERR_INTERNAL, "BROKEN");
    turns(&f);
    assert_events(x, "created in_progress failed");
    over(x);
}

static void a_wrong_key_is_401_and_a_right_one_names_the_user(void **state) {
    (void)state;
    secured = true;
    assert_refused(ask(CHAT, HI), 401, "\"code\":\"invalid_api_key\"");
    assert_refused(request("GET", "/v1/models", NULL, "authorization", "Bearer wrong"), 401,
                   "\"code\":\"invalid_api_key\"");
    struct exchange *x = request("POST", CHAT, HI, "authorization", "Bearer right");
    assert_str(fake_request(asked(&f))->user, "ann");
    reply(&f, "ok");
    over(x);
}

static void a_busy_session_and_an_unknown_model_are_refused(void **state) {
    (void)state;
    struct exchange *x = request("POST", CHAT, STREAMED, "x-session-id", "s");
    assert_refused(request("POST", CHAT, HI, "x-session-id", "s"), 409,
                   "\"code\":\"session_busy\"");
    assert_refused(ask(CHAT, "{\"model\":\"gpt-4o\"," LIST "}"), 404,
                   "\"code\":\"model_not_found\"");
    reply(&f, "ok");
    over(x);
}

/* --- readers that leave, and one that does not read --------------------------------------- */

static void a_caller_that_leaves_ends_the_run_unless_it_is_in_the_background(void **state) {
    (void)state;
    static const struct {
        const char *path, *body;
        bool goes_on;
    } rows[] = {
        {CHAT, HI, false},
        {CHAT, STREAMED, false},
        {RESPONSES, ITEMS, false},
        {RESPONSES, EVENTS, false},
        {RESPONSES, "{\"input\":\"hi\",\"stream\":true,\"background\":true}", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = ask(rows[i].path, rows[i].body);
        assert_int_equal(fake_calls(f.model), 1);
        fake_leave(x);
        turns(&f);
        assert_int_equal(fake_calls(f.model), rows[i].goes_on);
        if (rows[i].goes_on) reply(&f, "to nobody");
        assert_int_equal(f.host.run_count, 0);
        over(x);
    }
}

static void a_background_response_is_answered_at_once_and_goes_on(void **state) {
    (void)state;
    struct exchange *x = ask(RESPONSES, "{\"input\":\"hi\",\"background\":true}");
    assert_int_equal(fake_status(x), 200);
    assert_says(x, "\"status\":\"in_progress\",\"background\":true");
    over(x);
    assert_int_equal(fake_calls(f.model), 1);
    reply(&f, "later");
    assert_int_equal(f.host.run_count, 0);
}

static void a_reader_that_stalls_is_cut_off_without_an_ending(void **state) {
    (void)state;
    static const char *const paths[] = {CHAT, RESPONSES};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = ask(paths[i], i ? EVENTS : STREAMED);
        fake_stop_reading(x);
        char *text = mem_alloc(2 * STREAM_HIGH_BYTES);
        memset(text, 'x', 2 * STREAM_HIGH_BYTES);
        assert_true(fake_text(asked(&f), str_of(text, 2 * STREAM_HIGH_BYTES)));
        assert_true(fake_text(asked(&f), STR("more")));
        free(text);
        turns(&f);
        loop_advance(f.loop, STALL_MS);
        turns(&f);
        assert_true(fake_aborted(x) >= 0);
        fake_read_all(x);
        turns(&f);
        assert_false(fake_ended(x));
        assert_int_equal(fake_calls(f.model), 0);
        over(x);
    }
}

static void a_quiet_stream_has_a_heartbeat(void **state) {
    (void)state;
    struct exchange *x = ask(CHAT, STREAMED);
    loop_advance(f.loop, HEARTBEAT_MS);
    assert_true(str_ends(fake_sent(x), STR(": keep-alive\n\n")));
    reply(&f, "ok");
    over(x);
}

static void a_stop_that_waits_no_longer_ends_each_answer_in_its_own_way(void **state) {
    (void)state;
    struct exchange *whole = ask(CHAT, HI), *chunks = ask(CHAT, STREAMED),
                    *events = ask(RESPONSES, EVENTS);
    guest_stopping(&instance);
    assert_refused(ask(CHAT, HI), 503, "the server is stopping");
    guest_cut(&instance);
    turns(&f);
    assert_says(chunks, "data: {\"error\":{\"message\":\"the answer was cut short");
    assert_events(events, "created in_progress failed");
    assert_refused(whole, 503, "the server stops");
    over(chunks);
    over(events);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_completion_is_answered_once_with_what_was_said),
        CASE(chunks_have_one_delta_each_and_end_with_done),
        CASE(what_came_at_once_reads_as_what_came_piece_by_piece),
        CASE(a_response_has_its_typed_events_in_order),
        CASE(a_call_of_the_agents_own_is_an_item_and_no_tool_call),
        CASE(a_call_of_the_callers_ends_the_answer),
        CASE(a_failed_run_is_a_status_or_the_last_frame),
        CASE(a_wrong_key_is_401_and_a_right_one_names_the_user),
        CASE(a_busy_session_and_an_unknown_model_are_refused),
        CASE(a_caller_that_leaves_ends_the_run_unless_it_is_in_the_background),
        CASE(a_background_response_is_answered_at_once_and_goes_on),
        CASE(a_reader_that_stalls_is_cut_off_without_an_ending),
        CASE(a_quiet_stream_has_a_heartbeat),
        CASE(a_stop_that_waits_no_longer_ends_each_answer_in_its_own_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
