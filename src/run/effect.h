/* effect: calls that were made, and of which nobody knows what came.
 *
 * A call is recorded before it is made and its answer after. So when a process dies between the
 * two, the record says that the call may have had its effect. It is never made again: the next
 * process records that its effect is unknown, and whoever asks on in that session, model or
 * human, reads so.
 *
 * Memory   calls own copies of their ids.
 * Threads  none; values only.
 * Source   design.md "The run".
 */
#ifndef WEIR_RUN_EFFECT_H
#define WEIR_RUN_EFFECT_H

#include "wire/event.h"

/* One call, and who asked for it. */
struct effect_call {
    struct str call_id, tool, agent;
    bool held;   /* until a human allows it */
    bool closed; /* answered, or never allowed */
};

struct effect_calls {
    struct effect_call *calls;
    size_t count, room;
};

void effect_calls_init(struct effect_calls *calls);
void effect_calls_done(struct effect_calls *calls);

/* Read a stretch of a run's events. False: one does not decode. */
MUST_CHECK bool effect_calls_read(struct effect_calls *calls, struct str events);

/* All is read: only those stay that were made and not answered. */
void effect_calls_settle(struct effect_calls *calls);

/* Append the encoded event that says so: a tool result with an error. False at the buffer's
 * limit. */
bool effect_append_unknown(const struct effect_call *call, struct buf *out);

/* Whether `result` is one of those. */
bool effect_is_unknown(struct str result);

#endif
