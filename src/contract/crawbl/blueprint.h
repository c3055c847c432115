/* blueprint: what an orchestrator says a workspace's agents are.
 *
 *     {"workspace_id":"w","agents":[{"slug":"manager","role":"manager","system_prompt":"...",
 *      "description":"...","allowed_tools":["web_fetch"],"model":"auto",
 *      "thinking":true}, ...]}
 *
 * `thinking`, which is ours, says whether callers see an agent's reasoning.
 *
 * The one that manages comes first, whatever place it has in the document.
 *
 * Memory   all in the caller's arena, the text too.
 * Threads  none; values only.
 * Source   contracts/crawbl.md 2.6 and 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_BLUEPRINT_H
#define WEIR_CONTRACT_CRAWBL_BLUEPRINT_H

#include "base/arena.h"
#include "base/err.h"

#define BLUEPRINT_MAX_BYTES MIB
#define BLUEPRINT_AGENTS_MAX 32
#define BLUEPRINT_DESCRIPTION_MAX_BYTES (4 * KIB) /* each agent reads those of all others */
#define BLUEPRINT_ARENA_BYTES (8 * MIB)           /* any blueprint fits in here */

struct blueprint_agent {
    struct str slug, description, prompt;
    struct str model; /* empty: the default */
    const struct str *tools;
    size_t tool_count;
    bool picks_tools; /* it has only those; else all */
    bool says_thinking, thinking;
};

struct blueprint {
    const struct blueprint_agent *agents;
    size_t agent_count; /* 1 or more */
};

/* Read the blueprint of `workspace`.
 * errors  ERR_MALFORMED no JSON, or not of this shape; ERR_PERMISSION_DENIED of another
 *         workspace; ERR_TOO_LARGE */
MUST_CHECK bool blueprint_read(struct str text, struct str workspace, struct arena *arena,
                               struct blueprint *ret, struct err *e);

#endif
