/* team_view: the tools that an agent has and their origin, for display.
 *
 * Memory   a view is a list that its owner ends with free(); its texts are the team's.
 * Threads  any; the team is read-only. */
#ifndef WEIR_DAEMON_TEAM_VIEW_H
#define WEIR_DAEMON_TEAM_VIEW_H

#include "daemon/team.h"

struct team_tool_view {
    struct str name, description, parameters;
    const char *from;  /* "builtin", "command", "http", "mcp", "script" */
    struct str server; /* of "mcp" */
    enum tool_policy policy;
    uint64_t timeout_ms; /* 0: only the end of the turn */
    bool idempotent;
    bool missing; /* the agent names it, but it does not exist now */
};

/* The tools of an agent without the hidden ones; NULL: all tools, also built-in ones that no
 * agent has. */
size_t team_view(const struct team *team, const struct config *config,
                 const struct agent *agent, struct team_tool_view **ret);

/* Make a single tool of this name, the operator's own or a built-in one; tool_free() ends it.
 * errors  ERR_NOT_FOUND there is none; those of its settings */
MUST_CHECK bool team_tool_new(const struct config *config, struct str name,
                              struct http_pool *pool, struct tool **ret, struct err *e);

#endif
