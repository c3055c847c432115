/* agent_run: one run of an agent, as AG-UI's events.
 *
 *     started ─▶ RUN_STARTED
 *     text                 TEXT_MESSAGE_START, CONTENT ..., END   one message for each reply
 *     thinking             REASONING_START ... REASONING_END      where the agent shows it
 *     tool_call, result    TOOL_CALL_START, ARGS, END, TOOL_CALL_RESULT   a client's own call has no
 *                                                                 result: the client makes it
 *     another agent        STEP_FINISHED, STEP_STARTED
 *     done                 RUN_FINISHED, with the calls that the client is to make
 *     approval             RUN_FINISHED with an interrupt; the next run's `resume` answers it
 *     failed               RUN_ERROR
 *
 * Memory   lives from its request until its answer is out or its caller is gone.
 * Threads  the guest's loop.
 * Source   AG-UI specification 1.0, events.
 */
#ifndef WEIR_CONTRACT_AGUI_AGENT_RUN_H
#define WEIR_CONTRACT_AGUI_AGENT_RUN_H

#include "route/route.h"

#define AGUI_CONTRACT "agui" /* recorded with the runs */

route_fn agent_run;

#endif
