/* request: one JSON-RPC message of a client of the tool server, read.
 *
 * Memory   what is read borrows the text of the message.
 * Threads  none; values only.
 * Source   Model Context Protocol 2025-11-25, "Messages", "Tools" and "Cancellation";
 *          2026-07-28, "Versioning".
 */
#ifndef WEIR_TOOLSERVER_REQUEST_H
#define WEIR_TOOLSERVER_REQUEST_H

#include "wire/jsonrpc.h"

enum toolserver_method {
    TOOLSERVER_INITIALIZE,
    TOOLSERVER_DISCOVER,
    TOOLSERVER_PING,
    TOOLSERVER_LIST,
    TOOLSERVER_CALL,
    TOOLSERVER_CANCELLED, /* a notification: the request `cancels` is not wanted any more */
    TOOLSERVER_NOTE,      /* any other notification, or the answer to a question */
    TOOLSERVER_UNKNOWN,   /* a request that is not served */
};

struct toolserver_request {
    enum toolserver_method method;
    struct json id;     /* of a request: a string or an integer */
    struct json name;   /* the method, a string */
    struct json params; /* an object, or JSON_NONE */
    struct json token; /* for its progress: a string or an integer; JSON_NONE: none is wanted */
    struct json version; /* of a stateless request; JSON_NONE: it names none in `_meta` */
    struct json cancels; /* of TOOLSERVER_CANCELLED */
};

/* errors  ERR_MALFORMED it is no message of JSON-RPC, or its id or its token is too long */
MUST_CHECK bool toolserver_request_read(struct json value, struct toolserver_request *ret,
                                        struct err *e);

/* The id to refuse an unreadable message with: its own if it has one, else null. */
struct str toolserver_request_id(struct json value);

/* Check `_meta` of a stateless request.
 * errors  ERR_INVALID_ARGUMENT says which member is missing */
MUST_CHECK bool toolserver_request_check_meta(const struct toolserver_request *request,
                                              struct err *e);

#endif
