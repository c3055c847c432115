/* turn: the calls of this contract that have an agent work. Private to it.
 *
 * Each is a run read by a stream; when the caller leaves before its end, the run is cancelled
 * or goes on, as he or the settings say, also a run that somebody else began and he resumed.
 *
 * Memory   a turn lives from its request until its answer is out or its caller gone.
 * Threads  the desk's loop.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_TURN_H
#define WEIR_CONTRACT_AGENTBREEDER_TURN_H

#include "contract/agentbreeder/runtime.h"

route_fn turn_invoke, turn_stream, turn_resume;

/* End every open turn of the desk CANCELLED. */
void turn_cut_all(struct runtime_desk *desk);

#endif
