/* Whole requests over runs with a scripted model and tools: what a client reads in each dialect, and
 * what happens when it leaves, stalls, or the daemon stops. */
#include "contract/a2a/door.h"

#include "fake/exchange_fake.h"
#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "stream/stream.h"
#include "turn/fixture.h"

#define STALL_MS 5000

static struct fixture f;
static struct a2a_settings settings;
static struct a2a_instance instance;
static struct route_table table;
static struct route_site *site;

static bool secured(void *ctx) {
    (void)ctx;
    return false;
}

/* The bearer is the user. */
static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    (void)ctx;
    ret->workspace = STR("w");
    ret->user = bearer;
    return true;
}

static int setup(void **state) {
    (void)state;
    static const struct route_table *const tables[] = {&table};
    static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};
    fixture_init(&f, true);
    f.agents[0].tools = writing_asks;
    f.agents[0].tool_count = 1;
    settings = (struct a2a_settings){
        .guest = {.workspace = STR("w"),
                  .body_max_bytes = 64 * KIB,
                  .rules = {.busy = SESSION_QUEUE,
                            .stall_ms = STALL_MS,
                            .heartbeat_ms = 60000,
                            .on_disconnect = {.how = LEAVING_DETACHES},
                            .keys_kept_ms = 60000,
                            .keyed_outlives = true}},
        .card = {.a2a = true, .url = STR(""), .name = STR("tiny"), .version = STR("1")}};
    instance =
        (struct a2a_instance){.guest = {.settings = &settings.guest,
                                        .callers = {.secured = secured, .identify = identify},
                                        .loaded = true},
                              .store = f.store};
    http_turn_site_init(&instance.guest.site, &f.host);
    instance.guest.site.rules = settings.guest.rules;
    a2a_table(&instance, &table);
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

/* --- requests ----------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

/* The caller closes it with over(). `user`: who it is, or NULL. */
static struct exchange *ask_as(const char *user, const char *method, const char *path,
                               const char *body) {
    struct exchange *x = fake_new(f.loop, method, path);
    char bearer[64];
    snprintf(bearer, sizeof(bearer), "Bearer %s", user ? user : "");
    if (user) fake_field(x, "authorization", bearer);
    fake_field(x, "content-type", "application/json");
    fake_start(x, serve, site);
    fake_body(x, str_from(body));
    fake_body_end(x);
    turns(&f);
    return x;
}

static struct exchange *ask(const char *path, const char *body) {
    return ask_as(NULL, "POST", path, body);
}

static struct exchange *call(const char *method, const char *params) {
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":%s}", method, params);
    return ask("/a2a", body);
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

/* Events of a stream. */
static size_t events(const struct exchange *x) {
    struct str rest = fake_sent(x);
    size_t count = 0;
    for (; rest.len; count++) {
        size_t end = str_find(rest, STR("\n\n"));
        rest = str_skip(rest, end + 2);
    }
    return count;
}

/* Room for "{"id":"<run>"}". */
static const char *of_task(const struct exchange *x, char room[80], const char *more) {
    struct str run = fake_value(fake_head(x), "x-weir-run-id");
    assert_true(run.len > 0 && run.len < 40);
    snprintf(room, 80, "{\"id\":\"" STR_FMT "\"%s}", STR_ARG(run), more);
    return room;
}

#define OLD                                                                                    \
    "{\"message\":{\"messageId\":\"m\",\"role\":\"user\",\"contextId\":\"c\",\"parts\":[{"     \
    "\"kind\":\"text\",\"text\":\"hi\"}]}}"
#define NEW                                                                                    \
    "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"contextId\":\"c\",\"parts\":[" \
    "{\"text\":\"hi\"}]}}"
#define AT_ONCE                                                                                \
    "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"contextId\":\"c\",\"parts\":[" \
    "{\"text\":\"hi\"}]},\"configuration\":{\"returnImmediately\":true}}"

/* --- what is read ------------------------------------------------------------------------- */

