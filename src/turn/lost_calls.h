/* lost_calls: the calls of a turn whose process died before they were answered.
 *
 * A call is recorded before it is made, and its answer afterwards. If the process dies between
 * the two, the record shows that the call may have taken effect. It is never made again. The
 * next process records what is known of it (conversation/effect.h), and later turns of that
 * session read that.
 *
 * Memory   calls own copies of their ids.
 * Threads  none; values only.
 * Source   design.md "The run"; checks.md K26, K27.
 */
#ifndef WEIR_TURN_LOST_CALLS_H
#define WEIR_TURN_LOST_CALLS_H

#include "base/text.h"
#include "wire/event.h"

/* One call, and who asked for it. */
struct lost_call {
    struct text call_id, agent;
    bool held; /* waiting for a human's approval: it was not made */
    bool idempotent;
    bool answered;
};

struct lost_calls {
    struct lost_call *calls;
    size_t count, room;
    struct buf reply;   /* the text of the unfinished reply */
    struct buf speaker; /* the agent that gave it */
};

void lost_calls_init(struct lost_calls *calls);
void lost_calls_done(struct lost_calls *calls);

/* Read a stretch of a run's events. False: one does not decode. */
MUST_CHECK bool lost_calls_read(struct lost_calls *calls, struct str events);

/* Whether a call that is not idempotent was made, answered or not. */
bool lost_calls_acted(const struct lost_calls *calls);

/* Append encoded events that account for the unanswered calls: for each, a tool result with an
 * error. *ret_unknown: how many of them have an unknown effect. False at the buffer's limit. */
bool lost_calls_close(const struct lost_calls *calls, struct buf *out, size_t *ret_count,
                      size_t *ret_unknown);

#endif
