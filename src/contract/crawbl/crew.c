#include "contract/crawbl/crew.h"

#include "base/mem.h"
#include "contract/crawbl/blueprint.h"
#include "run/offers.h"
#include "run/run.h"

#include <stdlib.h>

struct crew {
    struct engine engine;
    struct engine *base; /* a reference */
    struct arena *arena;
    struct agent *agents;
    struct agent_tool **allowed; /* of each agent */
    struct str *delegates;
    struct tool **tools; /* the base's, then our own */
    size_t own_tool_count;
    struct offers *offers;
};

static void on_unused(struct engine *engine) {
    struct crew *crew = CONTAINER_OF(engine, struct crew, engine);
    size_t first = crew->engine.tool_count - crew->own_tool_count;
    offers_free(crew->offers);
    for (size_t i = 0; i < crew->own_tool_count; i++) tool_free(crew->tools[first + i]);
    for (size_t i = 0; crew->allowed && i < crew->engine.agent_count; i++)
        free(crew->allowed[i]);
    free(crew->allowed);
    free(crew->delegates);
    free(crew->agents);
    free(crew->tools);
    arena_free(crew->arena);
    engine_unref(crew->base);
    free(crew);
}

/* --- agents ------------------------------------------------------------------------------- */

static enum tool_policy policy_of(const struct engine *base, struct str tool) {
    for (size_t i = 0; i < base->policy_count; i++) {
        if (str_equal(base->policies[i].name, tool)) return base->policies[i].policy;
    }
    return TOOL_ALLOW;
}

/* The blueprint says which tools an agent has, the operator's settings what becomes of a call.
 */
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

static void fill_agents(struct crew *crew, const struct blueprint *blueprint) {
    const struct agent *usual = &crew->base->agents[0];
    size_t count = blueprint->agent_count;
    crew->agents = mem_zero(count, sizeof(*crew->agents));
    crew->allowed = mem_zero(count, sizeof(struct agent_tool *));
    crew->delegates = mem_zero(count, sizeof(*crew->delegates));
    for (size_t i = 0; i < count; i++) {
        const struct blueprint_agent *from = &blueprint->agents[i];
        size_t tool_count;
        crew->allowed[i] = pick(crew->base, from, &tool_count);
        crew->delegates[i] = from->slug;
        crew->agents[i] = (struct agent){
            .slug = from->slug,
            .description = from->description,
            .system = from->prompt,
            .model = from->model.len ? from->model : usual->model,
            .provider = usual->provider,
            .options = usual->options,
            .shows_thinking = from->says_thinking ? from->thinking : usual->shows_thinking,
            .picks_tools = from->picks_tools,
            .tools = crew->allowed[i],
            .tool_count = tool_count,
            .window_tokens = from->model.len ? 0 : usual->window_tokens,
            .limits = usual->limits};
    }
    crew->agents[0].delegates = crew->delegates + 1; /* all others */
    crew->agents[0].delegate_count = count - 1;
    crew->engine.agents = crew->agents;
    crew->engine.agent_count = count;
}

/* --- tools -------------------------------------------------------------------------------- */

static bool is_taken(const struct engine *base, struct str name) {
    return engine_tool(base, name) || str_equal(name, STR(TRANSFER_TOOL)) ||
           str_equal(name, STR(APPROVAL_TOOL));
}

static void fill_tools(struct crew *crew, const struct crew_parts *parts) {
    size_t count = 0, base_count = crew->base->tool_count;
    const struct mcp_tool_info *tools = NULL;
    if (parts->tools) tools = mcp_listing_tools(parts->tools, &count);
    crew->tools = mem_zero(base_count + count, sizeof(struct tool *));
    for (size_t i = 0; i < base_count; i++) crew->tools[i] = crew->base->tools[i];
    for (size_t i = 0; tools && i < count; i++) {
        if (is_taken(crew->base, tools[i].name)) continue;
        crew->tools[base_count + crew->own_tool_count++] =
            mcp_tool_new(parts->client, &tools[i]);
    }
    crew->engine.tools = crew->tools;
    crew->engine.tool_count = base_count + crew->own_tool_count;
}

struct engine *crew_new(const struct crew_parts *parts) {
    struct crew *crew = MEM_NEW(struct crew);
    struct blueprint blueprint;
    struct err e;
    crew->base = engine_ref(parts->base);
    engine_derive(crew->base, &crew->engine);
    crew->engine.unused = on_unused;
    crew->arena = arena_new(BLUEPRINT_ARENA_BYTES);
    if (parts->blueprint.len) {
        if (!blueprint_read(parts->blueprint, parts->workspace, crew->arena, &blueprint, &e))
            abort(); /* it was read before */
        fill_agents(crew, &blueprint);
    }
    fill_tools(crew, parts);
    crew->offers = offers_new(&crew->engine);
    crew->engine.offers = crew->offers;
    return engine_ref(&crew->engine);
}
