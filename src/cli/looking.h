/* looking: the configured agents and their tools, for commands that show them.
 *
 * Only the MCP servers of the settings are contacted: they are started, list their tools, and
 * are ended by looking_done(). */
#ifndef WEIR_CLI_LOOKING_H
#define WEIR_CLI_LOOKING_H

#include "daemon/team.h"

/* How long a command waits for MCP servers. */
#define LOOKING_SERVERS_MS 15000

/* The MCP servers, for a command: their pins are kept if there is a store. The caller ends it
 * with mcp_hub_free(). */
struct mcp_hub *looking_hub(const struct config *config, struct http_pool *pool);

struct looking {
    struct http_pool *pool;
    struct mcp_hub *hub; /* NULL: the settings name no servers */
    struct team team;
};

/* errors  those of team_assemble() */
MUST_CHECK bool looking_open(const struct config *config, struct looking *ret, struct err *e);
void looking_done(struct looking *looking);

#endif
