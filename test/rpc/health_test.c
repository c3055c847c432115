/* The answers to a health probe, at once and later (G17). */
#include "rpc/health.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"
#include "topic/topic.h"
#include "wire/grpc.h"

#define WATCHED "t.Agents"

static struct loop *loop;
static struct health *health;
static struct rpc_site *site;
static struct rpc_service service;

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    health = health_new();
    service = health_service(health);
    site = rpc_site_new(loop, &service, 1);
    health_set(health, STR(""), HEALTH_NOT_SERVING);
    health_set(health, STR(WATCHED), HEALTH_NOT_SERVING);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rpc_site_free(site);
    health_free(health);
    loop_free(loop);
    return 0;
}

static void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

/* Ask about a service by its name; the request is written by hand: field 1, a string. */
static struct exchange *ask(const char *method, const char *name) {
    char path[64] = "/grpc.health.v1.Health/";
    strcat(path, method);
    struct exchange *x = fake_new(loop, "POST", path);
    fake_field(x, "content-type", "application/grpc");
    fake_start(x, serve, site);

    struct buf body;
    buf_init(&body, 8 * KIB);
    size_t begin = grpc_begin_message(&body);
    if (name && *name) {
        buf_append_byte(&body, 0x0A);
        buf_append_byte(&body, (char)strlen(name));
        buf_append(&body, str_from(name));
    }
    grpc_end_message(&body, begin);
    fake_body(x, buf_str(&body));
    fake_body_end(x);
    buf_done(&body);
    fake_settle(loop);
    return x;
}

/* `statuses` are the numbers that were sent, as digits. */
static void heard(const struct exchange *x, const char *statuses) {
    struct str sent = fake_sent(x);
    for (; *statuses; statuses++) {
        const char expected[] = {0, 0, 0, 0, 2, 8, (char)(*statuses - '0')};
        assert_true(sent.len >= sizeof(expected));
        assert_memory_equal(sent.at, expected, sizeof(expected));
        sent = str_skip(sent, sizeof(expected));
    }
    assert_int_equal(sent.len, 0);
}

static void done(struct exchange *x) {
    fake_leave(x);
    fake_settle(loop);
    assert_true(fake_closed(x));
    fake_free(x);
}

static void check_says_what_was_set(void **state) {
    (void)state;
    struct exchange *x = ask("Check", "");
    heard(x, "2");
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    done(x);

    health_set(health, STR(""), HEALTH_SERVING);
    x = ask("Check", "");
    heard(x, "1");
    done(x);
    x = ask("Check", WATCHED);
    heard(x, "2");
    done(x);

    health_set_all(health, HEALTH_SERVING);
    x = ask("Check", WATCHED);
    heard(x, "1");
    done(x);
}

static void check_does_not_know_every_service(void **state) {
    (void)state;
    struct exchange *watcher = ask("Watch", "t.Nobody");
    struct exchange *x = ask("Check", "t.Nobody");
    assert_str(fake_value(fake_head(x), "grpc-status"), "5");
    assert_str(fake_value(fake_head(x), "grpc-message"), "unknown service");
    done(x);
    done(watcher);
}

static void watch_sends_the_state_at_once_and_each_change(void **state) {
    (void)state;
    struct exchange *x = ask("Watch", WATCHED);
    heard(x, "2");
    health_set(health, STR(WATCHED), HEALTH_SERVING);
    health_set(health, STR(WATCHED), HEALTH_SERVING);
    health_set(health, STR(""), HEALTH_SERVING);
    fake_settle(loop);
    heard(x, "21");
    health_set(health, STR(WATCHED), HEALTH_NOT_SERVING);
    fake_settle(loop);
    heard(x, "212");
    assert_false(fake_ended(x));
    done(x);
}

