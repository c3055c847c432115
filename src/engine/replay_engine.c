#include "engine/replay_engine.h"

#include "base/mem.h"
#include "engine/offers.h"
#include "provider/tape.h"
#include "tool/tape.h"

#include <stdlib.h>

struct replay_engine {
    struct engine engine;
    struct engine *base; /* a reference */
    struct agent *agents;
    struct provider **players; /* one per agent */
    struct tool **tools;
    struct offers *offers;
};

static void replay_unused(struct engine *engine) {
    struct replay_engine *made = CONTAINER_OF(engine, struct replay_engine, engine);
    offers_free(made->offers);
    for (size_t i = 0; i < made->engine.tool_count; i++) tool_free(made->tools[i]);
    for (size_t i = 0; i < made->engine.agent_count; i++) provider_free(made->players[i]);
    free(made->tools);
    free(made->players);
    free(made->agents);
    engine_unref(made->base);
    free(made);
}

static void fill_agents(struct replay_engine *made, struct tape *tape) {
    const struct engine *base = made->base;
    made->agents = mem_zero(base->agent_count, sizeof(*made->agents));
    made->players = mem_zero(base->agent_count, sizeof(struct provider *));
    for (size_t i = 0; i < base->agent_count; i++) {
        made->players[i] = playing_provider_new(tape, base->agents[i].provider->name);
        made->agents[i] = base->agents[i];
        made->agents[i].provider = made->players[i];
    }
    made->engine.agents = made->agents;
}

static void fill_tools(struct replay_engine *made, struct tape *tape) {
    const struct engine *base = made->base;
    made->tools = mem_zero(base->tool_count, sizeof(struct tool *));
    for (size_t i = 0; i < base->tool_count; i++)
        made->tools[i] = playing_tool_like(tape, base->tools[i]);
    made->engine.tools = made->tools;
}

struct engine *replay_engine_new(struct engine *base, struct tape *tape) {
    struct replay_engine *made = MEM_NEW(struct replay_engine);
    made->base = engine_ref(base);
    engine_derive(made->base, &made->engine);
    made->engine.unused = replay_unused;
    made->engine.ledger = NULL;
    made->engine.prices = NULL;
    made->engine.budget_count = 0;
    fill_agents(made, tape);
    fill_tools(made, tape);
    made->offers = offers_new(&made->engine);
    made->engine.offers = made->offers;
    return engine_ref(&made->engine);
}
