/* kept_call: a call while the store has its request.
 *
 * A write is carried out also when its caller has left, and its events must be published then.
 * So the work belongs to the request to the store, and a call that is over lets go of it:
 *
 *     kept_call_begin ─▶ ... the store ... ─▶ kept_call_answered ─▶ kept_call_end
 *                         the call is over: kept->call = NULL
 *
 * Private to contract/nimi.
 *
 * Memory   part of the work, which its owner frees after kept_call_end().
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_KEPT_CALL_H
#define WEIR_CONTRACT_NIMI_KEPT_CALL_H

#include "contract/nimi/log_topic.h"
#include "contract/nimi/owner.h"
#include "store/bank.h"

struct kept_call {
    struct nimi_call *call; /* NULL: over */
    struct store *store;
    struct log_topics *topics;
    struct event_log_key log; /* of the events; its owner is whose the request is */
    struct buf texts;         /* owns those of `log` */
    struct bank_ask *search;  /* is given up when the call is over; NULL: none */
    /* Before the store has it: called when the call is over, to end the work. NULL: nothing is
     * under way. */
    void (*left)(struct kept_call *kept);
};

/* Take over the call. `app` and `subject` are those that the request names, `name` is that of the
 * log. False: it was refused, and there is nothing to end. */
MUST_CHECK bool kept_call_begin(struct kept_call *kept, struct nimi_call *call,
                                enum event_log_kind kind, struct str app, struct str subject,
                                struct str name);

/* Before the store has it: end the work, and refuse the call. */
void kept_call_refuse(struct kept_call *kept, const struct fault *fault);

/* The store has answered. `wrote`: its change is in the log. Returns the call if it is to be
 * answered still; a failure has been. */
struct nimi_call *kept_call_answered(struct kept_call *kept, const struct err *failed,
                                     bool wrote);
void kept_call_end(struct kept_call *kept);

#endif
