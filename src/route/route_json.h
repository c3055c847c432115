/* route_json: an answer that is one JSON value, or an event that carries one.
 *
 *     route_json_object() ─▶ members ─▶ route_json_reply() or route_json_event()
 *
 * Memory   the caller's, and not moved; a reply or an event ends it, and so does buf_done() of its text.
 * Threads  the call's loop.
 */
#ifndef WEIR_ROUTE_ROUTE_JSON_H
#define WEIR_ROUTE_ROUTE_JSON_H

#include "route/route.h"
#include "wire/json.h"

struct route_json {
    struct buf text;
    struct json_writer w;
};

/* Begin it. The writer is valid until it ends. */
struct json_writer *route_json_begin(struct route_json *json, size_t max_bytes);

/* The same, with an object open. */
struct json_writer *route_json_object(struct route_json *json, size_t max_bytes);

/* Close what is open, and answer the call with it. */
void route_json_reply(struct route_json *json, struct route_call *call, int status);

/* Close what is open, and send it as one event; `name` may be empty. What became longer than it may be
 * is not sent. */
void route_json_event(struct route_json *json, struct route_call *call, struct str name);

#endif
