/* sending: a message to an MCP server with its caller's headers and authorization.
 *
 * Private to mcp/.
 *
 * Memory   the message is copied into the post.
 * Threads  one loop's. */
#ifndef WEIR_MCP_SENDING_H
#define WEIR_MCP_SENDING_H

#include "mcp/session.h"

struct mcp_sending {
    const struct mcp_caller *caller;
    const struct mcp_session *session; /* provides id and version; NULL: no session yet */
    const char *version;               /* in place of the session's; NULL: that */
    struct str body, method, name;
    struct str last_id;             /* of a GET: the event to resume after; or empty */
    const struct http_header *more; /* headers */
    size_t more_count;
    uint64_t id, total_ms;
    bool once;
};

/* Whether the headers that name the caller can carry its ids as they are. A server that does
 * not learn who calls would act for someone else.
 * errors  ERR_INVALID_ARGUMENT an id has a character that no header carries, or begins or ends with
 *         a space, which a header loses */
MUST_CHECK bool mcp_caller_check(const struct mcp_client *client,
                                 const struct mcp_caller *caller, struct err *e);

/* Stop the post and start it again with this message.
 * errors  those of the client's `authorize`; the post is then unchanged */
MUST_CHECK bool mcp_send(struct mcp_client *client, const struct mcp_sending *sending,
                         struct post *post, const struct post_sink *sink, void *ctx,
                         struct err *e);

/* Start a GET of events, which has no body.
 * errors  those of the client's `authorize` */
MUST_CHECK bool mcp_get(struct mcp_client *client, const struct mcp_sending *sending,
                        const struct http_sink *sink, void *ctx, struct http_call **ret,
                        struct err *e);

#endif
