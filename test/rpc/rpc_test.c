/* What happens before a handler is called: routing, the checks and their order, and what the
 * site itself does with its calls. The ids are rows of the fault table. */
#include "rpc/rpc.h"

#include "fake/exchange_fake.h"
#include "rpc/probe.h"

/* --- routing ----------------------------------------------------------------------------- */

static void a_method_is_found_by_its_whole_path(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(probe_methods); i++) {
        struct exchange *x = started(probe_methods[i].path.at);
        assert_ptr_equal(rpc_method(probe.call), &probe_methods[i]);
        assert_ptr_equal(rpc_loop(probe.call), probe.loop);
        assert_ptr_equal(rpc_exchange(probe.call), x);
        fake_leave(x);
        done(x);
        seen_is("open left closed");
    }
}

static void
an_unknown_method_or_service_is_named_before_anybody_is_authenticated(void **state) {
    (void)state;
    static const struct {
        const char *path, *message;
    } rows[] = {
        {"/t.Probe/Nothing", "unknown method Nothing for service t.Probe"},
        {"/t.Probe/", "unknown method  for service t.Probe"},
        {"/t.Probe/Unary/x", "unknown method Unary/x for service t.Probe"},
        {"/t.Other/Unary", "unknown service t.Other"},
        {"/t.probe/Unary", "unknown service t.probe"},
        {"/t.Probe", "malformed method name '/t.Probe'"},
        {"/", "malformed method name '/'"},
        {"*", "malformed method name '*'"},
    };
    probe.refuses = true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = started(rows[i].path);
        refused_with(x, "12", rows[i].message);
        done(x);
        seen_is("");
    }
}

static void a_query_is_part_of_no_method(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Unary?x=1");
    refused_with(x, "12", "malformed method name '/t.Probe/Unary?x=1'");
    done(x);
    x = started("/t.Probe/Unary?");
    refused_with(x, "12", "malformed method name '/t.Probe/Unary?'");
    done(x);
    seen_is("");
}

static void binary_metadata_that_is_no_base64_is_internal(void **state) {
    (void)state;
    static const struct {
        const char *value;
        bool fine;
    } rows[] = {{"AAEC", true},    {"AAE=", true},  {"AAE", true}, {"AAE=, AAEC,AA", true},
                {"", true},        {"!!!!", false}, {"A", false},  {"=", false},
                {"AAEC,A", false}, {"AA EC", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request("/t.Probe/Talk");
        fake_field(x, "nobody-reads-bin", rows[i].value);
        start(x);
        if (rows[i].fine) {
            seen_is("open");
            fake_leave(x);
            done(x);
            seen_is("left closed");
            continue;
        }
        refused_with(x, "13", "the metadata nobody-reads-bin is not base64");
        done(x);
        seen_is("");
    }
}

static void what_may_come_once_and_comes_twice_is_400(void **state) {
    (void)state;
    static const char *const names[] = {"content-type", "grpc-timeout", "grpc-encoding"};
    static const char *const values[] = {"application/grpc", "1S", "gzip"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct exchange *x = request("/t.Probe/Unary");
        fake_field(x, names[i], values[i]);
        fake_field(x, names[i], values[i]);
        start(x);
        assert_int_equal(fake_status(x), 400);
        fake_body_end(x);
        done(x);
    }
    seen_is("");
}

/* --- what is gRPC at all (G7, G8) -------------------------------------------------------- */

static struct exchange *with_type(const char *method, const char *type) {
    struct exchange *x = fake_new(probe.loop, method, "/t.Probe/Unary");
    if (type) fake_field(x, "content-type", type);
    return x;
}

static void a_foreign_content_type_is_415(void **state) {
    (void)state;
    static const char *const types[] = {"text/plain", NULL, "application/grpc-web",
                                        "application/json", ""};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct exchange *x = with_type("POST", types[i]);
        assert_false(rpc_wants(x));
        start(x);
        assert_int_equal(fake_status(x), 415);
        assert_str(fake_value(fake_head(x), "content-length"), "64");
        settle();
        assert_int_equal(fake_sent(x).len, 64);
        fake_body_end(x);
        done(x);
    }
    seen_is("");
}

