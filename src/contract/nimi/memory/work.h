/* work: a call of RuntimeCognitionService while the store has it.
 *
 * Private to contract/nimi/memory.
 *
 * Memory   of the request to the store (kept_call.h).
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_WORK_H
#define WEIR_CONTRACT_NIMI_MEMORY_WORK_H

#include "contract/nimi/kept_call.h"
#include "contract/nimi/memory/locator.h"
#include "contract/nimi/page.h"

struct embed;
struct memory_creating;
struct nimi_memory_bank;

struct memory_work {
    struct kept_call kept;
    struct nimi_instance *instance;
    struct locator locator;        /* of the bank; unset in a list */
    struct page page;              /* of a list or a history */
    struct locator_filter *filter; /* of a list */
    struct buf reply;              /* a reply that was made beforehand */
    struct bank_query query;       /* of a recall */
    struct buf words;              /* its text */
    struct embed *embed;           /* a model makes a vector for this call; NULL: none does */
    struct memory_creating *creating; /* a bank with vectors: create.c; NULL: none */
};

/* Read whose the request is, and take over the call. NULL: it was refused. */
struct memory_work *memory_work_new(struct nimi_call *call,
                                    const struct nimi_memory_request_context *context);

/* Before the store has it: refuse the call, and end the work. */
void memory_work_refuse(struct memory_work *work, const struct fault *fault);

void memory_work_end(struct memory_work *work);

/* What the store is asked about: the bank of work->locator. */
struct bank_where memory_where(const struct memory_work *work);

/* A bank of the store as a message, or an empty one: nothing but our own code writes them. */
void memory_bank_of(const struct bank_item *item, struct arena *arena,
                    struct nimi_memory_bank *ret);

/* NULL is fine. */
void memory_creating_free(struct memory_creating *creating);

/* The bytes of an event but for its number and its body; `event` has its detail, if any. */
void memory_event_put(struct buf *out, int32_t type, const struct locator *locator,
                      struct nimi_memory_event event);

#endif
