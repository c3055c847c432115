/* grpc_keep: open gRPC calls that are not in use.
 *
 * A bidirectional call may carry several exchanges, one after the other. Between two of them it
 * is parked here under a name, and taken out by that name. A parked call that the server ends
 * is forgotten; one on which the server sends something is cancelled. After GRPC_KEEP_MS we end
 * it in order.
 *
 *     parked ─▶ taken, or: ending ─▶ gone
 *
 * Memory   owns the calls until they are taken.
 * Threads  the loop's. */
#ifndef WEIR_CLIENT_GRPC_KEEP_H
#define WEIR_CLIENT_GRPC_KEEP_H

#include "base/states.h"
#include "client/grpc_call.h"

/* Less than the five minutes after which servers of the runtime contract end an idle
 * connection. */
#define GRPC_KEEP_MS (4 * 60000)

/* How long the server may take to end the call after we did. */
#define GRPC_KEEP_END_MS 2000

/* Park a call under a name, which several calls may share. `server` names the other end. Also
 * allowed inside one of its callbacks. */
void grpc_keep_put(struct http_pool *pool, struct loop *loop, struct str server,
                   struct str name, struct grpc_call *call);

/* Take the newest call of that name, which is the caller's again. NULL: there is none. */
struct grpc_call *grpc_keep_take(struct http_pool *pool, struct loop *loop, struct str name,
                                 const struct grpc_call_sink *sink, void *ctx);

/* End a call in order; its end is not reported. */
void grpc_keep_end(struct http_pool *pool, struct loop *loop, struct grpc_call *call);

/* End the oldest parked call to that server, to make room for another one. */
void grpc_keep_make_room(struct http_pool *pool, struct loop *loop, struct str server);

/* http.c: cancel all of a loop. */
struct place;
void grpc_keep_leave(struct place *place);

/* --- for tests and the drawing ---------------------------------------------------------- */

enum grpc_keep_state {
    GRPC_KEEP_PARKED,
    GRPC_KEEP_ENDING, /* we have ended it; the server has not */
    GRPC_KEEP_GONE,   /* taken, or over */
    GRPC_KEEP_STATE_COUNT,
};

extern const struct state grpc_keep_states[GRPC_KEEP_STATE_COUNT];

#endif