static void a_message_is_answered_with_its_task(void **state) {
    (void)state;
    struct exchange *x = call("SendMessage", NEW);
    assert_int_equal(fake_status(x), 0); /* not before the run's end */
    assert_true(fake_text(asked(&f), STR("hel")));
    reply(&f, "lo");
    assert_int_equal(fake_status(x), 200);
    assert_true(
        str_starts(fake_sent(x), STR("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"task\":{"
                                     "\"id\":\"")));
    assert_says(x, "\"state\":\"TASK_STATE_COMPLETED\"");
    assert_says(x, "\"parts\":[{\"text\":\"hello\"}]");
    over(x);
    x = ask("/message:send", NEW);
    reply(&f, "rest");
    assert_str(fake_value(fake_head(x), "content-type"), "application/a2a+json");
    assert_true(str_starts(fake_sent(x), STR("{\"task\":{\"id\":\"")));
    over(x);
}

static void a_stream_of_0_3_ends_with_its_final_status(void **state) {
    (void)state;
    struct exchange *x = call("message/stream", OLD);
    assert_str(fake_value(fake_head(x), "content-type"), "text/event-stream");
    assert_says(x, "\"result\":{\"kind\":\"task\",");
    assert_says(x, "\"state\":\"working\"");
    assert_true(fake_text(asked(&f), STR("hel")));
    turns(&f);
    assert_says(x, "\"parts\":[{\"kind\":\"text\",\"text\":\"hel\"}]},\"append\":false,"
                   "\"lastChunk\":false}}\n\n");
    reply(&f, "lo");
    assert_says(x, "\"text\":\"lo\"}]},\"append\":true,\"lastChunk\":false}}\n\n");
    assert_says(x, "\"text\":\"\"}]},\"append\":true,\"lastChunk\":true}}\n\n");
    assert_says(x, "\"state\":\"completed\"");
    assert_true(str_ends(fake_sent(x), STR("\"final\":true}}\n\n")));
    assert_int_equal(events(x), 5);
    over(x);
}

static void a_stream_of_1_0_says_the_kind_outside(void **state) {
    (void)state;
    struct exchange *x = ask("/message:stream", NEW);
    assert_true(str_starts(fake_sent(x), STR("data: {\"task\":{\"id\":\"")));
    reply(&f, "hello");
    assert_says(x, "data: {\"artifactUpdate\":{\"taskId\":\"");
    assert_says(x, "data: {\"statusUpdate\":{\"taskId\":\"");
    assert_false(says(x, "\"final\""));
    assert_false(says(x, "\"kind\""));
    over(x);
}

static void a_failed_run_is_a_task_that_failed(void **state) {
    (void)state;
    struct exchange *whole = call("SendMessage", NEW);
    fake_fail(asked(&f), ERR_UNAVAILABLE, "GONE");
    turns(&f);
    assert_int_equal(fake_status(whole), 200);
    assert_says(whole, "\"state\":\"TASK_STATE_FAILED\"");
    assert_says(whole, "{\"data\":{\"reason\":\"GONE\"}}");
    over(whole);
    struct exchange *streamed = call("SendStreamingMessage", NEW);
    fake_fail(asked(&f), ERR_UNAVAILABLE, "GONE");
    turns(&f);
    assert_says(streamed, "\"state\":\"TASK_STATE_FAILED\"");
    over(streamed);
    struct exchange *flat = call("tasks/send", "{\"message\":\"hi\"}");
    fake_fail(asked(&f), ERR_UNAVAILABLE, "GONE");
    turns(&f);
    assert_refused(flat, 500, "\"code\":-32000");
}

/* --- a human's decision ------------------------------------------------------------------- */

static void a_question_ends_the_answer_and_its_task_takes_the_reply(void **state) {
    (void)state;
    char yes[512];
    struct exchange *x = call("SendMessage", NEW);
    fake_tool_call(asked(&f), "c1", "write", "{\"k\":1}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_says(x, "\"state\":\"TASK_STATE_INPUT_REQUIRED\"");
    assert_says(x, "\"tool\":\"write\",\"args\":{\"k\":1}");
    assert_refused(call("SendMessage", NEW), 200, "\"code\":-32004"); /* it names no task */
    snprintf(yes, sizeof(yes),
             "{\"message\":{\"messageId\":\"n\",\"role\":\"ROLE_USER\",\"taskId\":\"" STR_FMT
             "\",\"parts\":[{\"text\":\"yes\"}]}}",
             STR_ARG(fake_value(fake_head(x), "x-weir-run-id")));
    struct exchange *next = call("SendStreamingMessage", yes);
    assert_int_equal(fake_tool_calls(f.write), 1);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "saved");
    assert_says(next, "\"state\":\"TASK_STATE_COMPLETED\"");
    over(next);
    over(x);
}

