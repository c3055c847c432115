/* HTTP requests by table: the order of the checks, what every answer carries, bodies cut
 * anywhere, event streams, and that a watcher is told of the end exactly once. The ids are rows
 * of the fault table. */
#include "route/answer.h"
#include "route/route.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"

#include <stdio.h>

#define BODY_MAX_BYTES 64

static struct loop *loop;
static struct route_site *site;
static struct buf seen;
static struct route_call *call; /* the newest that a handler was called with */
static bool guard_refuses;
static enum route_entry guard_says;

static void say(const char *word) {
    if (seen.len) buf_append_byte(&seen, ' ');
    buf_append(&seen, str_from(word));
}

static void seen_is(const char *expected) {
    assert_str(buf_str(&seen), expected);
    buf_clear(&seen);
}

/* --- handlers ---------------------------------------------------------------------------- */

static void on_left(void *ctx) {
    assert_ptr_equal(ctx, &seen);
    say("left");
    call = NULL;
}

static void on_drained(void *ctx) {
    assert_ptr_equal(ctx, &seen);
    say("drained");
}

static void on_stopping(void *ctx) {
    assert_ptr_equal(ctx, &seen);
    say("stopping");
}

static void on_closed(void *ctx) {
    assert_ptr_equal(ctx, &seen);
    say("closed");
    call = NULL;
}

static const struct route_watch watch = {
    .left = on_left, .drained = on_drained, .stopping = on_stopping, .closed = on_closed};

/* Answer at once with the body. */
static void echo(struct route_call *it, void *ctx) {
    assert_ptr_equal(ctx, &loop);
    say("echo");
    route_reply(it, 200, STR("application/json"), lent_read(route_body(it)));
}

static void (*in_later)(struct route_call *it); /* what else a test wants there */

/* Answer later; the test does. */
static void later(struct route_call *it, void *ctx) {
    assert_ptr_equal(ctx, &loop);
    say("later");
    if (in_later) in_later(it);
    call = it;
    route_watch(it, &watch, &seen);
}

static enum route_entry guard(struct route_call *it, const struct route *row, void *ctx,
                              struct route_failure *ret) {
    assert_ptr_equal(ctx, &loop);
    assert_int_equal(row->door, ROUTE_GUARDED);
    struct str token = lent_read(route_header(it, STR("authorization")));
    say("guard");
    if (!guard_refuses && token.at) route_caller(it, token, STR_EMPTY);
    if (!guard_refuses) return guard_says;
    route_field(it, STR("www-authenticate"), STR("Bearer"));
    *ret = (struct route_failure){401, STR("UNAUTHORIZED"), STR("Missing bearer token"),
                                  STR("{\"hint\":1}")};
    return ENTRY_REFUSED;
}

static void shouted_failure(const struct route_failure *failure, struct buf *out) {
    buf_printf(out, "!" STR_FMT ": " STR_FMT, STR_ARG(failure->code),
               STR_ARG(failure->message));
}

/* clang-format off */
static const struct route first_rows[] = {
    {STR_INIT("GET"),  STR_INIT("/health"), echo,  ROUTE_OPEN,    ROUTE_HEAD},
    {STR_INIT("POST"), STR_INIT("/invoke"), echo,  ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/later"),  later, ROUTE_OPEN,    ROUTE_JSON},
    {STR_INIT("GET"),  STR_INIT("/later"),  later, ROUTE_OPEN,    ROUTE_PLAIN},
    {STR_INIT("GET"),  STR_INIT("/page/"),  echo,  ROUTE_GUARDED, ROUTE_HEAD | ROUTE_VISIT},
    {STR_INIT("GET"),  STR_INIT("/part"),   echo,  ROUTE_GUARDED, ROUTE_HEAD},
};
static const struct route last_rows[] = {
    {STR_INIT("GET"),  STR_INIT("/admin"),  echo,  ROUTE_OPEN,    ROUTE_PLAIN},
    {STR_INIT("GET"),  STR_INIT("/invoke"), echo,  ROUTE_OPEN,    ROUTE_PLAIN}, /* the first table has it */
};
static const struct field first_always[] = {
    {STR_INIT("x-version"), STR_INIT("1")},
};
static const struct field last_always[] = {
    {STR_INIT("x-last"), STR_INIT("yes")},
};
/* clang-format on */

static const struct route_table first = {
    .rows = first_rows,
    .row_count = ARRAY_LEN(first_rows),
    .always = first_always,
    .always_count = ARRAY_LEN(first_always),
    .body_max_bytes = BODY_MAX_BYTES,
    .body_stretch_ms = 10000,
    .body_stretch_bytes = 10,
    .guard = guard,
    .ctx = &loop,
};

static const struct route_table last = {
    .rows = last_rows,
    .row_count = ARRAY_LEN(last_rows),
    .always = last_always,
    .always_count = ARRAY_LEN(last_always),
    .body_max_bytes = BODY_MAX_BYTES,
    .failure_body = shouted_failure,
    .ctx = &loop,
};

static const struct route_table *const tables[] = {&first, &last};

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    site = route_site_new(loop, tables, ARRAY_LEN(tables));
    buf_init(&seen, 1 * MIB);
    call = NULL;
    guard_refuses = false;
    guard_says = ENTRY_PROVED;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    route_site_free(site);
    loop_free(loop);
    buf_done(&seen);
    return 0;
}

