/* subscription: a call that sends the events of a topic until one side ends it (mode D).
 *
 *     client cancels, or leaves          freed at once
 *     the daemon stops                   what is there and fits, then CANCELLED in plain words
 *     the topic ends                     the status of its end, once all events are sent
 *     the reader is too slow             RESOURCE_EXHAUSTED: its next event is gone
 *     it takes nothing at all            RESOURCE_EXHAUSTED after limits.write_stall (rpc/)
 *
 * There is no last frame. All subscribers of a topic share its encoded events.
 *
 * Memory   lives as long as its call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.1 K-STREAM-010, 6.4, 9 numbers 10, 11; checks.md K24, K35.
 */
#ifndef WEIR_CONTRACT_NIMI_SUBSCRIPTION_H
#define WEIR_CONTRACT_NIMI_SUBSCRIPTION_H

#include "contract/nimi/call.h"
#include "topic/topic.h"

struct subscription_options {
    struct topic *topic;
    enum topic_start start;
    uint64_t after; /* TOPIC_AFTER */
    /* Whether an event with this label is sent. NULL: every event. */
    bool (*wants)(struct str label, const void *filter);
    void *filter; /* taken: ends with free() */
    /* For an owner that paces its events, or has one reader. Each may be NULL. */
    void (*turned)(uint64_t cursor, void *ctx); /* as topic_wire has it */
    void (*left)(void *ctx);                    /* the last call: it reads no more */
    void *ctx;
};

struct subscription;

/* Let the call be a subscription, and send its headers. *ret_reaches, unless NULL, is false if
 * events after `after` are gone. */
struct subscription *subscription_start(struct nimi_call *call,
                                        const struct subscription_options *options,
                                        bool *ret_reaches);

/* After the last step of a begin(): a call that came while the daemon stops ends now. */
void subscription_settle(struct nimi_call *call, struct subscription *subscription);

/* Read a cursor: the decimal sequence of the last event that the caller has. An empty one is
 * TOPIC_LIVE.
 * errors  PROTOCOL_ENVELOPE_INVALID */
MUST_CHECK bool subscription_cursor(struct str cursor, struct subscription_options *ret,
                                    struct fault *fault);

#endif
