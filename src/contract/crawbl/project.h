/* project: turn the events of a run into ConverseEvents.
 *
 * Memory   encodes straight into the call's queue.
 * Threads  the call's loop.
 * Source   contracts/crawbl.md 1.1 and 2.3 to 2.4; checks.md K10, K12, K13, K21, K30.
 */
#ifndef WEIR_CONTRACT_CRAWBL_PROJECT_H
#define WEIR_CONTRACT_CRAWBL_PROJECT_H

#include "base/buf.h"
#include "conversation/seam.h"
#include "rpc/rpc.h"
#include "wire/event.h"

/* What the answer to one request has shown so far. Between converse_shown_init() and _done(). */
struct converse_shown {
    struct seam seam;
    int32_t usages; /* model calls of this request; this wire numbers them from 0 */
    bool answered;  /* a model has, this one; questions name it too */
    struct buf model;
};

/* The answer to a request begins. */
void converse_shown_init(struct converse_shown *shown);
void converse_shown_done(struct converse_shown *shown);

struct converse_view {
    bool shows_thinking; /* of an event that is thinking: its agent does */
    bool errors_as_text; /* also send failures as text, for orchestrators that hide errors */
};

/* Send the messages for `event`: none, one, or two (for an approval, or a failure with
 * errors_as_text). For a terminal event or an approval the last message is the DoneEvent. */
void converse_project(struct rpc_call *call, const struct event *event,
                      const struct converse_view *view, struct converse_shown *shown);

/* The same for `count` events of text, encoded as a journal has them. */
void converse_project_texts(struct rpc_call *call, struct str texts, size_t count,
                            struct converse_shown *shown);

/* Send the DoneEvent of a turn that never became a run. */
void converse_refuse(struct rpc_call *call, const struct err *why,
                     const struct converse_view *view);

#endif