/* --- the client -------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

static struct exchange *request(const char *method, const char *path) {
    struct exchange *x = fake_new(loop, method, path);
    fake_http(x, EXCHANGE_HTTP_1_1);
    return x;
}

static void start(struct exchange *x) {
    fake_start(x, serve, site);
}

/* A request with a body, up to its end. */
static struct exchange *asked(const char *method, const char *path, const char *body) {
    struct exchange *x = request(method, path);
    start(x);
    if (*body) fake_body(x, str_from(body));
    fake_body_end(x);
    return x;
}

static void done(struct exchange *x) {
    fake_settle(loop);
    assert_true(fake_closed(x));
    assert_int_equal(fake_unconsumed(x), 0);
    fake_free(x);
}

static void answered(struct exchange *x, int status, const char *body) {
    assert_int_equal(fake_status(x), status);
    assert_true(fake_ended(x));
    fake_settle(loop);
    assert_str(fake_sent(x), body);
    char len[24];
    snprintf(len, sizeof(len), "%zu", strlen(body));
    assert_str(fake_value(fake_head(x), "content-length"), len);
    assert_str(fake_value(fake_head(x), "content-type"), "application/json");
}

/* --- states ------------------------------------------------------------------------------ */

static void every_pair_of_states_is_allowed_or_not(void **state) {
    (void)state;
    static const bool allowed[ANSWER_STATE_COUNT][ANSWER_STATE_COUNT] = {
        [ANSWER_COLLECTING] =
            {[ANSWER_HANDLING] = true, [ANSWER_ANSWERED] = true, [ANSWER_GONE] = true},
        [ANSWER_HANDLING] =
            {[ANSWER_STREAMING] = true, [ANSWER_ANSWERED] = true, [ANSWER_GONE] = true},
        [ANSWER_STREAMING] = {[ANSWER_ANSWERED] = true, [ANSWER_GONE] = true},
        [ANSWER_ANSWERED] = {[ANSWER_GONE] = true, [ANSWER_CLOSED] = true},
        [ANSWER_GONE] = {[ANSWER_CLOSED] = true},
    };
    for (unsigned from = 0; from < ANSWER_STATE_COUNT; from++) {
        for (unsigned to = 0; to < ANSWER_STATE_COUNT; to++)
            assert_int_equal(states_allow(answer_states, from, to), allowed[from][to]);
        assert_true(states_name(answer_states, from).len > 0);
    }
}

/* --- path and method (P9) ---------------------------------------------------------------- */

static void a_request_is_answered_by_the_row_of_its_path_and_method(void **state) {
    (void)state;
    struct exchange *x = asked("POST", "/invoke?x=1", "{}");
    answered(x, 200, "{}");
    assert_str(fake_value(fake_head(x), "x-version"), "1");
    seen_is("guard echo");
    done(x);

    x = asked("GET", "/admin", "");
    answered(x, 200, "");
    assert_str(fake_value(fake_head(x), "x-last"), "yes");
    assert_null(fake_value(fake_head(x), "x-version").at);
    done(x);
}

static void an_unknown_path_is_404_by_the_last_table(void **state) {
    (void)state;
    static const char *const paths[] = {"/cancel",  "/metrics", "/runs/x", "/Health",
                                        "/health/", "*",        ""};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct exchange *x = asked("POST", paths[i], "{}");
        char body[64];
        snprintf(body, sizeof(body), "!NOT_FOUND: there is nothing at %s", paths[i]);
        answered(x, 404, body);
        assert_str(fake_value(fake_head(x), "x-last"), "yes");
        done(x);
    }
    seen_is("");
}

