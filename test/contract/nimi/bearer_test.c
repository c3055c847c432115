/* Who a caller is: tokens, anonymous callers, the subject of a request, and calls that wait for
 * keys. The sample tokens are old, so the clock may differ by a lifetime here. */
#include "fixture.h"

#include "contract/nimi/bearer.h"
#include "contract/nimi/methods.h"
#include "fake/exchange_fake.h"
#include "fake/http_fake.h"
#include "fake/media_fake.h"
#include "fake/provider_fake.h"
#include "helper/jwt_samples.h"
#include "proto/nimi_connector.pb.h"

#define SERVICE "/nimi.runtime.v1.Runtime"
#define LIFETIME_S INT64_C(3000000000)
#define BEARER "Bearer "

static struct http_pool *pool;

static void with_issuer(const char *keys, const char *url) {
    const struct issuer_from from = {.name = STR(JWT_ISSUER),
                                     .audience = STR(JWT_AUDIENCE),
                                     .url = str_from(url),
                                     .keys = str_from(keys)};
    struct err e;
    if (!issuers_new(
            &(struct issuers_options){
                .issuers = &from, .count = 1, .skew_s = LIFETIME_S, .pause_ms = 3600000},
            &settings.issuers, &e))
        fail_msg("%s", e.text);
}

static int begin(void **state) {
    setup(state);
    pool = http_pool_new();
    instance.keys.pool = pool;
    connector.owner = STR("anna");
    return 0;
}

static int end(void **state) {
    fake_settle(loop);
    key_fetcher_leave(&instance.keys);
    fake_settle(loop);
    issuers_unref(settings.issuers);
    http_pool_free(pool);
    return teardown(state);
}

/* --- one call ----------------------------------------------------------------------------- */

/* A call with this token (NULL: none), started. */
static struct exchange *call(const char *method, const char *token) {
    char path[128], header[4096];
    snprintf(path, sizeof(path), SERVICE "%s", method);
    struct exchange *x = fake_new(loop, "POST", path);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "x-nimi-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-id", "demo.app");
    fake_field(x, "x-nimi-domain", "runtime.rpc");
    fake_field(x, "x-nimi-app-id", "demo.app");
    snprintf(header, sizeof(header), BEARER "%s", token ? token : "");
    if (token) fake_field(x, "authorization", header);
    fake_start(x, serve, site);
    return x;
}

/* ListConnectors on behalf of `owner`. */
static struct exchange *list(const char *token, const char *owner) {
    struct exchange *x = call("ConnectorService/ListConnectors", token);
    send_message(x, &nimi_wire_list_connectors_request_table,
                 &(struct nimi_wire_list_connectors_request){.owner_id = str_from(owner)});
    return x;
}

/* How many connectors it answers with. */
static size_t listed(struct exchange *x) {
    struct arena *arena = arena_new(MIB);
    struct nimi_wire_list_connectors_response said;
    struct str rest = fake_sent(x), message;
    struct err e;
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    assert_true(next_message(&rest, &message));
    assert_true(
        pb_decode_view(&nimi_wire_list_connectors_response_table, message, arena, &said, &e));
    size_t count = said.connectors_count;
    arena_free(arena);
    fake_free(x);
    return count;
}

/* --- without issuers ---------------------------------------------------------------------- */

static void without_issuers_callers_are_believed(void **state) {
    (void)state;
    assert_int_equal(listed(list(NULL, "anna")), 1);
    assert_int_equal(listed(list(NULL, "")), 0);
    refused(list(JWT_RSA_TOKEN, ""), "16", "AUTH_TOKEN_INVALID");
}

/* --- with issuers ------------------------------------------------------------------------- */

static void the_subject_is_the_tokens(void **state) {
    (void)state;
    with_issuer(JWT_KEYS, "");
    assert_int_equal(listed(list(JWT_RSA_TOKEN, "")), 1);
    assert_int_equal(listed(list(JWT_EC_TOKEN, "anna")), 1);
    refused(list(JWT_EC_TOKEN, "ben"), "7", "PRINCIPAL_UNAUTHORIZED");
}

