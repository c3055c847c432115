/* run_events: the events of one stream of AG-UI, each whole, in an order that its clients accept.
 *
 * A message that is open, of text or of reasoning, is closed before anything else comes; so is a
 * step, which is the part of a run in which one agent speaks.
 *
 * Memory   owns its texts; run_events_done() ends it. `call` is borrowed.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_AGUI_RUN_EVENTS_H
#define WEIR_CONTRACT_AGUI_RUN_EVENTS_H

#include "base/text.h"
#include "route/route.h"
#include "wire/event.h"

enum open_message { MESSAGE_CLOSED, MESSAGE_OF_TEXT, MESSAGE_OF_REASONING };

/* A transfer, whose result is not shown either; or, with `args`, a change of the state. */
struct noted_call {
    struct text id, args;
};

struct run_events {
    struct route_call *call;
    struct text thread, run; /* as the client names them */
    uint64_t run_id;
    bool started;
    enum open_message open;
    unsigned messages;        /* begun so far: their ids count them */
    struct text step;         /* the agent that speaks, or empty */
    struct noted_call *noted; /* calls whose result means more than itself */
    size_t noted_count;
    bool has_state;     /* the client has a state, which can be changed */
    struct buf pending; /* calls that the client is to make, as items of a JSON array */
    struct buf usage;   /* of each model call, likewise */
};

void run_events_init(struct run_events *events, struct route_call *call);
void run_events_done(struct run_events *events);

/* Show an event that does not end the stream. Thinking is shown as it is given. */
void run_events_show(struct run_events *events, const struct event *event);

/* The same for texts of one agent, encoded as a journal has them. */
void run_events_show_texts(struct run_events *events, struct str texts);

/* The last event: of a done or cancelled run, one that waits for a person, or a failure. */
void run_events_finish(struct run_events *events, const struct event *last);
void run_events_fail(struct run_events *events, struct str code, struct str message);

#endif
