/* bringing: a turn whose caller sends a whole conversation, not just the latest message.
 *
 * Messages that the session already has are skipped; only the rest is new.
 *
 * Memory   a plain value inside its run; its texts are in the run's arena.
 * Threads  the loop of its run.
 * Source   run.h, enum brought_policy.
 */
#ifndef WEIR_TURN_BRINGING_H
#define WEIR_TURN_BRINGING_H

#include "conversation/import.h"
#include "turn/run.h"

struct brought {
    struct str list; /* the caller's messages in the form of a BROUGHT_ITEM, or empty */
    enum brought_policy policy;
    struct import fresh; /* the new ones among them, once the run has its session */
};

/* Keep the conversation in `request`. False: it is larger than a run may hold. */
bool run_keep_brought(struct run *run, const struct run_request *request);

/* Put the part of the session's history that the run uses before its conversation. */
void run_precede(struct run *run);

/* Compare it with the session's history to find what is new. False: the run has failed. */
bool run_take_brought(struct run *run);

/* Append the new messages in place of the caller's latest one. */
void run_append_brought(struct run *run);

#endif
