/* lost_calls: the calls of a turn that its process did not live to see answered.
 *
 * A call is recorded before it is made and its answer after. So when a process dies between the
 * two, the record says that the call may have had its effect. It is never made again: the next
 * process records what is known of it (conversation/effect.h), and whoever goes on in that
 * session reads so.
 *
 * Memory   calls own copies of their ids.
 * Threads  none; values only.
 * Source   design.md "The run"; checks.md K26, K27.
 */
#ifndef WEIR_RUN_LOST_CALLS_H
#define WEIR_RUN_LOST_CALLS_H

#include "base/text.h"
#include "wire/event.h"

/* One call, and who asked for it. */
struct lost_call {
    struct text call_id, tool, agent;
    bool held; /* until a human allows it: it was not made */
    bool idempotent;
    bool answered;
};

struct lost_calls {
    struct lost_call *calls;
    size_t count, room;
    struct buf reply;   /* the text of the reply that was coming in */
    struct buf speaker; /* and whose it is */
};

void lost_calls_init(struct lost_calls *calls);
void lost_calls_done(struct lost_calls *calls);

/* Read a stretch of a run's events. False: one does not decode. */
MUST_CHECK bool lost_calls_read(struct lost_calls *calls, struct str events);

/* Whether one that is not idempotent had left, answered or not. */
bool lost_calls_acted(const struct lost_calls *calls);

/* Append the encoded events that account for those without an answer: a tool result with an
 * error each. *ret_unknown: of how many nobody knows the effect. False at the buffer's limit.
 */
bool lost_calls_close(const struct lost_calls *calls, struct buf *out, size_t *ret_count,
                      size_t *ret_unknown);

#endif
