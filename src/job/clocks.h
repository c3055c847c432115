/* clocks: how long a provider may take to answer.
 *
 * Three clocks limit an answer: the wait for its first word, the silence between two words, and
 * the whole. The first and the last start when the caller asked. None of them resets another.
 * The silence clock stands still while the caller does not read, since nothing more is
 * requested meanwhile.
 *
 *     asked ─────── first ───────▶ word ── idle ──▶ word ── idle ──▶ ... ─▶ end
 *       └──────────────────────────────── total ─────────────────────────────▶
 *
 * Memory   a plain value inside its owner; clocks_stop() before that goes.
 * Threads  the loop it was made for.
 * Source   contracts/nimi.md 3.1 rule 007, 3.2 K-DAEMON-008.
 */
#ifndef WEIR_JOB_CLOCKS_H
#define WEIR_JOB_CLOCKS_H

#include "loop/loop.h"

/* The reason of a failure caused by one of these clocks. */
#define CLOCKS_REASON "PROVIDER_TIMEOUT"

struct model_call_clocks {
    uint64_t first_ms, idle_ms, total_ms; /* 0: that one does not run */
};

struct clocks {
    struct loop *loop;
    struct model_call_clocks limits;
    uint64_t asked_ms;
    struct timer first, idle, total;
    bool held;
    void (*on_expired)(const char *why, void *ctx); /* `why` is a sentence for people */
    void *ctx;
};

/* asked_ms  when the caller asked, by the loop's clock; the time since then counts */
void clocks_init(struct clocks *clocks, struct loop *loop,
                 const struct model_call_clocks *limits, uint64_t asked_ms,
                 void (*on_expired)(const char *why, void *ctx), void *ctx);

void clocks_start(struct clocks *clocks);
void clocks_heard(struct clocks *clocks); /* a piece of the answer came */
void clocks_hold(struct clocks *clocks,
                 bool hold);             /* the caller stopped reading, or reads again */
void clocks_stop(struct clocks *clocks); /* the answer is over */

#endif
