/* Subscriptions as calls: how they end, and that a slow subscriber costs the others nothing. */
#include "contract/nimi/subscription.h"

#include "contract/nimi/fixture.h"
#include "fake/exchange_fake.h"
#include "fake/media_fake.h"
#include "fake/provider_fake.h"

#define SUBSCRIBE "/nimi.runtime.v1.RuntimeAppService/SubscribeAppMessages"

static struct exchange *subscribe(const char *cursor) {
    struct exchange *x = fake_new(loop, "POST", SUBSCRIBE);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "x-nimi-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-id", "app.ben");
    fake_field(x, "x-nimi-domain", "runtime.rpc");
    fake_start(x, serve, site);
    send_message(x, &nimi_subscribe_app_messages_request_table,
                 &(struct nimi_subscribe_app_messages_request){.app_id = STR("app.ben"),
                                                               .cursor = str_from(cursor)});
    return x;
}

static void publish(size_t count, size_t bytes) {
    char *words = mem_zero(1, bytes);
    memset(words, 'x', bytes);
    struct topic *topic = topics_get(runtime->apps.topics, STR("app.ben"));
    for (size_t i = 0; i < count; i++) {
        struct nimi_app_message_event event = {.message_type = str_of(words, bytes)};
        topic_publish(topic, &(struct topic_event){.type = &nimi_app_message_event_table,
                                                   .message = &event,
                                                   .sequence = &event.sequence});
        if (i % 16 == 0) fake_settle(loop);
    }
    fake_settle(loop);
    topic_unref(topic);
    free(words);
}

static size_t count_messages(const struct exchange *x) {
    struct str rest = fake_sent(x), message;
    size_t count = 0;
    while (next_message(&rest, &message)) count++;
    assert_int_equal(rest.len, 0);
    return count;
}

static void leave(struct exchange *x) {
    fake_leave(x);
    fake_settle(loop);
    assert_true(fake_closed(x));
    fake_free(x);
}

/* The window passes what it has not read. It gets what it already had, then the status. */
static void a_slow_subscriber_hears_that_it_was_slow(void **state) {
    (void)state;
    struct exchange *slow = subscribe(""), *other = subscribe("");
    assert_int_equal(fake_status(slow), 200); /* the headers came at once */
    fake_stop_reading(slow);
    publish(600, 1000);
    assert_true(exchange_queued(slow) <= TOPIC_HIGH_BYTES + TOPIC_TURN_BYTES);
    fake_read_all(slow);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(slow), "grpc-status"), "8");
    assert_true(
        str_starts(fake_value(fake_trailers(slow), "grpc-message"), STR("slow consumer")));
    assert_true(count_messages(slow) > 0 && count_messages(slow) < 600);
    assert_int_equal(count_messages(other), 600);
    assert_false(fake_ended(other));
    leave(slow);
    leave(other);
}

static void one_that_leaves_is_freed_at_once(void **state) {
    (void)state;
    struct exchange *x = subscribe("");
    assert_int_equal(instance.call_count, 1);
    leave(x);
    assert_int_equal(instance.call_count, 0);
    struct topic *topic = topics_get(runtime->apps.topics, STR("app.ben"));
    assert_false(topic_is_read(topic));
    topic_unref(topic);
    publish(3, 10);
}

/* What was published before the stop still comes; nothing is invented. */
static void a_stop_gives_what_is_there_and_cancels(void **state) {
    (void)state;
    struct exchange *x = subscribe("");
    publish(2, 10);
    struct topic *topic = topics_get(runtime->apps.topics, STR("app.ben"));
    struct nimi_app_message_event event = {.message_type = STR("last")};
    topic_publish(topic, &(struct topic_event){.type = &nimi_app_message_event_table,
                                               .message = &event,
                                               .sequence = &event.sequence});
    topic_unref(topic);
    rpc_site_warn(site);
    fake_settle(loop);
    assert_int_equal(count_messages(x), 3);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "1");
    assert_str(fake_value(fake_trailers(x), "grpc-message"), "runtime shutting down");
    fake_free(x);
}

static void one_that_comes_during_the_stop_gets_the_same(void **state) {
    (void)state;
    publish(2, 10);
    rpc_site_warn(site);
    struct exchange *x = subscribe("0");
    assert_int_equal(count_messages(x), 2);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "1");
    assert_str(fake_value(fake_trailers(x), "grpc-message"), "runtime shutting down");
    fake_free(x);
}

static void cursors_are_decimal_numbers(void **state) {
    (void)state;
    static const char *const wrong[] = {"x", "-1", "1 ", "0x1", "18446744073709551616"};
    struct subscription_options options = {.after = 0};
    struct fault fault;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(subscription_cursor(str_from(wrong[i]), &options, &fault));
        assert_int_equal(fault.reason, NIMI_PROTOCOL_ENVELOPE_INVALID);
    }
    assert_true(subscription_cursor(STR(""), &options, &fault));
    assert_int_equal(options.start, TOPIC_LIVE);
    assert_true(subscription_cursor(STR("18446744073709551615"), &options, &fault));
    assert_int_equal(options.start, TOPIC_AFTER);
    assert_true(options.after == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_slow_subscriber_hears_that_it_was_slow),
        TEST(one_that_leaves_is_freed_at_once),
        TEST(a_stop_gives_what_is_there_and_cancels),
        TEST(one_that_comes_during_the_stop_gets_the_same),
        TEST(cursors_are_decimal_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
