/* frames: the server-sent events of /stream. Private to this contract.
 *
 * Memory   everything is borrowed during the call.
 * Threads  the call's loop.
 * Source   contracts/agentbreeder.md 2.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_FRAMES_H
#define WEIR_CONTRACT_AGENTBREEDER_FRAMES_H

#include "contract/agentbreeder/outcome.h"
#include "route/route.h"

/* Send {key: text}. An empty name sends an unnamed event. */
void frame_object(struct route_call *call, struct str name, const char *key, struct str text);

/* Send {"delta": text} for this text, and for each of `more`, encoded as a journal has them. */
void frame_deltas(struct route_call *call, struct str text, struct str more);

void frame_error(struct route_call *call, enum err_code code, struct str message);

/* `event` is an EVENT_TOOL_CALL. */
void frame_tool_call(struct route_call *call, const struct event *event);

/* `result` is JSON, or empty. */
void frame_step(struct route_call *call, struct str agent, struct str description,
                struct str result);

/* Send an EVENT_APPROVAL as a step of its own. */
void frame_approval(struct route_call *call, const struct outcome *outcome,
                    const struct event *event);

/* Send the response object that outcome_write() makes of this event. */
void frame_result(struct route_call *call, const struct outcome *outcome,
                  const struct event *event);

#endif
