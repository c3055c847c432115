/* rate: how many requests each caller may send.
 *
 * A caller has a bucket of tokens. A request takes one; the bucket fills evenly, up to the whole
 * count of the rate. A full bucket is the same as none, so it is forgotten.
 *
 * Memory   owns its buckets, RATE_KEYS_MAX at most. When they are all in use, a new caller
 *          shares one bucket with all others that came too late.
 * Threads  one loop's. The clock is an argument.
 */
#ifndef WEIR_SIDECAR_RATE_H
#define WEIR_SIDECAR_RATE_H

#include "sidecar/options.h"

#define RATE_KEYS_MAX 10000

struct rate;

/* NULL for a rate without a limit. */
struct rate *rate_new(struct sidecar_rate limit);
void rate_free(struct rate *rate); /* accepts NULL */

/* Take one token of this caller. 0: it may ask; else the milliseconds until it may. NULL: it may
 * always. */
uint64_t rate_take(struct rate *rate, struct str key, uint64_t now_ms);

/* Number of callers whose bucket is not full. */
size_t rate_count(const struct rate *rate);

#endif
