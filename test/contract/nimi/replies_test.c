/* What is remembered of writes, and for how long. */
#include "contract/nimi/replies.h"

#include "helper/assert_str.h"

static const uint8_t one[REPLIES_DIGEST_BYTES] = {1}, other[REPLIES_DIGEST_BYTES] = {2};

static enum reply_found find(struct replies *replies, const char *key, const uint8_t *digest,
                             uint64_t now_ms) {
    struct buf out;
    buf_init(&out, KIB);
    enum reply_found found = replies_find(replies, str_from(key), digest, now_ms, &out);
    if (found == REPLY_STORED) assert_str(buf_str(&out), key);
    buf_done(&out);
    return found;
}

static void keep(struct replies *replies, const char *key, uint64_t now_ms) {
    replies_keep(replies, str_from(key), one, now_ms, str_from(key));
}

static void the_same_request_is_answered_again_and_another_is_a_conflict(void **state) {
    (void)state;
    struct replies *replies = replies_new(4, KIB);
    assert_int_equal(find(replies, "k", one, 0), REPLY_NEW);
    keep(replies, "k", 0);
    assert_int_equal(find(replies, "k", one, 1), REPLY_STORED);
    assert_int_equal(find(replies, "k", other, 1), REPLY_CONFLICT);
    replies_free(replies);
}

static void after_a_day_it_is_forgotten(void **state) {
    (void)state;
    struct replies *replies = replies_new(4, KIB);
    keep(replies, "k", 5);
    assert_int_equal(find(replies, "k", one, REPLIES_KEPT_MS + 4), REPLY_STORED);
    assert_int_equal(find(replies, "k", one, REPLIES_KEPT_MS + 5), REPLY_NEW);
    assert_int_equal(replies_count(replies), 0);
    replies_free(replies);
}

static void the_one_asked_for_longest_ago_makes_room(void **state) {
    (void)state;
    struct replies *replies = replies_new(2, KIB);
    keep(replies, "a", 0);
    keep(replies, "b", 0);
    assert_int_equal(find(replies, "a", one, 1), REPLY_STORED);
    keep(replies, "c", 1);
    assert_int_equal(find(replies, "b", one, 1), REPLY_NEW);
    assert_int_equal(find(replies, "a", one, 1), REPLY_STORED);
    assert_int_equal(replies_count(replies), 2);
    replies_free(replies);
}

static void bytes_are_bounded_too(void **state) {
    (void)state;
    struct replies *replies = replies_new(100, 8);
    keep(replies, "aa", 0);
    keep(replies, "bb", 0);
    keep(replies, "cc", 0);
    assert_int_equal(replies_count(replies), 2);
    keep(replies, "far too long", 0);
    assert_int_equal(replies_count(replies), 2);
    replies_free(replies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_request_is_answered_again_and_another_is_a_conflict),
        cmocka_unit_test(after_a_day_it_is_forgotten),
        cmocka_unit_test(the_one_asked_for_longest_ago_makes_room),
        cmocka_unit_test(bytes_are_bounded_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
