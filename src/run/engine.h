/* engine: what all runs share, and what the runs of one loop share.
 *
 * An engine is read-only: agents, tools, limits, and the table of sessions with locks of its
 * own. When the configuration changes, a second engine with the same sessions takes its place
 * for the runs that begin from then on; a run keeps the engine that it began with. A host is
 * one loop's share: it starts runs and lists them.
 *
 * Memory   reference-counted; whoever assembled an engine is told when nobody needs it.
 *          Everything in it is borrowed from there.
 * Threads  the engine: any. A host: its loop.
 */
#ifndef WEIR_RUN_ENGINE_H
#define WEIR_RUN_ENGINE_H

#include "journal/keeper.h"
#include "provider/price.h"
#include "provider/provider.h"
#include "run/ledger.h"
#include "run/session.h"
#include "tool/tool.h"
#include "wire/yes_no.h"

#include <stdatomic.h>

/* What becomes of a call that an agent asks for. */
enum tool_policy {
    TOOL_ALLOW,
    TOOL_ASK,    /* a human decides, each time */
    TOOL_HIDDEN, /* it does not exist */
};

struct agent_tool {
    struct str name;
    enum tool_policy policy;
};

/* How long a call of this tool may take. */
struct tool_timeout {
    struct str name;
    uint64_t timeout_ms;
};

/* Of one turn, counted while this agent has it; 0: the run's own limit, or none. */
struct agent_limits {
    unsigned model_calls_max, tool_calls_max;
    int64_t tokens_max;
    int64_t cost_nano_max; /* billionths of a dollar */
};

/* Someone who can take a turn. */
struct agent {
    struct str slug, description;
    struct str system; /* instructions, or empty */
    struct str model;  /* as configured, or empty */
    struct provider *provider;
    struct model_options options; /* MODEL_OPTIONS_NONE, or what is set */
    const struct str *delegates;  /* slugs this agent may hand the turn to */
    size_t delegate_count;
    bool shows_thinking; /* Converse sends it only where configured (K13) */
    bool picks_tools;    /* it has only those named here; else all of them */
    const struct agent_tool *tools;
    size_t tool_count;
    const struct schema *schema; /* its final answer is JSON that follows it; NULL: prose */
    struct str schema_text;      /* the same as text, or empty */
    uint64_t window_tokens;      /* what its model can read and write at once; 0: unknown */
    struct agent_limits limits;
};

enum tool_policy agent_tool_policy(const struct agent *agent, struct str tool);

/* A turn that reaches one of these fails RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED. The settings
 * are read into it, and their defaults are run_limits_default. */
struct run_limits {
    unsigned model_calls_max;
    unsigned tool_calls_max;
    unsigned workspace_turns_max; /* 0: no such limit; else more turns than these wait */
    uint64_t place_max_ms;        /* so long at most; no setting */
    unsigned transfers_max;       /* how often the turn changes hands */
    unsigned tools_at_once;
    uint64_t tool_max_ms;    /* of one call of a tool without its own; 0: as long as the turn */
    size_t reply_max_bytes;  /* text of one reply */
    size_t memory_max_bytes; /* what a run keeps of its own */
    size_t result_max_bytes; /* what a model reads of one tool's result */
    size_t pace_max_bytes;   /* how far a run may be ahead of its caller's reading */
    uint64_t turn_max_ms;
    uint64_t approval_max_ms; /* 0: a human may take his time */
    uint64_t
        approval_doze_ms; /* 10 s: so long a run that waits for him stays in memory unread */
    bool
        approval_expires_yes; /* what his silence means for a call; a question gets no answer */
    struct yes_no_words decision_words; /* that decide, beside the built-in ones */
};

extern const struct run_limits run_limits_default;

struct offers;

struct engine {
    const struct agent *agents; /* the first is the Manager: it takes turns for nobody */
    size_t agent_count;
    struct tool *const *tools;
    size_t tool_count;
    const struct agent_tool *policies; /* of tools by name, for agents that others bring */
    size_t policy_count;
    const struct tool_timeout *timeouts; /* that the settings say of tools by name */
    size_t timeout_count;
    struct store *store;         /* keeps results that are too long; NULL: they are cut */
    struct tool *reader;         /* reads on in them: whoever has a tool has it; may be NULL */
    const struct offers *offers; /* what the agents are told; NULL: their instructions alone */
    struct session_table *sessions;
    struct ledger *ledger;           /* as old as the sessions; NULL: nobody counts */
    const struct price_book *prices; /* NULL: no price is known */
    const struct budget *budgets;
    size_t budget_count;
    struct run_limits limits;
    atomic_uint refs;
    void (*unused)(struct engine *engine); /* the last reference is gone; NULL: never told */
};

/* Any thread. `unused` runs on the thread that drops the last one. */
struct engine *engine_ref(struct engine *engine);
void engine_unref(struct engine *engine); /* NULL is fine */

/* What `base` has, without its references: for one with other agents or tools, which the caller
 * sets, and offers, which are written for those. Whoever keeps it keeps `base`. */
void engine_derive(const struct engine *base, struct engine *ret);

const struct agent *engine_agent(const struct engine *engine, struct str slug);
/* Whether `from` may hand a turn over: to its delegates, to whoever has it as a delegate, to
 * their other delegates, and to the Manager. */
bool engine_may_transfer(const struct engine *engine, const struct agent *from,
                         struct str target);

/* The tool of that name which the agent may ask for, or NULL. */
struct tool *engine_agent_tool(const struct engine *engine, const struct agent *agent,
                               struct str name);

struct tool *engine_tool(const struct engine *engine, struct str name);

/* How long one call may take: what the settings say of the tool by its name, else what it says
 * itself, else the limit of all. 0: as long as the turn. *ret_own: it is the tool's own. */
uint64_t engine_tool_timeout(const struct engine *engine, const struct tool *tool,
                             bool *ret_own);

struct run_host {
    struct engine *engine; /* a reference */
    struct loop *loop;
    struct keeper *keeper; /* NULL: journals stay in memory */
    struct list runs;
    size_t run_count;
    struct timer doze; /* looks at those that wait: wake.h */
    uint64_t doze_at_ms;
    struct list bringings; /* who is being brought back */
    bool quiet;            /* ends of turns are not logged: who runs them sees them */
};

void run_host_init(struct run_host *host, struct engine *engine, struct loop *loop,
                   struct keeper *keeper);

/* No run may be left. */
void run_host_done(struct run_host *host);

/* Runs that begin from now on use this one. */
void run_host_use(struct run_host *host, struct engine *engine);

#endif
