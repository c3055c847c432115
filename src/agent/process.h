/* process: agents that are programs in any language and exchange lines of JSON with us.
 *
 * What such a program writes becomes the events of a reply (kind.h). A call of a tool ends the
 * reply; the next request brings the result.
 *
 *     turn ─▶ line "turn" ─▶ text, step, ... ─▶ "call" ─▶ (the reply ends: HELD)
 *                ▲                                            │ the turn makes the calls
 *                └── line "result", to the same process ◀─────┘
 *
 * Processes are kept warm and serve one turn at a time. One that waits for its calls is held
 * for a while. If another turn needs it, or the calls take long (a human is asked), it gets the
 * line to drop the turn. The turn then goes on in a process that gets the calls made so far
 * together with their results. The same happens after a restart.
 *
 * A pool serves all loops; each loop has its own processes. Every process has a group and a
 * guard (loop/guard.h), so none outlives us.
 *
 * Memory   the pool outlives the providers; both are the caller's.
 * Threads  process_pool_add() before the loops run; process_pool_leave() and calls: their loop.
 * Source   docs/process-agents.md. */
#ifndef WEIR_AGENT_PROCESS_H
#define WEIR_AGENT_PROCESS_H

#include "agent/kind.h"
#include "base/states.h"

struct process_pool;

struct process_pool *process_pool_new(void);
void process_pool_add(struct process_pool *pool, struct loop *loop);
/* On `loop`, before it stops: kills its processes. No call may be left on it. */
void process_pool_leave(struct process_pool *pool, struct loop *loop);
void process_pool_free(struct process_pool *pool); /* accepts NULL */

/* --- the states of one process, for tests and the drawing ---------------------------------- */

enum process_state {
    PROCESS_IDLE,
    PROCESS_BUSY,     /* has a turn */
    PROCESS_HELD,     /* it waits for the results of its calls */
    PROCESS_DRAINING, /* its turn was dropped; it has yet to confirm that */
    PROCESS_GONE,     /* killed, or ended by itself */
    PROCESS_STATE_COUNT,
};

extern const struct state process_states[PROCESS_STATE_COUNT];

#endif
