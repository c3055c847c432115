#include "engine/offers.h"

#include "base/arena.h"
#include "base/mem.h"
#include "conversation/conversation.h"
#include "engine/engine.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

#define OFFERS_MAX_BYTES (64 * MIB) /* far more than a model could read */

struct offers {
    struct arena *arena;
    const struct agent *agents;
    struct offer each[];
};

struct writing {
    const struct engine *engine;
    const struct agent *agent;
    struct arena *arena;
    struct buf text;
};

static struct str offers_keep(struct writing *writing) {
    struct str kept = STR_EMPTY;
    bool fits =
        buf_ok(&writing->text) && arena_str(writing->arena, buf_str(&writing->text), &kept);
    assert(fits); /* the settings are limited to far less */
    buf_clear(&writing->text);
    return kept;
}

/* --- to whom an agent may hand over ------------------------------------------------------- */

static bool delegates_to(const struct agent *agent, struct str slug) {
    for (size_t i = 0; i < agent->delegate_count; i++) {
        if (str_equal(agent->delegates[i], slug)) return true;
    }
    return false;
}

bool engine_may_transfer(const struct engine *engine, const struct agent *from,
                         struct str target) {
    if (str_equal(target, from->slug)) return false;
    if (delegates_to(from, target) || str_equal(target, engine->agents[0].slug)) return true;
    for (size_t i = 0; i < engine->agent_count; i++) {
        const struct agent *parent = &engine->agents[i];
        if (!delegates_to(parent, from->slug)) continue;
        if (str_equal(target, parent->slug) || delegates_to(parent, target)) return true;
    }
    return false;
}

static bool has_targets(const struct writing *writing) {
    const struct engine *engine = writing->engine;
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (engine_may_transfer(engine, writing->agent, engine->agents[i].slug)) return true;
    }
    return false;
}

static void list_targets(struct writing *writing) {
    const struct engine *engine = writing->engine;
    for (size_t i = 0; i < engine->agent_count; i++) {
        const struct agent *target = &engine->agents[i];
        if (!engine_may_transfer(engine, writing->agent, target->slug)) continue;
        buf_printf(&writing->text, "\n- " STR_FMT "%s", STR_ARG(target->slug),
                   target->description.len ? ": " : "");
        buf_append(&writing->text, target->description);
    }
}

/* --- instructions ------------------------------------------------------------------------- */

static void write_briefing(struct writing *writing) {
    const struct agent *agent = writing->agent;
    bool alone = !has_targets(writing);
    if (alone && writing->engine->agent_count == 1) return; /* it is the only agent */
    buf_printf(&writing->text, "You are the agent '" STR_FMT "'.", STR_ARG(agent->slug));
    if (agent->description.len) {
        buf_append(&writing->text, STR(" Your task: "));
        buf_append(&writing->text, agent->description);
    }
    if (alone) return;
    buf_append(&writing->text, STR("\nWhere another agent suits the request better, hand the "
                                   "turn over with the tool " TRANSFER_TOOL
                                   ", without saying so. The agents:"));
    list_targets(writing);
}

static void write_instructions(struct writing *writing, struct offer *offer) {
    write_briefing(writing);
    offer->briefing = offers_keep(writing);
    buf_append(&writing->text, writing->agent->system);
    if (writing->agent->system.len && offer->briefing.len)
        buf_append(&writing->text, STR("\n\n"));
    buf_append(&writing->text, offer->briefing);
    offer->system = offers_keep(writing);
}

/* --- tools -------------------------------------------------------------------------------- */

/* {"type":"object","properties":{"agent_name":{"type":"string","enum":[...]}},...} */
static void write_transfer_schema(struct writing *writing) {
    const struct engine *engine = writing->engine;
    struct json_writer json = json_writer(&writing->text);
    json_open_object(&json);
    json_member_str(&json, "type", STR("object"));
    json_member_object(&json, "properties");
    json_member_object(&json, "agent_name");
    json_member_str(&json, "type", STR("string"));
    json_member_array(&json, "enum");
    for (size_t i = 0; i < engine->agent_count; i++) {
        struct str slug = engine->agents[i].slug;
        if (engine_may_transfer(engine, writing->agent, slug)) json_write_str(&json, slug);
    }
    json_close(&json);
    json_close(&json);
    json_close(&json);
    json_member_array(&json, "required");
    json_write_str(&json, STR("agent_name"));
    json_close(&json);
    json_close(&json);
}

static void write_tools(struct writing *writing, struct offer *offer) {
    const struct engine *engine = writing->engine;
    struct tool_offer *tools =
        arena_alloc(writing->arena, (engine->tool_count + 2) * sizeof(*tools));
    assert(tools);
    if (has_targets(writing)) {
        write_transfer_schema(writing);
        tools[offer->tool_count++] =
            (struct tool_offer){.name = STR(TRANSFER_TOOL),
                                .description = STR("Hand the turn over to another agent."),
                                .parameters = offers_keep(writing)};
    }
    size_t before = offer->tool_count;
    for (size_t i = 0; i < engine->tool_count; i++) {
        const struct tool *tool = engine->tools[i];
        if (agent_tool_policy(writing->agent, tool->name) == TOOL_HIDDEN) continue;
        tools[offer->tool_count++] =
            (struct tool_offer){tool->name, tool->description, tool->parameters};
    }
    const struct tool *reader = engine->reader;
    if (reader && offer->tool_count > before) {
        tools[offer->tool_count++] =
            (struct tool_offer){reader->name, reader->description, reader->parameters};
    }
    offer->tools = tools;
}

/* --- all of them -------------------------------------------------------------------------- */

struct offers *offers_new(const struct engine *engine) {
    struct offers *offers =
        mem_zero(1, sizeof(*offers) + engine->agent_count * sizeof(struct offer));
    offers->arena = arena_new(OFFERS_MAX_BYTES);
    offers->agents = engine->agents;
    struct writing writing = {.engine = engine, .arena = offers->arena};
    buf_init(&writing.text, OFFERS_MAX_BYTES);
    for (size_t i = 0; i < engine->agent_count; i++) {
        writing.agent = &engine->agents[i];
        write_instructions(&writing, &offers->each[i]);
        write_tools(&writing, &offers->each[i]);
    }
    buf_done(&writing.text);
    return offers;
}

void offers_free(struct offers *offers) {
    if (!offers) return;
    arena_free(offers->arena);
    free(offers);
}

const struct offer *offers_of(const struct offers *offers, const struct agent *agent) {
    return &offers->each[agent - offers->agents];
}
