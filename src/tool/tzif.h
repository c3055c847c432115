/* tzif: the file of one time zone.
 *
 *     header | times | which | kinds | names | leap seconds | flags      of 32 bits
 *     header | times | which | kinds | names | leap seconds | flags      of 64 bits
 *     \n rule \n                                                         for all later times
 *
 * At times[i] the clocks begin to show kinds[which[i]]. libc reads such files only for the
 * zone of the whole process; this reads any zone, on any thread.
 *
 * Memory   a struct tzif borrows the bytes that were read.
 * Threads  any; values only.
 * Source   RFC 9636. */
#ifndef WEIR_TOOL_TZIF_H
#define WEIR_TOOL_TZIF_H

#include "tool/tzrule.h"

#define TZIF_MAX_BYTES (64 * KIB)

struct tzif {
    struct str times, which, kinds;
    size_t time_count, kind_count;
    size_t time_bytes; /* 4 or 8 */
    bool ruled;        /* `rule` is set, for times after the last one */
    struct tzrule rule;
};

/* errors  ERR_MALFORMED, ERR_UNIMPLEMENTED it counts leap seconds */
MUST_CHECK bool tzif_read(struct str bytes, struct tzif *ret, struct err *e);

/* How far the zone's clocks are ahead of UTC at a moment, in seconds. */
int32_t tzif_offset(const struct tzif *zone, int64_t unix_s);

#endif
