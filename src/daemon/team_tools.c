#include "daemon/team_tools.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "tool/catalogue.h"
#include "tool/scripted.h"
#include "wire/yaml.h"

static struct tool *find_tool(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->tool_count; i++) {
        if (str_equal(team->tools[i]->name, name)) return team->tools[i];
    }
    return NULL;
}

/* --- names -------------------------------------------------------------------------------- */

/* Tools with names that are not known here may come from there. */
static bool asks_mcp(const struct config *config) {
    return config->converse.mcp_endpoint.len > 0;
}

/* No tool here has this name. If an MCP server may have it, only a name that looks like a
 * typing mistake is an error. */
static bool check_name(const struct team *team, const struct config *config,
                       const struct config_agent_tool *wanted, struct err *e) {
    struct nearest nearest;
    char hint[NEAREST_HINT_BYTES];
    size_t row_count;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    if (find_tool(team, wanted->name) || catalogue_find(wanted->name)) return true;
    nearest_init(&nearest, wanted->name);
    for (size_t i = 0; i < team->tool_count; i++) nearest_offer(&nearest, team->tools[i]->name);
    for (size_t i = 0; i < row_count; i++) nearest_offer(&nearest, rows[i].name);
    nearest_hint(&nearest, hint);
    if (!nearest.found.len && asks_mcp(config)) return true;
    return yaml_err(e, wanted->at, "no tool is called '" STR_FMT "'%s", STR_ARG(wanted->name),
                    nearest.found.len ? hint
                                      : "; weir tool list shows them, and those of an MCP "
                                        "server need converse.mcp_endpoint");
}

/* --- policies ----------------------------------------------------------------------------- */

static const enum tool_policy policies[] = {[CONFIG_TOOL_ALLOW] = TOOL_ALLOW,
                                            [CONFIG_TOOL_ASK] = TOOL_ASK,
                                            [CONFIG_TOOL_HIDDEN] = TOOL_HIDDEN};

/* A mistake either fails assembly or is noted. */
static bool goes_on(const struct team_resources *resources, const struct err *why) {
    return resources->noting && config_goes_on(resources->noting, why);
}

static bool take_policies(struct team *team, const struct config *config,
                          const struct team_resources *resources, struct err *e) {
    size_t count = config->tools.policy_count;
    team->policies = mem_zero(count, sizeof(struct agent_tool));
    team->timeouts = mem_zero(count, sizeof(struct tool_timeout));
    for (size_t i = 0; i < count; i++) {
        const struct config_agent_tool *from = &config->tools.policies[i];
        if (!check_name(team, config, from, e) && !goes_on(resources, e)) return false;
        team->policies[team->policy_count++] =
            (struct agent_tool){from->name, policies[from->policy]};
        if (from->timeout_ms)
            team->timeouts[team->timeout_count++] =
                (struct tool_timeout){from->name, from->timeout_ms};
    }
    return true;
}

static enum tool_policy usual_policy(const struct team *team, struct str tool) {
    for (size_t i = 0; i < team->policy_count; i++) {
        if (str_equal(team->policies[i].name, tool)) return team->policies[i].policy;
    }
    return TOOL_ALLOW;
}

static bool is_hidden(const struct team *team, struct str tool) {
    return usual_policy(team, tool) == TOOL_HIDDEN;
}

/* --- making ------------------------------------------------------------------------------- */

static void make_script_tools(struct team *team) {
    const struct script *script = team->script;
    for (size_t i = 0; script && i < script->tool_count; i++)
        team->tools[team->tool_count++] = scripted_tool_new(&script->tools[i]);
}

/* A missing optional tool is reported once. */
static bool make_named(struct team *team, const struct config *config,
                       const struct catalogue_options *options,
                       const struct config_agent_tool *wanted, struct err *e) {
    struct err why;
    if (find_tool(team, wanted->name)) return true;
    const struct catalogue_row *row = catalogue_find(wanted->name);
    if (!row) {
        if (!wanted->optional) return check_name(team, config, wanted, e);
        if (asks_mcp(config)) return true;
        log_warning("the agent goes without the tool '" STR_FMT "': there is none here",
                    STR_ARG(wanted->name));
        return true;
    }
    if (row->asks && !team->own_pool && !http_pool_need(options->pool, e)) return false;
    if (catalogue_make(wanted->name, options, &team->tools[team->tool_count], &why)) {
        team->tool_count++;
        return true;
    }
    if (!wanted->optional) return yaml_err(e, wanted->at, "%s", why.text);
    log_warning("the agent goes without the tool '" STR_FMT "': %s", STR_ARG(wanted->name),
                why.text);
    return true;
}

