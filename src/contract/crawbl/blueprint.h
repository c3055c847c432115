/* blueprint: the agents of a workspace, as its orchestrator describes them.
 *
 *     {"workspace_id":"w","agents":[{"slug":"manager","role":"manager","system_prompt":"...",
 *      "description":"...","allowed_tools":["web_fetch"],"model":"auto",
 *      "thinking":true}, ...]}
 *
 * `thinking` is our addition: it says whether callers see an agent's reasoning.
 *
 * The manager comes first in the result, wherever it stands in the document.
 *
 * Memory   everything lies in the caller's arena, including the text.
 * Threads  none; values only.
 * Source   contracts/crawbl.md 2.6 and 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_BLUEPRINT_H
#define WEIR_CONTRACT_CRAWBL_BLUEPRINT_H

#include "base/arena.h"
#include "base/err.h"

#define BLUEPRINT_MAX_BYTES MIB
#define BLUEPRINT_AGENTS_MAX 32
#define BLUEPRINT_DESCRIPTION_MAX_BYTES (4 * KIB) /* every agent reads all descriptions */
#define BLUEPRINT_ARENA_BYTES (8 * MIB)           /* enough for any blueprint */

struct blueprint_agent {
    struct str slug, description, prompt;
    struct str model; /* empty: the default */
    const struct str *tools;
    size_t tool_count;
    bool picks_tools; /* it has only `tools`; otherwise all */
    bool says_thinking, thinking;
};

struct blueprint {
    const struct blueprint_agent *agents;
    size_t agent_count; /* 1 or more */
};

/* Read the blueprint of `workspace`.
 * errors  ERR_MALFORMED not JSON, or not of this shape; ERR_PERMISSION_DENIED it describes
 *         another workspace; ERR_TOO_LARGE */
MUST_CHECK bool blueprint_read(struct str text, struct str workspace, struct arena *arena,
                               struct blueprint *ret, struct err *e);

#endif
