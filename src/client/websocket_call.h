/* websocket_call: a WebSocket to another server.
 *
 *     dialling ─▶ asking ─▶ open ─▶ over      (over from everywhere)
 *                    └─▶ refused ─▶ over
 *
 * The opening handshake is checked strictly (upgrade.h). Pings are answered. A server that is
 * silent is sent a ping, and one that answers none, or reads nothing, is left.
 *
 * A proxy is not used: the environment's http_proxy has no effect here.
 *
 * Memory   the request is copied. A call frees itself after on_end, or by websocket_call_free().
 * Lends    messages and the end to the callbacks.
 * Threads  the loop's.
 * Source   RFC 6455 4.1, 5.5, 7.
 */
#ifndef WEIR_CLIENT_WEBSOCKET_CALL_H
#define WEIR_CLIENT_WEBSOCKET_CALL_H

#include "base/states.h"
#include "client/http.h"
#include "wire/websocket.h"

#define WEBSOCKET_REFUSAL_MAX_BYTES (64 * KIB)

enum websocket_call_state {
    WEBSOCKET_CALL_DIALLING, /* looks up the name, connects, secures */
    WEBSOCKET_CALL_ASKING,   /* the handshake was sent */
    WEBSOCKET_CALL_REFUSED,  /* the answer is not a 101: its body is read */
    WEBSOCKET_CALL_OPEN,
    WEBSOCKET_CALL_OVER,
    WEBSOCKET_CALL_STATE_COUNT,
};

extern const struct state websocket_call_states[WEBSOCKET_CALL_STATE_COUNT];

struct websocket_request {
    struct str url; /* http: or https:, which stand for ws: and wss: */
    const struct http_header *headers;
    size_t header_count;
    enum http_reach reach;
    uint64_t open_ms;         /* until it is open; 0: 10 s */
    uint64_t ping_ms;         /* a silence so long is answered with a ping; 0: 20 s */
    uint64_t stall_ms;        /* no answer to a ping, or nothing read, for so long; 0: 20 s */
    size_t message_max_bytes; /* of one message that comes, joined */
};

struct websocket_end {
    /* Why. ERR_UNAVAILABLE no connection, refused, broken; ERR_DEADLINE_EXCEEDED;
     * ERR_MALFORMED, ERR_TOO_LARGE what came; ERR_PERMISSION_DENIED out of reach;
     * ERR_INVALID_ARGUMENT the request. ERR_NONE: the server closed it with 1000. */
    struct err why;
    bool opened;     /* it was open */
    unsigned status; /* of an answer that refused it; 0: there was none */
    struct str body; /* of that answer, its first 64 KiB */
    unsigned code;   /* of the server's close; 0: none came */
};

/* None runs before websocket_call_start() has returned, or after on_end. Each may end the call
 * with websocket_call_free(). */
struct websocket_sink {
    void (*on_open)(void *ctx);
    void (*on_message)(struct str data, enum websocket_kind kind, void *ctx); /* text, binary */
    void (*on_sent)(void *ctx); /* all that waited was sent */
    void (*on_end)(const struct websocket_end *end, void *ctx);
};

struct websocket_call;

/* Never NULL: on_end reports errors in the request. */
struct websocket_call *websocket_call_start(struct http_pool *pool, struct loop *loop,
                                            const struct websocket_request *request,
                                            const struct websocket_sink *sink, void *ctx);

/* Send one text message of an open call. False: so much waits already that the server seems not
 * to read (8 MiB), and nothing was sent. */
MUST_CHECK bool websocket_call_send(struct websocket_call *call, struct str text);

/* Bytes that wait to be sent. */
size_t websocket_call_unsent(const struct websocket_call *call);

/* Read nothing until the call is resumed. What the last read had brought, at most 16 KiB beyond
 * the message that is being reported, still comes. Pings are not answered meanwhile. */
void websocket_call_pause(struct websocket_call *call);
void websocket_call_resume(struct websocket_call *call);

/* End it: an open one with a close (1000) that is sent if the connection takes it at once. No
 * more callbacks. Accepts NULL. */
void websocket_call_free(struct websocket_call *call);

#endif
