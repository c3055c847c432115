#include "run/engine.h"

const struct run_limits run_limits_default = {
    .model_calls_max = 25,
    .tool_calls_max = 100,
    .tools_at_once = 16,
    .reply_max_bytes = 4 * MIB,
    .memory_max_bytes = 16 * MIB,
    .turn_max_ms = UINT64_C(10) * 60 * 1000,
};

const struct agent *engine_agent(const struct engine *engine, struct str slug) {
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (str_equal(engine->agents[i].slug, slug)) return &engine->agents[i];
    }
    return NULL;
}

struct tool *engine_tool(const struct engine *engine, struct str name) {
    for (size_t i = 0; i < engine->tool_count; i++) {
        if (str_equal(engine->tools[i]->name, name)) return engine->tools[i];
    }
    return NULL;
}

void run_host_init(struct run_host *host, struct engine *engine, struct loop *loop,
                   struct keeper *keeper) {
    *host = (struct run_host){.engine = engine, .loop = loop, .keeper = keeper};
    list_init(&host->runs);
}
