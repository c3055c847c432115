/* process: agents that are programs of any language, and speak lines of JSON with us.
 *
 * A process agent stands where a model stands: a turn asks it, and what it writes becomes the
 * events of a reply. When it calls a tool the reply ends; the turn's own machinery makes the
 * call, with its policy, its approval, its record and its budget, and asks the agent again,
 * which gets the result.
 *
 *     turn ─▶ line "turn" ─▶ text, step, ... ─▶ "call" ─▶ (the reply ends: HELD)
 *                ▲                                            │ the turn makes the calls
 *                └── line "result", to the same process ◀─────┘
 *
 * Processes are kept warm and serve one turn at a time. One that waits for its calls is held for
 * a while. If another turn needs it, or the calls take long (a human is asked), it is told to
 * drop the turn; then the turn goes on in a process that gets the calls made so far together
 * with their results. The same happens after a restart.
 *
 * A pool serves all loops; each loop has processes of its own. Every process has a group and a
 * guard (loop/guard.h), so none outlives us.
 *
 * Memory   the pool outlives the providers; both are the caller's.
 * Threads  process_pool_add() before the loops run; process_pool_leave() and calls: their loop.
 * Source   docs/process-agents.md.
 */
#ifndef WEIR_AGENT_PROCESS_H
#define WEIR_AGENT_PROCESS_H

#include "provider/provider.h"

/* Reasons of failures, beside those of the agent itself (AGENT_FAILED). */
#define AGENT_FAILED "AGENT_FAILED"
#define AGENT_START "AGENT_START"       /* the program cannot be run */
#define AGENT_ENDED "AGENT_ENDED"       /* it ended in the middle of a turn */
#define AGENT_PROTOCOL "AGENT_PROTOCOL" /* it wrote what is no line of the protocol */
#define AGENT_STALLED "AGENT_STALLED"   /* it wrote nothing for too long */

struct process_pool;

struct process_pool *process_pool_new(void);
void process_pool_add(struct process_pool *pool, struct loop *loop);
/* On `loop`, before it stops: kills its processes. No call may be left on it. */
void process_pool_leave(struct process_pool *pool, struct loop *loop);
void process_pool_free(struct process_pool *pool); /* accepts NULL */

struct process_options {
    struct str name;                /* of the agent, for messages */
    const char *path;               /* of the program */
    const char *const *args;        /* the first is its name; ends with NULL */
    const char *const *environment; /* ends with NULL */
    size_t processes_max;           /* of each loop */
    uint64_t stall_ms;              /* the longest silence while a turn is with it */
    struct process_pool *pool;
};

/* The options are copied, except the pool. */
struct provider *process_provider_new(const struct process_options *options);

/* --- the states of one process, for tests and the drawing ---------------------------------- */

enum process_state {
    PROCESS_IDLE,
    PROCESS_BUSY,     /* a turn is with it */
    PROCESS_HELD,     /* it waits for the results of its calls */
    PROCESS_DRAINING, /* its turn was dropped; it is to say that it has noticed */
    PROCESS_GONE,     /* killed, or ended by itself */
    PROCESS_STATE_COUNT,
};

struct str process_state_name(enum process_state state);
bool process_may_become(enum process_state state, enum process_state next);

#endif
