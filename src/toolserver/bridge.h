/* bridge: a tool server's client on pipes, and the server over HTTP.
 *
 *     client ─ line ─▶ bridge ─ POST ─▶ server          one trip for each message
 *     client ◀─ line ─ bridge ◀─ JSON, or events ─┘
 *
 * Desktop clients start a program and speak lines of JSON-RPC with it. The bridge sends each line
 * to the server as a request of its own, with the session and the version that initialize
 * brought, and passes on what comes back. Every request gets an answer, also when the server
 * cannot be asked. A server that was started again knows no session any more; the message is then
 * sent without one, which a call does not need.
 *
 * Memory   a line is copied; messages are lent to on_message.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25 and 2026-07-28, "stdio" and "Streamable HTTP".
 */
#ifndef WEIR_TOOLSERVER_BRIDGE_H
#define WEIR_TOOLSERVER_BRIDGE_H

#include "client/http.h"

struct toolserver_bridge;

#define TOOLSERVER_LINE_MAX_BYTES (16 * MIB)

struct toolserver_bridge_options {
    struct loop *loop;
    struct http_pool *pool;
    struct str url;           /* of the server: "http://127.0.0.1:8080/mcp" */
    struct str authorization; /* the header's value, or empty */
    /* One message for the client, without a line break. */
    void (*on_message)(struct str message, void *ctx);
    void (*on_idle)(void *ctx); /* the last open trip is over; may be NULL */
    void *ctx;
};

/* The texts of the options are copied. */
struct toolserver_bridge *
toolserver_bridge_new(const struct toolserver_bridge_options *options);
/* Cancels what is open. NULL is fine. */
void toolserver_bridge_free(struct toolserver_bridge *bridge);

/* A line of the client. An empty one is skipped. */
void toolserver_bridge_take(struct toolserver_bridge *bridge, struct str line);

bool toolserver_bridge_is_idle(const struct toolserver_bridge *bridge);

#endif
