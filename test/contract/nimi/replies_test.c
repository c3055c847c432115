/* Which replies to writes are remembered, and for how long. */
#include "contract/nimi/replies.h"

#include "helper/assert_str.h"

#include <stdio.h>

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

/* --- while it is being made --------------------------------------------------------------- */

/* An asker on a loop of its own, and its callbacks. */
struct asker {
    struct loop *loop;
    struct reply_ask *ask;
    char heard[64];
};

static void on_outcome(const struct write_outcome *outcome, void *ctx) {
    struct asker *asker = ctx;
    asker->ask = NULL;
    snprintf(asker->heard, sizeof(asker->heard), "%s" STR_FMT, outcome->fault ? "failed" : "",
             STR_ARG(outcome->reply));
}

static void on_left(void *ctx) {
    ++*(int *)ctx;
}

static enum reply_found ask(struct replies *replies, struct asker *asker,
                            const uint8_t *digest) {
    struct buf out;
    buf_init(&out, KIB);
    enum reply_found found = replies_ask(replies,
                                         &(struct reply_question){.key = STR("k"),
                                                                  .digest = digest,
                                                                  .loop = asker->loop,
                                                                  .on_outcome = on_outcome,
                                                                  .ctx = asker},
                                         &out, &asker->ask);
    buf_done(&out);
    return found;
}

static void askers_on_other_loops_are_answered_by_mail(void **state) {
    (void)state;
    struct replies *replies = replies_new(4, KIB);
    struct asker maker = {.loop = loop_new_fake()}, waiter = {.loop = loop_new_fake()};
    int left = 0;
    assert_int_equal(ask(replies, &maker, one), REPLY_NEW);
    assert_int_equal(ask(replies, &waiter, one), REPLY_WAITS);
    assert_int_equal(ask(replies, &waiter, other), REPLY_CONFLICT);
    struct reply_write *pending = reply_write_of(maker.ask, on_left, &left);
    replies_made(pending, &(struct write_outcome){.reply = STR("made")}, 0);
    assert_string_equal(waiter.heard, "");
    loop_turn(waiter.loop);
    assert_string_equal(waiter.heard, "made");
    loop_turn(maker.loop);
    assert_string_equal(maker.heard, "made");
    assert_int_equal(ask(replies, &waiter, one), REPLY_STORED);
    assert_int_equal(left, 0);
    loop_free(maker.loop);
    loop_free(waiter.loop);
    replies_free(replies);
}

static void a_waiter_that_left_meanwhile_has_no_callback(void **state) {
    (void)state;
    struct replies *replies = replies_new(4, KIB);
    struct asker maker = {.loop = loop_new_fake()}, waiter = {.loop = loop_new_fake()};
    struct fault fault = {.reason = 0};
    assert_int_equal(ask(replies, &maker, one), REPLY_NEW);
    assert_int_equal(ask(replies, &waiter, one), REPLY_WAITS);
    struct reply_write *pending = reply_write_of(maker.ask, on_left, NULL);
    replies_made(pending, &(struct write_outcome){.fault = &fault, .reply = STR_EMPTY}, 0);
    replies_leave(waiter.ask);
    loop_turn(waiter.loop);
    loop_turn(maker.loop);
    assert_string_equal(waiter.heard, "");
    assert_string_equal(maker.heard, "failed");
    assert_int_equal(replies_count(replies), 0); /* a failure is not kept */
    loop_free(maker.loop);
    loop_free(waiter.loop);
    replies_free(replies);
}

static void the_maker_hears_on_its_loop_that_no_call_waits(void **state) {
    (void)state;
    struct replies *replies = replies_new(4, KIB);
    struct asker maker = {.loop = loop_new_fake()}, waiter = {.loop = loop_new_fake()};
    struct fault fault = {.reason = 0};
    int left = 0;
    assert_int_equal(ask(replies, &maker, one), REPLY_NEW);
    struct reply_write *first = reply_write_of(maker.ask, on_left, &left);
    assert_int_equal(ask(replies, &waiter, one), REPLY_WAITS);
    replies_leave(maker.ask);
    loop_turn(maker.loop);
    assert_int_equal(left, 0);
    replies_leave(waiter.ask);
    assert_int_equal(left, 0);
    /* Who comes before the mail has arrived begins anew. */
    assert_int_equal(ask(replies, &waiter, one), REPLY_NEW);
    struct reply_write *second = reply_write_of(waiter.ask, on_left, &left);
    loop_turn(maker.loop);
    assert_int_equal(left, 1);
    replies_made(first, &(struct write_outcome){.fault = &fault, .reply = STR_EMPTY}, 0);
    assert_int_equal(ask(replies, &maker, one), REPLY_WAITS);
    replies_made(second, &(struct write_outcome){.reply = STR("made")}, 0);
    loop_turn(maker.loop);
    loop_turn(waiter.loop);
    assert_string_equal(maker.heard, "made");
    assert_string_equal(waiter.heard, "made");
    loop_free(maker.loop);
    loop_free(waiter.loop);
    replies_free(replies);
}

static void made_while_that_mail_is_on_its_way_is_kept(void **state) {
    (void)state;
    struct replies *replies = replies_new(4, KIB);
    struct asker maker = {.loop = loop_new_fake()};
    int left = 0;
    assert_int_equal(ask(replies, &maker, one), REPLY_NEW);
    struct reply_write *pending = reply_write_of(maker.ask, on_left, &left);
    replies_leave(maker.ask);
    replies_made(pending, &(struct write_outcome){.reply = STR("made")}, 0);
    loop_turn(maker.loop);
    assert_int_equal(left, 0);
    assert_int_equal(ask(replies, &maker, one), REPLY_STORED);
    loop_free(maker.loop);
    replies_free(replies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_request_is_answered_again_and_another_is_a_conflict),
        cmocka_unit_test(after_a_day_it_is_forgotten),
        cmocka_unit_test(the_one_asked_for_longest_ago_makes_room),
        cmocka_unit_test(bytes_are_bounded_too),
        cmocka_unit_test(askers_on_other_loops_are_answered_by_mail),
        cmocka_unit_test(a_waiter_that_left_meanwhile_has_no_callback),
        cmocka_unit_test(the_maker_hears_on_its_loop_that_no_call_waits),
        cmocka_unit_test(made_while_that_mail_is_on_its_way_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