/* The tools that agents of a blueprint may have although no agent here names them. */
static const struct config_agent_tool web_tools[] = {
    {.name = STR("web_fetch"), .optional = true},
    {.name = STR("web_search_tool"), .optional = true}};

static bool make_web(struct team *team, const struct config *config,
                     const struct catalogue_options *options, struct err *e) {
    for (size_t i = 0; config->tools.web && i < ARRAY_LEN(web_tools); i++) {
        if (is_hidden(team, web_tools[i].name)) continue;
        if (!make_named(team, config, options, &web_tools[i], e)) return false;
    }
    return true;
}

static size_t count_named(const struct config *config) {
    size_t count = 0;
    for (size_t i = 0; i < config->agent_count; i++) count += config->agents[i].tool_count;
    return count + ARRAY_LEN(web_tools);
}

bool team_make_tools(struct team *team, const struct config *config,
                     const struct team_resources *resources, struct err *e) {
    size_t script_count = team->script ? team->script->tool_count : 0;
    const struct catalogue_options options = {
        .pool = resources->pool,
        .store = resources->store,
        .only_looked_at = team->own_pool != NULL,
        .search = {.pool = resources->pool,
                   .backend = config->tools.web_search.backend,
                   .base_url = config->tools.web_search.url,
                   .key = config->tools.web_search.key},
        .file_root = config->tools.files.root};
    team->tools = mem_zero(script_count + count_named(config) + 1, sizeof(struct tool *));
    make_script_tools(team);
    /* After another mistake a setting may be missing because of it. */
    bool names_only = resources->noting && resources->noting->problem_count > 0;
    if (!take_policies(team, config, resources, e)) return false;
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *agent = &config->agents[i];
        for (size_t t = 0; t < agent->tool_count; t++) {
            const struct config_agent_tool *wanted = &agent->tools[t];
            if (is_hidden(team, wanted->name) || (names_only && wanted->optional)) continue;
            bool there = names_only ? check_name(team, config, wanted, e)
                                    : make_named(team, config, &options, wanted, e);
            if (!there && !goes_on(resources, e)) return false;
        }
    }
    return make_web(team, config, &options, e);
}

/* --- picking ------------------------------------------------------------------------------ */

/* An empty list with room for `count`. */
static struct agent_tool *list_for(struct agent *agent, size_t count, bool picks_tools) {
    struct agent_tool *tools = mem_zero(count, sizeof(struct agent_tool));
    agent->picks_tools = picks_tools;
    agent->tools = tools;
    return tools;
}

/* The agent has the tools it names, as far as they exist or may come from an MCP server. */
static struct agent_tool *pick_named(const struct team *team, const struct config *config,
                                     const struct config_agent *from, struct agent *ret) {
    struct agent_tool *tools = list_for(ret, from->tool_count, true);
    for (size_t i = 0; i < from->tool_count; i++) {
        const struct config_agent_tool *tool = &from->tools[i];
        bool there = find_tool(team, tool->name) || asks_mcp(config);
        enum tool_policy usual = usual_policy(team, tool->name);
        if (!there || usual == TOOL_HIDDEN) continue;
        tools[ret->tool_count++] =
            (struct agent_tool){tool->name, tool->said ? policies[tool->policy] : usual};
    }
    return tools;
}

/* It has whatever comes, but for the catalogue, and but for what the settings say. The first
 * entry of a name counts. */
static struct agent_tool *pick_all(const struct team *team, struct agent *ret) {
    size_t script_count = team->script ? team->script->tool_count : 0;
    struct agent_tool *tools = list_for(ret, team->tool_count + team->policy_count, false);
    for (size_t i = script_count; i < team->tool_count; i++)
        tools[ret->tool_count++] = (struct agent_tool){team->tools[i]->name, TOOL_HIDDEN};
    for (size_t i = 0; i < team->policy_count; i++)
        tools[ret->tool_count++] = team->policies[i];
    return tools;
}

struct agent_tool *team_pick_tools(const struct team *team, const struct config *config,
                                   const struct config_agent *from, struct agent *ret) {
    return from->all_tools ? pick_all(team, ret) : pick_named(team, config, from, ret);
}

struct agent_tool *team_pick_script_tools(const struct team *team,
                                          const struct script_agent *from, struct agent *ret) {
    if (from->all_tools) return pick_all(team, ret);
    struct agent_tool *tools = list_for(ret, from->tool_count, true);
    for (size_t i = 0; i < from->tool_count; i++)
        tools[ret->tool_count++] =
            (struct agent_tool){from->tools[i], usual_policy(team, from->tools[i])};
    return tools;
}
