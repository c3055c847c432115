/* held: the bodies that the requests in flight keep in memory, together.
 *
 * A limit for each body does not bound the process: a thousand requests may each be below it.
 * What a request keeps is added here as it comes, and leaves when the request is over.
 *
 * Threads  one loop's.
 */
#ifndef WEIR_SIDECAR_HELD_H
#define WEIR_SIDECAR_HELD_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct held {
    uint64_t bytes, max_bytes;
};

/* What one request keeps. */
struct holding {
    struct held *held;
    uint64_t bytes;
};

/* False: it does not fit now, and nothing was added. */
MUST_CHECK static inline bool holding_add(struct holding *holding, uint64_t bytes) {
    struct held *held = holding->held;
    if (bytes > held->max_bytes - held->bytes) return false;
    held->bytes += bytes;
    holding->bytes += bytes;
    return true;
}

static inline void holding_end(struct holding *holding) {
    holding->held->bytes -= holding->bytes;
    holding->bytes = 0;
}

#endif
