/* runtimes_child: the states of a runtime that is a program of ours; for tests and the drawing.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_ORCHESTRATOR_RUNTIMES_CHILD_H
#define WEIR_ORCHESTRATOR_RUNTIMES_CHILD_H

#include "orchestrator/runtimes.h"

enum child_runtime_state {
    CHILD_RUNTIME_STARTING, /* its health is asked */
    CHILD_RUNTIME_SERVING,
    CHILD_RUNTIME_ENDING, /* it was idle for too long */
    CHILD_RUNTIME_GONE,
    CHILD_RUNTIME_STATE_COUNT,
};

struct str child_runtime_state_name(enum child_runtime_state state);
bool child_runtime_may_become(enum child_runtime_state state, enum child_runtime_state next);

#endif
