#include "topic/topics.h"

#include "base/attr.h"
#include "helper/assert_str.h"
#include "loop/loop.h"
#include "proto/health.pb.h"

#define IDLE_MAX 4

static int set_up(void **state) {
    *state = topics_new(&(struct topics_limits){64 * KIB, 16, IDLE_MAX});
    return 0;
}

static int tear_down(void **state) {
    topics_free(*state);
    return 0;
}

static uint64_t say(struct topic *topic) {
    struct grpc_health_check_request message = {.service = STR("x")};
    uint64_t sequence;
    return topic_publish(topic, &(struct topic_event){.type = &grpc_health_check_request_table,
                                                      .message = &message,
                                                      .sequence = &sequence});
}

static void a_name_is_one_topic(void **state) {
    struct topic *one = topics_get(*state, STR("a")), *again = topics_get(*state, STR("a"));
    struct topic *other = topics_get(*state, STR("b"));
    assert_ptr_equal(one, again);
    assert_ptr_not_equal(one, other);
    topic_unref(one);
    topic_unref(again);
    topic_unref(other);
}

/* A topic that was dropped begins above all that it ever said, so an old cursor is too old. */
static void a_topic_made_again_counts_on(void **state) {
    struct topic *first = topics_get(*state, STR("first"));
    uint64_t said = say(first);
    topic_unref(first);
    for (char name = 'a'; name < 'a' + IDLE_MAX; name++)
        topic_unref(topics_get(*state, str_of(&name, 1)));
    struct topic *again = topics_get(*state, STR("first"));
    assert_int_equal(topic_bytes(again), 0);
    assert_true(topic_last(again) > said);
    topic_unref(again);
}

static char *no_room(size_t bytes, void *ctx) {
    (void)bytes, (void)ctx;
    return NULL;
}

static void put_nothing(size_t bytes, void *ctx) {
    (void)bytes, (void)ctx;
}

static size_t none_queued(void *ctx) {
    (void)ctx;
    return 0;
}

static void a_topic_that_is_read_stays(void **state) {
    static const struct topic_wire wire = {
        .room = no_room, .put = put_nothing, .queued = none_queued};
    struct loop *loop = loop_new_fake();
    struct topic_reader reader = {.state = TOPIC_READER_NEW};
    struct topic *read = topics_get(*state, STR("read"));
    topic_reader_start(&reader, read, loop, TOPIC_LIVE, 0, &wire, NULL);
    for (char name = 'a'; name <= 'z'; name++)
        topic_unref(topics_get(*state, str_of(&name, 1)));
    struct topic *again = topics_get(*state, STR("read"));
    assert_ptr_equal(again, read);
    topic_reader_stop(&reader);
    topic_unref(read);
    topic_unref(again);
    loop_turn(loop);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_name_is_one_topic),
        TEST(a_topic_made_again_counts_on),
        TEST(a_topic_that_is_read_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
