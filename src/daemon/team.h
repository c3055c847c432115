/* team: the agents, tools and providers that the configuration describes.
 *
 * Memory   owns what it assembles; borrows the configuration.
 * Threads  assembled before the loops run, read-only afterwards.
 */
#ifndef WEIR_DAEMON_TEAM_H
#define WEIR_DAEMON_TEAM_H

#include "daemon/config.h"
#include "run/engine.h"
#include "wire/script.h"

struct team {
    struct script *script;
    struct provider *provider; /* the scripted one */
    struct tool **tools;
    size_t tool_count;
    struct agent *agents;
    size_t agent_count;
};

/* errors  those of reading and parsing the script, or a tool that it does not have */
MUST_CHECK bool team_assemble(const struct config *config, struct team *ret, struct err *e);
void team_done(struct team *team);

/* The part of an engine that a team fills. */
void team_fill(const struct team *team, struct engine *engine);

/* Whether the built-in demo plays. */
bool team_is_demo(const struct config *config);

#endif