static void a_wrong_method_is_405_with_the_allowed_ones(void **state) {
    (void)state;
    static const struct {
        const char *method, *path, *allow;
    } rows[] = {
        {"POST", "/health", "GET, HEAD"},   {"GET", "/invoke", "POST"},
        {"OPTIONS", "/later", "POST, GET"}, {"HEAD", "/invoke", "POST"},
        {"get", "/health", "GET, HEAD"},    {"DELETE", "/admin", "GET"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request(rows[i].method, rows[i].path);
        start(x);
        assert_int_equal(fake_status(x), 405);
        assert_str(fake_value(fake_head(x), "allow"), rows[i].allow);
        done(x);
    }
    struct exchange *x = asked("PUT", "/health", "");
    answered(x, 405,
             "{\"error\":{\"code\":\"METHOD_NOT_ALLOWED\",\"message\":"
             "\"/health does not take PUT; it takes GET, HEAD\"}}");
    done(x);
    seen_is("");
}

static void head_is_answered_like_get_without_the_body(void **state) {
    (void)state;
    struct exchange *x = request("HEAD", "/health");
    start(x);
    fake_body_end(x);
    assert_int_equal(fake_status(x), 200);
    assert_str(fake_value(fake_head(x), "content-length"), "0");
    seen_is("echo");
    done(x);

    x = request("HEAD", "/nothing");
    start(x);
    fake_settle(loop);
    assert_int_equal(fake_status(x), 404);
    assert_str(fake_value(fake_head(x), "content-length"), "40");
    assert_str(fake_sent(x), "");
    done(x);
}

/* --- guard and body (P7) ----------------------------------------------------------------- */

static void a_refusal_of_the_guard_comes_before_the_body_is_read(void **state) {
    (void)state;
    guard_refuses = true;
    struct exchange *x = request("POST", "/invoke");
    fake_field(x, "content-type", "text/plain");
    fake_field(x, "content-length", "8388608");
    start(x);
    answered(x, 401,
             "{\"error\":{\"code\":\"UNAUTHORIZED\",\"message\":\"Missing bearer token\","
             "\"details\":{\"hint\":1}}}");
    assert_str(fake_value(fake_head(x), "www-authenticate"), "Bearer");
    assert_str(fake_value(fake_head(x), "x-version"), "1");
    done(x);
    seen_is("guard");
}

/* --- rates -------------------------------------------------------------------------------- */

static int status_of(const char *path, const char *token, const char *retry_after) {
    struct exchange *x = request("GET", path);
    fake_field(x, "authorization", token);
    start(x);
    fake_body_end(x);
    int status = fake_status(x);
    if (retry_after) assert_str(fake_value(fake_head(x), "retry-after"), retry_after);
    done(x);
    return status;
}

static void an_address_is_counted_before_the_guard_and_a_token_after_it(void **state) {
    (void)state;
    struct rate_limits *rates = rate_limits_new((struct rate_limit[RATE_SCOPES]){
        [RATE_ADDRESS] = {4, 3600000}, [RATE_TOKEN] = {1, 1000}});
    route_site_rates(site, rates);
    for (int i = 0; i < 10; i++) assert_int_equal(status_of("/health", "a", NULL), 200);
    buf_clear(&seen);
    assert_int_equal(status_of("/part", "a", NULL), 200);
    assert_int_equal(status_of("/part", "a", "1"), 429);
    guard_refuses = true;
    assert_int_equal(status_of("/part", "b", NULL), 401);
    guard_refuses = false;
    assert_int_equal(status_of("/part", "b", NULL), 200); /* the refusal took nothing of it */
    seen_is("guard echo guard guard guard echo");
    assert_int_equal(status_of("/part", "c", "900"), 429);
    seen_is(""); /* the guard was not asked */
    route_site_rates(site, NULL);
    assert_int_equal(status_of("/part", "a", NULL), 200);
    buf_clear(&seen);
    rate_limits_free(rates);
}

/* --- pages (K6) -------------------------------------------------------------------------- */

static struct exchange *from_page(const char *method, const char *path, const char *origin) {
    struct exchange *x = request(method, path);
    fake_listener(x, REACH_LOOPBACK, "localhost:8080");
    if (origin) fake_field(x, "origin", origin);
    return x;
}

static void finished(struct exchange *x) {
    fake_body_end(x);
    done(x);
}

static void a_page_of_another_place_is_refused_where_no_token_was_asked_for(void **state) {
    (void)state;
    guard_says = ENTRY_TRUSTED;
    struct exchange *x = from_page("POST", "/invoke", "http://evil.example");
    start(x);
    answered(
        x, 403,
        "{\"error\":{\"code\":\"FORBIDDEN\",\"message\":\"a web page of "
        "http://evil.example may not use this listener; add its origin to http.origins, or, "
        "if it is not a page, leave Origin and Sec-Fetch-Site out\"}}");
    assert_null(fake_value(fake_head(x), "access-control-allow-origin").at);
    finished(x);
    seen_is("guard");
}

static void a_name_that_is_not_ours_is_refused_there_too(void **state) {
    (void)state;
    guard_says = ENTRY_TRUSTED;
    struct exchange *x = request("POST", "/invoke");
    fake_listener(x, REACH_LOOPBACK, "evil.example:8080");
    start(x);
    answered(
        x, 403,
        "{\"error\":{\"code\":\"FORBIDDEN\",\"message\":\"'evil.example:8080' is not a name "
        "of this listener, and without a token it answers only to its own; add the name to "
        "http.hosts, or set AGENT_AUTH_TOKEN\"}}");
    finished(x);
    seen_is("guard");
}

static void a_caller_with_a_token_and_an_open_row_take_any_page(void **state) {
    (void)state;
    struct exchange *x = from_page("POST", "/invoke", "http://evil.example");
    start(x);
    finished(x);
    seen_is("guard echo");
    guard_says = ENTRY_TRUSTED;
    x = from_page("GET", "/health", "null");
    start(x);
    finished(x);
    seen_is("echo");
}

/* A person follows a link; a page that fetches or frames the same is no visit. */
static void a_link_from_another_site_may_lead_to_a_page(void **state) {
    (void)state;
    static const struct {
        const char *path, *origin, *mode, *destination;
        int status;
    } rows[] = {
        {"/page/", NULL, "navigate", "document", 200},
        {"/page/", NULL, "navigate", "iframe", 403},
        {"/page/", NULL, "cors", "empty", 403},
        {"/page/", NULL, "no-cors", "document", 403},
        {"/page/", "http://evil.example", "navigate", "document", 403},
        {"/part", NULL, "navigate", "document", 403},
    };
    guard_says = ENTRY_TRUSTED;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = from_page("GET", rows[i].path, rows[i].origin);
        fake_field(x, "sec-fetch-site", "cross-site");
        fake_field(x, "sec-fetch-mode", rows[i].mode);
        fake_field(x, "sec-fetch-dest", rows[i].destination);
        start(x);
        fake_body_end(x);
        assert_int_equal(fake_status(x), rows[i].status);
        done(x);
    }
    struct exchange *x = request("GET", "/page/"); /* the name must be ours still */
    fake_listener(x, REACH_LOOPBACK, "evil.example");
    fake_field(x, "sec-fetch-mode", "navigate");
    fake_field(x, "sec-fetch-dest", "document");
    start(x);
    fake_body_end(x);
    assert_int_equal(fake_status(x), 403);
    done(x);
    buf_clear(&seen);
}

