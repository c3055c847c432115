#include "daemon/team_tools.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "daemon/team_own_tools.h"
#include "mcp/tool.h"
#include "tool/scripted.h"
#include "wire/yaml.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

static struct tool *find_tool(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->tool_count; i++) {
        if (str_equal(team->tools[i]->name, name)) return team->tools[i];
    }
    return NULL;
}

/* --- names -------------------------------------------------------------------------------- */

/* Tools with names that are not known here may come from there. */
static bool asks_mcp(const struct config *config) {
    return config->remote.tools || config->mcp_count > 0;
}

/* A server's name, a slash and a star: all its tools. NULL: the name has another form. */
static const struct config_mcp *whole_server(const struct config *config, struct str name) {
    for (size_t i = 0; i < config->mcp_count && str_ends(name, STR("/*")); i++) {
        if (str_equal(str_head(name, name.len - 2), config->mcp[i].name))
            return &config->mcp[i];
    }
    return NULL;
}

/* No tool here has this name. If an MCP server may have it, only a name that looks like a
 * typing mistake is an error. */
static bool team_tools_check_name(const struct team *team, const struct config *config,
                                  const struct config_agent_tool *wanted, struct err *e) {
    struct nearest nearest;
    size_t row_count;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    if (find_tool(team, wanted->name) || catalogue_find(wanted->name) ||
        whole_server(config, wanted->name))
        return true;
    nearest_init(&nearest, wanted->name);
    for (size_t i = 0; i < team->tool_count; i++) nearest_offer(&nearest, team->tools[i]->name);
    for (size_t i = 0; i < row_count; i++) nearest_offer(&nearest, rows[i].name);
    if (!nearest.found.len && asks_mcp(config)) return true;
    return yaml_err(e, wanted->at, "no tool is called '" STR_FMT "'%s", STR_ARG(wanted->name),
                    nearest.found.len ? nearest_hint(&nearest)
                                      : "; weir tool list shows them, and those of an MCP "
                                        "server need converse.mcp_endpoint or the section mcp");
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
        if (!team_tools_check_name(team, config, from, e) && !goes_on(resources, e))
            return false;
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
    const struct tool *made = find_tool(team, tool);
    return made && made->asks ? TOOL_ASK : TOOL_ALLOW;
}

static bool is_hidden(const struct team *team, struct str tool) {
    return usual_policy(team, tool) == TOOL_HIDDEN;
}

/* --- tools of MCP servers ----------------------------------------------------------------- */

const struct team_mcp_tool *team_mcp_tool_find(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->mcp_tool_count; i++) {
        if (str_equal(team->mcp_tools[i].name, name)) return &team->mcp_tools[i];
    }
    return NULL;
}

static bool may_have(const struct config_mcp *server, struct str agent) {
    for (size_t i = 0; i < server->agent_count; i++) {
        if (str_equal(server->agents[i], agent)) return true;
    }
    return server->agent_count == 0;
}

static bool is_set(const struct team *team, struct str tool) {
    for (size_t i = 0; i < team->policy_count; i++) {
        if (str_equal(team->policies[i].name, tool)) return true;
    }
    return false;
}

/* The section `tools` takes precedence over the server's own map. A tool that changed asks. */
static enum tool_policy mcp_policy(const struct team *team, const struct team_mcp_tool *tool,
                                   struct str agent) {
    enum tool_policy policy =
        is_set(team, tool->name) ? usual_policy(team, tool->name) : tool->policy;
    if (!may_have(tool->from, agent)) return TOOL_HIDDEN;
    return policy == TOOL_ALLOW && tool->changed ? TOOL_ASK : policy;
}

/* The first pattern that matches. */
static enum tool_policy pattern_policy(const struct config_mcp *server, struct str tool) {
    char name[256], pattern[256];
    snprintf(name, sizeof(name), STR_FMT, STR_ARG(tool));
    for (size_t i = 0; i < server->policy_count; i++) {
        snprintf(pattern, sizeof(pattern), STR_FMT, STR_ARG(server->policies[i].name));
        if (fnmatch(pattern, name, 0) == 0) return policies[server->policies[i].policy];
    }
    return TOOL_ALLOW;
}

/* Models see its own name, or, if that is taken, the server's name and its own. False: both are
 * taken. */
static bool name_tool(const struct team *team, const struct config_mcp *server, struct str tool,
                      struct buf *ret) {
    buf_append(ret, server->prefix);
    buf_append(ret, tool);
    if (!find_tool(team, buf_str(ret))) return true;
    buf_clear(ret);
    buf_append(ret, server->name);
    buf_append_byte(ret, '_');
    buf_append(ret, tool);
    return buf_ok(ret) && !find_tool(team, buf_str(ret));
}