static void an_anonymous_caller_has_no_subject_whatever_it_claims(void **state) {
    (void)state;
    with_issuer(JWT_KEYS, "");
    assert_int_equal(listed(list(NULL, "anna")), 0);
    assert_int_equal(listed(list(NULL, "")), 0);
}

static void an_invalid_token_never_makes_a_caller_anonymous(void **state) {
    (void)state;
    static const char *const tokens[] = {
        "", "x", JWT_NONE_TOKEN, JWT_HS_TOKEN, JWT_EC_OTHER_KEY, JWT_OTHER_AUDIENCE};
    with_issuer(JWT_KEYS, "");
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        refused(list(tokens[i], ""), "16", "AUTH_TOKEN_INVALID");
}

static void a_token_may_be_required_of_everyone(void **state) {
    (void)state;
    with_issuer(JWT_KEYS, "");
    settings.require_token = true;
    refused(list(NULL, "anna"), "16", "AUTH_TOKEN_INVALID");
    assert_int_equal(listed(list(JWT_RSA_TOKEN, "")), 1);
    struct exchange *x = call("LocalService/ListLocalAssets", NULL); /* is anyone there? */
    send_message(x, &nimi_list_local_assets_request_table,
                 &(struct nimi_list_local_assets_request){.page_size = 0});
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    fake_free(x);
}

static void the_cloud_route_needs_a_token(void **state) {
    (void)state;
    const struct nimi_scenario_request_head head = {.app_id = STR("demo.app"),
                                                    .model_id = STR("m"),
                                                    .subject_user_id = STR("anna"),
                                                    .connector_id = STR("local"),
                                                    .route_policy = NIMI_ROUTE_POLICY_CLOUD};
    const struct nimi_chat_message message = {.role = STR("user"), .content = STR("hi")};
    const struct nimi_text_generate_scenario_spec text = {.input = &message, .input_count = 1};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE,
                                            .text_generate = &text};
    const struct nimi_stream_scenario_request request = {
        .head = &head, .scenario_type = NIMI_SCENARIO_TYPE_TEXT_GENERATE, .spec = &spec};
    with_issuer(JWT_KEYS, "");
    struct exchange *x = call("AiService/StreamScenario", NULL);
    send_message(x, &nimi_stream_scenario_request_table, &request);
    refused(x, "16", "AUTH_TOKEN_INVALID");
    x = call("AiService/StreamScenario", JWT_RSA_TOKEN);
    send_message(x, &nimi_stream_scenario_request_table, &request);
    refused(x, "3", "AI_CONNECTOR_INVALID"); /* anna may see it, but it is a local one */
}

/* --- keys that must be fetched ------------------------------------------------------------ */

static void send_keys(const char *keys) {
    assert_int_equal(fake_http_calls(pool), 1);
    struct http_call *fetch = fake_http_call(pool, 0);
    assert_str(fake_http_request(fetch)->url, "https://id.example/keys");
    assert_int_equal(fake_http_request(fetch)->redirects_max, 0);
    if (keys) {
        fake_http_head(fetch, 200, "application/json");
        fake_http_body(fetch, str_from(keys));
        fake_http_end(fetch);
    } else {
        fake_http_fail(fetch, ERR_UNAVAILABLE, HTTP_CONNECTING);
    }
    fake_settle(loop);
}

static void calls_wait_for_one_fetch_of_the_keys(void **state) {
    (void)state;
    with_issuer("", "https://id.example/keys");
    struct exchange *one = list(JWT_RSA_TOKEN, ""), *two = list(JWT_EC_TOKEN, "anna");
    struct exchange *bad = list(JWT_EC_OTHER_KEY, "");
    assert_int_equal(fake_sent(one).len + fake_sent(two).len, 0);
    send_keys(JWT_KEYS);
    assert_int_equal(listed(one), 1);
    assert_int_equal(listed(two), 1);
    refused(bad, "16", "AUTH_TOKEN_INVALID");
    assert_int_equal(listed(list(JWT_RSA_TOKEN, "")), 1); /* they are kept */
    assert_int_equal(fake_http_calls_ever(pool), 1);
}

