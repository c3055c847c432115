#include "contract/crawbl/workspace_engine.h"

#include "base/mem.h"
#include "contract/crawbl/blueprint.h"
#include "engine/offers.h"
#include "turn/run.h"

#include <stdlib.h>

struct workspace_engine {
    struct engine engine;
    struct engine *base; /* a reference */
    struct arena *arena;
    struct agent *agents;
    struct agent_tool **allowed; /* one array per agent */
    struct str *delegates;
    struct tool **tools; /* the base engine's tools, then our own */
    size_t own_tool_count;
    struct offers *offers;
};

static void on_unused(struct engine *engine) {
    struct workspace_engine *made = CONTAINER_OF(engine, struct workspace_engine, engine);
    size_t first = made->engine.tool_count - made->own_tool_count;
    offers_free(made->offers);
    for (size_t i = 0; i < made->own_tool_count; i++) tool_free(made->tools[first + i]);
    for (size_t i = 0; made->allowed && i < made->engine.agent_count; i++)
        free(made->allowed[i]);
    free(made->allowed);
    free(made->delegates);
    free(made->agents);
    free(made->tools);
    arena_free(made->arena);
    engine_unref(made->base);
    free(made);
}

/* --- agents ------------------------------------------------------------------------------- */

static enum tool_policy policy_of(const struct engine *base, struct str tool) {
    for (size_t i = 0; i < base->policy_count; i++) {
        if (str_equal(base->policies[i].name, tool)) return base->policies[i].policy;
    }
    return TOOL_ALLOW;
}

/* The blueprint says which tools an agent has; the operator's settings say what happens to
 * their calls. */
static struct agent_tool *pick(const struct engine *base, const struct blueprint_agent *from,
                               size_t *ret_count) {
    size_t count = from->picks_tools ? from->tool_count : base->policy_count;
    struct agent_tool *tools = mem_zero(count, sizeof(*tools));
    for (size_t i = 0; i < count; i++)
        tools[i] = from->picks_tools
                       ? (struct agent_tool){from->tools[i], policy_of(base, from->tools[i])}
                       : base->policies[i];
    *ret_count = count;
    return tools;
}

static void fill_agents(struct workspace_engine *made, const struct blueprint *blueprint) {
    const struct agent *usual = &made->base->agents[0];
    size_t count = blueprint->agent_count;
    made->agents = mem_zero(count, sizeof(*made->agents));
    made->allowed = mem_zero(count, sizeof(struct agent_tool *));
    made->delegates = mem_zero(count, sizeof(*made->delegates));
    for (size_t i = 0; i < count; i++) {
        const struct blueprint_agent *from = &blueprint->agents[i];
        size_t tool_count;
        made->allowed[i] = pick(made->base, from, &tool_count);
        made->delegates[i] = from->slug;
        made->agents[i] = (struct agent){
            .slug = from->slug,
            .description = from->description,
            .system = from->prompt,
            .model = from->model.len ? from->model : usual->model,
            .provider = usual->provider,
            .options = usual->options,
            .shows_thinking = from->says_thinking ? from->thinking : usual->shows_thinking,
            .picks_tools = from->picks_tools,
            .tools = made->allowed[i],
            .tool_count = tool_count,
            .window_tokens = from->model.len ? 0 : usual->window_tokens,
            .limits = usual->limits};
    }
    made->agents[0].delegates = made->delegates + 1; /* all agents after the first */
    made->agents[0].delegate_count = count - 1;
    made->engine.agents = made->agents;
    made->engine.agent_count = count;
}

/* --- tools -------------------------------------------------------------------------------- */

static bool workspace_engine_is_taken(const struct engine *base, struct str name) {
    return engine_tool(base, name) || str_equal(name, STR(TRANSFER_TOOL)) ||
           str_equal(name, STR(APPROVAL_TOOL));
}

static void fill_tools(struct workspace_engine *made,
                       const struct workspace_engine_parts *parts) {
    size_t count = 0, base_count = made->base->tool_count;
    const struct mcp_tool_info *tools = NULL;
    if (parts->tools) tools = mcp_listing_tools(parts->tools, &count);
    made->tools = mem_zero(base_count + count, sizeof(struct tool *));
    for (size_t i = 0; i < base_count; i++) made->tools[i] = made->base->tools[i];
    for (size_t i = 0; tools && i < count; i++) {
        if (workspace_engine_is_taken(made->base, tools[i].name)) continue;
        made->tools[base_count + made->own_tool_count++] =
            mcp_tool_new(parts->client, &tools[i]);
    }
    made->engine.tools = made->tools;
    made->engine.tool_count = base_count + made->own_tool_count;
}

struct engine *workspace_engine_new(const struct workspace_engine_parts *parts) {
    struct workspace_engine *made = MEM_NEW(struct workspace_engine);
    struct blueprint blueprint;
    struct err e;
    made->base = engine_ref(parts->base);
    engine_derive(made->base, &made->engine);
    made->engine.unused = on_unused;
    made->arena = arena_new(BLUEPRINT_ARENA_BYTES);
    if (parts->blueprint.len) {
        if (!blueprint_read(parts->blueprint, parts->workspace, made->arena, &blueprint, &e))
            abort(); /* it was parsed before */
        fill_agents(made, &blueprint);
    }
    fill_tools(made, parts);
    made->offers = offers_new(&made->engine);
    made->engine.offers = made->offers;
    return engine_ref(&made->engine);
}