/* --- ways to read ------------------------------------------------------------------------- */

static void a_task_is_answered_before_it_is_done(void **state) {
    (void)state;
    char room[80];
    struct exchange *x = call("SendMessage", AT_ONCE);
    assert_int_equal(fake_status(x), 200);
    assert_says(x, "\"state\":\"TASK_STATE_SUBMITTED\"");
    assert_true(fake_text(asked(&f), STR("hel")));
    turns(&f);
    struct exchange *poll = call("GetTask", of_task(x, room, ""));
    assert_says(poll, "\"state\":\"TASK_STATE_WORKING\"");
    assert_says(poll, "{\"text\":\"hel\"}");
    over(poll);
    struct exchange *reader = call("SubscribeToTask", of_task(x, room, ""));
    assert_says(reader, "{\"text\":\"hel\"}"); /* in the task */
    assert_int_equal(events(reader), 1);
    reply(&f, "lo");
    assert_says(reader, "{\"text\":\"lo\"}");
    assert_int_equal(events(reader), 4);
    over(reader);
    assert_refused(call("SubscribeToTask", of_task(x, room, "")), 200, "\"code\":-32004");
    struct exchange *again = call("tasks/resubscribe", of_task(x, room, ""));
    assert_says(again, "\"final\":true");
    over(again);
    over(x);
}

static void a_cancelled_task_is_answered_as_it_ended(void **state) {
    (void)state;
    char room[80];
    struct exchange *x = call("SendStreamingMessage", NEW);
    struct exchange *stop = call("CancelTask", of_task(x, room, ""));
    assert_says(stop, "\"state\":\"TASK_STATE_CANCELED\"");
    assert_says(x, "\"state\":\"TASK_STATE_CANCELED\"");
    assert_int_equal(fake_calls(f.model), 0);
    over(stop);
    assert_refused(call("CancelTask", of_task(x, room, "")), 200, "\"code\":-32002");
    over(x);
}

static void another_users_task_is_unknown(void **state) {
    (void)state;
    char path[96];
    struct exchange *x = ask_as("anna", "POST", "/message:send", AT_ONCE);
    struct str run = fake_value(fake_head(x), "x-weir-run-id");
    snprintf(path, sizeof(path), "/tasks/" STR_FMT, STR_ARG(run));
    struct exchange *own = ask_as("anna", "GET", path, "");
    assert_int_equal(fake_status(own), 200);
    over(own);
    struct exchange *foreign = ask_as("ben", "GET", path, "");
    for (unsigned i = 0; i < 100 && fake_status(foreign) == 0; i++) {
        loop_advance(f.loop, 1);
        turns(&f);
    }
    assert_refused(foreign, 404, "\"reason\":\"TASK_NOT_FOUND\"");
    reply(&f, "hello");
    over(x);
}

/* --- clients that leave or stall, and a stop ------------------------------------------------ */

static void a_client_that_leaves_leaves_its_task_at_work(void **state) {
    (void)state;
    static const char *const methods[] = {"SendMessage", "SendStreamingMessage"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct exchange *x = call(methods[i], NEW);
        fake_leave(x);
        turns(&f);
        assert_int_equal(fake_calls(f.model), 1);
        reply(&f, "to nobody");
        assert_int_equal(f.host.run_count, 0);
        over(x);
    }
}

static void the_end_of_the_daemon_is_said(void **state) {
    (void)state;
    struct exchange *whole = call("SendMessage", NEW);
    struct exchange *streamed = ask("/message:stream", "{\"message\":{\"messageId\":\"m\","
                                                       "\"role\":\"ROLE_USER\",\"parts\":[{"
                                                       "\"text\":\"hi\"}]}}");
    instance.guest.stopping = true;
    assert_refused(call("SendMessage", NEW), 503, "the server is stopping");
    http_turn_site_cut(&instance.guest.site);
    turns(&f);
    assert_says(whole, "\"code\":-32603");
    assert_says(streamed, "event: error\ndata: {\"error\":{\"code\":503,");
    over(whole);
    over(streamed);
}

