/* chain: a list of models with fallback.
 *
 * If a model fails before its first output, for a reason that the next one may not share
 * (unreachable, timeout, rate limit, quota, overload, server error, key), the next model is
 * asked and a note reports it. There is no fallback after the first output, because the caller
 * would get half an answer twice, or when the request was refused.
 *
 * Memory   borrows its providers.
 * Threads  as provider.h.
 */
#ifndef WEIR_PROVIDER_CHAIN_H
#define WEIR_PROVIDER_CHAIN_H

#include "provider/provider.h"

struct chain_link {
    struct provider *provider;
    struct str model; /* replaces the request's model; empty: keep the request's */
};

/* At least one link. `links` is copied; the providers and texts in it are borrowed. */
struct provider *chain_provider_new(struct str name, const struct chain_link *links,
                                    size_t count);

#endif
