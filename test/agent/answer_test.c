#include "agent/answer.h"

#include "base/mem.h"
#include "helper/assert_str.h"
#include "helper/reply_heard.h"

#include <stdlib.h>

/* A call that is nothing but its answer, and a listener who may cancel or pause it. */
struct heard {
    struct answer *answer;
    struct buf words;
    bool drops, pauses, freed;
};

struct call {
    struct answer answer;
    struct heard *heard;
};

static void free_call(struct answer *answer) {
    struct call *call = CONTAINER_OF(answer, struct call, answer);
    assert_false(call->heard->freed);
    call->heard->freed = true;
    answer_done(answer);
    free(call);
}

static void on_reply(const struct reply_event *event, void *ctx) {
    struct heard *heard = ctx;
    reply_heard(&heard->words, NULL, event);
    if (event->kind == REPLY_USAGE)
        buf_printf(&heard->words, "%lld+%lld=%lld cached %lld cost %lld ",
                   (long long)event->usage->prompt, (long long)event->usage->completion,
                   (long long)event->usage->total, (long long)event->usage->cached,
                   (long long)event->usage->cost_nano);
    if (heard->pauses) heard->answer->gate.closed = true;
    if (heard->drops) answer_drop(heard->answer);
}

static void begin(struct heard *heard) {
    struct call *call = MEM_NEW(struct call);
    *heard = (struct heard){.answer = &call->answer};
    buf_init(&heard->words, MIB);
    call->heard = heard;
    answer_init(&call->answer, on_reply, heard, free_call);
}

static const struct reply_event text = {.kind = REPLY_TEXT, .text = STR_INIT("a")};
static const struct reply_event over = {.kind = REPLY_DONE, .model = STR_INIT("m")};

static void ended(struct heard *heard, const char *expected) {
    assert_true(heard->freed);
    assert_str(buf_str(&heard->words), expected);
    buf_done(&heard->words);
}

static void an_ending_frees_the_call_once(void **state) {
    (void)state;
    struct heard heard;
    begin(&heard);
    assert_true(answer_give(heard.answer, &text));
    assert_true(answer_give(heard.answer, &over));
    ended(&heard, "text(a) done(m) ");
}

static void a_listener_may_cancel_from_inside(void **state) {
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct heard heard;
        begin(&heard);
        heard.drops = true;
        assert_false(answer_give(heard.answer, last ? &over : &text));
        ended(&heard, last ? "done(m) " : "text(a) ");
    }
}

static void events_held_back_by_a_pause_are_delivered_in_order(void **state) {
    (void)state;
    struct heard heard;
    begin(&heard);
    heard.pauses = true;
    assert_true(answer_give(heard.answer, &text));
    assert_true(answer_paused(heard.answer));
    assert_true(answer_give(heard.answer, &text));
    assert_true(answer_give(heard.answer, &over));
    assert_false(heard.freed);
    heard.answer->gate.closed = false;
    assert_true(answer_release(heard.answer));
    assert_false(heard.freed);
    heard.answer->gate.closed = heard.pauses = false;
    assert_true(answer_release(heard.answer));
    ended(&heard, "text(a) text(a) done(m) ");
}

#define SUMS "usage(large) 9223372036854775807+4=7 cached 4 cost 5 "

static void tokens_before(const struct reply_event *ending, const char *expected) {
    struct heard heard;
    begin(&heard);
    struct event_usage usage = USAGE_UNKNOWN;
    usage.prompt = 3;
    usage.cached = 2;
    usage.cost_nano = 5;
    answer_count(heard.answer, &usage, STR("small"));
    usage.prompt = INT64_MAX;
    usage.completion = 4;
    usage.total = 7;
    usage.cost_nano = TOKENS_UNKNOWN;
    answer_count(heard.answer, &usage, STR("large"));
    assert_true(answer_give(heard.answer, ending));
    ended(&heard, expected);
}

static void tokens_are_added_and_reported_once_before_any_ending(void **state) {
    (void)state;
    const struct reply_event failed = {
        .kind = REPLY_FAILED, .text = STR("why"), .reason = STR("R")};
    tokens_before(&over, SUMS "done(m) ");
    tokens_before(&failed, SUMS "failed(R) ");
}

static void a_listener_may_cancel_when_it_hears_of_tokens(void **state) {
    (void)state;
    struct heard heard;
    begin(&heard);
    answer_count(heard.answer, &USAGE_UNKNOWN, STR("m"));
    heard.drops = true;
    assert_false(answer_give(heard.answer, &over));
    ended(&heard, "usage(m) -1+-1=-1 cached -1 cost -1 ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ending_frees_the_call_once),
        cmocka_unit_test(a_listener_may_cancel_from_inside),
        cmocka_unit_test(events_held_back_by_a_pause_are_delivered_in_order),
        cmocka_unit_test(tokens_are_added_and_reported_once_before_any_ending),
        cmocka_unit_test(a_listener_may_cancel_when_it_hears_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
