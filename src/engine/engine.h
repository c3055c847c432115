/* engine: what all runs share, and what the runs of one loop share.
 *
 * An engine is read-only: agents, tools, limits, and the session table, which has its own
 * locks. When the configuration changes, a second engine with the same sessions serves the runs
 * that begin from then on; a run keeps the engine it began with. A host is one loop's share: it
 * starts runs and lists them.
 *
 * Memory   reference-counted; `unused` tells the owner that the last reference is gone.
 *          Everything in an engine is borrowed from that owner.
 * Threads  the engine: any. A host: its loop.
 */
#ifndef WEIR_ENGINE_ENGINE_H
#define WEIR_ENGINE_ENGINE_H

#include "budget/ledger.h"
#include "guardrail/guardrail.h"
#include "journal/keeper.h"
#include "provider/price.h"
#include "provider/provider.h"
#include "tool/tool.h"
#include "wire/yes_no.h"

#include <stdatomic.h>

/* What happens to a call that an agent requests. */
enum tool_policy {
    TOOL_ALLOW,
    TOOL_ASK,    /* a human decides, each time */
    TOOL_HIDDEN, /* it does not exist */
};

struct agent_tool {
    struct str name;
    enum tool_policy policy;
};

/* The time limit for one call of this tool. */
struct tool_timeout {
    struct str name;
    uint64_t timeout_ms;
};

/* Limits of one turn, counted while this agent has it; 0: the run's own limit, or no limit. */
struct agent_limits {
    unsigned model_calls_max, tool_calls_max;
    int64_t tokens_max;
    int64_t cost_nano_max; /* billionths of a dollar */
};

/* An agent can take a turn. */
struct agent {
    struct str slug, description;
    struct str system; /* instructions, or empty */
    struct str model;  /* as configured, or empty */
    struct provider *provider;
    struct model_options options; /* MODEL_OPTIONS_NONE where nothing is set */
    const struct str *delegates;  /* slugs this agent may hand the turn to */
    size_t delegate_count;
    bool shows_thinking; /* Converse sends it only where configured (K13) */
    bool awaits_tools;   /* a server that may have some of them is still starting */
    bool picks_tools;    /* it has only the tools named here; else all of them */
    const struct agent_tool *tools;
    size_t tool_count;
    const struct schema *schema; /* its final answer is JSON that follows it; NULL: prose */
    struct str schema_text;      /* the same as text, or empty */
    uint64_t window_tokens;      /* its model's context window; 0: unknown */
    struct agent_limits limits;
    struct guardrails input_rules, output_rules; /* for what it reads and what it says */
};

enum tool_policy agent_tool_policy(const struct agent *agent, struct str tool);

/* A turn that reaches one of these fails with RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED. The
 * settings are read into this struct; their defaults are run_limits_default. */
struct run_limits {
    unsigned model_calls_max;
    unsigned tool_calls_max;
    unsigned workspace_turns_max; /* turns beyond these wait; 0: no limit */
    uint64_t place_max_ms;        /* the longest such wait; no setting */
    unsigned transfers_max;       /* how often the turn changes hands */
    unsigned tools_at_once;
    uint64_t tool_max_ms; /* one call of a tool without its own limit; 0: as long as the turn */
    size_t reply_max_bytes;  /* text of one reply */
    size_t memory_max_bytes; /* a run's own memory */
    size_t result_max_bytes; /* the part of one tool's result that a model reads */
    size_t pace_max_bytes;   /* how far a run may be ahead of its caller's reading, in bytes */
    uint64_t turn_max_ms;
    uint64_t approval_max_ms;  /* how long a human may take; 0: no limit */
    uint64_t approval_doze_ms; /* how long a waiting run stays in memory unread */
    bool approval_expires_yes; /* silence approves a call; a question then gets no answer */
    struct yes_no_words decision_words; /* that decide, in addition to the built-in ones */
};

extern const struct run_limits run_limits_default;

/* What run_request.contract is of a run that recordings answer (replay_engine.h). */
#define REPLAY_CONTRACT "replay"

struct offers;
struct session_table;
struct store;

struct engine {
    /* The first is the Manager: it takes turns that name no agent. */
    const struct agent *agents;
    size_t agent_count;
    struct tool *const *tools;
    size_t tool_count;
    const struct agent_tool *policies; /* of tools by name, for agents of other sources */
    size_t policy_count;
    const struct tool_timeout *timeouts; /* set for tools by name */
    size_t timeout_count;
    struct store *store; /* keeps long results; NULL: they are cut */
    struct tool *reader; /* reads on in them; every agent with tools has it; may be NULL */
    /* The agents' prompts and tools; NULL: their instructions alone. */
    const struct offers *offers;
    struct session_table *sessions;
    struct ledger *ledger; /* lives as long as the sessions; NULL: nothing is counted */
    const struct price_book *prices; /* NULL: no price is known */
    const struct budget *budgets;
    size_t budget_count;
    struct run_limits limits;
    bool derived; /* made by engine_derive(): another configuration does not replace it */
    atomic_uint refs;
    void (*unused)(struct engine *engine); /* the last reference is gone; may be NULL */
};

/* Any thread. `unused` runs on the thread that drops the last one. */
struct engine *engine_ref(struct engine *engine);
void engine_unref(struct engine *engine); /* NULL is fine */

/* Copy `base` without its references, for an engine with other agents or tools. The caller sets
 * those, and the offers made for them, and keeps `base` alive as long as the copy. */
void engine_derive(const struct engine *base, struct engine *ret);

const struct agent *engine_agent(const struct engine *engine, struct str slug);
/* ERR_NOT_FOUND for a name that no agent has, with the names there are. Returns false. */
bool engine_refuse_agent(const struct engine *engine, struct str name, struct err *e);
/* Whether `from` may hand the turn to `target`: to its delegates, to the agents that have it as
 * a delegate, to their other delegates, and to the Manager. */
bool engine_may_transfer(const struct engine *engine, const struct agent *from,
                         struct str target);

/* The tool of that name, if the agent may request it; else NULL. */
struct tool *engine_agent_tool(const struct engine *engine, const struct agent *agent,
                               struct str name);

struct tool *engine_tool(const struct engine *engine, struct str name);

/* How long one call may take: the settings' limit for this tool, else the tool's own, else the
 * limit for all tools. 0: as long as the turn. *ret_own: the limit is this tool's and not the
 * general one. */
uint64_t engine_tool_timeout(const struct engine *engine, const struct tool *tool,
                             bool *ret_own);

/* One loop's share of an engine: host.h makes it. */
struct run_host {
    struct engine *engine; /* a reference */
    struct loop *loop;
    struct keeper *keeper; /* NULL: journals stay in memory */
    struct list runs;
    size_t run_count;
    struct timer doze; /* looks at the runs that wait: dormant_wake.h */
    uint64_t doze_at_ms;
    struct list bringings; /* runs being brought back from the store */
    struct list replies;   /* that wait to be read back: long_reply.h */
    unsigned reply_reads;
    struct late_ends *late_ends; /* of turns that the store refused: late_ends.h. NULL: none */
    struct rate_limits *rates;   /* of turns to each agent; NULL: no limit */
    bool quiet; /* do not log the ends of turns: the user of this host sees them */
};

#endif
