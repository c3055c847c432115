/* workspace: a workspace as its rows say: who owns it, its agents, and one conversation.
 *
 * It is read before a turn, and the turn works with what was read. Workspaces that a token names
 * are made, with their agents and conversations, when they are first used.
 *
 * Memory   counted references; what it lends lives as long as it.
 * Threads  the loop's.
 * Source   contracts of the orchestrator, "Rows and REST": the first use of a workspace.
 */
#ifndef WEIR_ORCHESTRATOR_WORKSPACE_H
#define WEIR_ORCHESTRATOR_WORKSPACE_H

#include "orchestrator/query.h"
#include "orchestrator/turn.h"

struct workspace {
    unsigned refs;
    struct arena *arena;
    struct str id, user; /* the user who owns it */
    struct str conversation, title;
    bool swarm;       /* the conversation is with all agents */
    struct str agent; /* id of the agent whose conversation it is */
    struct turn_agent *agents;
    size_t agent_count;
};

struct workspace *workspace_ref(struct workspace *workspace);
void workspace_unref(struct workspace *workspace); /* accepts NULL */

/* An index, or agent_count. */
size_t workspace_manager(const struct workspace *workspace);
size_t workspace_agent(const struct workspace *workspace, struct str id);
size_t workspace_agent_named(const struct workspace *workspace, struct str slug);

struct workspace_question {
    struct str user, id;
    struct str conversation; /* empty: none is looked for */
    bool make;               /* the caller proves that the workspace is his: make it */
    bool reads;              /* no turn follows: it is looked up by database->readers */
};

/* A reference for the callback, or NULL.
 * errors  ERR_NOT_FOUND with "workspace not found" or "conversation not found", also when it is
 *         another user's; those of the database */
typedef void workspace_fn(struct workspace *found, const struct err *failed, void *ctx);

/* `question` is copied. */
void workspace_find(struct queries *database, const struct workspace_question *question,
                    workspace_fn *done, void *ctx);

#endif
