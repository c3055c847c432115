/* Resolves the lists of an agent.yaml: its tools, knowledge bases, MCP servers and prompt.
 *
 * AGENT_TOOLS_JSON can describe tools further, and add tools for the agent of `-c`. An MCP server
 * that the settings do not have may be in AGENTBREEDER_MCP_SERVERS, or have its address beside
 * its name. */
#include "config/breeder_item.h"

#include "wire/json.h"

/* --- AGENT_TOOLS_JSON --------------------------------------------------------------------- */

#define TOOLS_JSON "AGENT_TOOLS_JSON"

static bool read_tools_json(const struct config_input *input, struct json *ret, struct err *e) {
    struct str text = config_env(input, TOOLS_JSON);
    *ret = (struct json){.kind = JSON_NONE};
    if (!text.len) return true;
    if (!json_read(text, ret, e)) return err_add(e, TOOLS_JSON);
    return ret->kind == JSON_ARRAY ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   TOOLS_JSON ": expected a list of tools, found %s; write [{\"name\": ...}]",
                   json_kind_name(ret->kind));
}

static bool breeder_refs_take_text(struct config *config, struct json tool, const char *key,
                                   struct str *ret) {
    struct json value = json_find(tool, str_from(key));
    return json_is_absent(value) || json_str(value, config->arena, ret);
}

static bool item_of_json(struct config *config, struct json tool, struct breeder_item *ret,
                         struct err *e) {
    *ret = (struct breeder_item){.what = "tool",
                                 .ref = STR_EMPTY,
                                 .name = STR_EMPTY,
                                 .description = STR_EMPTY,
                                 .schema = STR_EMPTY};
    struct json schema = json_find(tool, STR("schema"));
    if (schema.kind == JSON_NONE) schema = json_find(tool, STR("schema_"));
    bool good = tool.kind == JSON_OBJECT &&
                breeder_refs_take_text(config, tool, "ref", &ret->ref) &&
                breeder_refs_take_text(config, tool, "name", &ret->name) &&
                breeder_refs_take_text(config, tool, "description", &ret->description) &&
                (ret->ref.len || ret->name.len);
    if (good && schema.kind == JSON_OBJECT)
        good = json_compact_copy(schema, config->arena, &ret->schema);
    if (!good)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       TOOLS_JSON ": a tool is an object with the text 'name' or 'ref'");
    return (breeder_check_json(tool, e) && breeder_asks_json(tool, &ret->asks, e)) ||
           err_add(e, TOOLS_JSON);
}

static bool is_same_tool(const struct breeder_item *a, const struct breeder_item *b) {
    struct str ours[3], theirs[3];
    size_t our_count = breeder_candidates(a, ours), their_count = breeder_candidates(b, theirs);
    for (size_t i = 0; i < our_count; i++) {
        for (size_t k = 0; k < their_count; k++) {
            if (breeder_same(ours[i], theirs[k])) return true;
        }
    }
    return false;
}

/* Fill in what the file does not say. */
static bool add_from_json(struct config *config, struct json tools, struct breeder_item *item,
                          struct err *e) {
    struct json_reader reader = json_enter(tools);
    struct json tool;
    while (json_next_item(&reader, &tool)) {
        struct breeder_item more;
        if (!item_of_json(config, tool, &more, e)) return false;
        if (!is_same_tool(item, &more)) continue;
        if (!item->description.len) item->description = more.description;
        if (!item->schema.len) item->schema = more.schema;
        item->asks |= more.asks;
    }
    return true;
}

/* --- the tools of an agent ---------------------------------------------------------------- */

static bool keep_schema(struct config *config, const struct yaml *schema, struct str *ret,
                        struct err *e) {
    struct buf text;
    if (!schema || yaml_is_null(schema)) return true;
    if (!config_want(schema, YAML_MAP, "a JSON Schema, which is a map", e)) return false;
    buf_init(&text, 256 * KIB);
    bool kept = yaml_to_json(schema, &text) && arena_str(config->arena, buf_str(&text), ret);
    buf_done(&text);
    return kept || config_too_large(schema, e);
}

static bool item_of_yaml(struct config *config, const struct yaml *node, const char *what,
                         struct breeder_item *ret, struct err *e) {
    *ret = (struct breeder_item){.what = what,
                                 .ref = breeder_text(node, "ref"),
                                 .name = breeder_text(node, "name"),
                                 .description = breeder_text(node, "description"),
                                 .schema = STR_EMPTY,
                                 .asks = breeder_asks(node),
                                 .at = node};
    return keep_schema(config, yaml_find(node, STR("schema")), &ret->schema, e);
}

