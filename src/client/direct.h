/* direct: the carrier for nearly every call: our own connections.
 *
 *     new ─▶ dialling ─▶ asking ─▶ reading ─▶ over
 *                 ▲         │
 *                 └─ redirected
 *
 * Private to client/.
 */
#ifndef WEIR_CLIENT_DIRECT_H
#define WEIR_CLIENT_DIRECT_H

#include "base/states.h"
#include "client/call.h"
#include "client/url.h"

enum direct_state {
    DIRECT_NEW,
    DIRECT_DIALLING,   /* looks up the name, connects, secures */
    DIRECT_ASKING,     /* the request is being sent; no head yet */
    DIRECT_REDIRECTED, /* the body of a redirect is read and dropped */
    DIRECT_READING,
    DIRECT_OVER,
    DIRECT_STATE_COUNT,
};

extern const struct state direct_states[DIRECT_STATE_COUNT];

/* Let `call` be carried by our own connections. `url` has been read from request->url.
 * errors  ERR_INVALID_ARGUMENT the request */
MUST_CHECK bool direct_carry(struct http_call *call, const struct http_request *request,
                             struct err *e);

#endif
