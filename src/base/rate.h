/* rate: how many requests each caller may send in a time.
 *
 * A caller has a bucket of tokens. A request takes one. The bucket fills evenly, up to the whole
 * count of the limit. A full bucket is the same as none, so it is forgotten.
 *
 * Memory   owns its buckets, RATE_KEYS_MAX at most, some 100 bytes each. When all are in use, a new
 *          caller shares one bucket with all others that came too late. A key is kept as its
 *          hash, because keys are often secrets.
 * Threads  none; the owner guards it. The clock is an argument.
 */
#ifndef WEIR_BASE_RATE_H
#define WEIR_BASE_RATE_H

#include "base/buf.h"
#include "base/err.h"

#define RATE_KEYS_MAX 10000
#define RATE_COUNT_MAX 1000000

/* `count` requests in `per_ms`, and as many at once. count 0: no limit. */
struct rate_limit {
    uint64_t count, per_ms;
};

/* Read "10/s", "600/m", "5000/h" or "off"; a burst never exceeds the count.
 * errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool rate_limit_read(struct str text, struct rate_limit *ret, struct err *e);

/* Append what rate_limit_read() reads back. */
bool rate_limit_append(struct buf *out, struct rate_limit limit);

static inline bool rate_limit_equal(struct rate_limit a, struct rate_limit b) {
    return a.count == b.count && (!a.count || a.per_ms == b.per_ms);
}

/* A bucket after a request. */
struct rate_room {
    struct rate_limit limit;
    uint64_t left;     /* whole tokens */
    uint64_t reset_ms; /* until the bucket is full again */
    uint64_t wait_ms;  /* 0: the request may go on; else until one token is there */
};

struct rate;

/* NULL for a limit of count 0. */
struct rate *rate_new(struct rate_limit limit);
void rate_free(struct rate *rate); /* accepts NULL */

/* Take one token of this caller. 0: it may ask; else the milliseconds until it may. NULL: it may
 * always. ret_room may be NULL. */
uint64_t rate_take(struct rate *rate, struct str key, uint64_t now_ms,
                   struct rate_room *ret_room);

/* Number of callers with a bucket; some may be full. */
size_t rate_count(const struct rate *rate);

#endif
