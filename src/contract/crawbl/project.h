/* project: what happens in a run, as ConverseEvents.
 *
 * Memory   encodes straight into the call's queue.
 * Threads  the call's loop.
 * Source   contracts/crawbl.md 1.1 and 2.3 to 2.4; checks.md K10, K12, K13, K21, K30.
 */
#ifndef WEIR_CONTRACT_CRAWBL_PROJECT_H
#define WEIR_CONTRACT_CRAWBL_PROJECT_H

#include "conversation/seam.h"
#include "rpc/rpc.h"
#include "wire/event.h"

/* What one request's answer has shown so far; zero at its beginning. */
struct converse_shown {
    struct seam seam;
    int32_t usages;  /* this wire counts the model calls of each request from 0 */
    char model[256]; /* who answered last, cut; a question names it, too */
};

struct converse_view {
    bool shows_thinking; /* of the agent that speaks */
    bool errors_as_text; /* also say a failure as a chunk, for orchestrators that show none */
};

/* Add the messages that `event` means on this wire: none, one, or (an approval, a failure with
 * errors_as_text) two. The last of a terminal event or an approval is the DoneEvent. */
void converse_project(struct rpc_call *call, const struct event *event,
                      const struct converse_view *view, struct converse_shown *shown);

/* The DoneEvent of a turn that never became a run. */
void converse_refuse(struct rpc_call *call, const struct err *why,
                     const struct converse_view *view);

#endif
