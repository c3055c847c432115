/* process_turn: what a process agent reads: a turn as one line, and the results of its calls.
 *
 *     {"type":"turn","turn":"7-1","agent":"clerk","session":"s-1","input":"...",
 *      "messages":[...],"calls":[...],"tools":[...],"config":{...},"metadata":{...}}
 *
 * `calls` are the calls that this agent has already made in this turn, in order, with their
 * results. An agent that is asked again (after a restart, or after waiting too long) gives
 * these results to its code instead of making the calls again.
 *
 * Memory   none of its own.
 * Threads  none; values only. */
#ifndef WEIR_AGENT_PROCESS_TURN_H
#define WEIR_AGENT_PROCESS_TURN_H

#include "provider/provider.h"

/* How many calls the request's agent has made in this turn. Each has its result, as far as it
 * is known. */
size_t process_turn_calls(const struct provider_request *request);

/* Append a turn as a line. False at the buffer's limit. */
MUST_CHECK bool process_turn_append(const struct provider_request *request, struct str turn,
                                    struct buf *out);

/* Append a line for the result of each call from number `from` on. */
MUST_CHECK bool process_turn_results(const struct provider_request *request, struct str turn,
                                     size_t from, struct buf *out);

/* Append {"type":"cancel","turn":...}. */
MUST_CHECK bool process_turn_cancel(struct str turn, struct buf *out);

#endif
