/* call: one `tools/call`, from its request to its answer, as a tool sees it.
 *
 *     starting ─▶ running ─▶ answered
 *         │          ├─────▶ cancelled   the client does not want it any more
 *         │          └─────▶ left        its connection is gone
 *         └─▶ answered                   at once
 *
 * A tool answers exactly once: with a result, or with a refusal. It watches the call to learn
 * that no answer is wanted; after `cancelled` or `left` it must not touch the call, and after its
 * own answer neither.
 *
 * A call that names its run can be resumed: its events then have ids (cursor.h).
 *
 * Memory   belongs to its exchange.
 * Threads  the loop of its server.
 * Source   Model Context Protocol 2025-11-25, "Tools", "Progress" and "Cancellation".
 */
#ifndef WEIR_TOOLSERVER_CALL_H
#define WEIR_TOOLSERVER_CALL_H

#include "base/states.h"
#include "toolserver/toolserver.h"
#include "wire/jsonrpc.h"

enum toolserver_call_state {
    TOOLSERVER_CALL_STARTING,
    TOOLSERVER_CALL_RUNNING,
    TOOLSERVER_CALL_ANSWERED,
    TOOLSERVER_CALL_CANCELLED,
    TOOLSERVER_CALL_LEFT,
    TOOLSERVER_CALL_STATE_COUNT,
};

extern const struct state toolserver_call_states[TOOLSERVER_CALL_STATE_COUNT];

/* Each but `drained` may be the last callback, and is called at most once. None is called from
 * inside a function of this header. */
struct toolserver_call_watch {
    void (*cancelled)(void *ctx);
    /* resumable: the client may come back for the rest */
    void (*left)(bool resumable, void *ctx);
    /* The deadline of the stop has passed: answer now. */
    void (*cut)(void *ctx);
    /* See route_wake_at(); may be NULL. */
    void (*drained)(void *ctx);
};
void toolserver_call_watch(struct toolserver_call *call,
                           const struct toolserver_call_watch *watch, void *ctx);

/* Whose call it is; valid as long as the call. */
const struct toolserver_caller *toolserver_call_caller(const struct toolserver_call *call);

/* The transport of its answer, for route_queued(), route_wake_at(), route_stalled_ms() and
 * route_cut(). */
struct route_call *toolserver_call_route(const struct toolserver_call *call);
struct loop *toolserver_call_loop(const struct toolserver_call *call);

/* `_meta` of its request; JSON_NONE: it has none. Valid until the handler returns. */
struct json toolserver_call_meta(const struct toolserver_call *call);

/* Memory that lives as long as the call. */
struct arena *toolserver_call_arena(const struct toolserver_call *call);

/* The call is this run: a client whose stream breaks may ask for what comes after the events that
 * it got. */
void toolserver_call_set_run(struct toolserver_call *call, uint64_t run, uint64_t after_seq);

/* A resumed call: its caller may have it, and the rest follows. Until then a refusal is a status
 * of HTTP. */
void toolserver_call_resumed(struct toolserver_call *call);

bool toolserver_call_wants_progress(const struct toolserver_call *call);

/* Report progress if it is wanted. `progress` rises; `meta` is a JSON object, or empty. With a
 * run, `progress` is the seq of the last event that the report covers. */
void toolserver_call_report(struct toolserver_call *call, uint64_t progress, struct str message,
                            struct str meta);

/* Keep the connection busy: a comment, if an event stream is open. */
void toolserver_call_heartbeat(struct toolserver_call *call);

/* Answer with a CallToolResult, a JSON object. */
void toolserver_call_answer(struct toolserver_call *call, struct str result);

/* The same with one text that is an error for the model. */
void toolserver_call_fail(struct toolserver_call *call, struct str text);

/* Answer with an error of JSON-RPC: the call itself was wrong. */
void toolserver_call_refuse(struct toolserver_call *call, int64_t code, struct str message);

#endif