static void a_grpc_content_type_is_served_with_suffix_and_parameters(void **state) {
    (void)state;
    static const char *const types[] = {"application/grpc", "application/grpc+proto",
                                        "application/grpc;x=y"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct exchange *x = with_type("POST", types[i]);
        assert_true(rpc_wants(x));
        start(x);
        seen_is("open");
        fake_leave(x);
        done(x);
        seen_is("left closed");
    }
}

static void any_method_but_post_is_405_before_the_type_is_looked_at(void **state) {
    (void)state;
    struct exchange *x = with_type("GET", "text/plain");
    start(x);
    assert_int_equal(fake_status(x), 405);
    assert_str(fake_value(fake_head(x), "allow"), "POST");
    fake_body_end(x);
    done(x);
    seen_is("");
}

static void a_peer_that_does_not_speak_grpc_is_drained_for_a_limited_time(void **state) {
    (void)state;
    struct exchange *x = with_type("PUT", "text/plain");
    start(x);
    assert_int_equal(fake_status(x), 405);
    fake_body(x, STR("a long"));
    loop_advance(probe.loop, 9999);
    fake_body(x, STR(" story"));
    settle();
    assert_false(fake_ended(x));
    assert_int_equal(fake_unconsumed(x), 0);
    loop_advance(probe.loop, 1);
    assert_true(fake_ended(x));
    done(x);

    x = with_type("PUT", "text/plain");
    start(x);
    fake_leave(x);
    done(x);
    seen_is("");
}

