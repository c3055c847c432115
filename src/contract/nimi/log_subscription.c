#include "contract/nimi/log_subscription.h"

#include "base/mem.h"
#include "contract/nimi/owner.h"
#include "rpc/topic_wire.h"

#include <assert.h>
#include <stdlib.h>

#define SUBSCRIPTION_PAGE_BYTES TOPIC_TURN_BYTES
#define EVENT_MAX_BYTES (4 * MIB)

const struct state log_subscription_states[LOG_SUBSCRIPTION_STATE_COUNT] = {
    [LOG_SUBSCRIPTION_NEW] = {"new", TO(LOG_SUBSCRIPTION_READING) | TO(LOG_SUBSCRIPTION_OVER)},
    [LOG_SUBSCRIPTION_READING] = {"reading",
                                  TO(LOG_SUBSCRIPTION_READING) | TO(LOG_SUBSCRIPTION_FULL) |
                                      TO(LOG_SUBSCRIPTION_LIVE) | TO(LOG_SUBSCRIPTION_OVER)},
    [LOG_SUBSCRIPTION_FULL] = {"full",
                               TO(LOG_SUBSCRIPTION_READING) | TO(LOG_SUBSCRIPTION_OVER)},
    [LOG_SUBSCRIPTION_LIVE] = {"live", TO(LOG_SUBSCRIPTION_READING) |
                                           TO(LOG_SUBSCRIPTION_FULL) |
                                           TO(LOG_SUBSCRIPTION_OVER)},
    [LOG_SUBSCRIPTION_OVER] = {"over", 0},
};

struct log_subscription {
    struct rpc_call *rpc; /* first: rpc/topic_wire.h */
    struct nimi_call *call;
    struct log_subscription_options options; /* texts kept by the call */
    struct log_topics *topics;
    enum log_subscription_state state;
    bool begun;      /* its headers are sent */
    uint64_t cursor; /* the newest event that it has, or does not want */
    struct event_log_ask *ask;
    struct log_topic *source;
    struct topic_reader reader;
};

/* The only function that changes the state. */
static void log_subscription_move(struct log_subscription *subscription,
                                  enum log_subscription_state next) {
    assert(states_allow(log_subscription_states, subscription->state, next));
    subscription->state = next;
}

static void log_subscription_read_on(struct log_subscription *subscription);

/* --- live --------------------------------------------------------------------------------- */

static bool log_subscription_is_wanted(const struct log_subscription *subscription,
                                       struct str label) {
    return !subscription->options.wants ||
           subscription->options.wants(label, subscription->options.filter);
}

/* The topic may still be behind what was read from the store. */
static bool live_wants(struct str label, void *ctx) {
    const struct log_subscription *subscription = ctx;
    uint64_t sequence;
    memcpy(&sequence, label.at, LOG_TOPIC_LABEL_BYTES);
    return sequence > subscription->cursor &&
           log_subscription_is_wanted(subscription, str_skip(label, LOG_TOPIC_LABEL_BYTES));
}

static void detach(struct log_subscription *subscription) {
    uint64_t seen = topic_reader_cursor(&subscription->reader);
    if (subscription->reader.view && seen > subscription->cursor) subscription->cursor = seen;
    topic_reader_stop(&subscription->reader);
    subscription->reader = (struct topic_reader){.view = NULL};
}

/* Its next event is no longer in the window, but in the store it may be. */
static void live_lost(void *ctx) {
    struct log_subscription *subscription = ctx;
    detach(subscription);
    if (!subscription->call->over) log_subscription_read_on(subscription);
}

static const struct topic_wire live_wire = {
    .room = rpc_topic_room,
    .put = rpc_topic_put,
    .queued = rpc_topic_queued,
    .wake_at = rpc_topic_wake_at,
    .wants = live_wants,
    .lost = live_lost,
};

/* Go on with the topic, from the cursor. False: its window does not reach back that far. */
static bool attach(struct log_subscription *subscription, uint64_t last) {
    const struct log_subscription_options *options = &subscription->options;
    if (!subscription->source)
        subscription->source = log_topic_get(subscription->topics, options->kind, &options->key,
                                             options->store, subscription->call->loop, last);
    struct topic *topic = log_topic_of(subscription->source);
    uint64_t newest = topic_last(topic);
    uint64_t after = subscription->cursor < newest ? subscription->cursor : newest;
    if (topic_reader_start(&subscription->reader, topic, subscription->call->loop, TOPIC_AFTER,
                           after, &live_wire, subscription)) {
        log_subscription_move(subscription, LOG_SUBSCRIPTION_LIVE);
        return true;
    }
    topic_reader_stop(&subscription->reader);
    subscription->reader = (struct topic_reader){.view = NULL};
    return false;
}

/* --- from the store ----------------------------------------------------------------------- */

static void log_subscription_send_event(struct log_subscription *subscription,
                                        const struct event_log_event *event) {
    const struct log_kind *kind = subscription->options.kind;
    struct arena *arena = arena_new(LOG_EVENT_ARENA_BYTES);
    struct buf bytes;
    void *message;
    uint64_t *sequence;
    buf_init(&bytes, EVENT_MAX_BYTES);
    if (kind->read(event, arena, &message, &sequence)) {
        *sequence = event->sequence;
        if (pb_encode(kind->type, message, &bytes))
            rpc_send(subscription->rpc, buf_str(&bytes));
    }
    buf_done(&bytes);
    arena_free(arena);
}

/* Where it begins. False: what was read is not what it needs. */
static bool place(struct log_subscription *subscription, const struct event_log_page *page) {
    bool from_there = subscription->cursor <= page->last;
    if (subscription->options.live) {
        subscription->cursor = page->last;
    } else if (!from_there || subscription->cursor < page->dropped) {
        subscription->cursor = page->dropped;
    }
    subscription->begun = true;
    rpc_establish(subscription->rpc);
    return subscription->options.live || from_there;
}

