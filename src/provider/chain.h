/* chain: several models in a row; the next one is asked when one does not answer.
 *
 * A model that failed before it said anything, for a reason that another may not share
 * (unreachable, time, rate, quota, overload, error, key), hands on to the next, and a note says
 * so. What failed after its first word, or was refused, is not asked of another: nobody wants
 * half an answer twice.
 *
 * Memory   borrows the providers behind it.
 * Threads  as provider.h.
 */
#ifndef WEIR_PROVIDER_CHAIN_H
#define WEIR_PROVIDER_CHAIN_H

#include "provider/provider.h"

struct chain_link {
    struct provider *provider;
    struct str model; /* asked for instead of the request's; empty: the request's */
};

/* `links` (copied; their providers and text borrowed), at least one. */
struct provider *chain_provider_new(struct str name, const struct chain_link *links,
                                    size_t count);

#endif
