#include "contract/nimi/subscription.h"

#include "base/mem.h"
#include "rpc/topic_wire.h"

#include <stdlib.h>

struct subscription {
    struct rpc_call *rpc; /* first: rpc/topic_wire.h */
    struct nimi_call *call;
    struct topic_reader reader;
    bool (*wants)(struct str label, const void *filter);
    void *filter;
    void (*turned)(uint64_t cursor, void *ctx);
    void (*left)(void *ctx); /* NULL: it was called, or need not be */
    void *ctx;
};

static void subscription_leave(struct subscription *subscription) {
    void (*left)(void *ctx) = subscription->left;
    subscription->left = NULL;
    if (left) left(subscription->ctx);
}

/* --- the wire ----------------------------------------------------------------------------- */

static bool subscription_wants(struct str label, void *ctx) {
    const struct subscription *subscription = ctx;
    return subscription->wants(label, subscription->filter);
}

static void subscription_turned(uint64_t cursor, void *ctx) {
    const struct subscription *subscription = ctx;
    if (subscription->turned) subscription->turned(cursor, subscription->ctx);
}

static void subscription_ended(enum err_code code, const char *text, void *ctx) {
    struct subscription *subscription = ctx;
    subscription_leave(subscription);
    if (!subscription->call->over) nimi_end(subscription->call, code, str_from(text));
}

static void subscription_lost(void *ctx) {
    struct subscription *subscription = ctx;
    subscription_leave(subscription);
    if (subscription->call->over) return;
    nimi_end(subscription->call, ERR_RESOURCE_EXHAUSTED,
             STR("slow consumer: events that were not read are gone; subscribe again"));
}

static const struct topic_wire wire_all = {
    .room = rpc_topic_room,
    .put = rpc_topic_put,
    .queued = rpc_topic_queued,
    .wake_at = rpc_topic_wake_at,
    .lost = subscription_lost,
    .ended = subscription_ended,
    .turned = subscription_turned,
};

static const struct topic_wire wire_some = {
    .room = rpc_topic_room,
    .put = rpc_topic_put,
    .queued = rpc_topic_queued,
    .wake_at = rpc_topic_wake_at,
    .wants = subscription_wants,
    .lost = subscription_lost,
    .ended = subscription_ended,
    .turned = subscription_turned,
};

/* --- the call ----------------------------------------------------------------------------- */

static void subscription_on_drained(void *ctx) {
    topic_reader_drained(&((struct subscription *)ctx)->reader);
}

/* The call is ended as CANCELLED right after this. */
static void subscription_on_stopping(void *ctx) {
    struct subscription *subscription = ctx;
    topic_reader_flush(&subscription->reader, TOPIC_HIGH_BYTES);
    topic_reader_stop(&subscription->reader);
    subscription_leave(subscription);
}

static void subscription_on_cancelled(enum close_cause why, void *ctx) {
    struct subscription *subscription = ctx;
    (void)why;
    topic_reader_stop(&subscription->reader);
    subscription_leave(subscription);
}

static void subscription_on_closed(void *ctx) {
    struct subscription *subscription = ctx;
    topic_reader_stop(&subscription->reader);
    subscription_leave(subscription);
    free(subscription->filter);
    free(subscription);
}

static const struct nimi_work work = {
    .drained = subscription_on_drained,
    .stopping = subscription_on_stopping,
    .cancelled = subscription_on_cancelled,
    .closed = subscription_on_closed,
};

struct subscription *subscription_start(struct nimi_call *call,
                                        const struct subscription_options *options,
                                        bool *ret_reaches) {
    struct subscription *subscription = MEM_NEW(struct subscription);
    subscription->rpc = call->rpc;
    subscription->call = call;
    subscription->wants = options->wants;
    subscription->filter = options->filter;
    subscription->turned = options->turned;
    subscription->left = options->left;
    subscription->ctx = options->ctx;
    nimi_work(call, &work, subscription);
    rpc_establish(call->rpc);
    bool reaches = topic_reader_start(&subscription->reader, options->topic, call->loop,
                                      options->start, options->after,
                                      options->wants ? &wire_some : &wire_all, subscription);
    if (ret_reaches) *ret_reaches = reaches;
    return subscription;
}

void subscription_settle(struct nimi_call *call, struct subscription *subscription) {
    if (!rpc_is_stopping(call->rpc) || call->over) return;
    subscription_on_stopping(subscription);
    nimi_end(call, ERR_CANCELLED, NIMI_STOPPING_TEXT);
}

/* --- cursors ------------------------------------------------------------------------------ */

bool subscription_cursor(struct str cursor, struct subscription_options *ret,
                         struct fault *fault) {
    ret->start = TOPIC_LIVE;
    if (!cursor.len) return true;
    ret->start = TOPIC_AFTER;
    if (str_to_u64(cursor, &ret->after)) return true;
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the cursor is no decimal number; send the sequence of the last event "
                     "that you have, or none");
}