static void keys_that_cannot_be_had_are_unavailable(void **state) {
    (void)state;
    with_issuer("", "https://id.example/keys");
    struct exchange *x = list(JWT_RSA_TOKEN, "");
    send_keys(NULL);
    refused(x, "14", "AUTH_TOKEN_INVALID");
    refused(list(JWT_RSA_TOKEN, ""), "14", "AUTH_TOKEN_INVALID"); /* no fetch for each */
    assert_int_equal(fake_http_calls_ever(pool), 1);
}

static void a_caller_that_waits_may_leave(void **state) {
    (void)state;
    with_issuer("", "https://id.example/keys");
    struct exchange *gone = list(JWT_RSA_TOKEN, ""), *stays = list(JWT_RSA_TOKEN, "");
    fake_leave(gone);
    fake_settle(loop);
    assert_int_equal(instance.call_count, 1);
    send_keys(JWT_KEYS);
    assert_int_equal(listed(stays), 1);
    fake_free(gone);
}

static void a_stop_ends_calls_that_wait(void **state) {
    (void)state;
    with_issuer("", "https://id.example/keys");
    struct exchange *x = list(JWT_RSA_TOKEN, "");
    nimi_runtime_move(runtime, LIFE_STOPPING, "stopping");
    rpc_site_stop(site);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "1");
    fake_free(x);
    key_fetcher_leave(&instance.keys);
    assert_int_equal(fake_http_calls(pool), 0);
}

/* The message of an upload is held as well, and its end. */
static void an_upload_waits_with_its_first_message(void **state) {
    (void)state;
    const struct nimi_upload_artifact_metadata metadata = {.app_id = STR("demo.app"),
                                                           .subject_user_id = STR("ben"),
                                                           .mime_type = STR("image/png")};
    with_issuer("", "https://id.example/keys");
    struct exchange *x = call("AiService/UploadArtifact", JWT_RSA_TOKEN);
    send_message(
        x, &nimi_upload_artifact_request_table,
        &(struct nimi_upload_artifact_request){
            .which_payload = NIMI_UPLOAD_ARTIFACT_REQUEST_METADATA, .metadata = &metadata});
    send_keys(JWT_KEYS);
    refused(x, "7", "PRINCIPAL_UNAUTHORIZED");
}

static void what_nobody_made_is_seen_by_everyone(void **state) {
    (void)state;
    static const struct {
        const char *caller, *maker;
        bool seen;
    } rows[] = {
        {"anna", "anna", true}, {"ben", "anna", false}, {"", "anna", false},
        {"anna", "", true},     {"", "", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nimi_call asked = {.instance = &instance, .subject = str_from(rows[i].caller)};
        assert_true(bearer_may_see(&asked, str_from(rows[i].maker))); /* without issuers */
    }
    with_issuer(JWT_KEYS, "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nimi_call asked = {.instance = &instance, .subject = str_from(rows[i].caller)};
        assert_int_equal(bearer_may_see(&asked, str_from(rows[i].maker)), rows[i].seen);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(without_issuers_callers_are_believed),
        TEST(the_subject_is_the_tokens),
        TEST(an_anonymous_caller_has_no_subject_whatever_it_claims),
        TEST(an_invalid_token_never_makes_a_caller_anonymous),
        TEST(a_token_may_be_required_of_everyone),
        TEST(the_cloud_route_needs_a_token),
        TEST(calls_wait_for_one_fetch_of_the_keys),
        TEST(keys_that_cannot_be_had_are_unavailable),
        TEST(a_caller_that_waits_may_leave),
        TEST(a_stop_ends_calls_that_wait),
        TEST(an_upload_waits_with_its_first_message),
        TEST(what_nobody_made_is_seen_by_everyone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
