/* open_calls: the calls of a caller's list that wait for a result, by their ids.
 *
 * An id may recur. A result answers the newest message that has an open call with its id, and
 * within that message the first such call. Each step takes the same time, however many calls
 * share an id:
 *
 *     id ─▶ first call ─▶ first call of an older message
 *             └─▶ next call of its message
 *
 * Memory   owns its lists; open_calls_done().
 * Threads  none.
 */
#ifndef WEIR_CONVERSATION_OPEN_CALLS_H
#define WEIR_CONVERSATION_OPEN_CALLS_H

#include "base/map.h"

#define OPEN_CALLS_NONE SIZE_MAX

struct open_calls {
    struct map *by_id; /* to the first call of the newest message */
    size_t steps;      /* such calls that were looked at: what tests bound */
};

void open_calls_init(struct open_calls *calls);
void open_calls_done(struct open_calls *calls);

/* A call of the message with this index; indexes never fall. */
void open_calls_add(struct open_calls *calls, struct str id, size_t message, size_t entry);

/* The call that a result with this id answers; it is open no more. OPEN_CALLS_NONE: none. */
size_t open_calls_answer(struct open_calls *calls, struct str id);

#endif