static void make_mcp_tool(struct team *team, const struct config_mcp *from,
                          struct mcp_server *server, const struct mcp_tool_info *info) {
    struct buf name;
    enum tool_policy policy = pattern_policy(from, info->name);
    if (policy == TOOL_HIDDEN) return;
    buf_init(&name, 256);
    if (name_tool(team, from, info->name, &name) && name.len <= 64) {
        struct tool *tool = mcp_server_tool_new(server, info, buf_str(&name), from->timeout_ms);
        team->tools[team->tool_count++] = tool;
        team->mcp_tools[team->mcp_tool_count++] =
            (struct team_mcp_tool){tool->name, from, policy, info->changed};
    } else {
        log_often(LOG_WARNING,
                  "the tool '" STR_FMT "' of the MCP server '" STR_FMT
                  "' is left out: its name is taken or too long; a prefix would help",
                  STR_ARG(info->name), STR_ARG(from->name));
    }
    buf_done(&name);
}

static const enum mcp_elicitation elicitations[] = {
    [CONFIG_ELICITATION_CANCEL] = MCP_ELICITATION_CANCEL,
    [CONFIG_ELICITATION_DEFAULTS] = MCP_ELICITATION_DEFAULTS};

static struct mcp_server *server_of(struct mcp_hub *hub, const struct config_mcp *from) {
    struct http_header headers[40];
    size_t count = 0;
    for (; count < from->header_count && count < ARRAY_LEN(headers); count++)
        headers[count] =
            (struct http_header){from->headers[count].name, from->headers[count].value};
    return mcp_server_get(
        hub, &(struct mcp_server_options){.name = from->name,
                                          .program = from->command,
                                          .environment = from->environment,
                                          .endpoint = from->url,
                                          .key = from->key,
                                          .headers = headers,
                                          .header_count = count,
                                          .user_header = from->user_header,
                                          .conversation_header = from->conversation_header,
                                          .elicitation = elicitations[from->elicitation]});
}

/* After all others: one that is there already keeps its name. */
static bool make_mcp_tools(struct team *team, const struct config *config,
                           const struct team_resources *resources, struct err *e) {
    struct mcp_tools *listed[CONFIG_MCP_MAX];
    size_t count = 0;
    if (!resources->mcp) return true;
    team->servers = mem_zero(config->mcp_count + 1, sizeof(struct mcp_server *));
    for (size_t i = 0; i < config->mcp_count; i++) {
        if (config->mcp[i].url.len && !http_pool_need(resources->pool, e)) return false;
        team->servers[team->server_count++] = server_of(resources->mcp, &config->mcp[i]);
    }
    team->settled = mem_zero(team->server_count + 1, sizeof(bool));
    for (size_t i = 0; i < team->server_count; i++) {
        /* In this order: one that settles in between may have tools that are not seen here. */
        team->settled[i] = mcp_server_settled(team->servers[i]);
        listed[i] = mcp_server_tools(team->servers[i]);
        if (listed[i]) count += listed[i]->count;
    }
    team->mcp_tools = mem_zero(count + 1, sizeof(*team->mcp_tools));
    struct tool **tools = mem_zero(team->tool_count + count + 1, sizeof(struct tool *));
    for (size_t i = 0; i < team->tool_count; i++) tools[i] = team->tools[i];
    free(team->tools);
    team->tools = tools;
    for (size_t i = 0; i < team->server_count; i++) {
        for (size_t t = 0; listed[i] && t < listed[i]->count; t++)
            make_mcp_tool(team, &config->mcp[i], team->servers[i], &listed[i]->tools[t]);
        mcp_tools_unref(listed[i]);
    }
    return true;
}

/* For agents of other sources: tools for some agents only are hidden. */
static void join_policies(struct team *team) {
    size_t count = 0;
    struct agent_tool *joined =
        mem_zero(2 * team->tool_count + team->policy_count + 1, sizeof(*joined));
    for (size_t i = 0; i < team->own_tool_count; i++) {
        if (team->own_tools[i]->agent_count)
            joined[count++] = (struct agent_tool){team->own_tools[i]->name, TOOL_HIDDEN};
    }
    for (size_t i = 0; i < team->mcp_tool_count; i++)
        joined[count++] = (struct agent_tool){team->mcp_tools[i].name,
                                              mcp_policy(team, &team->mcp_tools[i], STR_EMPTY)};
    for (size_t i = 0; i < team->policy_count; i++) joined[count++] = team->policies[i];
    for (size_t i = 0; i < team->tool_count; i++) {
        struct str name = team->tools[i]->name;
        if (team->tools[i]->asks && !is_set(team, name))
            joined[count++] = (struct agent_tool){name, TOOL_ASK};
    }
    team->joined_policies = joined;
    team->joined_count = count;
}

