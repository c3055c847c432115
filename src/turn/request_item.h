/* request_item: what a caller asked of a turn and no other event holds, for a run that waits.
 *
 * A run that waits for a human is made again from its events after a restart. The schema of its
 * answer and the tools of its caller are written before its first question, and only there: most
 * runs never need them.
 *
 * Memory   none of its own; what is read is in the run's arena.
 * Threads  the loop of the run.
 * Source   checks.md K26.
 */
#ifndef WEIR_TURN_REQUEST_ITEM_H
#define WEIR_TURN_REQUEST_ITEM_H

#include "base/str.h"

struct run;

#define REQUEST_ITEM "application/vnd.weir.request+json"

/* Append the item, if there is something to keep and it was not kept before. */
void run_append_request(struct run *run);

/* Take it back. False: the run's memory is full, or the bytes were not written by us. */
bool run_restore_request(struct run *run, struct str bytes);

#endif