static const struct str studio = STR_INIT("https://studio.example");
static const struct page_rules studio_rules = {.origins = {&studio, 1}};

static void a_listed_page_is_answered_so_that_its_browser_shows_it(void **state) {
    (void)state;
    guard_says = ENTRY_TRUSTED;
    route_site_pages(site, &studio_rules);
    struct exchange *x = from_page("POST", "/invoke", "https://studio.example");
    start(x);
    fake_body_end(x);
    assert_str(fake_value(fake_head(x), "access-control-allow-origin"),
               "https://studio.example");
    assert_str(fake_value(fake_head(x), "vary"), "origin");
    done(x);
    seen_is("guard echo");
}

static bool lists_app(struct str origin, void *ctx) {
    assert_ptr_equal(ctx, &loop);
    return str_equal(origin, STR("crawbl://app"));
}

static void a_table_may_list_pages_of_its_own(void **state) {
    (void)state;
    struct route_table table = first;
    const struct route_table *const both[] = {&table, &last};
    table.lists_origin = lists_app;
    struct route_site *other = route_site_new(loop, both, ARRAY_LEN(both));
    guard_says = ENTRY_TRUSTED;
    struct exchange *x = from_page("POST", "/invoke", "crawbl://app");
    fake_field(x, "sec-fetch-site", "cross-site");
    fake_start(x, serve, other);
    fake_body_end(x);
    assert_int_equal(fake_status(x), 200);
    assert_str(fake_value(fake_head(x), "access-control-allow-origin"), "crawbl://app");
    assert_str(fake_value(fake_head(x), "access-control-allow-credentials"), "true");
    done(x);
    seen_is("guard echo");

    x = from_page("POST", "/invoke", "crawbl://other");
    fake_start(x, serve, other);
    assert_int_equal(fake_status(x), 403);
    finished(x);
    x = from_page("GET", "/admin", "crawbl://app"); /* of the other table */
    fake_start(x, serve, other);
    finished(x);
    seen_is("guard echo");

    x = from_page("POST", "/invoke", "crawbl://app"); /* the host must be ours still */
    fake_listener(x, REACH_LOOPBACK, "evil.example");
    fake_start(x, serve, other);
    assert_int_equal(fake_status(x), 403);
    finished(x);
    seen_is("guard");
    route_site_free(other);
}

static struct exchange *preflight(const char *path, const char *origin) {
    struct exchange *x = from_page("OPTIONS", path, origin);
    fake_field(x, "access-control-request-method", "POST");
    fake_field(x, "access-control-request-headers", "authorization,content-type");
    start(x);
    return x;
}

static void a_preflight_of_a_listed_page_needs_no_token(void **state) {
    (void)state;
    guard_refuses = true;
    route_site_pages(site, &studio_rules);
    struct exchange *x = preflight("/invoke", "https://studio.example");
    assert_int_equal(fake_status(x), 204);
    assert_str(fake_value(fake_head(x), "access-control-allow-origin"),
               "https://studio.example");
    assert_str(fake_value(fake_head(x), "access-control-allow-methods"), "POST");
    assert_str(fake_value(fake_head(x), "access-control-allow-headers"),
               "authorization,content-type");
    assert_str(fake_sent(x), "");
    finished(x);
    x = preflight("/invoke", "http://evil.example");
    assert_int_equal(fake_status(x), 403);
    finished(x);
    x = preflight("/health", "http://evil.example");
    assert_int_equal(fake_status(x), 405);
    finished(x);
    seen_is("");
}

static void what_may_come_once_and_comes_twice_is_400(void **state) {
    (void)state;
    static const char *const names[] = {"authorization",   "content-type", "x-session-id",
                                        "idempotency-key", "origin",       "host"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct exchange *x = request("POST", "/invoke");
        fake_field(x, names[i], "one");
        fake_field(x, "x-other", "a");
        fake_field(x, "x-other", "b");
        fake_field(x, names[i], "one");
        start(x);
        assert_int_equal(fake_status(x), 400);
        assert_str(fake_value(fake_head(x), "x-version"), "1");
        finished(x);
    }
    seen_is("");
}

static void a_row_that_does_not_say_who_may_come_in_is_none(void **state) {
    (void)state;
    static const struct route silent[] = {
        {.method = STR_INIT("GET"), .path = STR_INIT("/x"), .handle = echo}};
    static const struct route guarded[] = {{.method = STR_INIT("GET"),
                                            .path = STR_INIT("/x"),
                                            .handle = echo,
                                            .door = ROUTE_GUARDED}};
    struct route_table table = {.rows = silent, .row_count = 1, .guard = guard};
    assert_false(route_table_ok(&table));
    table.rows = guarded;
    assert_true(route_table_ok(&table));
    table.guard = NULL;
    assert_false(route_table_ok(&table));
    assert_true(route_table_ok(&first));
}