/* A growing list. */
struct tools {
    struct config_agent_tool *at;
    size_t count;
};

static bool has_tool(const struct tools *tools, struct str name) {
    for (size_t i = 0; i < tools->count; i++) {
        if (str_equal(tools->at[i].name, name)) return true;
    }
    return false;
}

static bool add_item(struct config *config, const struct config_input *input,
                     struct config_agent *agent, const struct breeder_item *item,
                     struct tools *ret, struct err *e) {
    bool asked = item->asks || agent->breeder->asks;
    struct config_agent_tool tool = {.name = STR_EMPTY,
                                     .policy = asked ? CONFIG_TOOL_ASK : CONFIG_TOOL_ALLOW,
                                     .said = asked,
                                     .at = item->at};
    if (!breeder_find_tool(config, input, agent, item, &tool, e))
        return config_goes_on(config, e);
    if (tool.name.len && !has_tool(ret, tool.name)) ret->at[ret->count++] = tool;
    return true;
}

static bool add_list(struct config *config, const struct config_input *input,
                     struct config_agent *agent, const struct yaml *list, const char *what,
                     struct json more, struct tools *ret, struct err *e) {
    for (const struct yaml *node = list ? list->first : NULL; node; node = node->next) {
        struct breeder_item item;
        if (!item_of_yaml(config, node, what, &item, e) ||
            !add_from_json(config, more, &item, e) ||
            !add_item(config, input, agent, &item, ret, e))
            return false;
    }
    return true;
}

static bool has_item(const struct yaml *list, const struct breeder_item *item) {
    for (const struct yaml *node = list ? list->first : NULL; node; node = node->next) {
        const struct breeder_item other = {.ref = breeder_text(node, "ref"),
                                           .name = breeder_text(node, "name")};
        if (is_same_tool(&other, item)) return true;
    }
    return false;
}

/* Add tools that are only in AGENT_TOOLS_JSON. */
static bool add_json_tools(struct config *config, const struct config_input *input,
                           struct config_agent *agent, struct json more, struct tools *ret,
                           struct err *e) {
    struct json_reader reader = json_enter(more);
    struct json tool;
    while (json_next_item(&reader, &tool)) {
        struct breeder_item item;
        if (!item_of_json(config, tool, &item, e)) return false;
        item.at = agent->at;
        if (!has_item(agent->breeder->tools, &item) &&
            !add_item(config, input, agent, &item, ret, e))
            return false;
    }
    return true;
}

/* --- MCP servers -------------------------------------------------------------------------- */

#define SERVERS_JSON "AGENTBREEDER_MCP_SERVERS"

static bool read_servers_json(const struct config_input *input, struct json *ret,
                              struct err *e) {
    struct str text = config_env(input, SERVERS_JSON);
    *ret = (struct json){.kind = JSON_NONE};
    if (!text.len) return true;
    if (!json_read(text, ret, e)) return err_add(e, SERVERS_JSON);
    return ret->kind == JSON_OBJECT ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   SERVERS_JSON ": expected a map of servers, found %s; write {\"NAME\": "
                                "{\"transport\": \"http\", \"url\": \"http://...\"}}",
                   json_kind_name(ret->kind));
}

/* The address of a server in the map. False: an error. */
static bool url_of_json(struct config *config, struct json servers,
                        const struct breeder_item *item, struct str *ret, struct err *e) {
    struct json_reader reader = json_enter(servers);
    struct json key, value;
    struct str names[3];
    size_t count = breeder_candidates(item, names);
    while (json_next_member(&reader, &key, &value)) {
        struct str name;
        if (!json_str(key, config->arena, &name)) return config_too_large(item->at, e);
        for (size_t i = 0; i < count; i++) {
            if (!breeder_same(breeder_bare_server(name), breeder_bare_server(names[i])))
                continue;
            if (json_str(json_find(value, STR("url")), config->arena, ret)) return true;
            return yaml_err(e, item->at, SERVERS_JSON ": '" STR_FMT "' has no url",
                            STR_ARG(str_head(name, 60)));
        }
    }
    return true;
}

static bool url_of_file(const struct yaml *node, struct str *ret, struct err *e) {
    struct str transport = breeder_text(node, "transport");
    *ret = breeder_text(node, "url");
    if (!ret->len || !str_equal(transport, STR("sse"))) return true;
    return yaml_err(e, yaml_find(node, STR("transport")),
                    "servers over HTTP are asked by streamable HTTP, not by the older sse; "
                    "write transport: streamable_http if this one speaks it");
}

