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
#include "provider/provider.h"
#include "run/session.h"
#include "tool/tool.h"

#include <stdatomic.h>

/* Someone who can take a turn. */
struct agent {
    struct str slug, description;
    struct str system; /* instructions, or empty */
    struct str model;  /* as configured, or empty */
    struct provider *provider;
    const struct str *delegates; /* slugs this agent may hand the turn to */
    size_t delegate_count;
    bool shows_thinking; /* Converse sends it only where configured (K13) */
    bool picks_tools;    /* it has only those named here; else all of them */
    const struct str *tools;
    size_t tool_count;
};

bool agent_may_use(const struct agent *agent, struct str tool);

/* A turn that reaches one of these fails RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED. */
struct run_limits {
    unsigned model_calls_max; /* 25 */
    unsigned tool_calls_max;  /* 100 */
    unsigned tools_at_once;   /* 16 */
    size_t reply_max_bytes;   /* 4 MiB: text of one reply */
    size_t memory_max_bytes;  /* 16 MiB: what a run keeps of its own */
    size_t result_max_bytes;  /* 30,000: what a model reads of one tool's result */
    size_t pace_max_bytes;    /* 256 KiB: how far a run may be ahead of its caller's reading */
    uint64_t turn_max_ms;     /* 10 min */
};

extern const struct run_limits run_limits_default;

struct engine {
    const struct agent *agents; /* the first is the Manager: it takes turns for nobody */
    size_t agent_count;
    struct tool *const *tools;
    size_t tool_count;
    struct session_table *sessions;
    struct run_limits limits;
    atomic_uint refs;
    void (*unused)(struct engine *engine); /* the last reference is gone; NULL: never told */
};

/* Any thread. `unused` runs on the thread that drops the last one. */
struct engine *engine_ref(struct engine *engine);
void engine_unref(struct engine *engine); /* NULL is fine */

const struct agent *engine_agent(const struct engine *engine, struct str slug);
struct tool *engine_tool(const struct engine *engine, struct str name);

struct run_host {
    struct engine *engine; /* a reference */
    struct loop *loop;
    struct keeper *keeper; /* NULL: journals stay in memory */
    struct list runs;
    size_t run_count;
};

void run_host_init(struct run_host *host, struct engine *engine, struct loop *loop,
                   struct keeper *keeper);

/* No run may be left. */
void run_host_done(struct run_host *host);

/* Runs that begin from now on use this one. */
void run_host_use(struct run_host *host, struct engine *engine);

#endif
