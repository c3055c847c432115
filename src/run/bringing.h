/* bringing: a turn whose caller brings a conversation, and not only his last words.
 *
 * With a session, what it has already is not asked again: only the rest is new.
 *
 * Memory   a plain value inside its run; what it shows is in the run's arena.
 * Threads  the loop of its run.
 * Source   run.h, enum brought_policy.
 */
#ifndef WEIR_RUN_BRINGING_H
#define WEIR_RUN_BRINGING_H

#include "conversation/import.h"
#include "run/run.h"

struct brought {
    struct str list; /* the caller's messages as a BROUGHT_ITEM has them, or empty */
    enum brought_policy policy;
    struct import fresh; /* what of them is new, once the session is ours */
};

/* Keep what `request` brings. False: it is larger than a run may hold. */
bool run_keep_brought(struct run *run, const struct run_request *request);

/* The session's history, as far as the run looks at it, in front of its conversation. */
void run_precede(struct run *run);

/* Look at it beside the session's history: what of it is new. False: the run has failed. */
bool run_take_brought(struct run *run);

/* That takes the place of the caller's last words. */
void run_append_brought(struct run *run);

#endif