static bool miss_server(struct config *config, const struct breeder_item *item, struct err *e) {
    struct str name = str_head(breeder_bare_server(breeder_last_part(item->ref)), 60);
    return breeder_missing(
        config, item->at, e,
        "MCP server '" STR_FMT "' is nowhere here; write mcp: [{name: " STR_FMT
        ", command: [PROGRAM]}] into %s, or url: URL beside it",
        STR_ARG(str_head(item->ref, 60)), STR_ARG(name), breeder_where(config));
}

static bool add_server(struct config *config, struct config_agent *agent,
                       const struct yaml *node, struct json servers, struct tools *ret,
                       struct err *e) {
    struct breeder_item item;
    struct str url = STR_EMPTY;
    struct config_agent_tool tool = {.policy = agent->breeder->asks ? CONFIG_TOOL_ASK
                                                                    : CONFIG_TOOL_ALLOW,
                                     .said = agent->breeder->asks,
                                     .at = node};
    if (!item_of_yaml(config, node, "MCP server", &item, e)) return false;
    const struct config_mcp *server = breeder_find_server(config, &item);
    if (!server && !url_of_json(config, servers, &item, &url, e)) return false;
    if (!server && !url.len && !url_of_file(node, &url, e)) return false;
    if (!server && !url.len) return miss_server(config, &item, e);
    if (!server && !config_add_mcp(config, breeder_bare_server(breeder_last_part(item.ref)),
                                   url, agent->slug, node, &server, e))
        return false;
    if (!breeder_take_server(config, server, agent, &tool, e)) return false;
    if (!has_tool(ret, tool.name)) ret->at[ret->count++] = tool;
    return true;
}

static bool add_servers(struct config *config, struct config_agent *agent, struct json servers,
                        struct tools *ret, struct err *e) {
    const struct yaml *list = agent->breeder->servers;
    for (const struct yaml *node = list ? list->first : NULL; node; node = node->next) {
        if (!add_server(config, agent, node, servers, ret, e) && !config_goes_on(config, e))
            return false;
    }
    return true;
}

/* --- all references ----------------------------------------------------------------------- */

static size_t breeder_refs_count_of(const struct yaml *list) {
    return list ? list->count : 0;
}

static bool check_prompt(struct config *config, const struct config_agent *agent,
                         struct err *e) {
    const struct yaml *prompt = agent->breeder->prompt;
    struct str name = prompt ? str_head(prompt->text, 80) : STR_EMPTY;
    if (!prompt || config->agent.instructions.len) return true;
    return breeder_missing(config, prompt, e,
                           "prompt '" STR_FMT "' is nowhere here; write its text to " STR_FMT
                           ".md beside this file, or set AGENT_SYSTEM_PROMPT",
                           STR_ARG(name), STR_ARG(str_head(name, str_find_byte(name, '@'))));
}

static bool resolve_agent(struct config *config, const struct config_input *input,
                          struct config_agent *agent, struct json more, struct json servers,
                          struct err *e) {
    const struct config_breeder *from = agent->breeder;
    bool first = config->agent_yaml.alone && agent == config->agents;
    size_t room = breeder_refs_count_of(from->tools) + breeder_refs_count_of(from->servers) +
                  breeder_refs_count_of(from->knowledge) + json_count(more);
    struct tools tools = {arena_alloc(config->arena, (room + 1) * sizeof(*tools.at)), 0};
    const struct json none = {.kind = JSON_NONE};
    if (!tools.at) return config_too_large(agent->at, e);
    if (!check_prompt(config, agent, e) && !config_goes_on(config, e)) return false;
    /* Servers first, because a tool may belong to one of them. */
    if (!add_servers(config, agent, servers, &tools, e) ||
        !add_list(config, input, agent, from->tools, "tool", more, &tools, e) ||
        !add_list(config, input, agent, from->knowledge, "knowledge base", none, &tools, e) ||
        (first && !add_json_tools(config, input, agent, more, &tools, e)))
        return false;
    agent->tools = tools.at;
    agent->tool_count = tools.count;
    return true;
}

bool config_resolve_breeders(struct config *config, const struct config_input *input,
                             struct err *e) {
    struct json more, servers;
    if (!breeder_find_subagents(config, input, e)) return false;
    struct config_agent *agents = (struct config_agent *)config->agents; /* not shared yet */
    bool read = false;
    config->agent_yaml.own_count = config->tools.own_count;
    for (size_t i = 0; i < config->agent_count; i++) {
        if (!agents[i].breeder) continue;
        if (!read &&
            (!read_tools_json(input, &more, e) || !read_servers_json(input, &servers, e)))
            return config_goes_on(config, e);
        read = true;
        if (!resolve_agent(config, input, &agents[i], more, servers, e)) return false;
    }
    return true;
}
