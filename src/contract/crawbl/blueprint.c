#include "contract/crawbl/blueprint.h"

#include "base/utf8.h"
#include "wire/json.h"

#define SLUG_MAX_BYTES 64
#define MODEL_MAX_BYTES 256

struct reading {
    struct arena *arena;
    struct blueprint_agent *agents;
    size_t count;
    bool has_manager;
    struct err *e;
};

static bool blueprint_too_large(struct err *e) {
    return err_set(e, ERR_TOO_LARGE,
                   "the blueprint is larger than 1 MiB, or has more than %d agents",
                   BLUEPRINT_AGENTS_MAX);
}

/* An absent member and null are read as empty. */
static bool blueprint_read_text(struct reading *reading, struct json agent, const char *member,
                                struct str *ret) {
    struct json value = json_find(agent, str_from(member));
    *ret = STR_EMPTY;
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(reading->e, ERR_MALFORMED, "the blueprint's %s is %s, not a string",
                       member, json_kind_name(value.kind));
    return json_str(value, reading->arena, ret) || blueprint_too_large(reading->e);
}

/* --- tools -------------------------------------------------------------------------------- */

/* Map a name from S1's examples to the catalogue's name. */
static struct str known_name(struct str name) {
    return str_equal(name, STR("web_search")) ? STR("web_search_tool") : name;
}

/* An empty list or null means all tools. */
static bool blueprint_read_tools(struct reading *reading, struct json list,
                                 struct blueprint_agent *agent) {
    size_t count = json_count(list);
    struct json item;
    struct str name;
    if (json_is_absent(list)) return true;
    if (list.kind != JSON_ARRAY)
        return err_set(reading->e, ERR_MALFORMED,
                       "the blueprint's allowed_tools are %s, not an array",
                       json_kind_name(list.kind));
    if (!count) return true;
    struct str *tools = arena_alloc(reading->arena, count * sizeof(*tools));
    if (!tools) return blueprint_too_large(reading->e);
    struct json_reader reader = json_enter(list);
    while (json_next_item(&reader, &item)) {
        if (item.kind != JSON_STRING)
            return err_set(reading->e, ERR_MALFORMED,
                           "the blueprint's allowed_tools hold %s, not a name",
                           json_kind_name(item.kind));
        if (!json_str(item, reading->arena, &name)) return blueprint_too_large(reading->e);
        tools[agent->tool_count++] = known_name(name);
    }
    agent->tools = tools;
    agent->picks_tools = true;
    return true;
}

/* An extension of ours; upstream's blueprints do not have it. */
static bool read_thinking(struct reading *reading, struct json value,
                          struct blueprint_agent *agent) {
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_TRUE && value.kind != JSON_FALSE)
        return err_set(reading->e, ERR_MALFORMED,
                       "the blueprint's thinking is %s, not a boolean",
                       json_kind_name(value.kind));
    agent->says_thinking = true;
    agent->thinking = value.kind == JSON_TRUE;
    return true;
}

/* --- agents ------------------------------------------------------------------------------- */

static bool is_slug(struct str slug) {
    for (size_t i = 0; i < slug.len; i++) {
        if ((unsigned char)slug.at[i] <= ' ' || slug.at[i] == 0x7F) return false;
    }
    return slug.len > 0 && slug.len <= SLUG_MAX_BYTES;
}

static bool check_slug(struct reading *reading, struct str slug) {
    if (!is_slug(slug))
        return err_set(reading->e, ERR_MALFORMED, "an agent of the blueprint has no slug");
    for (size_t i = 0; i < reading->count; i++) {
        if (str_equal(reading->agents[i].slug, slug))
            return err_set(reading->e, ERR_MALFORMED,
                           "two agents of the blueprint have the slug '" STR_FMT "'",
                           STR_ARG(slug));
    }
    return true;
}

/* Move the first managing agent to the front. */
static void place(struct reading *reading, struct blueprint_agent agent, struct str role) {
    bool manages =
        str_equal(role, STR("manager")) || (!role.len && str_equal(agent.slug, STR("manager")));
    reading->agents[reading->count++] = agent;
    if (!manages || reading->has_manager) return;
    reading->has_manager = true;
    for (size_t i = reading->count - 1; i > 0; i--) reading->agents[i] = reading->agents[i - 1];
    reading->agents[0] = agent;
}

static bool blueprint_read_agent(struct reading *reading, struct json from) {
    struct blueprint_agent agent = {.tools = NULL};
    struct str role;
    if (from.kind != JSON_OBJECT)
        return err_set(reading->e, ERR_MALFORMED, "an agent of the blueprint is %s",
                       json_kind_name(from.kind));
    if (reading->count == BLUEPRINT_AGENTS_MAX) return blueprint_too_large(reading->e);
    if (!blueprint_read_text(reading, from, "slug", &agent.slug) ||
        !check_slug(reading, agent.slug) ||
        !blueprint_read_text(reading, from, "role", &role) ||
        !blueprint_read_text(reading, from, "system_prompt", &agent.prompt) ||
        !blueprint_read_text(reading, from, "description", &agent.description) ||
        !blueprint_read_text(reading, from, "model", &agent.model) ||
        !blueprint_read_tools(reading, json_find(from, STR("allowed_tools")), &agent) ||
        !read_thinking(reading, json_find(from, STR("thinking")), &agent))
        return false;
    size_t cut = utf8_cut(agent.description, BLUEPRINT_DESCRIPTION_MAX_BYTES);
    agent.description = str_head(agent.description, cut);
    if (str_equal(agent.model, STR("auto")) || agent.model.len > MODEL_MAX_BYTES)
        agent.model = STR_EMPTY;
    place(reading, agent, role);
    return true;
}

static bool check_workspace(struct reading *reading, struct json document,
                            struct str workspace) {
    struct json named = json_find(document, STR("workspace_id"));
    if (named.kind != JSON_STRING || json_is(named, STR_EMPTY))
        return err_set(reading->e, ERR_MALFORMED, "the blueprint names no workspace_id");
    return json_is(named, workspace) || err_set(reading->e, ERR_PERMISSION_DENIED,
                                                "the blueprint belongs to another workspace");
}

static bool blueprint_read_agents(struct reading *reading, struct json list) {
    struct json item;
    struct json_reader reader = json_enter(list);
    if (list.kind != JSON_ARRAY || !json_count(list))
        return err_set(reading->e, ERR_MALFORMED, "the blueprint has no agents");
    while (json_next_item(&reader, &item)) {
        if (!blueprint_read_agent(reading, item)) return false;
    }
    return reading->has_manager || err_set(reading->e, ERR_MALFORMED,
                                           "no agent of the blueprint has the role 'manager'");
}

bool blueprint_read(struct str text, struct str workspace, struct arena *arena,
                    struct blueprint *ret, struct err *e) {
    struct reading reading = {.arena = arena, .e = e};
    struct json document;
    struct str kept;
    if (text.len > BLUEPRINT_MAX_BYTES || !arena_str(arena, text, &kept))
        return blueprint_too_large(e);
    reading.agents = arena_alloc(arena, BLUEPRINT_AGENTS_MAX * sizeof(*reading.agents));
    if (!reading.agents) return blueprint_too_large(e);
    if (!json_read(kept, &document, e)) return err_add(e, "the blueprint");
    if (!check_workspace(&reading, document, workspace) ||
        !blueprint_read_agents(&reading, json_find(document, STR("agents"))))
        return false;
    *ret = (struct blueprint){reading.agents, reading.count};
    return true;
}
