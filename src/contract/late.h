/* late: a refusal whose timing reveals nothing.
 *
 * A run that a caller may not see is refused with the same words as one that does not exist.
 * The timing would still give it away, because another caller's run must be found and read
 * before its owner is known. So both refusals are sent at a moment that depends only on when
 * the request arrived.
 *
 * Memory   a plain value, in the struct of its request; it must not move while a refusal waits.
 * Threads  the loop of the call.
 */
#ifndef WEIR_CONTRACT_LATE_H
#define WEIR_CONTRACT_LATE_H

#include "loop/alarm.h"
#include "route/route.h"

/* Sends the refusal; it may end the request. */
typedef void late_refuse_fn(struct route_call *call, void *ctx);

struct late {
    uint64_t began_us;
    struct alarm *alarm; /* NULL: no refusal is waiting */
    struct route_call *call;
    late_refuse_fn *refuse;
    void *ctx;
};

/* Begin it as soon as the caller is known. */
void late_begin(struct late *late);
void late_refuse(struct late *late, struct loop *loop, struct route_call *call,
                 late_refuse_fn *refuse, void *ctx);
void late_stop(struct late *late); /* when the request is over; harmless when none waits */

#endif
