#include "job/clocks.h"

static void on_first(void *ctx) {
    struct clocks *clocks = ctx;
    clocks->on_expired("the model did not begin to answer in time; ask again later",
                       clocks->ctx);
}

static void clocks_on_idle(void *ctx) {
    struct clocks *clocks = ctx;
    clocks->on_expired("the model stopped in the middle of its answer; ask again later",
                       clocks->ctx);
}

static void on_total(void *ctx) {
    struct clocks *clocks = ctx;
    clocks->on_expired("the answer took longer than its limit; ask for less, or for more time",
                       clocks->ctx);
}

void clocks_init(struct clocks *clocks, struct loop *loop,
                 const struct model_call_clocks *limits, uint64_t asked_ms,
                 void (*on_expired)(const char *why, void *ctx), void *ctx) {
    *clocks = (struct clocks){.loop = loop,
                              .limits = *limits,
                              .asked_ms = asked_ms,
                              .on_expired = on_expired,
                              .ctx = ctx};
    timer_init(&clocks->first, loop, on_first, clocks);
    timer_init(&clocks->idle, loop, clocks_on_idle, clocks);
    timer_init(&clocks->total, loop, on_total, clocks);
}

/* Start a clock with the rest of a limit that counts from the caller's request. */
static void start_clock(struct clocks *clocks, struct timer *timer, uint64_t limit_ms) {
    uint64_t gone_ms = loop_now_ms(clocks->loop) - clocks->asked_ms;
    if (limit_ms) timer_start(timer, gone_ms < limit_ms ? limit_ms - gone_ms : 0);
}

void clocks_start(struct clocks *clocks) {
    start_clock(clocks, &clocks->first, clocks->limits.first_ms);
    start_clock(clocks, &clocks->total, clocks->limits.total_ms);
}

void clocks_heard(struct clocks *clocks) {
    timer_stop(&clocks->first);
    if (clocks->limits.idle_ms && !clocks->held)
        timer_start(&clocks->idle, clocks->limits.idle_ms);
}

void clocks_hold(struct clocks *clocks, bool hold) {
    clocks->held = hold;
    if (hold) {
        timer_stop(&clocks->idle);
    } else if (!timer_waits(&clocks->first)) {
        clocks_heard(clocks);
    }
}

void clocks_stop(struct clocks *clocks) {
    timer_stop(&clocks->first);
    timer_stop(&clocks->idle);
    timer_stop(&clocks->total);
}