static struct exchange *refused_over_http2(void) {
    struct exchange *x = request("POST", "/nowhere");
    fake_http(x, EXCHANGE_HTTP_2);
    start(x);
    assert_int_equal(fake_status(x), 404);
    fake_settle(loop);
    assert_true(fake_sent(x).len > 0);
    assert_false(fake_ended(x));
    return x;
}

static void a_refused_http2_peer_is_drained_for_a_limited_time(void **state) {
    (void)state;
    static char story[64 * KIB];
    struct exchange *x = refused_over_http2();
    fake_body(x, STR("a short story"));
    finished(x);

    x = refused_over_http2();
    loop_advance(loop, 9999);
    assert_false(fake_ended(x));
    loop_advance(loop, 1);
    assert_true(fake_ended(x));
    done(x);

    x = refused_over_http2();
    fake_body(x, str_of(story, sizeof(story)));
    assert_false(fake_ended(x));
    fake_body(x, STR("!"));
    assert_true(fake_ended(x));
    done(x);

    x = refused_over_http2();
    route_site_stop(site);
    assert_true(fake_ended(x));
    done(x);

    x = refused_over_http2();
    fake_leave(x);
    done(x);
    seen_is("");
}

static void a_body_that_is_too_large_is_not_read_to_its_end(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/later");
    fake_http(x, EXCHANGE_HTTP_2);
    fake_field(x, "content-length", "65");
    start(x);
    assert_int_equal(fake_status(x), 413);
    assert_true(fake_ended(x));
    done(x);
}

static void a_json_body_may_name_its_type_in_several_ways(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int status;
    } rows[] = {
        {NULL, 200},
        {"", 200},
        {"application/json", 200},
        {"Application/JSON; charset=utf-8", 200},
        {" application/json ;x", 200},
        {"application/problem+json", 200},
        {"application/vnd.api+JSON;v=1", 200},
        {"text/plain", 400},
        {"application/x-www-form-urlencoded", 400},
        {"application/jsonp", 400},
        {"+json", 400},
        {"; charset=utf-8", 400},
        {"json", 400},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request("POST", "/later");
        if (rows[i].type) fake_field(x, "content-type", rows[i].type);
        start(x);
        fake_body_end(x);
        if (rows[i].status == 200) route_reply(call, 200, STR("application/json"), STR("{}"));
        assert_int_equal(fake_status(x), rows[i].status);
        seen_is(rows[i].status == 200 ? "later" : "");
        done(x);
        buf_clear(&seen);
    }
}

static void a_refused_type_is_named_and_a_row_without_json_does_not_care(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/later");
    fake_field(x, "content-type", "text/\"plain\"");
    start(x);
    answered(x, 400,
             "{\"error\":{\"code\":\"INVALID_INPUT\",\"message\":\"the content type is "
             "text/\\\"plain\\\"; send application/json\"}}");
    done(x);

    x = request("GET", "/health");
    fake_field(x, "content-type", "text/plain");
    start(x);
    fake_body_end(x);
    answered(x, 200, "");
    done(x);
}

#define TOO_LARGE                                                                              \
    "{\"error\":{\"code\":\"PAYLOAD_TOO_LARGE\",\"message\":"                                  \
    "\"the body is larger than 64 bytes\"}}"

static void a_body_that_says_it_is_too_large_is_not_read(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/invoke");
    fake_field(x, "content-length", "65");
    start(x);
    answered(x, 413, TOO_LARGE);
    done(x);
    seen_is("guard");

    x = request("POST", "/invoke");
    fake_field(x, "content-length", "64");
    start(x);
    assert_int_equal(fake_status(x), 0);
    fake_leave(x);
    done(x);
}

static void a_body_that_grows_too_large_is_cut_off(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/invoke");
    start(x);
    char bytes[BODY_MAX_BYTES];
    memset(bytes, ' ', sizeof(bytes));
    fake_body(x, str_of(bytes, sizeof(bytes)));
    assert_int_equal(fake_status(x), 0);
    fake_body(x, str_of(bytes, 1));
    fake_body(x, str_of(bytes, sizeof(bytes)));
    fake_body_end(x);
    answered(x, 413, TOO_LARGE);
    assert_str(fake_value(fake_head(x), "x-version"), "1");
    done(x);
    seen_is("guard");
}

/* P8 */
static void a_body_that_drips_is_answered_408(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/invoke");
    start(x);
    loop_advance(loop, 9999);
    fake_body(x, STR("0123456789")); /* just enough for the first stretch */
    loop_advance(loop, 10000);
    assert_int_equal(fake_status(x), 0);
    fake_body(x, STR("012345678"));
    loop_advance(loop, 10000);
    answered(x, 408,
             "{\"error\":{\"code\":\"REQUEST_TIMEOUT\",\"message\":\"the body came slower "
             "than 10 bytes in 10000 ms\"}}");
    done(x);
    seen_is("guard");
}

static void a_body_in_time_leaves_its_handler_all_the_time(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/later");
    start(x);
    loop_advance(loop, 9000);
    fake_body(x, STR("{}"));
    fake_body_end(x);
    loop_advance(loop, 100000);
    assert_int_equal(fake_status(x), 0);
    fake_leave(x);
    done(x);
}

static void a_body_is_the_same_however_it_is_cut(void **state) {
    (void)state;
    struct str body = STR("{\"input\":\"hello\"}");
    for (size_t cut = 0; cut <= body.len; cut++) {
        struct exchange *x = request("POST", "/invoke");
        start(x);
        fake_body(x, str_head(body, cut));
        assert_int_equal(fake_unconsumed(x), 0);
        fake_body(x, str_skip(body, cut));
        fake_body_end(x);
        answered(x, 200, body.at);
        done(x);
        seen_is("guard echo");
    }
}

