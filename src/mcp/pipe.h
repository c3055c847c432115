/* pipe: an MCP server that is a program on this machine, over its standard streams.
 *
 * Both sides send one JSON-RPC message per line. The program is started when it is first needed
 * and again after it has ended, but not more often than its back-off allows:
 *
 *     down ─▶ up ─▶ resting ─▶ up            (250 ms, doubled at each early end, at most 30 s)
 *      ▲_______│________│                    stopped by us
 *
 * Its standard error goes to the log line by line, at most a few lines per second. A line of
 * more than 4 MiB ends the program; a line that is not a message is logged and skipped,
 * unless it shows which call it answers: that call is over.
 *
 * For mcp/ and the sidecar.
 *
 * Memory   owned by its client. Messages are lent.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25, "Transports", stdio. */
#ifndef WEIR_MCP_PIPE_H
#define WEIR_MCP_PIPE_H

#include "base/err.h"
#include "base/states.h"
#include "loop/loop.h"
#include "wire/json.h"

#define PIPE_LINE_MAX_BYTES (4 * MIB)

enum pipe_state { PIPE_DOWN, PIPE_UP, PIPE_RESTING, PIPE_STATE_COUNT };

extern const struct state pipe_states[PIPE_STATE_COUNT];

struct mcp_pipe;

struct pipe_options {
    struct loop *loop;
    struct str name;                /* of the server, for the log */
    const char *const *args;        /* the program and its arguments; ends with NULL */
    const char *const *environment; /* "NAME=value"; ends with NULL */
};

struct pipe_events {
    void (*on_message)(struct json value, void *ctx);
    /* A line that is no JSON; NULL: not asked for. */
    void (*on_unread)(struct str line, void *ctx);
    void (*on_down)(const struct err *why, void *ctx); /* it ended, not by pipe_free() */
};

/* The options' texts are borrowed and outlive it. */
struct mcp_pipe *pipe_new(const struct pipe_options *options, const struct pipe_events *events,
                          void *ctx);
void pipe_free(struct mcp_pipe *pipe); /* NULL is fine; ends the program */

/* Start the program unless it runs.
 * errors  ERR_NOT_FOUND there is no such program; ERR_UNAVAILABLE it rests, and until when */
MUST_CHECK bool pipe_start(struct mcp_pipe *pipe, struct err *e);

/* Send one message. False: it cannot be taken now. */
MUST_CHECK bool pipe_send(struct mcp_pipe *pipe, struct str message);

/* The server is known to be broken: end it. on_down is called. */
void pipe_fail(struct mcp_pipe *pipe, const char *why);

#endif