/* A server that is still starting may have what the agent wants. */
static bool awaits(const struct team *team, const struct config *config, struct str agent,
                   bool lacks) {
    for (size_t i = 0; i < team->server_count && lacks; i++) {
        if (may_have(&config->mcp[i], agent) && !team->settled[i]) return true;
    }
    return false;
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
        if (!wanted->optional) return team_tools_check_name(team, config, wanted, e);
        if (asks_mcp(config)) return true;
        log_warning("the agent runs without the tool '" STR_FMT "': there is none here",
                    STR_ARG(wanted->name));
        return true;
    }
    if (row->asks && !team->own_pool && !http_pool_need(options->pool, e)) return false;
    if (catalogue_make(wanted->name, options, &team->tools[team->tool_count], &why)) {
        team->tool_count++;
        return true;
    }
    if (why.code == ERR_UNIMPLEMENTED) {
        log_warning("off: %s", why.text);
        return true;
    }
    if (!wanted->optional) return yaml_err(e, wanted->at, "%s", why.text);
    log_warning("the agent runs without the tool '" STR_FMT "': %s", STR_ARG(wanted->name),
                why.text);
    return true;
}

/* The tools that agents of a blueprint may have although no agent here names them. */
static const struct {
    struct config_agent_tool tool;
    bool files; /* with object storage; else with a search engine */
} blueprint_tools[] = {{{.name = STR("web_fetch"), .optional = true}, false},
                       {{.name = STR("web_search_tool"), .optional = true}, false},
                       {{.name = STR("file_read"), .optional = true}, true},
                       {{.name = STR("file_write"), .optional = true}, true}};

static bool make_blueprint_tools(struct team *team, const struct config *config,
                                 const struct catalogue_options *options, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(blueprint_tools); i++) {
        const struct config_agent_tool *tool = &blueprint_tools[i].tool;
        bool wanted = blueprint_tools[i].files ? options->has_bucket : config->tools.web;
        if (!wanted || is_hidden(team, tool->name)) continue;
        if (!make_named(team, config, options, tool, e)) return false;
    }
    return true;
}

static size_t count_named(const struct config *config) {
    size_t count = 0;
    for (size_t i = 0; i < config->agent_count; i++) count += config->agents[i].tool_count;
    return count + ARRAY_LEN(blueprint_tools);
}

struct catalogue_options team_catalogue_options(const struct config *config,
                                                const struct team_resources *resources) {
    return (struct catalogue_options){
        .pool = resources->pool,
        .store = resources->store,
        .search = {.pool = resources->pool,
                   .backend = config->tools.web_search.backend,
                   .base_url = config->tools.web_search.url,
                   .key = config->tools.web_search.key},
        .file_root = config->tools.files.root,
        .has_bucket = config->s3.endpoint.len > 0,
        .bucket = resources->store ? store_bucket(resources->store) : NULL,
        .exec = config->tools.exec};
}

bool team_make_tools(struct team *team, const struct config *config,
                     const struct team_resources *resources, struct err *e) {
    size_t script_count = team->script ? team->script->tool_count : 0;
    struct catalogue_options options = team_catalogue_options(config, resources);
    options.only_looked_at = team->own_pool != NULL;
    team->tools = mem_zero(script_count + config->tools.own_count + count_named(config) + 1,
                           sizeof(struct tool *));
    make_script_tools(team);
    if (!team_make_own_tools(team, config, resources, e)) return false;
    /* After another mistake a setting may be missing because of it. */
    bool names_only = resources->noting && resources->noting->problem_count > 0;
    if (!take_policies(team, config, resources, e)) return false;
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *agent = &config->agents[i];
        for (size_t t = 0; t < agent->tool_count; t++) {
            const struct config_agent_tool *wanted = &agent->tools[t];
            if (is_hidden(team, wanted->name) || whole_server(config, wanted->name) ||
                (names_only && wanted->optional))
                continue;
            bool there = names_only ? team_tools_check_name(team, config, wanted, e)
                                    : make_named(team, config, &options, wanted, e);
            if (!there && !goes_on(resources, e)) return false;
        }
    }
    if (!make_blueprint_tools(team, config, &options, e) ||
        !make_mcp_tools(team, config, resources, e))
        return false;
    join_policies(team);
    return true;
}

/* --- picking ------------------------------------------------------------------------------ */

/* An empty list with room for `count`. */
static struct agent_tool *list_for(struct agent *agent, size_t count, bool picks_tools) {
    struct agent_tool *tools = mem_zero(count, sizeof(struct agent_tool));
    agent->picks_tools = picks_tools;
    agent->tools = tools;
    return tools;
}