/* --- answers ----------------------------------------------------------------------------- */

static void look_at_the_request(struct route_call *it) {
    assert_str(lent_read(route_header(it, STR("x-session-id"))), "s1");
    assert_null(lent_read(route_header(it, STR("x-nothing"))).at);
    assert_str(lent_read(route_body(it)), "{}");
    assert_false(fake_forgotten(route_exchange(it)));
}

static void headers_and_body_are_lent_until_the_handler_returns(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/later");
    fake_field(x, "x-session-id", "  s1 ");
    start(x);
    fake_body(x, STR("{}"));
    in_later = look_at_the_request;
    fake_body_end(x);
    in_later = NULL;
    assert_true(fake_forgotten(x));
    assert_int_equal(lent_read(route_body(call)).len, 0);
    assert_null(lent_read(route_header(call, STR("x-session-id"))).at);
    route_reply(call, 204, STR_EMPTY, STR_EMPTY);
    done(x);
    seen_is("later closed");
}

static void an_answer_may_come_later(void **state) {
    (void)state;
    struct exchange *x = asked("POST", "/later", "{}");
    assert_ptr_equal(route_exchange(call), x);
    assert_ptr_equal(route_loop(call), loop);
    fake_settle(loop);
    char value[] = "copied";
    route_field(call, STR("x-extra"), str_from(value));
    memset(value, '?', sizeof(value) - 1);
    route_reply(call, 202, STR("application/json"), STR("[1]"));
    answered(x, 202, "[1]");
    assert_str(fake_value(fake_head(x), "x-extra"), "copied");
    done(x);
    seen_is("later closed");
}

/* A request that looks again for what it waits for says again what it said. */
static void a_field_that_is_said_again_comes_once(void **state) {
    (void)state;
    struct exchange *x = asked("GET", "/later", "");
    for (int i = 0; i < 100; i++) route_field(call, STR("x-session-id"), STR("first"));
    route_field(call, STR("X-Session-Id"), STR("second"));
    route_reply(call, 204, STR_EMPTY, STR_EMPTY);
    assert_str(fake_head(x), "x-version: 1\nx-session-id: second\n");
    done(x);
    seen_is("later closed");
}

static void a_handler_may_fail_in_the_tables_shape(void **state) {
    (void)state;
    struct exchange *x = asked("POST", "/later", "{");
    route_fail(call, &(struct route_failure){503, STR("AGENT_NOT_LOADED"),
                                             STR("Agent not loaded yet"), STR_EMPTY});
    answered(
        x, 503,
        "{\"error\":{\"code\":\"AGENT_NOT_LOADED\",\"message\":\"Agent not loaded yet\"}}");
    done(x);
    seen_is("later closed");
}

static void an_answer_without_content_says_no_length(void **state) {
    (void)state;
    struct exchange *x = asked("GET", "/later", "");
    route_reply(call, 204, STR_EMPTY, STR_EMPTY);
    assert_str(fake_head(x), "x-version: 1\n");
    done(x);
    seen_is("later closed");
}

/* --- event streams (K5, S4) -------------------------------------------------------------- */

static struct exchange *streaming(enum exchange_http http) {
    struct exchange *x = request("GET", "/later");
    fake_http(x, http);
    start(x);
    fake_body_end(x);
    route_sse_begin(call);
    buf_clear(&seen);
    return x;
}

static void an_event_stream_says_keep_alive_on_http_1_1_only(void **state) {
    (void)state;
    static const struct {
        enum exchange_http http;
        const char *connection;
    } rows[] = {{EXCHANGE_HTTP_1_0, ""},
                {EXCHANGE_HTTP_1_1, "connection: keep-alive\n"},
                {EXCHANGE_HTTP_2, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = streaming(rows[i].http);
        assert_int_equal(fake_status(x), 200);
        char head[160];
        snprintf(head, sizeof(head),
                 "x-version: 1\ncontent-type: text/event-stream\ncache-control: no-cache\n"
                 "x-accel-buffering: no\n%s",
                 rows[i].connection);
        assert_str(fake_head(x), head);
        route_sse_end(call);
        done(x);
        seen_is("closed");
    }
}

static void events_leave_as_they_are_said(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_1_1);
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("{\"delta\":\"hello \"}"));
    fake_settle(loop);
    assert_str(fake_sent(x), "data: {\"delta\":\"hello \"}\n\n");
    route_sse_comment(call, STR("keep-alive"));
    route_sse_event(call, STR("step"), STR("1-7"), STR("{}"));
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("[DONE]"));
    route_sse_end(call);
    fake_settle(loop);
    assert_str(fake_sent(x), "data: {\"delta\":\"hello \"}\n\n: keep-alive\n\n"
                             "id: 1-7\nevent: step\ndata: {}\n\ndata: [DONE]\n\n");
    done(x);
    seen_is("closed");
}

