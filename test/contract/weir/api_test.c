/* Who is let in, and how invalid requests are refused: without a run, and before the store is
 * asked. */
#include "contract/weir/api.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"

#include "base/mem.h"

#include <stdio.h>

static struct loop *loop;
static bool secured; /* the operator set a token */
static struct api_settings settings;
static struct api_instance instance;
static struct route_table table;
static const struct route_table *tables[] = {&table};
static struct route_site *site;

static bool is_secured(void *ctx) {
    (void)ctx;
    return secured;
}

/* A token is what it opens: "acme" a workspace, "acme:ann" a user of it. */
static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    (void)ctx;
    if (!str_starts(bearer, STR("acme"))) return false;
    snprintf(ret->room, sizeof(ret->room), STR_FMT, STR_ARG(bearer));
    ret->workspace = str_split(str_from(ret->room), ':', &ret->user);
    return true;
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    secured = true;
    struct session_table *sessions = session_table_new(NULL);
    settings = (struct api_settings){.stall_ms = 30000, .heartbeat_ms = 15000};
    instance = (struct api_instance){.settings = &settings,
                                     .loop = loop,
                                     .sessions = sessions,
                                     .directory = session_table_directory(sessions),
                                     .callers = {is_secured, identify, NULL},
                                     .pages = pages_new(MIB),
                                     .loaded = true};
    instance.share = share_new(&(struct share_options){.loop = loop,
                                                       .directory = instance.directory,
                                                       .pages = instance.pages,
                                                       .encode = api_encode_event});
    list_init(&instance.ends);
    api_table(&instance, &table);
    site = route_site_new(loop, tables, ARRAY_LEN(tables));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    route_site_free(site);
    api_forget_ends(&instance);
    share_free(instance.share);
    pages_free(instance.pages);
    session_table_free(instance.sessions);
    loop_free(loop);
    return 0;
}

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

/* token, body  NULL: none. The caller frees the exchange. */
static struct exchange *ask(const char *method, const char *path, const char *token,
                            const char *body) {
    static char authorization[128];
    struct exchange *x = fake_new(loop, method, path);
    if (token) {
        snprintf(authorization, sizeof(authorization), "Bearer %s", token);
        fake_field(x, "authorization", authorization);
    }
    if (body) fake_field(x, "content-type", "application/json");
    fake_start(x, serve, site);
    if (body) fake_body(x, str_from(body));
    fake_body_end(x);
    fake_settle(loop);
    return x;
}

static void assert_says(const struct exchange *x, const char *words) {
    struct str sent = fake_sent(x);
    if (!memmem(sent.at, sent.len, words, strlen(words)))
        fail_msg("no '%s' in " STR_FMT, words, STR_ARG(sent));
}

static void assert_refused(const char *method, const char *path, const char *token,
                           const char *body, int status, const char *says) {
    struct exchange *x = ask(method, path, token, body);
    if (fake_status(x) != status)
        fail_msg("%s %s: %d " STR_FMT, method, path, fake_status(x), STR_ARG(fake_sent(x)));
    assert_says(x, says);
    fake_free(x);
}

/* --- who may come in ---------------------------------------------------------------------- */

static void every_route_is_refused_without_a_token(void **state) {
    (void)state;
    assert_true(table.row_count > 10);
    for (size_t i = 0; i < table.row_count; i++) {
        char method[16], path[64];
        snprintf(method, sizeof(method), STR_FMT, STR_ARG(table.rows[i].method));
        snprintf(path, sizeof(path), STR_FMT, STR_ARG(table.rows[i].path));
        assert_refused(method, path, NULL, NULL, 401, "Missing bearer token");
        assert_refused(method, path, "guess", NULL, 403, "Invalid bearer token");
    }
}

static void a_scheme_that_is_no_bearer_is_no_token(void **state) {
    (void)state;
    static const char *const values[] = {"Basic acme", "Bearer", "Bearer ", "acme", ""};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct exchange *x = fake_new(loop, "GET", "/weir/v1/approvals");
        fake_field(x, "authorization", values[i]);
        fake_start(x, serve, site);
        fake_body_end(x);
        fake_settle(loop);
        assert_int_equal(fake_status(x), 401);
        assert_str(fake_value(fake_head(x), "www-authenticate"), "Bearer realm=\"weir\"");
        fake_free(x);
    }
}