/* If the agent's entry says that a human decides, this holds for each tool of the server. */
static void pick_server(const struct team *team, const struct config_mcp *server,
                        const struct config_agent_tool *named, struct agent *ret,
                        struct agent_tool *tools, size_t room) {
    bool asks = named->said && named->policy == CONFIG_TOOL_ASK;
    for (size_t i = 0; i < team->mcp_tool_count && ret->tool_count < room; i++) {
        const struct team_mcp_tool *tool = &team->mcp_tools[i];
        enum tool_policy policy = mcp_policy(team, tool, ret->slug);
        if (policy == TOOL_ALLOW && asks) policy = TOOL_ASK;
        if (tool->from == server && policy != TOOL_HIDDEN)
            tools[ret->tool_count++] = (struct agent_tool){tool->name, policy};
    }
}

/* The policy of a tool that the agent names. */
static enum tool_policy named_policy(const struct team *team, struct str agent,
                                     const struct config_agent_tool *named) {
    const struct team_mcp_tool *mcp = team_mcp_tool_find(team, named->name);
    const struct config_own_tool *own = team_own_tool(team, named->name);
    if (own && !team_may_have_own(own, agent)) return TOOL_HIDDEN;
    enum tool_policy usual =
        mcp ? mcp_policy(team, mcp, agent) : usual_policy(team, named->name);
    if (usual == TOOL_HIDDEN || !named->said) return usual;
    enum tool_policy said = policies[named->policy];
    return said == TOOL_ALLOW && mcp && mcp->changed ? TOOL_ASK : said;
}

/* The agent has the tools it names, as far as they exist or may come from an MCP server. */
static struct agent_tool *pick_named(const struct team *team, const struct config *config,
                                     const struct config_agent *from, struct agent *ret) {
    size_t room = from->tool_count + team->mcp_tool_count;
    struct agent_tool *tools = list_for(ret, room, true);
    bool lacks = false;
    for (size_t i = 0; i < from->tool_count; i++) {
        const struct config_agent_tool *tool = &from->tools[i];
        const struct config_mcp *server = whole_server(config, tool->name);
        enum tool_policy policy = named_policy(team, ret->slug, tool);
        bool there = find_tool(team, tool->name) || asks_mcp(config);
        lacks = lacks || !find_tool(team, tool->name);
        if (server) pick_server(team, server, tool, ret, tools, room);
        if (server || !there || policy == TOOL_HIDDEN || ret->tool_count == room) continue;
        tools[ret->tool_count++] = (struct agent_tool){tool->name, policy};
    }
    ret->awaits_tools = awaits(team, config, ret->slug, lacks);
    return tools;
}

/* It has all tools except the catalogue's, as far as the settings allow. The first entry of a
 * name counts. */
static struct agent_tool *pick_all(const struct team *team, const struct config *config,
                                   struct agent *ret) {
    size_t script_count = team->script ? team->script->tool_count : 0;
    size_t catalogue_from = script_count + team->own_tool_count;
    struct agent_tool *tools = list_for(ret, team->tool_count + team->policy_count, false);
    for (size_t i = 0; i < team->own_tool_count; i++) {
        if (!team_may_have_own(team->own_tools[i], ret->slug))
            tools[ret->tool_count++] =
                (struct agent_tool){team->own_tools[i]->name, TOOL_HIDDEN};
    }
    for (size_t i = catalogue_from; i < team->tool_count - team->mcp_tool_count; i++)
        tools[ret->tool_count++] = (struct agent_tool){team->tools[i]->name, TOOL_HIDDEN};
    for (size_t i = 0; i < team->mcp_tool_count; i++)
        tools[ret->tool_count++] = (struct agent_tool){
            team->mcp_tools[i].name, mcp_policy(team, &team->mcp_tools[i], ret->slug)};
    for (size_t i = 0; i < team->policy_count; i++)
        tools[ret->tool_count++] = team->policies[i];
    ret->awaits_tools = awaits(team, config, ret->slug, true);
    return tools;
}

struct agent_tool *team_pick_tools(const struct team *team, const struct config *config,
                                   const struct config_agent *from, struct agent *ret) {
    return from->all_tools ? pick_all(team, config, ret) : pick_named(team, config, from, ret);
}

struct agent_tool *team_pick_script_tools(const struct team *team, const struct config *config,
                                          const struct script_agent *from, struct agent *ret) {
    if (from->all_tools) return pick_all(team, config, ret);
    struct agent_tool *tools = list_for(ret, from->tool_count, true);
    bool lacks = false;
    for (size_t i = 0; i < from->tool_count; i++) {
        const struct config_agent_tool named = {.name = from->tools[i]};
        tools[ret->tool_count++] =
            (struct agent_tool){named.name, named_policy(team, ret->slug, &named)};
        lacks = lacks || !find_tool(team, named.name);
    }
    ret->awaits_tools = awaits(team, config, ret->slug, lacks);
    return tools;
}
