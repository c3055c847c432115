/* hub_inner: an MCP server as the files of the hub share it. Private to mcp/, between hub.c and
 * remote.c. */
#ifndef WEIR_MCP_HUB_INNER_H
#define WEIR_MCP_HUB_INNER_H

#include "base/states.h"
#include "mcp/hub.h"

#include <pthread.h>
#include <stdatomic.h>

enum mcp_server_state {
    MCP_SERVER_STARTING, /* its tools have not been listed yet */
    MCP_SERVER_LISTED,
    MCP_SERVER_AWAY, /* the last listing failed; the tools of the one before stay */
    MCP_SERVER_STATE_COUNT,
};

extern const struct state mcp_server_states[MCP_SERVER_STATE_COUNT];

struct mcp_server {
    struct list link;
    struct mcp_hub *hub;
    atomic_uint refs;
    struct buf key; /* all options as text */
    struct arena *arena;
    struct mcp_options options;
    struct mail begin, close;

    /* On the hub's loop. */
    struct mcp_client *client;
    struct mcp_listing *listing; /* NULL: no listing is running */
    bool again;                  /* list again after this one */
    struct timer retry;
    uint64_t retry_ms;
    bool change_reported;       /* since the last list */
    uint64_t listed_ms;         /* when it was listed */
    uint64_t apart_ms;          /* how soon after that a change is listed again */
    struct mcp_call *listening; /* to changes, of a stateless server; NULL: it does not */
    uint64_t listening_since_ms, listen_ms;
    struct list remotes;

    /* Published; guarded by the mutex. */
    enum mcp_server_state state;
    struct mcp_tools *tools;
};

/* Post to the hub's loop. False: the hub has stopped. */
bool mcp_hub_post(struct mcp_hub *hub, struct mail *mail, task_fn *fn, void *ctx);

/* What an operator can do about it, in front. `ret` is a copy. */
void mcp_server_advise(const struct mcp_server *server, const struct err *failed,
                       struct err *ret);

/* The hub stops: cancel the open calls. Their turns have ended, or get no answer. */
void mcp_remote_cut_all(struct mcp_server *server);

#endif