static void end_slow(struct log_subscription *subscription) {
    log_subscription_move(subscription, LOG_SUBSCRIPTION_OVER);
    nimi_end(subscription->call, ERR_RESOURCE_EXHAUSTED,
             STR("slow consumer: events that were not read are gone; subscribe again"));
}

static void take_page(struct log_subscription *subscription,
                      const struct event_log_page *page) {
    for (size_t i = 0; i < page->count && !subscription->call->over; i++) {
        const struct event_log_event *event = &page->events[i];
        if (log_subscription_is_wanted(subscription, event->label))
            log_subscription_send_event(subscription, event);
        subscription->cursor = event->sequence;
    }
    if (subscription->call->over) return;
    if (page->more || !attach(subscription, page->last)) log_subscription_read_on(subscription);
}

static void log_subscription_on_page(const struct event_log_page *page,
                                     const struct err *failed, void *ctx) {
    struct log_subscription *subscription = ctx;
    subscription->ask = NULL;
    if (subscription->call->over) return;
    /* Before a log's first event nothing is missed. */
    if (!failed && subscription->begun && subscription->cursor < page->first)
        subscription->cursor = page->first;
    if (failed) {
        log_subscription_move(subscription, LOG_SUBSCRIPTION_OVER);
        owner_refuse(subscription->call, failed);
    } else if (!subscription->begun && !place(subscription, page)) {
        log_subscription_read_on(subscription);
    } else if (subscription->cursor < page->dropped) {
        end_slow(subscription);
    } else {
        take_page(subscription, page);
    }
}

/* A live one asks only for the number of the newest event. */
static void log_subscription_read_on(struct log_subscription *subscription) {
    const struct log_subscription_options *options = &subscription->options;
    bool first = !subscription->begun;
    if (rpc_pressure(subscription->rpc) >= TOPIC_HIGH_BYTES) {
        log_subscription_move(subscription, LOG_SUBSCRIPTION_FULL);
        rpc_wake_at(subscription->rpc, TOPIC_LOW_BYTES);
        return;
    }
    log_subscription_move(subscription, LOG_SUBSCRIPTION_READING);
    subscription->ask =
        event_log_read_start(options->store, subscription->call->loop, &options->key,
                             first && options->live ? INT64_MAX : subscription->cursor,
                             SUBSCRIPTION_PAGE_BYTES, log_subscription_on_page, subscription);
}

/* --- the call ----------------------------------------------------------------------------- */

static void log_subscription_on_drained(void *ctx) {
    struct log_subscription *subscription = ctx;
    if (subscription->state == LOG_SUBSCRIPTION_FULL) log_subscription_read_on(subscription);
    if (subscription->state == LOG_SUBSCRIPTION_LIVE)
        topic_reader_drained(&subscription->reader);
}

static void log_subscription_stop(struct log_subscription *subscription) {
    event_log_forget(subscription->ask);
    subscription->ask = NULL;
    topic_reader_stop(&subscription->reader);
    log_topic_unref(subscription->source);
    subscription->source = NULL;
    if (subscription->state != LOG_SUBSCRIPTION_OVER)
        log_subscription_move(subscription, LOG_SUBSCRIPTION_OVER);
}

/* The call is ended as CANCELLED right after this. */
static void log_subscription_on_stopping(void *ctx) {
    struct log_subscription *subscription = ctx;
    if (subscription->state == LOG_SUBSCRIPTION_LIVE)
        topic_reader_flush(&subscription->reader, TOPIC_HIGH_BYTES);
    log_subscription_stop(subscription);
}

static void log_subscription_on_cancelled(enum close_cause why, void *ctx) {
    (void)why;
    log_subscription_stop(ctx);
}

static void log_subscription_on_closed(void *ctx) {
    struct log_subscription *subscription = ctx;
    log_subscription_stop(subscription);
    log_topics_unref(subscription->topics);
    free(subscription->options.filter);
    free(subscription);
}

static const struct nimi_work work = {
    .drained = log_subscription_on_drained,
    .stopping = log_subscription_on_stopping,
    .cancelled = log_subscription_on_cancelled,
    .closed = log_subscription_on_closed,
};

void log_subscription_start(struct nimi_call *call,
                            const struct log_subscription_options *options) {
    struct log_subscription *subscription = MEM_NEW(struct log_subscription);
    struct event_log_key *key = &subscription->options.key;
    subscription->rpc = call->rpc;
    subscription->call = call;
    subscription->topics = log_topics_ref(call->instance->runtime->logs);
    subscription->options = *options;
    key->owner.app = nimi_keep(call, options->key.owner.app);
    key->owner.subject = nimi_keep(call, options->key.owner.subject);
    key->name = nimi_keep(call, options->key.name);
    subscription->cursor = options->live ? 0 : options->after;
    nimi_work(call, &work, subscription);
    if (rpc_is_stopping(call->rpc)) {
        rpc_establish(call->rpc);
        nimi_end(call, ERR_CANCELLED, NIMI_STOPPING_TEXT);
        return;
    }
    log_subscription_read_on(subscription);
}

/* --- cursors ------------------------------------------------------------------------------ */

bool log_subscription_cursor(struct str cursor, struct log_subscription_options *ret,
                             struct fault *fault) {
    if (!cursor.len) return true;
    ret->live = false;
    if (str_to_u64(cursor, &ret->after)) {
        if (ret->after > INT64_MAX) ret->after = INT64_MAX; /* never reached, in any case */
        return true;
    }
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the cursor is no decimal number; send the sequence of the last event "
                     "that you have, or none");
}
