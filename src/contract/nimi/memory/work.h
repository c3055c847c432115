/* work: a call of RuntimeCognitionService while the store has it.
 *
 * A write is carried out also when its caller has left, and its events must then be told. So the
 * work belongs to the request to the store, and a call that is over lets go of it:
 *
 *     memory_work_new ─▶ ... the store ... ─▶ memory_work_end ─▶ freed
 *                         the call is over: work->call = NULL
 *
 * Private to contract/nimi/memory.
 *
 * Memory   see above.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_WORK_H
#define WEIR_CONTRACT_NIMI_MEMORY_WORK_H

#include "contract/nimi/log_topic.h"
#include "contract/nimi/memory/locator.h"
#include "contract/nimi/owner.h"
#include "contract/nimi/page.h"

struct memory_work {
    struct nimi_call *call; /* NULL: over */
    struct store *store;
    struct log_topics *topics;
    struct store_owner owner; /* in `texts` */
    struct buf texts;
    struct locator locator;        /* of the bank; unset in a list */
    struct page page;              /* of a list or a history */
    struct locator_filter *filter; /* of a list */
    struct buf reply;              /* a reply that was made beforehand */
};

/* Read whose the request is, and take over the call. NULL: it was refused. */
struct memory_work *memory_work_new(struct nimi_call *call,
                                    const struct nimi_memory_request_context *context);

/* Before the store has it: refuse the call, and end the work. */
void memory_work_refuse(struct memory_work *work, const struct fault *fault);

/* What the store is asked about: the bank of work->locator. */
struct bank_where memory_where(const struct memory_work *work);

/* The store has answered. `wrote`: its change is in the log. Returns the call if it is to be
 * answered still; a failure has been. */
struct nimi_call *memory_work_answered(struct memory_work *work, const struct err *failed,
                                       bool wrote);
void memory_work_end(struct memory_work *work);

/* The bytes of an event but for its number and its body. */
void memory_event_put(struct buf *out, int32_t type, const struct locator *locator,
                      struct nimi_memory_event *event);

#endif
