/* lost_calls: the calls of a turn whose record broke off before they were answered: its process
 * died, or the store refused the rest.
 *
 * A call is recorded before it is made, and its answer afterwards. If the record breaks off between
 * the two, it shows that the call may have taken effect. The call is never made again. Who ends the
 * record (recover.h, late_ends.h) writes what is known of it (conversation/effect.h), and later
 * turns of that session read that.
 *
 * Memory   calls own copies of their ids.
 * Threads  none; values only.
 * Source   design.md "The run"; checks.md K26, K27.
 */
#ifndef WEIR_TURN_LOST_CALLS_H
#define WEIR_TURN_LOST_CALLS_H

#include "base/err.h"
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
    uint64_t read;      /* events, from the run's first */
    struct buf reply;   /* the text of the unfinished reply */
    struct buf speaker; /* the agent that gave it */
};

void lost_calls_init(struct lost_calls *calls);
void lost_calls_done(struct lost_calls *calls);

/* Read a stretch of a run's events. False: one does not decode. */
MUST_CHECK bool lost_calls_read(struct lost_calls *calls, struct str events);

/* Whether a call that is not idempotent was made, answered or not. */
bool lost_calls_acted(const struct lost_calls *calls);

/* Why the record broke off, in words. */
struct lost_cause {
    enum err_code code;
    struct str reason;
    struct str unmade, out; /* of a call that was not made, and of one that was not answered */
    struct str acted, harmless; /* of the turn, if a call may have acted, and if none did */
};

extern const struct lost_cause lost_by_stop;  /* the process ended */
extern const struct lost_cause lost_by_store; /* the store refused what came later */

/* Append the encoded events that end the run: for each unanswered call a tool result with an error,
 * then a failure. `whole`: all of the run's events were read. *ret_unknown: how many calls have an
 * unknown effect. False at the buffer's limit. */
bool lost_calls_end(const struct lost_calls *calls, bool whole, const struct lost_cause *cause,
                    struct buf *out, size_t *ret_unknown);

#endif
