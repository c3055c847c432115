/* The order in which a request is checked and the form of each refusal, without a run. */
#include "contract/agentbreeder/runtime.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"

#include <stdio.h>

static const struct runtime_settings settings = {
    .token = STR_INIT("s3cret"),
    .guest = {.workspace = STR_INIT("w"), .body_max_bytes = 64},
    .agent_name = STR_INIT("tiny"),
    .agent_version = STR_INIT("1.0.0"),
    .framework = STR_INIT("own")};

static struct loop *loop;
static struct runtime_instance instance;
static struct route_table table;
static struct route_site *site;

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

/* One request: `fields` are "name: value" lines. */
static struct exchange *ask(const char *method, const char *path, const char *fields,
                            const char *body) {
    static char room[8][2][256]; /* the exchange borrows them */
    struct exchange *x = fake_new(loop, method, path);
    struct str rest = str_from(fields);
    for (size_t i = 0; rest.len; i++) {
        struct str value, name = str_split(str_split(rest, '\n', &rest), ':', &value);
        snprintf(room[i][0], sizeof(room[i][0]), STR_FMT, STR_ARG(name));
        snprintf(room[i][1], sizeof(room[i][1]), STR_FMT, STR_ARG(str_trim(value)));
        fake_field(x, room[i][0], room[i][1]);
    }
    fake_start(x, serve, site);
    if (body[0]) fake_body(x, str_from(body));
    fake_body_end(x);
    fake_settle(loop);
    return x;
}

static void assert_says(const struct exchange *x, const char *words) {
    struct str sent = fake_sent(x);
    if (!memmem(sent.at, sent.len, words, strlen(words)))
        fail_msg("no '%s' in " STR_FMT, words, STR_ARG(sent));
}

#define RIGHT "authorization: Bearer s3cret\n"
#define WRONG "authorization: Bearer s3cre\n"
#define V2 "x-runtime-contract-version: 2\n"
#define TEXT "content-type: text/plain\n"
#define LARGE "content-length: 65\n"

/* Each is wrong in all that its row names and what follows; the first check that fails answers.
 */
static const struct {
    bool loaded;
    const char *method, *path, *fields, *body;
    int status;
    const char *says;
} steps[] = {
    {false, "GET", "/nothing", V2, "", 404, "NOT_FOUND"},
    {false, "GET", "/invoke", V2, "", 405, "METHOD_NOT_ALLOWED"},
    {false, "POST", "/invoke", V2 TEXT LARGE, "{", 401, "Missing bearer token"},
    {false, "POST", "/invoke", "authorization: Basic s3cret\n" V2, "{", 401, "Missing"},
    {false, "POST", "/invoke", "authorization: Bearer\n" V2, "{", 401, "Missing"},
    {false, "POST", "/invoke", WRONG V2 TEXT LARGE, "{", 403, "Invalid bearer token"},
    {false, "POST", "/invoke", "authorization: Bearer s3cret2\n", "{", 403, "Invalid"},
    {false, "POST", "/invoke", RIGHT V2 TEXT LARGE, "{", 400, "UNSUPPORTED_CONTRACT_VERSION"},
    {false, "POST", "/resume", RIGHT TEXT LARGE, "{", 503, "AGENT_NOT_LOADED"},
    {true, "POST", "/stream", RIGHT TEXT LARGE, "{", 400, "text/plain"},
    {true, "POST", "/invoke", RIGHT LARGE, "{", 413, "PAYLOAD_TOO_LARGE"},
    {true, "POST", "/resume", RIGHT, "{", 400, "INVALID_INPUT"},
    {true, "POST", "/resume", RIGHT, "[]", 422, "INVALID_INPUT"},
    {true, "POST", "/invoke", "authorization: bearer  s3cret\n", "{}", 400, "missing"},
    {true, "POST", "/invoke", RIGHT "x-runtime-contract-version: 1\n", "{\"input\":5}", 422,
     "a number"},
};

static void the_first_check_that_fails_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        instance.guest.loaded = steps[i].loaded;
        struct exchange *x =
            ask(steps[i].method, steps[i].path, steps[i].fields, steps[i].body);
        assert_int_equal(fake_status(x), steps[i].status);
        assert_says(x, steps[i].says);
        assert_str(fake_value(fake_head(x), "x-runtime-contract-version"), "1");
        assert_str(fake_value(fake_head(x), "content-type"), "application/json");
        assert_int_equal(fake_value(fake_head(x), "retry-after").len > 0,
                         steps[i].status == 503);
        assert_int_equal(fake_value(fake_head(x), "www-authenticate").len > 0,
                         steps[i].status == 401);
        fake_free(x);
    }
}

static void a_refused_token_is_reported_in_both_shapes(void **state) {
    (void)state;
    struct exchange *x = ask("POST", "/invoke", "", "{}");
    assert_str(fake_sent(x), "{\"detail\":\"Missing bearer token\",\"error\":{\"code\":"
                             "\"UNAUTHORIZED\",\"message\":\"Missing bearer token\"}}");
    fake_free(x);
    x = ask("POST", "/resume", WRONG, "{}");
    assert_str(fake_sent(x), "{\"detail\":\"Invalid bearer token\",\"error\":{\"code\":"
                             "\"FORBIDDEN\",\"message\":\"Invalid bearer token\"}}");
    fake_free(x);
}

static void a_probe_is_answered_whatever_it_says(void **state) {
    (void)state;
    for (int loaded = 0; loaded < 2; loaded++) {
        instance.guest.loaded = loaded;
        struct exchange *x = ask("GET", "/health", WRONG V2, "");
        assert_int_equal(fake_status(x), 200);
        assert_str(fake_sent(x),
                   loaded ? "{\"status\":\"healthy\",\"agent_name\":\"tiny\",\"version\":"
                            "\"1.0.0\",\"framework\":\"own\"}"
                          : "{\"status\":\"loading\",\"agent_name\":\"tiny\",\"version\":"
                            "\"1.0.0\",\"framework\":\"own\"}");
        fake_free(x);
        x = ask("HEAD", "/health", "", "");
        assert_int_equal(fake_status(x), 200);
        assert_int_equal(fake_sent(x).len, 0);
        fake_free(x);
    }
}

static void the_documents_are_open_while_the_agent_loads(void **state) {
    (void)state;
    static const char *const paths[] = {"/openapi.json", "/.well-known/agent.json"};
    instance.guest.loaded = false;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = ask("GET", paths[i], WRONG, "");
        assert_int_equal(fake_status(x), 200);
        assert_true(fake_sent(x).len > 100);
        fake_free(x);
        x = ask("GET", paths[i], V2, "");
        assert_int_equal(fake_status(x), 400);
        assert_says(x, "\"details\":{\"supported\":[\"1\"],\"requested\":\"2\"}");
        fake_free(x);
    }
}

static int set_up(void **state) {
    (void)state;
    static const struct route_table *const tables[] = {&table};
    loop = loop_new_fake();
    guest_init(&instance.guest, &(struct contract_loop){.host = NULL}, &settings.guest);
    runtime_table(&instance, &table);
    site = route_site_new(loop, tables, 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    route_site_free(site);
    loop_free(loop);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_check_that_fails_answers),
        cmocka_unit_test(a_refused_token_is_reported_in_both_shapes),
        cmocka_unit_test(a_probe_is_answered_whatever_it_says),
        cmocka_unit_test(the_documents_are_open_while_the_agent_loads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