static void what_is_gathered_leaves_together(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_1_1);
    fake_settle(loop);
    route_gather(call);
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("1"));
    route_sse_comment(call, STR("2"));
    size_t begin = route_sse_out(call)->len;
    buf_append(route_sse_out(call), STR("data: 3\n\n"));
    route_sse_wrote(call, begin);
    fake_settle(loop);
    assert_str(fake_sent(x), "");
    assert_int_equal(route_queued(call), 23);
    route_leave_now(call);
    fake_settle(loop);
    assert_str(fake_sent(x), "data: 1\n\n: 2\n\ndata: 3\n\n");
    route_gather(call);
    route_leave_now(call); /* nothing was written */
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("4"));
    route_sse_end(call);
    fake_settle(loop);
    assert_str(fake_sent(x), "data: 1\n\n: 2\n\ndata: 3\n\ndata: 4\n\n");
    done(x);
    seen_is("closed");
}

static void what_is_gathered_and_does_not_fit_cuts_the_reader_off(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_1_1);
    char *data = malloc(FAKE_QUEUE_BYTES);
    memset(data, 'x', FAKE_QUEUE_BYTES);
    fake_stop_reading(x);
    route_gather(call);
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("whole"));
    route_sse_event(call, STR_EMPTY, STR_EMPTY, str_of(data, FAKE_QUEUE_BYTES));
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("in vain"));
    route_leave_now(call);
    fake_settle(loop);
    seen_is("left");
    assert_int_equal(fake_aborted(x), ABORT_ENHANCE_CALM);
    free(data);
    done(x);
}

static void a_stream_hears_when_it_drained_and_how_long_it_stalls(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_2);
    fake_stop_reading(x);
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("x"));
    route_wake_at(call, 0);
    fake_settle(loop);
    loop_advance(loop, 1234);
    assert_int_equal(route_queued(call), 9);
    assert_int_equal(route_stalled_ms(call), 1234);
    fake_read_all(x);
    fake_settle(loop);
    seen_is("drained");
    route_sse_end(call);
    done(x);
    seen_is("closed");
}

static void an_event_that_does_not_fit_cuts_the_reader_off_before_it(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_1_1);
    char *data = malloc(FAKE_QUEUE_BYTES);
    memset(data, 'x', FAKE_QUEUE_BYTES);
    fake_stop_reading(x);
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("whole"));
    route_sse_event(call, STR_EMPTY, STR_EMPTY, str_of(data, FAKE_QUEUE_BYTES));
    assert_int_equal(route_queued(call), 13);
    seen_is("");
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("in vain"));
    route_sse_comment(call, STR("in vain"));
    fake_settle(loop);
    seen_is("left");
    assert_int_equal(fake_aborted(x), ABORT_ENHANCE_CALM);
    free(data);
    done(x);
}

/* --- a body in pieces --------------------------------------------------------------------- */

static struct exchange *sending_lines(enum exchange_http http) {
    struct exchange *x = request("GET", "/later");
    fake_http(x, http);
    start(x);
    fake_body_end(x);
    route_field(call, STR("x-of-its-own"), STR("yes"));
    route_pieces_begin(call, STR("application/x-ndjson"));
    buf_clear(&seen);
    return x;
}

static void pieces_leave_as_they_are_said_under_their_own_type(void **state) {
    (void)state;
    struct exchange *x = sending_lines(EXCHANGE_HTTP_2);
    assert_int_equal(fake_status(x), 200);
    assert_str(fake_head(x), "x-version: 1\nx-of-its-own: yes\n"
                             "content-type: application/x-ndjson\ncache-control: no-cache\n"
                             "x-accel-buffering: no\n");
    route_piece(call, STR("{\"a\":1}\n{\"b"));
    fake_settle(loop);
    assert_str(fake_sent(x), "{\"a\":1}\n{\"b");
    route_piece(call, STR_EMPTY);
    route_piece(call, STR("\":2}\n"));
    assert_false(fake_ended(x));
    route_sse_end(call);
    fake_settle(loop);
    assert_str(fake_sent(x), "{\"a\":1}\n{\"b\":2}\n");
    assert_true(fake_ended(x));
    done(x);
    seen_is("closed");
}

static void a_piece_that_does_not_fit_cuts_the_reader_off_before_it(void **state) {
    (void)state;
    struct exchange *x = sending_lines(EXCHANGE_HTTP_1_1);
    char *line = malloc(FAKE_QUEUE_BYTES);
    memset(line, 'x', FAKE_QUEUE_BYTES);
    fake_stop_reading(x);
    route_piece(call, STR("whole\n"));
    route_piece(call, str_of(line, FAKE_QUEUE_BYTES));
    assert_int_equal(route_queued(call), 6); /* nothing of it is there */
    route_piece(call, STR("in vain"));
    fake_settle(loop);
    seen_is("left");
    assert_int_equal(fake_aborted(x), ABORT_ENHANCE_CALM);
    assert_false(fake_ended(x));
    free(line);
    done(x);
}

static void a_peer_that_leaves_between_two_pieces_is_noticed(void **state) {
    (void)state;
    struct exchange *x = sending_lines(EXCHANGE_HTTP_1_1);
    route_piece(call, STR("one\n"));
    fake_leave(x);
    done(x);
    seen_is("left");
}

/* --- the end, exactly once (S6) ---------------------------------------------------------- */

