/* log_subscription: a call that sends the events of a stored log until one side ends it (mode D).
 *
 *     new ─▶ reading ⇄ full        from the store, page by page, while it lags
 *               │ ▲
 *               ▼ │ fell out of the window
 *              live                from the topic that all subscribers share (log_topic.h)
 *
 *     client cancels, or leaves          freed at once
 *     the daemon stops                   what is there and fits, then CANCELLED in plain words
 *     its next event is not kept         RESOURCE_EXHAUSTED
 *     it takes nothing at all            RESOURCE_EXHAUSTED after limits.write_stall (rpc/)
 *
 * Between what is stored and what comes nothing is missing or repeated: events go by number. A
 * cursor that is older than what is kept, or was never reached, gives all that is kept, and the
 * gap in the numbers says so.
 *
 * Private to contract/nimi.
 *
 * Memory   lives as long as its call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.1 K-STREAM-010, 6.7, 9 numbers 10, 11, 36; checks.md K24, K35.
 */
#ifndef WEIR_CONTRACT_NIMI_LOG_SUBSCRIPTION_H
#define WEIR_CONTRACT_NIMI_LOG_SUBSCRIPTION_H

#include "base/states.h"
#include "contract/nimi/call.h"
#include "contract/nimi/log_topic.h"

struct log_subscription_options {
    const struct log_kind *kind;
    struct event_log_key key; /* borrowed */
    struct store *store;
    bool live;      /* only what comes; else what is kept after `after` first */
    uint64_t after; /* 0: all that is kept */
    /* Whether an event with this label is sent. NULL: every event. */
    bool (*wants)(struct str label, const void *filter);
    void *filter; /* taken: ends with free() */
};

/* Let the call be a subscription. Its headers are sent when it would miss nothing any more. */
void log_subscription_start(struct nimi_call *call,
                            const struct log_subscription_options *options);

/* Read a cursor: the decimal sequence of the last event that the caller has. An empty one leaves
 * *ret as it is.
 * errors  PROTOCOL_ENVELOPE_INVALID */
MUST_CHECK bool log_subscription_cursor(struct str cursor, struct log_subscription_options *ret,
                                        struct fault *fault);

/* --- its states, for tests ---------------------------------------------------------------- */

enum log_subscription_state {
    LOG_SUBSCRIPTION_NEW,
    LOG_SUBSCRIPTION_READING, /* waits for the store */
    LOG_SUBSCRIPTION_FULL,    /* waits for its transport */
    LOG_SUBSCRIPTION_LIVE,    /* reads the topic */
    LOG_SUBSCRIPTION_OVER,
    LOG_SUBSCRIPTION_STATE_COUNT,
};

extern const struct state log_subscription_states[LOG_SUBSCRIPTION_STATE_COUNT];

#endif