static void a_key_brings_the_same_task_again(void **state) {
    (void)state;
    struct exchange *x[2];
    for (size_t i = 0; i < 2; i++) {
        x[i] = fake_new(f.loop, "POST", "/message:send");
        fake_field(x[i], "content-type", "application/a2a+json");
        fake_field(x[i], "idempotency-key", "k");
        fake_start(x[i], serve, site);
        fake_body(x[i], STR(NEW));
        fake_body_end(x[i]);
        turns(&f);
    }
    assert_int_equal(fake_calls_ever(f.model), 1);
    reply(&f, "hello");
    assert_true(str_equal(fake_sent(x[0]), fake_sent(x[1])));
    over(x[0]);
    over(x[1]);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void what_is_no_request_is_refused_in_the_envelope(void **state) {
    (void)state;
    static const struct {
        const char *path, *body;
        int status;
        const char *says;
    } rows[] = {
        {"/a2a", "{", 200, "\"id\":null,\"error\":{\"code\":-32700"},
        {"/a2a", "[]", 200, "\"id\":null,\"error\":{\"code\":-32600"},
        {"/a2a", "{\"jsonrpc\":\"2.0\",\"method\":\"GetTask\"}", 200, "\"code\":-32600"},
        {"/a2a", "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"Nothing\"}", 200,
         "\"id\":\"x\",\"error\":{\"code\":-32601"},
        {"/a2a", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\"}", 200,
         "\"code\":-32602"},
        {"/a2a/nobody", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\"}", 200,
         "there is no agent of this name"},
        {"/a2a",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/cancel\",\"params\":{"
         "\"task_id\":\"1\"}}",
         200, "\"code\":-32601"},
        {"/message:send", "{", 400, "\"reason\":\"INVALID_REQUEST\""},
        {"/message:send", "{}", 400, "\"reason\":\"INVALID_PARAMS\""},
        {"/tasks/1:pause", "", 404, "\"reason\":\"METHOD_NOT_FOUND\""},
        {"/tasks/1/pushNotificationConfigs", "{}", 400,
         "\"reason\":\"PUSH_NOTIFICATION_NOT_SUPPORTED\""},
        {"/a2a/nobody/message:send", NEW, 404, "\"reason\":\"METHOD_NOT_FOUND\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(ask(rows[i].path, rows[i].body), rows[i].status, rows[i].says);
    assert_int_equal(fake_calls_ever(f.model), 0);
}

static void a_card_has_addresses_below_the_host(void **state) {
    (void)state;
    settings.card.url = STR("https://agents.example/");
    struct exchange *x = ask_as(NULL, "GET", "/.well-known/agent-card.json", "");
    assert_says(x, "\"name\":\"tiny\",\"version\":\"1\"");
    assert_says(x, "\"url\":\"https://agents.example/a2a\"");
    assert_says(x, "{\"id\":\"eve\",");
    over(x);
    x = ask_as(NULL, "GET", "/a2a/eve/.well-known/agent.json", "");
    assert_says(x, "\"name\":\"eve\"");
    assert_says(x, "\"url\":\"https://agents.example/a2a/eve\"");
    assert_false(says(x, "manager"));
    over(x);
    assert_refused(ask_as(NULL, "GET", "/a2a/x/.well-known/agent.json", ""), 404,
                   "AGENT_NOT_FOUND");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_message_is_answered_with_its_task),
        TEST(a_stream_of_0_3_ends_with_its_final_status),
        TEST(a_stream_of_1_0_says_the_kind_outside),
        TEST(a_failed_run_is_a_task_that_failed),
        TEST(a_question_ends_the_answer_and_its_task_takes_the_reply),
        TEST(a_task_is_answered_before_it_is_done),
        TEST(a_cancelled_task_is_answered_as_it_ended),
        TEST(another_users_task_is_unknown),
        TEST(a_client_that_leaves_leaves_its_task_at_work),
        TEST(the_end_of_the_daemon_is_said),
        TEST(a_key_brings_the_same_task_again),
        TEST(what_is_no_request_is_refused_in_the_envelope),
        TEST(a_card_has_addresses_below_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
