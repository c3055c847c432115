/* run_state: the state of a run. A turn may go through all of them. A job or a single model
 * call goes from queued to working and ends.
 *
 * Threads  any.
 * Source   design.md "The run". */
#ifndef WEIR_RECORD_RUN_STATE_H
#define WEIR_RECORD_RUN_STATE_H

#include "base/states.h"
#include "base/str.h"

enum run_state {
    RUN_QUEUED,
    RUN_ASKING,
    RUN_WORKING,
    RUN_WAITING,
    RUN_DONE,
    RUN_FAILED,
    RUN_CANCELLED,
    RUN_STATE_COUNT,
};

extern const struct state run_states[RUN_STATE_COUNT];

#endif
