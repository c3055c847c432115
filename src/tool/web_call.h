/* web_call: a tool call that gets one answer from the web and reads it on a worker.
 *
 *     start ─▶ get ─▶ judge ─▶ read ─▶ reported      judge refuses: reported at once
 *
 * Memory   the first member of each tool's own call, which the kind's free() ends.
 * Threads  the loop's; read() runs on a worker and may use what the loop leaves alone then.
 */
#ifndef WEIR_TOOL_WEB_CALL_H
#define WEIR_TOOL_WEB_CALL_H

#include "loop/job.h"
#include "tool/get.h"
#include "tool/local.h"

#include <stdatomic.h>

struct tool_call;

struct web_call_kind {
    /* Whether there is an answer to read. False: `why` is set. failed: as in get_done_fn. */
    bool (*judge)(struct tool_call *call, const struct err *failed);
    /* Fill `result`, on a worker. False: `why` is set. */
    bool (*read)(struct tool_call *call);
    /* Free what the kind added, and the call. */
    void (*free)(struct tool_call *call);
};

struct web_call {
    const struct web_call_kind *kind;
    struct loop *loop;
    tool_done_fn *done;
    void *ctx;
    struct timer refused; /* reports bad arguments */
    struct get get;
    struct job job;
    bool reading, succeeded;
    atomic_bool abandoned; /* read() may look at it */
    struct err why;
    struct buf result;
};

/* Fill a zeroed call. */
void web_call_init(struct tool_call *call, const struct web_call_kind *kind, struct loop *loop,
                   tool_done_fn *done, void *ctx);

/* Send the request. */
void web_call_get(struct tool_call *call, struct http_pool *pool,
                  const struct http_request *request, size_t keep_bytes, get_head_fn *on_head);

/* Report `why` later, because the arguments are wrong. */
void web_call_refuse(struct tool_call *call);

/* tool_kind.cancel for these tools. */
void web_call_cancel(struct tool_call *call);

#endif
