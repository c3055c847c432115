/* turn: one /invoke or /stream, from the checked request to the last byte. Private to this
 * contract.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_TURN_H
#define WEIR_CONTRACT_AGENTBREEDER_TURN_H

#include "contract/agentbreeder/request.h"
#include "contract/agentbreeder/runtime.h"
#include "stream/stream.h"

struct turn {
    struct list link; /* in desk->calls */
    struct route_call *call;
    struct runtime_desk *desk;
    struct arena *arena;
    struct runtime_request request;
    struct stream *stream;
    struct run *run;
    bool gone; /* the peer left: nothing more is sent */
    int64_t started_unix_ms;
    struct buf history; /* the tools of this run, items of a JSON array */
    struct open_call *open_calls;
    size_t open_call_count;
};

/* Answer a failure that came before the turn was established. */
void turn_refuse(struct route_call *call, const struct err *why);

/* Note what `event` adds to the history; call it with every event. */
void turn_note(struct turn *turn, const struct event *event);

/* The response object of a run that is done, or waits for a human (EVENT_APPROVAL). */
void turn_write_result(struct turn *turn, const struct event *event, struct buf *out);

route_fn turn_invoke, turn_stream;

#endif
