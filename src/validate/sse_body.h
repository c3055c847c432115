/* sse_body: a whole event stream, read as strictly as its checks need.
 *
 * wire/sse.h reads what a server sends, whatever is odd about it. Here the odd parts count: a
 * line that is no field of an event stream, an event that was cut off, what follows the last.
 *
 * Memory   owns a copy of the events; sse_body_done() frees it.
 * Threads  none.
 * Source   WHATWG HTML, "Server-sent events", Parsing an event stream.
 */
#ifndef WEIR_VALIDATE_SSE_BODY_H
#define WEIR_VALIDATE_SSE_BODY_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/json.h"

#define SSE_BODY_EVENTS_MAX 100000

struct sse_body_event {
    struct str type; /* "message" when it names none */
    struct str data;
    struct json json; /* of the data; kind JSON_NONE when it is not JSON */
};

struct sse_body {
    struct arena *arena;
    struct sse_body_event *events;
    size_t count;
    struct str odd_line; /* the first line that is no field or comment; at == NULL: none */
    size_t valid;        /* where the first byte stands that is not UTF-8; else the length */
    bool cut;            /* it ends inside an event, or its last event has no blank line */
};

/* Read `text`, which must outlive the result.
 * errors  ERR_TOO_LARGE more events than SSE_BODY_EVENTS_MAX */
MUST_CHECK bool sse_body_read(struct str text, struct sse_body *ret, struct err *e);
void sse_body_done(struct sse_body *body);

#endif