static void watch_waits_for_a_service_that_is_not_known_yet(void **state) {
    (void)state;
    struct exchange *a = ask("Watch", "t.Later"), *b = ask("Watch", "t.Later");
    heard(a, "3");
    done(a);
    health_set(health, STR("t.Later"), HEALTH_SERVING);
    fake_settle(loop);
    heard(b, "31");
    done(b);
}

static void a_name_that_was_only_watched_is_forgotten(void **state) {
    (void)state;
    /* Freed with the last watcher, or the sanitizer finds what is left; and it can come again.
     */
    for (int i = 0; i < 3; i++) {
        struct exchange *x = ask("Watch", "t.Nobody");
        heard(x, "3");
        done(x);
    }
}

static void at_the_stop_a_watcher_hears_not_serving_and_then_cancelled(void **state) {
    (void)state;
    health_set_all(health, HEALTH_SERVING);
    struct exchange *serving = ask("Watch", WATCHED);
    struct exchange *unknown = ask("Watch", "t.Nobody");
    health_set(health, STR(""), HEALTH_NOT_SERVING);
    struct exchange *told = ask("Watch", "");
    rpc_site_stop(site);
    fake_settle(loop);
    heard(serving, "12");
    heard(unknown, "3");
    heard(told, "2");
    struct exchange *all[] = {serving, unknown, told};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_str(fake_value(fake_trailers(all[i]), "grpc-status"), "1");
        assert_true(fake_closed(all[i]));
        fake_free(all[i]);
    }
    rpc_site_cut(site);
}

static void a_question_after_the_stop_is_answered_not_serving(void **state) {
    (void)state;
    rpc_site_stop(site);
    struct exchange *asked = ask("Check", WATCHED), *watching = ask("Watch", WATCHED);
    heard(asked, "2");
    heard(watching, "2");
    assert_str(fake_value(fake_trailers(asked), "grpc-status"), "0");
    assert_str(fake_value(fake_trailers(watching), "grpc-status"), "1");
    done(asked);
    done(watching);
}

static void a_request_that_is_no_protobuf_is_an_error(void **state) {
    (void)state;
    static const char *const methods[] = {"Check", "Watch"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct exchange *x = ask(methods[i], "\xFF");
        struct str said = fake_value(fake_head(x), "grpc-status");
        assert_str(said.at ? said : fake_value(fake_trailers(x), "grpc-status"), "13");
        done(x);
    }
}

/* It skips statuses, so it costs a few; the stall limit ends it. */
static void a_watcher_that_does_not_read_skips_and_is_dropped(void **state) {
    (void)state;
    struct exchange *slow = ask("Watch", WATCHED), *other = ask("Watch", WATCHED);
    struct exchange *late;
    fake_stop_reading(slow);
    for (size_t i = 0; i < 20 * KIB; i++) {
        health_set(health, STR(WATCHED), i % 2 ? HEALTH_NOT_SERVING : HEALTH_SERVING);
        fake_settle(loop);
    }
    late = ask("Watch", WATCHED);
    heard(late, "2"); /* the newest alone */
    assert_int_equal(fake_sent(other).len, (20 * KIB + 1) * 7);
    assert_true(exchange_queued(slow) <= TOPIC_HIGH_BYTES + 32 * 7);
    loop_advance(loop, 31 * 1000);
    fake_settle(loop);
    assert_int_equal(fake_aborted(slow), ABORT_ENHANCE_CALM);
    assert_int_equal(fake_aborted(other), -1);
    done(slow);
    done(other);
    done(late);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(check_says_what_was_set),
        TEST(check_does_not_know_every_service),
        TEST(watch_sends_the_state_at_once_and_each_change),
        TEST(watch_waits_for_a_service_that_is_not_known_yet),
        TEST(a_name_that_was_only_watched_is_forgotten),
        TEST(at_the_stop_a_watcher_hears_not_serving_and_then_cancelled),
        TEST(a_question_after_the_stop_is_answered_not_serving),
        TEST(a_request_that_is_no_protobuf_is_an_error),
        TEST(a_watcher_that_does_not_read_skips_and_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
