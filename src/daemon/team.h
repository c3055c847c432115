/* team: the agents, tools and providers that the configuration describes.
 *
 * Only what is used is built. If no agent uses a vendor's model there is no provider that sends
 * requests, and libcurl is never loaded.
 *
 * Memory   owns what it assembles; borrows the configuration and the pool.
 * Threads  assembled before the loops run, or on another thread for the next snapshot. Assembly
 *          blocks: it reads files and may load a library. Read-only afterwards.
 */
#ifndef WEIR_DAEMON_TEAM_H
#define WEIR_DAEMON_TEAM_H

#include "agent/process.h"
#include "client/http.h"
#include "config/config.h"
#include "engine/engine.h"
#include "mcp/hub.h"
#include "script/script.h"

struct team_own {
    struct agent_tool *tools;
    struct schema *schema;
    struct guardrail **guardrails;
};

struct team {
    struct script *script;      /* NULL: no agent plays one */
    struct tape *tape;          /* NULL: neither recording nor replaying */
    struct http_pool *own_pool; /* of a team that is only checked; else NULL */
    struct provider **providers;
    size_t provider_count;
    struct media **media; /* one per connector, NULL where it has none */
    size_t media_count;
    struct live_model **live; /* likewise, media_count of them */
    struct tool **tools; /* of the script, the operator's own, the built-in ones, of servers */
    size_t tool_count;
    const struct config_own_tool **own_tools; /* the operator's own */
    size_t own_tool_count;
    struct guardrail **guardrails;
    size_t guardrail_count;
    struct mcp_server **servers; /* per MCP server of the settings; a reference */
    size_t server_count;
    bool *settled;                   /* per server, as it was before its tools were read */
    struct team_mcp_tool *mcp_tools; /* the last of `tools` */
    size_t mcp_tool_count;
    struct agent *agents;
    struct team_own *own; /* per agent: what the agent borrows */
    size_t agent_count;
    struct agent_tool *policies; /* from the section `tools` */
    size_t policy_count;
    struct agent_tool *joined_policies; /* and those of MCP servers */
    size_t joined_count;
    struct tool_timeout *timeouts; /* likewise */
    size_t timeout_count;
};

/* A tool of an MCP server. */
struct team_mcp_tool {
    struct str name;
    const struct config_mcp *from;
    enum tool_policy policy; /* of that server's settings */
    bool changed;            /* since it was first seen: mcp/pins.h */
};

/* What a team is built with. */
struct team_resources {
    struct http_pool *pool; /* for the requests of models and tools; NULL: the team is only
                               checked and sends none */
    struct process_pool *processes; /* of agents that are programs; NULL: as for `pool` */
    struct mcp_hub *mcp;            /* knows the MCP servers; NULL: they are not asked */
    struct store *store;            /* keeps memories; NULL: no memories */
    bool media;                     /* make the media providers of connectors */
    struct config *noting; /* the configuration itself: mistakes are noted as its problems and
                               assembly continues; NULL: the first mistake fails it */
};

/* means: borrowed; its members must outlive the team.
 * errors  those of reading and parsing the script, a tool that does not exist or lacks its
 *         settings, an invalid schema, a missing library */
MUST_CHECK bool team_assemble(const struct config *config,
                              const struct team_resources *resources, struct team *ret,
                              struct err *e);
void team_done(struct team *team);

/* Make one provider of the settings, by itself. The caller ends it with provider_free().
 * errors  ERR_FAILED_PRECONDITION it is the scripted one, which sends no requests; those of the
 *         pool */
MUST_CHECK bool team_provider_new(const struct config_provider *from, struct http_pool *pool,
                                  struct provider **ret, struct err *e);

/* Fill the engine's members that come from the team. */
void team_fill(const struct team *team, struct engine *engine);

/* Whether the built-in demo is used: no script is named and no agent uses a model. */
bool team_is_demo(const struct config *config);

#endif
