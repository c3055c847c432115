/* team: the agents, tools and providers that the configuration describes.
 *
 * What nobody asks for is not made: without an agent of a vendor's model there is no provider
 * that could ask others, and libcurl is never loaded.
 *
 * Memory   owns what it assembles; borrows the configuration and the pool.
 * Threads  assembled before the loops run, or beside them for the next edition: it reads files
 *          and may load a library, so it blocks. Read-only afterwards.
 */
#ifndef WEIR_DAEMON_TEAM_H
#define WEIR_DAEMON_TEAM_H

#include "client/http.h"
#include "config/config.h"
#include "run/engine.h"
#include "wire/script.h"

struct team_own {
    struct agent_tool *tools;
    struct schema *schema;
};

struct team {
    struct script *script;      /* NULL: nobody plays one */
    struct tape *tape;          /* NULL: neither recorded nor replayed */
    struct http_pool *own_pool; /* of a team that is only looked at; else NULL */
    struct provider **providers;
    size_t provider_count;
    struct media **media; /* of each connector, NULL where it has none; see team_media.h */
    size_t media_count;
    struct tool **tools;
    size_t tool_count;
    struct agent *agents;
    struct team_own *own; /* of each agent, what it borrows */
    size_t agent_count;
    struct agent_tool *policies; /* of the section `tools` */
    size_t policy_count;
    struct tool_timeout *timeouts; /* likewise */
    size_t timeout_count;
};

/* What a team works with. */
struct team_means {
    struct http_pool *pool; /* through which models and tools ask other servers; NULL: nobody
                               will ask, the team is only looked at */
    struct store *store;    /* where memories are kept; NULL: nowhere */
    struct config *noting;  /* the configuration itself: mistakes become problems of it, and the
                               others are looked for; NULL: the first one ends it */
};

/* means: borrowed, what it names must outlive the team.
 * errors  those of reading and parsing the script, a tool that nobody has or that lacks its
 *         settings, a schema that is none, a library that is missing */
MUST_CHECK bool team_assemble(const struct config *config, const struct team_means *means,
                              struct team *ret, struct err *e);
void team_done(struct team *team);

/* One provider of the settings, by itself. The caller ends it with provider_free().
 * errors  ERR_FAILED_PRECONDITION it is the scripted one, which asks nobody; those of the pool
 */
MUST_CHECK bool team_provider_new(const struct config_provider *from, struct http_pool *pool,
                                  struct provider **ret, struct err *e);

/* The part of an engine that a team fills. */
void team_fill(const struct team *team, struct engine *engine);

/* Whether the built-in demo plays: no script is named, and no agent asks a model. */
bool team_is_demo(const struct config *config);

#endif
