/* locator: where a bank is: a scope, and the ids of whom it is for.
 *
 * A locator's key is its encoding with its scope filled in: two locators are the same when their
 * keys are. A bank is stored under its key, and events are labelled with it.
 *
 * Private to contract/nimi/memory.
 *
 * Memory   a locator borrows the texts of the request; its key is its own.
 * Threads  any; values only.
 * Source   contracts/nimi.md 1.11.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_LOCATOR_H
#define WEIR_CONTRACT_NIMI_MEMORY_LOCATOR_H

#include "contract/nimi/fault.h"
#include "store/bank.h"

struct locator {
    struct nimi_memory_bank_locator message; /* complete */
    struct str key;
    char room[BANK_LOCATOR_MAX_BYTES];
};

/* errors of all three  PROTOCOL_ENVELOPE_INVALID */
MUST_CHECK bool locator_read(const struct nimi_memory_bank_locator *from, struct locator *ret,
                             struct fault *fault);
MUST_CHECK bool locator_read_public(const struct nimi_public_memory_bank_locator *from,
                                    struct locator *ret, struct fault *fault);
MUST_CHECK bool locator_read_filter(const struct nimi_memory_bank_owner_filter *from,
                                    struct locator *ret, struct fault *fault);

/* Filters of a list or a subscription. An empty kind of filter lets every bank through. */
struct locator_filter {
    uint32_t scopes; /* a set of 1 << scope; 0: any */
    size_t count;    /* 0: any owner */
    struct str keys[];
};

#define LOCATOR_FILTERS_MAX 100

/* In one block that ends with free(). NULL: refused. */
struct locator_filter *locator_filter_new(const int32_t *scopes, size_t scope_count,
                                          const struct nimi_memory_bank_owner_filter *owners,
                                          size_t owner_count, struct fault *fault);

bool locator_filter_wants(struct str key, const void *filter);

#endif
