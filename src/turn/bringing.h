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

/* Whether the session's past is the one that the caller knows. False: the run has failed. */
bool run_check_past(struct run *run);

/* The history in `run->seen` belongs before the run's conversation, unless the caller's list is the
 * whole conversation. It is put there when it is read: most of the work is to copy it. */
void run_precede(struct run *run);

/* Put the history there now, if it is not. Indexes of messages change. */
void run_show_history(struct run *run);

/* Compare it with the session's history to find what is new. False: the run has failed. */
bool run_take_brought(struct run *run);

/* Append the new messages in place of the caller's latest one. */
void run_append_brought(struct run *run);

#endif