static void te_may_be_absent_and_must_say_trailers_when_it_is_there(void **state) {
    (void)state;
    static const struct {
        const char *te;
        bool served;
    } rows[] = {
        {NULL, true}, {"trailers", true}, {"Trailers", true}, {"gzip", false}, {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = with_type("POST", "application/grpc");
        if (rows[i].te) fake_field(x, "te", rows[i].te);
        start(x);
        assert_int_equal(fake_aborted(x), rows[i].served ? -1 : (int)ABORT_PROTOCOL);
        if (rows[i].served) fake_leave(x);
        done(x);
        seen_is(rows[i].served ? "open left closed" : "");
    }
}

/* --- grpc-timeout (G4) and grpc-encoding (G2) --------------------------------------------- */

static void a_timeout_is_the_calls_deadline_rounded_up_to_a_millisecond(void **state) {
    (void)state;
    static const struct {
        const char *value;
        uint64_t ms;
    } rows[] = {
        {"00000001n", UINT64_MAX /* nine characters of number and unit is fine: 1 ns */},
        {"1u", 1},
        {"1500u", 2},
        {"100m", 100},
        {"5S", 5000},
        {"2M", 120000},
        {"1H", 3600000},
        {"1234S", 1234000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request("/t.Probe/Talk");
        fake_field(x, "grpc-timeout", rows[i].value);
        start(x);
        uint64_t expected = rows[i].ms == UINT64_MAX ? 1 : rows[i].ms;
        assert_int_equal(rpc_time_left_ms(probe.call), expected);
        fake_leave(x);
        done(x);
    }
    seen_is("open left closed open left closed open left closed open left closed "
            "open left closed open left closed open left closed open left closed");
}

static void a_malformed_timeout_is_an_error_of_this_call_alone(void **state) {
    (void)state;
    static const char *const values[] = {"",   "1234s", "-1S",  "000000000S", "9a1S",
                                         "S",  "1.5S",  " 1S ", "1 S",        "+1S",
                                         "12", "1SS",   "0x1S", "1h"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct exchange *x = request("/t.Probe/Unary");
        fake_field(x, "grpc-timeout", values[i]);
        start(x);
        assert_str(fake_value(fake_head(x), "grpc-status"), "13");
        done(x);
        seen_is("");
    }
}

static void a_timeout_of_zero_expires_at_once(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Unary");
    fake_field(x, "grpc-timeout", "0S");
    start(x);
    refused_with(x, "4", "the deadline had passed before the call began");
    done(x);
    seen_is("");
}

static void an_unknown_encoding_is_answered_with_the_ones_we_know(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Unary");
    fake_field(x, "grpc-encoding", "snappy");
    start(x);
    refused_with(x, "12", "messages encoded as 'snappy' are not understood");
    assert_str(fake_value(fake_head(x), "grpc-accept-encoding"), "identity,gzip");
    done(x);
    seen_is("");

    x = request("/t.Probe/Unary");
    fake_field(x, "grpc-encoding", "identity");
    start(x);
    seen_is("open");
    fake_leave(x);
    done(x);
}

/* --- who calls (A1) ---------------------------------------------------------------------- */

static void a_stranger_is_refused_before_any_message_is_read(void **state) {
    (void)state;
    probe.refuses = true;
    struct exchange *x = started("/t.Probe/Unary");
    refused_with(x, "16", "invalid bearer token");
    assert_false(fake_authenticated(x));
    send_messages(x, "secret");
    fake_body_end(x);
    done(x);
    seen_is("");
}

static void two_values_of_a_key_are_counted(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Unary");
    fake_field(x, "authorization", "Bearer a");
    fake_field(x, "authorization", "Bearer b");
    start(x);
    refused_with(x, "16", "invalid bearer token");
    done(x);
    seen_is("");
}

static void an_identity_lives_as_long_as_the_call_and_the_headers_do_not(void **state) {
    (void)state;
    struct exchange *x = request("/t.Probe/Talk");
    fake_field(x, "authorization", "Bearer abc ");
    start(x);
    assert_true(fake_authenticated(x));
    assert_true(fake_forgotten(x));
    assert_true(rpc_identity(probe.call)->known);
    assert_str(rpc_identity(probe.call)->user, "Bearer abc ");
    assert_str(rpc_identity(probe.call)->workspace, "w1");
    fake_leave(x);
    done(x);
}

static void an_open_method_needs_no_token_and_lifts_no_limit(void **state) {
    (void)state;
    probe.refuses = true;
    struct exchange *x = started("/t.Probe/Open");
    assert_false(fake_authenticated(x));
    assert_false(rpc_identity(probe.call)->known);
    fake_leave(x);
    done(x);
    seen_is("open left closed");
}

static bool ask_nobody(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                       struct err *e) {
    (void)call, (void)ctx, (void)e;
    *ret = (struct rpc_identity){.known = false};
    return true;
}

static void a_service_that_asks_for_no_token_lets_everybody_in_as_unknown(void **state) {
    (void)state;
    struct rpc_service service = probe_service;
    service.authenticate = ask_nobody;
    struct rpc_site *site = rpc_site_new(probe.loop, &service, 1);
    struct exchange *x = request("/t.Probe/Unary");
    fake_start(x, serve, site);
    assert_true(fake_authenticated(x));
    assert_false(rpc_identity(probe.call)->known);
    fake_leave(x);
    done(x);
    rpc_site_free(site);
}

static void a_row_without_a_guard_makes_no_service(void **state) {
    (void)state;
    struct rpc_method method = probe_service.methods[0];
    struct rpc_service service = probe_service;
    service.methods = &method;
    service.method_count = 1;
    assert_true(rpc_service_ok(&service));
    service.authenticate = NULL;
    assert_false(rpc_service_ok(&service));
    method.auth = RPC_OPEN;
    assert_true(rpc_service_ok(&service));
    method.auth = 0; /* what a row has that says nothing */
    service.authenticate = probe_service.authenticate;
    assert_false(rpc_service_ok(&service));
}

/* --- the order of the checks -------------------------------------------------------------- */

static void of_several_faults_the_first_check_answers(void **state) {
    (void)state;
    probe.refuses = true;
    static const struct {
        const char *path, *timeout, *encoding, *status;
    } rows[] = {
        {"/t.Probe/Nothing", "bad", "snappy", "12"},
        {"/t.Probe/Unary", "bad", "snappy", "13"},
        {"/t.Probe/Unary", "1S", "snappy", "12"},
        {"/t.Probe/Unary", "1S", "identity", "16"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request(rows[i].path);
        fake_field(x, "grpc-timeout", rows[i].timeout);
        fake_field(x, "grpc-encoding", rows[i].encoding);
        start(x);
        assert_str(fake_value(fake_head(x), "grpc-status"), rows[i].status);
        done(x);
    }
    seen_is("");
}

/* --- stopping (K4, K18, D1) -------------------------------------------------------------- */

static void a_site_that_does_not_serve_yet_says_so(void **state) {
    (void)state;
    rpc_site_admit(probe.site, RPC_PROBES, STR("not yet"));
    struct exchange *x = started("/t.Probe/Talk");
    refused_with(x, "14", "not yet");
    done(x);
    rpc_site_admit(probe.site, RPC_ACTS, STR_EMPTY);
    x = started("/t.Probe/Talk");
    settle();
    seen_is("open");
    rpc_site_cut(probe.site);
    seen_is("stopped");
    done(x);
    seen_is("closed");
}

static void a_stopping_site_tells_its_calls_and_refuses_new_ones(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    settle();
    rpc_site_stop(probe.site);
    seen_is("open stopping");
    assert_false(fake_ended(x));

    struct exchange *late = started("/t.Probe/Talk");
    refused_with(late, "14", "the server is stopping");
    done(late);
    seen_is("");

    rpc_site_cut(probe.site);
    seen_is("stopped");
    ended_with(x, "1", "the server is stopping");
    assert_int_equal(fake_aborted(x), -1);
    done(x);
    seen_is("closed");
}

/* Refused before a handler, broken after it, stopped, and answered: the same field each time.
 */
static void fields_of_the_site_stand_on_every_answer(void **state) {
    (void)state;
    static const struct {
        const char *path, *encoding;
        struct str body;
        const char *status;
    } rows[] = {
        {"/t.Probe/Nothing", "identity", STR_INIT(""), "12"},
        {"/t.Other/Unary", "identity", STR_INIT(""), "12"},
        {"/t.Probe/Unary", "snappy", STR_INIT(""), "12"},
        {"/t.Probe/Unary", "identity", STR_INIT(""), "12"},                  /* no message */
        {"/t.Probe/Unary", "gzip", STR_INIT("\1\0\0\0\4abcd"), "13"},        /* no gzip */
        {"/t.Probe/Unary", "identity", STR_INIT("\0\177\177\177\177"), "8"}, /* too large */
        {"/t.Probe/Unary", "identity", STR_INIT("\2\0\0\0\1a"), "13"},       /* no such flag */
    };
    rpc_site_always(probe.site, STR("x-version"), STR("1.2.3"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *x = request(rows[i].path);
        fake_field(x, "grpc-encoding", rows[i].encoding);
        start(x);
        if (rows[i].body.len) fake_body(x, rows[i].body);
        if (!fake_ended(x)) fake_body_end(x);
        settle();
        assert_str(fake_value(fake_head(x), "x-version"), "1.2.3");
        assert_null(fake_value(fake_head(x), "grpc-status").at);
        assert_str(fake_value(fake_trailers(x), "grpc-status"), rows[i].status);
        done(x);
    }
    struct exchange *x = started("/t.Probe/Talk");
    settle();
    rpc_site_cut(probe.site);
    settle();
    assert_str(fake_value(fake_head(x), "x-version"), "1.2.3");
    done(x);
}

static void a_handler_may_end_its_call_when_it_hears_of_the_stop(void **state) {
    (void)state;
    probe.ends_at_stop = true;
    struct exchange *a = started("/t.Probe/Talk"), *b = started("/t.Probe/Unary");
    settle();
    rpc_site_stop(probe.site);
    ended_with(a, "14", "dial again");
    refused_with(b, "14", "dial again");
    rpc_site_cut(probe.site);
    seen_is("open open stopping stopping");
    done(a);
    done(b);
    seen_is("closed closed");
}

static void a_call_that_is_over_is_neither_notified_nor_cut(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    settle();
    fake_stop_reading(x);
    rpc_send(probe.call, STR("last words"));
    rpc_end(probe.call, ERR_NONE, STR_EMPTY);
    settle();
    rpc_site_stop(probe.site);
    rpc_site_cut(probe.site);
    seen_is("open");
    fake_read_all(x);
    done(x);
    seen_is("closed");
}

/* --- slow readers (K9) ------------------------------------------------------------------- */

static void a_peer_that_does_not_read_is_reset_after_its_time(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    settle();
    loop_advance(probe.loop, 12345);
    fake_stop_reading(x);
    rpc_send(probe.call, STR("words"));
    settle();
    loop_advance(probe.loop, 29999);
    assert_int_equal(rpc_stalled_ms(probe.call), 29999);
    seen_is("open");
    loop_advance(probe.loop, 1);
    seen_is("stalled closed");
    /* The code that gRPC clients read as RESOURCE_EXHAUSTED. */
    assert_int_equal(fake_aborted(x), ABORT_ENHANCE_CALM);
    done(x);
}

static void a_peer_that_reads_slowly_is_waited_for(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    fake_stop_reading(x);
    rpc_send(probe.call, STR("0123456789"));
    for (int i = 0; i < 14; i++) {
        loop_advance(probe.loop, 29000);
        fake_read(x, 1);
        settle();
    }
    seen_is("open");
    fake_leave(x);
    done(x);
}

static void a_call_that_ended_but_is_not_read_goes_away_too(void **state) {
    (void)state;
    rpc_site_stall_limit(probe.site, 1000);
    loop_advance(probe.loop, 1);
    struct exchange *x = started("/t.Probe/Talk");
    fake_stop_reading(x);
    rpc_send(probe.call, STR("words"));
    rpc_end(probe.call, ERR_NONE, STR_EMPTY);
    settle();
    seen_is("open");
    loop_advance(probe.loop, 1000);
    seen_is("closed");
    assert_int_equal(fake_aborted(x), ABORT_ENHANCE_CALM);
    done(x);
}

static void a_quiet_site_keeps_no_timer(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    fake_leave(x);
    done(x);
    /* After the last sweep nothing is due any more: loop_free would find it. */
    loop_advance(probe.loop, 60000);
    seen_is("open left closed");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_method_is_found_by_its_whole_path),
        TEST(an_unknown_method_or_service_is_named_before_anybody_is_authenticated),
        TEST(a_query_is_part_of_no_method),
        TEST(binary_metadata_that_is_no_base64_is_internal),
        TEST(what_may_come_once_and_comes_twice_is_400),
        TEST(a_foreign_content_type_is_415),
        TEST(a_grpc_content_type_is_served_with_suffix_and_parameters),
        TEST(any_method_but_post_is_405_before_the_type_is_looked_at),
        TEST(a_peer_that_does_not_speak_grpc_is_drained_for_a_limited_time),
        TEST(te_may_be_absent_and_must_say_trailers_when_it_is_there),
        TEST(a_timeout_is_the_calls_deadline_rounded_up_to_a_millisecond),
        TEST(a_malformed_timeout_is_an_error_of_this_call_alone),
        TEST(a_timeout_of_zero_expires_at_once),
        TEST(an_unknown_encoding_is_answered_with_the_ones_we_know),
        TEST(a_stranger_is_refused_before_any_message_is_read),
        TEST(two_values_of_a_key_are_counted),
        TEST(an_identity_lives_as_long_as_the_call_and_the_headers_do_not),
        TEST(an_open_method_needs_no_token_and_lifts_no_limit),
        TEST(a_service_that_asks_for_no_token_lets_everybody_in_as_unknown),
        TEST(a_row_without_a_guard_makes_no_service),
        TEST(of_several_faults_the_first_check_answers),
        TEST(a_site_that_does_not_serve_yet_says_so),
        TEST(a_stopping_site_tells_its_calls_and_refuses_new_ones),
        TEST(fields_of_the_site_stand_on_every_answer),
        TEST(a_handler_may_end_its_call_when_it_hears_of_the_stop),
        TEST(a_call_that_is_over_is_neither_notified_nor_cut),
        TEST(a_peer_that_does_not_read_is_reset_after_its_time),
        TEST(a_peer_that_reads_slowly_is_waited_for),
        TEST(a_call_that_ended_but_is_not_read_goes_away_too),
        TEST(a_quiet_site_keeps_no_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