static void without_a_token_of_the_operators_this_machine_may_see_all(void **state) {
    (void)state;
    secured = false;
    struct exchange *x = ask("GET", "/weir/v1/approvals?workspace=any&user=any", NULL, NULL);
    assert_int_equal(fake_status(x), 200);
    assert_str(fake_sent(x), "{\"approvals\":[],\"more\":false}");
    fake_free(x);
}

/* The demo's own key is none of the operator's, and yet a token of it says who asks. */
static void a_token_that_was_not_required_narrows_the_view(void **state) {
    (void)state;
    secured = false;
    assert_refused("GET", "/weir/v1/approvals?workspace=other", "acme", NULL, 403,
                   "these belong to another workspace");
}

static void a_token_opens_its_workspace_and_no_other(void **state) {
    (void)state;
    static const char *const paths[] = {
        "/weir/v1/runs?session_id=s&workspace=other",
        "/weir/v1/approvals?workspace=other",
        "/weir/v1/sessions?workspace=other",
        "/weir/v1/sessions/s/export?workspace=other",
        "/weir/v1/usage?workspace=other",
        "/weir/v1/memories?workspace=other",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_refused("GET", paths[i], "acme", NULL, 403, "another workspace");
    assert_refused("DELETE", "/weir/v1/sessions/s?workspace=other", "acme", NULL, 403,
                   "another workspace");
}

static void a_token_of_a_user_shows_that_user_alone(void **state) {
    (void)state;
    assert_refused("GET", "/weir/v1/approvals?user=bob", "acme:ann", NULL, 403, "another user");
    assert_refused("GET", "/weir/v1/runs?session_id=s&user=bob", "acme:ann", NULL, 403,
                   "another workspace or user");
    struct exchange *x = ask("GET", "/weir/v1/approvals?user=ann", "acme:ann", NULL);
    assert_int_equal(fake_status(x), 200);
    fake_free(x);
    x = ask("GET", "/weir/v1/approvals?user=bob", "acme", NULL); /* the whole workspace's */
    assert_int_equal(fake_status(x), 200);
    fake_free(x);
}

static void the_daemon_is_not_shown_to_a_single_user(void **state) {
    (void)state;
    static const char *const paths[] = {"/weir/v1/health", "/weir/v1/settings",
                                        "/weir/v1/audit/chain"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_refused("GET", paths[i], "acme:ann", NULL, 403, "shows the whole daemon");
}

static void names_that_are_too_long_are_no_callers(void **state) {
    (void)state;
    struct api_caller caller;
    char text[API_NAMES_BYTES];
    memset(text, 'x', sizeof(text));
    assert_true(api_caller_set(&caller, str_of(text, sizeof(text)), STR_EMPTY));
    assert_true(api_caller_set(&caller, str_of(text, sizeof(text) - 1), STR("u")));
    assert_false(api_caller_set(&caller, str_of(text, sizeof(text)), STR("u")));
}

/* --- while it starts and stops ------------------------------------------------------------ */

static void while_it_starts_nothing_is_served(void **state) {
    (void)state;
    instance.loaded = false;
    struct exchange *x = ask("GET", "/weir/v1/approvals", NULL, NULL); /* without a token */
    assert_int_equal(fake_status(x), 503);
    assert_str(fake_value(fake_head(x), "retry-after"), "1");
    assert_says(x, "\"LOADING\"");
    fake_free(x);
}

static void while_it_stops_only_reading_is_served(void **state) {
    (void)state;
    instance.stopping = true;
    assert_refused("POST", "/weir/v1/memories", "acme", "{}", 503, "\"STOPPING\"");
    assert_refused("DELETE", "/weir/v1/sessions/s", "acme", NULL, 503, "\"STOPPING\"");
    struct exchange *x = ask("GET", "/weir/v1/approvals", "acme", NULL);
    assert_int_equal(fake_status(x), 200);
    fake_free(x);
}

/* The guard has let it in; then, while its body comes, the stop begins. */
static void a_stop_between_head_and_body_counts(void **state) {
    (void)state;
    struct exchange *x = fake_new(loop, "POST", "/weir/v1/memories");
    fake_field(x, "authorization", "Bearer acme");
    fake_field(x, "content-type", "application/json");
    fake_start(x, serve, site);
    instance.stopping = true;
    fake_body(x, STR("{}"));
    fake_body_end(x);
    fake_settle(loop);
    assert_int_equal(fake_status(x), 503);
    fake_free(x);
}

/* --- requests that say something wrong ---------------------------------------------------- */

#define RUNS "/weir/v1/runs"
#define APPROVALS "/weir/v1/approvals"
#define SESSIONS "/weir/v1/sessions"
#define MEMORIES "/weir/v1/memories"
#define USAGE "/weir/v1/usage"

static void what_cannot_be_meant_is_refused_with_its_reason(void **state) {
    (void)state;
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *says;
    } rows[] = {
        {"PUT", RUNS, NULL, 405, "METHOD_NOT_ALLOWED"},
        {"GET", "/weir/v1/nothing", NULL, 404, "NOT_FOUND"},

        {"GET", RUNS "?state=happy", NULL, 422, "state must be queued"},
        {"GET", RUNS "?before=yesterday", NULL, 400, "before must be the `next`"},
        {"GET", RUNS "?workspace=other", NULL, 403, "another workspace"},
        {"GET", RUNS "?colour=red", NULL, 400, "there is no parameter 'colour' here"},
        {"GET", RUNS "?session_id=", NULL, 400, "say whose runs"},
        {"GET", RUNS "/0", NULL, 404, "RUN_NOT_FOUND"},
        {"GET", RUNS "/-1", NULL, 404, "RUN_NOT_FOUND"},
        {"GET", RUNS "/1x", NULL, 404, "RUN_NOT_FOUND"},
        {"GET", RUNS "/18446744073709551616", NULL, 404, "RUN_NOT_FOUND"},
        {"GET", RUNS "/none/events", NULL, 404, "RUN_NOT_FOUND"},
        {"POST", RUNS "/none/cancel", NULL, 404, "RUN_NOT_FOUND"},

        {"GET", APPROVALS "?who=me", NULL, 400, "there is no parameter 'who' here"},
        {"GET", APPROVALS "?limit=many", NULL, 400, "limit must be a number"},
        {"GET", APPROVALS "?limit=-1", NULL, 422, "limit must not be negative"},
        {"GET", APPROVALS "?user=%FF", NULL, 400, "user is not valid text"},
        {"GET", APPROVALS "/7", NULL, 404, "APPROVAL_NOT_FOUND"},
        {"GET", APPROVALS "/7-", NULL, 404, "APPROVAL_NOT_FOUND"},
        {"GET", APPROVALS "/0-1", NULL, 404, "APPROVAL_NOT_FOUND"},
        {"GET", APPROVALS "/1-0", NULL, 404, "APPROVAL_NOT_FOUND"},
        {"POST", APPROVALS "/7", "{}", 404, "APPROVAL_NOT_FOUND"},
        {"POST", APPROVALS "/7-1", "{", 400, "INVALID_INPUT"},
        {"POST", APPROVALS "/7-1", "[]", 422, "send {"},
        {"POST", APPROVALS "/7-1", "{}", 422, "send {"},
        {"POST", APPROVALS "/7-1", "{\"answer\":7}", 422, "send {"},
        {"POST", APPROVALS "/7-1", "{\"answer\":\"a\",\"decision\":\"approve\"}", 422,
         "send {"},
        {"POST", APPROVALS "/7-1", "{\"answer\":\"a\",\"answer\":\"b\"}", 400, "answer"},
        {"POST", APPROVALS "/7-1", "{\"decision\":\"maybe\"}", 422, "approve, refuse or edit"},
        {"POST", APPROVALS "/7-1", "{\"decision\":1}", 422, "approve, refuse or edit"},
        {"POST", APPROVALS "/7-1", "{\"decision\":\"edit\"}", 422, "an edit needs args"},
        {"POST", APPROVALS "/7-1", "{\"decision\":\"edit\",\"args\":[]}", 422, "needs args"},
        {"POST", APPROVALS "/7-1", "{\"decision\":\"refuse\",\"reason\":{}}", 422,
         "reason must be a string, not"},
        {"POST", APPROVALS "/7-1?force=1", "{}", 400, "there is no parameter 'force' here"},

        {"GET", SESSIONS "?session=s", NULL, 400, "there is no parameter 'session' here"},
        {"GET", SESSIONS "?limit=0x10", NULL, 400, "limit must be a number"},
        {"GET", SESSIONS "?after=1", NULL, 400, "after must be the `next` of a page"},
        {"GET", SESSIONS "?after=-5-0000000000000000", NULL, 400, "after must be the `next`"},
        {"DELETE", SESSIONS "/%FF", NULL, 400, "the session in the path is not valid text"},
        {"DELETE", SESSIONS "/s?limit=1", NULL, 400, "there is no parameter 'limit' here"},
        {"GET", SESSIONS "/%C0/export", NULL, 400, "the session in the path"},

        {"GET", USAGE "?from=2026-13-01", NULL, 422, "from must be a day such as"},
        {"GET", USAGE "?from=yesterday", NULL, 422, "from must be a day such as"},
        {"GET", USAGE "?to=2026-02-30", NULL, 422, "to must be a day such as"},
        {"GET", USAGE "?to=2026-1-1", NULL, 422, "to must be a day such as"},
        {"GET", USAGE "?from=2026-02-02&to=2026-02-01", NULL, 422, "not be later than"},
        {"GET", USAGE "?by=hour", NULL, 422, "by must be day, agent, model or workspace"},
        {"GET", USAGE "?month=1", NULL, 400, "there is no parameter 'month' here"},

        {"GET", MEMORIES "?offset=-1", NULL, 422, "must not be negative"},
        {"GET", MEMORIES "?offset=one", NULL, 400, "offset must be a number"},
        {"POST", MEMORIES, "{", 400, "INVALID_INPUT"},
        {"POST", MEMORIES, "[]", 400, "send an object with key"},
        {"POST", MEMORIES, "{\"content\":\"c\"}", 400, "send an object with key"},
        {"POST", MEMORIES, "{\"key\":1}", 422, "key must be a string, not"},
        {"POST", MEMORIES, "{\"key\":\"\"}", 422, "key is required"},
        {"POST", MEMORIES, "{\"key\":\"k\",\"key\":\"l\"}", 400, "key"},
        {"POST", MEMORIES "?category=c", "{}", 400, "there is no parameter 'category' here"},
        {"DELETE", MEMORIES "/%FF", NULL, 400, "the key in the path is not valid text"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(rows[i].method, rows[i].path, "acme", rows[i].body, rows[i].status,
                       rows[i].says);
}

static void a_body_of_another_type_is_refused(void **state) {
    (void)state;
    struct exchange *x = fake_new(loop, "POST", MEMORIES);
    fake_field(x, "authorization", "Bearer acme");
    fake_field(x, "content-type", "text/plain");
    fake_start(x, serve, site);
    fake_body(x, STR("{}"));
    fake_body_end(x);
    fake_settle(loop);
    assert_int_equal(fake_status(x), 400);
    fake_free(x);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_route_is_refused_without_a_token),
        TEST(a_scheme_that_is_no_bearer_is_no_token),
        TEST(without_a_token_of_the_operators_this_machine_may_see_all),
        TEST(a_token_that_was_not_required_narrows_the_view),
        TEST(a_token_opens_its_workspace_and_no_other),
        TEST(a_token_of_a_user_shows_that_user_alone),
        TEST(the_daemon_is_not_shown_to_a_single_user),
        TEST(names_that_are_too_long_are_no_callers),
        TEST(while_it_starts_nothing_is_served),
        TEST(while_it_stops_only_reading_is_served),
        TEST(a_stop_between_head_and_body_counts),
        TEST(what_cannot_be_meant_is_refused_with_its_reason),
        TEST(a_body_of_another_type_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
