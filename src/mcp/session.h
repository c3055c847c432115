/* session: a user's session with an MCP server, and how it is opened.
 *
 * mcp/client.h draws the states. A session collects the calls that wait for it. When it is open
 * the client posts them, and when it cannot be opened the client fails them: that is what the
 * client's session events are for. This header also has the parts of a client that its files
 * share.
 *
 * Private to mcp/.
 *
 * Memory   owned by its client.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25, "Lifecycle"; 2026-07-28, "Versioning". */
#ifndef WEIR_MCP_SESSION_H
#define WEIR_MCP_SESSION_H

#include "mcp/client.h"
#include "mcp/generation.h"
#include "mcp/post.h"
#include "mcp/stream.h"

struct mcp_session {
    struct list link; /* most recently used first */
    struct mcp_client *client;
    enum mcp_session_state state;
    unsigned generation; /* counts how often it was opened */
    char *user, *workspace, *conversation;
    struct buf id;       /* empty: the server uses no ids */
    const char *version; /* NULL: not negotiated yet */
    struct list waiting; /* calls that wait until it is open */
    size_t calls;        /* number of calls that belong to it */
    struct post post;    /* carries the greeting */
    struct task refused; /* reports why the greeting could not be sent */
    struct err why;
    struct mcp_stream *stream; /* what the server sends outside calls; NULL: none */
    bool hearing;              /* an event of the stream is being handled: it must stay */
    uint64_t greeted_ms;       /* on the loop's clock, when the greeting was sent */
    uint64_t greeting_ms;      /* until it was answered */
    struct timer patience;     /* with a server that does not say whether it offers one */
};

/* None is called before mcp_session_open() has returned, except `ready` for a server that is
 * known to be stateless. */
struct mcp_session_events {
    void (*ready)(struct mcp_session *session);                         /* post what waits */
    void (*failed)(struct mcp_session *session, const struct err *why); /* fail what waits */
    /* The server sent this outside a call. */
    void (*asked)(struct mcp_session *session, const struct jsonrpc *message);
};

struct mcp_client {
    unsigned refs;
    struct http_pool *pool;
    struct loop *loop;
    char *endpoint;
    struct mcp_options options;
    const struct mcp_session_events *events;
    enum mcp_generation generation; /* of the server, as far as it is known */
    bool may_listen;
    bool streams_refused;         /* it offers no stream outside calls */
    bool streams_slow;            /* it answers a GET only with the first event */
    struct pipe_posts pipe_posts; /* for a program; its pipe is NULL over HTTP */
    uint64_t last_id;
    struct list sessions, calls, notes;
    size_t session_count, note_count;
};

/* The session of this user, found or made. A program has one for everybody. */
struct mcp_session *mcp_session_for(struct mcp_client *client, const struct mcp_caller *wanted);
void mcp_session_free(struct mcp_session *session); /* it has no calls */

struct mcp_caller mcp_session_caller(const struct mcp_session *session);

/* Open a fresh session. Its caller's conversation is sent with the greeting. */
void mcp_session_open(struct mcp_session *session, struct str conversation);

/* The server no longer knows the session that was opened as this generation. All its calls
 * notice; only the first one resets it. */
void mcp_session_lose(struct mcp_session *session, unsigned generation);

#endif
