/* turn: the calls of this contract that run an agent. Private to it.
 *
 * Each call reads a run with a stream. When the caller leaves early, the run is cancelled or
 * goes on, as the request or the settings say. This includes a run that another caller started
 * and this one resumed.
 *
 * Memory   a turn lives from its request until its answer is out or its caller is gone.
 * Threads  the instance's loop.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_TURN_H
#define WEIR_CONTRACT_AGENTBREEDER_TURN_H

#include "contract/agentbreeder/runtime.h"

route_fn turn_invoke, turn_stream, turn_resume;

#endif
