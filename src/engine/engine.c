#include "engine/engine.h"

#include "base/nearest.h"

#include <stdio.h>

const struct run_limits run_limits_default = {
    .model_calls_max = 25,
    .tool_calls_max = 100,
    .place_max_ms = UINT64_C(30) * 1000,
    .transfers_max = 16,
    .tools_at_once = 16,
    .reply_max_bytes = 4 * MIB,
    .memory_max_bytes = 16 * MIB,
    .result_max_bytes = 30000,
    .pace_max_bytes = 12 * KIB,
    .turn_max_ms = UINT64_C(10) * 60 * 1000,
    .approval_doze_ms = UINT64_C(10) * 1000,
};

enum tool_policy agent_tool_policy(const struct agent *agent, struct str tool) {
    for (size_t i = 0; i < agent->tool_count; i++) {
        if (str_equal(agent->tools[i].name, tool)) return agent->tools[i].policy;
    }
    return agent->picks_tools ? TOOL_HIDDEN : TOOL_ALLOW;
}

struct engine *engine_ref(struct engine *engine) {
    atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
    return engine;
}

void engine_unref(struct engine *engine) {
    if (!engine) return;
    bool last = atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) == 1;
    if (last && engine->unused) engine->unused(engine);
}

void engine_derive(const struct engine *base, struct engine *ret) {
    *ret = (struct engine){.agents = base->agents,
                           .agent_count = base->agent_count,
                           .tools = base->tools,
                           .tool_count = base->tool_count,
                           .policies = base->policies,
                           .policy_count = base->policy_count,
                           .timeouts = base->timeouts,
                           .timeout_count = base->timeout_count,
                           .store = base->store,
                           .reader = base->reader,
                           .sessions = base->sessions,
                           .ledger = base->ledger,
                           .prices = base->prices,
                           .budgets = base->budgets,
                           .budget_count = base->budget_count,
                           .limits = base->limits,
                           .derived = true};
}

const struct agent *engine_agent(const struct engine *engine, struct str slug) {
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (str_equal(engine->agents[i].slug, slug)) return &engine->agents[i];
    }
    return NULL;
}

/* A caller that mistypes a name, or guesses, learns which there are. */
bool engine_refuse_agent(const struct engine *engine, struct str name, struct err *e) {
    struct nearest nearest;
    char names[ERR_TEXT_BYTES / 2];
    size_t len = 0;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < engine->agent_count; i++) {
        struct str slug = engine->agents[i].slug;
        nearest_offer(&nearest, slug);
        if (len + slug.len + 8 >= sizeof(names)) {
            snprintf(names + len, sizeof(names) - len, ", ...");
            break;
        }
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s" STR_FMT, i ? ", " : "",
                                STR_ARG(slug));
    }
    return err_set(e, ERR_NOT_FOUND, "no agent named '" STR_FMT "'; there %s: %s%s",
                   STR_ARG(str_head(name, 80)), engine->agent_count == 1 ? "is" : "are", names,
                   nearest_hint(&nearest));
}

struct tool *engine_agent_tool(const struct engine *engine, const struct agent *agent,
                               struct str name) {
    struct tool *reader = engine->reader;
    if (reader && str_equal(reader->name, name)) return reader;
    if (agent_tool_policy(agent, name) == TOOL_HIDDEN) return NULL;
    return engine_tool(engine, name);
}

struct tool *engine_tool(const struct engine *engine, struct str name) {
    for (size_t i = 0; i < engine->tool_count; i++) {
        if (str_equal(engine->tools[i]->name, name)) return engine->tools[i];
    }
    return NULL;
}

uint64_t engine_tool_timeout(const struct engine *engine, const struct tool *tool,
                             bool *ret_own) {
    *ret_own = true;
    for (size_t i = 0; i < engine->timeout_count; i++) {
        if (str_equal(engine->timeouts[i].name, tool->name))
            return engine->timeouts[i].timeout_ms;
    }
    if (tool->timeout_ms) return tool->timeout_ms;
    *ret_own = false;
    return engine->limits.tool_max_ms;
}
