/* stream: what an MCP server sends on a GET, asked for again after each end.
 *
 *     resting ─▶ asking ─▶ open        over: refused, lost, late, or in vain
 *        ▲_________│________│
 *
 * A stream without an event to resume after is new: it asks at once. One that resumes rests
 * first, as long as the server wished with `retry:`, else 1 s. From then on each GET has the id
 * of the last event as Last-Event-ID. A GET that brings no event and ends within 10 s is in vain:
 * each one in a row doubles the rest, up to 30 s or the server's wish.
 *
 * Private to mcp/.
 *
 * Memory   the owner ends it with mcp_stream_stop(), which any callback may do.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25, "Transports", Resumability and Redelivery. */
#ifndef WEIR_MCP_STREAM_H
#define WEIR_MCP_STREAM_H

#include "base/states.h"
#include "mcp/client.h"

struct mcp_session;
struct mcp_stream;

enum mcp_stream_state {
    MCP_STREAM_RESTING, /* until the next GET */
    MCP_STREAM_ASKING,  /* a GET was sent */
    MCP_STREAM_OPEN,    /* it was answered with events */
    MCP_STREAM_OVER,
    MCP_STREAM_STATE_COUNT,
};

extern const struct state mcp_stream_states[MCP_STREAM_STATE_COUNT];

struct mcp_stream_options {
    const struct mcp_session *session; /* outlives the stream */
    struct mcp_caller caller;          /* borrowed; outlives it too */
    struct str last_id;                /* of the event to resume after; empty: a new stream */
    const uint64_t *retry_ms;          /* the server's wish so far; NULL: none */
    uint64_t deadline_ms;              /* on the loop's clock; 0: none */
    unsigned vain_max;                 /* GETs in a row; 0: no limit */
};

enum mcp_stream_end {
    MCP_STREAM_REFUSED, /* the server offers none (405), or not this one */
    MCP_STREAM_LOST,    /* it no longer knows the session (404) */
    MCP_STREAM_FAILED,
};

/* None is called before mcp_stream_start() has returned. */
struct mcp_stream_sink {
    void (*on_tried)(void *ctx); /* once, after the first GET: it is open, or failed; or NULL */
    void (*on_event)(struct str data, void *ctx); /* of the type `message`, not empty */
    void (*on_over)(enum mcp_stream_end end, const struct err *why, void *ctx);
};

struct mcp_stream *mcp_stream_start(const struct mcp_stream_options *options,
                                    const struct mcp_stream_sink *sink, void *ctx);
void mcp_stream_stop(struct mcp_stream *stream); /* NULL is fine */

#endif