static void a_peer_that_leaves_is_noticed_in_every_state(void **state) {
    (void)state;
    struct exchange *x = request("POST", "/later");
    start(x);
    fake_body(x, STR("{"));
    fake_leave(x);
    done(x);
    seen_is("");

    x = asked("POST", "/later", "{}");
    fake_leave(x);
    done(x);
    seen_is("later left");

    x = streaming(EXCHANGE_HTTP_1_1);
    fake_leave(x);
    done(x);
    seen_is("left");

    x = streaming(EXCHANGE_HTTP_1_1);
    fake_stop_reading(x);
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("x"));
    route_sse_end(call);
    fake_settle(loop);
    seen_is("");
    fake_leave(x);
    done(x);
    seen_is("left");
}

static void a_handler_may_cut_its_reader(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_1_1);
    route_cut(call);
    route_cut(call);
    seen_is("");
    route_sse_event(call, STR_EMPTY, STR_EMPTY, STR("in vain"));
    route_sse_end(call);
    done(x);
    seen_is("left");

    x = asked("GET", "/later", "");
    route_cut(call);
    route_reply(call, 200, STR("application/json"), STR("in vain"));
    assert_int_equal(fake_status(x), 0);
    done(x);
    seen_is("later left");
}

static void only_a_reader_that_does_not_read_is_told_that_it_asks_too_much(void **state) {
    (void)state;
    struct exchange *x = streaming(EXCHANGE_HTTP_2);
    route_cut(call);
    route_break(call);
    assert_int_equal(fake_aborted(x), ABORT_ENHANCE_CALM);
    done(x);
    seen_is("left");

    x = streaming(EXCHANGE_HTTP_2);
    route_break(call);
    route_cut(call);
    assert_int_equal(fake_aborted(x), ABORT_INTERNAL);
    done(x);
    seen_is("left");
}

static void a_site_tells_of_the_stop_and_cuts_what_is_still_open(void **state) {
    (void)state;
    struct exchange *collecting = request("POST", "/later");
    start(collecting);
    struct exchange *answered_already = asked("GET", "/health", "");
    fake_stop_reading(answered_already);
    struct exchange *open = asked("POST", "/later", "{}");
    route_site_stop(site);
    seen_is("echo later stopping");
    route_site_cut(site);
    seen_is("left");
    assert_int_equal(fake_aborted(collecting), ABORT_CANCEL);
    assert_int_equal(fake_aborted(open), ABORT_CANCEL);
    assert_int_equal(fake_aborted(answered_already), -1);
    route_site_cut(site);
    done(collecting);
    done(open);
    done(answered_already);
    seen_is("");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_states_is_allowed_or_not),
        TEST(a_request_is_answered_by_the_row_of_its_path_and_method),
        TEST(an_unknown_path_is_404_by_the_last_table),
        TEST(a_wrong_method_is_405_with_the_allowed_ones),
        TEST(head_is_answered_like_get_without_the_body),
        TEST(a_refusal_of_the_guard_comes_before_the_body_is_read),
        TEST(an_address_is_counted_before_the_guard_and_a_token_after_it),
        TEST(a_page_of_another_place_is_refused_where_no_token_was_asked_for),
        TEST(a_name_that_is_not_ours_is_refused_there_too),
        TEST(a_caller_with_a_token_and_an_open_row_take_any_page),
        TEST(a_link_from_another_site_may_lead_to_a_page),
        TEST(a_listed_page_is_answered_so_that_its_browser_shows_it),
        TEST(a_table_may_list_pages_of_its_own),
        TEST(a_preflight_of_a_listed_page_needs_no_token),
        TEST(what_may_come_once_and_comes_twice_is_400),
        TEST(a_row_that_does_not_say_who_may_come_in_is_none),
        TEST(a_refused_http2_peer_is_drained_for_a_limited_time),
        TEST(a_body_that_is_too_large_is_not_read_to_its_end),
        TEST(a_json_body_may_name_its_type_in_several_ways),
        TEST(a_refused_type_is_named_and_a_row_without_json_does_not_care),
        TEST(a_body_that_says_it_is_too_large_is_not_read),
        TEST(a_body_that_grows_too_large_is_cut_off),
        TEST(a_body_that_drips_is_answered_408),
        TEST(a_body_in_time_leaves_its_handler_all_the_time),
        TEST(a_body_is_the_same_however_it_is_cut),
        TEST(headers_and_body_are_lent_until_the_handler_returns),
        TEST(an_answer_may_come_later),
        TEST(a_field_that_is_said_again_comes_once),
        TEST(a_handler_may_fail_in_the_tables_shape),
        TEST(an_answer_without_content_says_no_length),
        TEST(an_event_stream_says_keep_alive_on_http_1_1_only),
        TEST(events_leave_as_they_are_said),
        TEST(what_is_gathered_leaves_together),
        TEST(what_is_gathered_and_does_not_fit_cuts_the_reader_off),
        TEST(a_stream_hears_when_it_drained_and_how_long_it_stalls),
        TEST(pieces_leave_as_they_are_said_under_their_own_type),
        TEST(a_piece_that_does_not_fit_cuts_the_reader_off_before_it),
        TEST(a_peer_that_leaves_between_two_pieces_is_noticed),
        TEST(an_event_that_does_not_fit_cuts_the_reader_off_before_it),
        TEST(a_peer_that_leaves_is_noticed_in_every_state),
        TEST(a_handler_may_cut_its_reader),
        TEST(only_a_reader_that_does_not_read_is_told_that_it_asks_too_much),
        TEST(a_site_tells_of_the_stop_and_cuts_what_is_still_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
