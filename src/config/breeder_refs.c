/* Resolves the names in an agent.yaml to what the settings have: tools, MCP servers, knowledge
 * bases.
 *
 *     tool, knowledge base   a tool of the section tools, a server of the section mcp, an
 *                            address in TOOL_ENDPOINT_NAME, a built-in tool, or a tool that a
 *                            server's map `tools` names
 *     MCP server             a server of the section mcp, one of AGENTBREEDER_MCP_SERVERS, or
 *                            the address beside it
 *
 * AGENT_TOOLS_JSON can describe these tools further, and add tools for the agent of `-c`. */
#include "config/breeder.h"

#include "schema/schema.h"
#include "tool/catalogue.h"
#include "wire/json.h"

#include <fnmatch.h>
#include <stdio.h>

#define NAME_MAX_BYTES 64 /* limit of models' APIs */

/* A tool or a knowledge base, as written in the file. */
struct item {
    const char *what;
    struct str ref, name, description, schema;
    bool asks;
    const struct yaml *at;
};

/* --- names -------------------------------------------------------------------------------- */

static char folded(char c) {
    if (c == '-') return '_';
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

bool breeder_same(struct str a, struct str b) {
    bool same = a.len == b.len;
    for (size_t i = 0; same && i < a.len; i++) same = folded(a.at[i]) == folded(b.at[i]);
    return same;
}

/* The names to look for, in upstream's order. */
static size_t candidates(const struct item *item, struct str ret[3]) {
    size_t count = 0;
    struct str last = breeder_last_part(item->ref);
    if (item->ref.len) ret[count++] = item->ref;
    if (last.len && last.len < item->ref.len) ret[count++] = last;
    if (item->name.len) ret[count++] = item->name;
    return count;
}

/* "zendesk-mcp" and "mcp-zendesk" name the server zendesk. */
static struct str bare_server(struct str name) {
    if (name.len > 4 && breeder_same(str_skip(name, name.len - 4), STR("-mcp")))
        return str_head(name, name.len - 4);
    if (name.len > 4 && breeder_same(str_head(name, 4), STR("mcp-"))) return str_skip(name, 4);
    return name;
}

static bool keep_name(struct config *config, struct str name, struct str *ret) {
    if (!arena_str(config->arena, str_head(name, NAME_MAX_BYTES), ret)) return false;
    for (char *at = (char *)ret->at; *at; at++) {
        bool fits = str_is_alnum(*at) || *at == '-' || *at == '_';
        if (!fits) *at = '_';
    }
    return true;
}

/* The tool's name for models: its own, or the end of its reference. */
static bool tool_name(struct config *config, const struct item *item, struct str *ret) {
    return keep_name(config, item->name.len ? item->name : breeder_last_part(item->ref), ret);
}

/* --- the section mcp ---------------------------------------------------------------------- */

static const struct config_mcp *find_server(const struct config *config,
                                            const struct item *item) {
    struct str names[3];
    size_t count = candidates(item, names);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < config->mcp_count; i++) {
            struct str server = config->mcp[i].name;
            if (breeder_same(server, names[n]) ||
                breeder_same(bare_server(server), bare_server(names[n])))
                return &config->mcp[i];
        }
    }
    return NULL;
}

static bool is_for(const struct config_mcp *server, struct str agent) {
    for (size_t i = 0; i < server->agent_count; i++) {
        if (str_equal(server->agents[i], agent)) return true;
    }
    return server->agent_count == 0;
}

/* Add the pattern that means all tools of the server. */
static bool take_server(struct config *config, const struct config_mcp *server,
                        const struct config_agent *agent, struct config_agent_tool *ret,
                        struct err *e) {
    struct buf name;
    if (!is_for(server, agent->slug))
        return yaml_err(e, ret->at,
                        "the MCP server '" STR_FMT "' is for other agents; add " STR_FMT
                        " to its list 'agents'",
                        STR_ARG(server->name), STR_ARG(agent->slug));
    buf_init(&name, KIB);
    buf_append(&name, server->name);
    buf_append(&name, STR("/*"));
    bool kept = arena_str(config->arena, buf_str(&name), &ret->name);
    buf_done(&name);
    return kept || config_too_large(ret->at, e);
}

/* Whether some server's map of tools names it, directly or by a pattern. */
static bool is_promised(const struct config *config, struct str tool) {
    char name[NAME_MAX_BYTES + 1], pattern[256];
    snprintf(name, sizeof(name), STR_FMT, STR_ARG(tool));
    for (size_t i = 0; i < config->mcp_count; i++) {
        const struct config_mcp *server = &config->mcp[i];
        for (size_t p = 0; p < server->policy_count; p++) {
            snprintf(pattern, sizeof(pattern), STR_FMT, STR_ARG(server->policies[p].name));
            if (fnmatch(pattern, name, 0) == 0) return true;
        }
    }
    return false;
}

/* --- TOOL_ENDPOINT_NAME ------------------------------------------------------------------- */

#define ENDPOINT "TOOL_ENDPOINT_"

static void append_slug(struct str name, struct buf *out) {
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (c >= 'a' && c <= 'z') c = (char)(c - 'a' + 'A');
        bool fits = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
        buf_append_byte(out, fits ? c : '_');
    }
}

/* The address in the first variable that is set. `ret_variable` ends in NUL. */
static struct str find_endpoint(const struct config_input *input, const struct item *item,
                                struct buf *ret_variable) {
    struct str names[3];
    size_t count = candidates(item, names);
    for (size_t i = 0; i < count; i++) {
        buf_clear(ret_variable);
        buf_append(ret_variable, STR(ENDPOINT));
        append_slug(names[i], ret_variable);
        buf_append_byte(ret_variable, '\0');
        struct str url = buf_ok(ret_variable) ? config_env(input, ret_variable->at) : STR_EMPTY;
        if (url.len) return url;
    }
    return STR_EMPTY;
}

static bool is_taken(const struct config *config, struct str name) {
    for (size_t i = 0; i < config->tools.own_count; i++) {
        if (str_equal(config->tools.own[i].name, name)) return true;
    }
    return false;
}

/* Two agents may use one name for different tools; the second one gets the agent's name
 * added. */
static bool name_apart(struct config *config, const struct config_agent *agent,
                       struct str *name) {
    struct buf longer;
    if (!is_taken(config, *name)) return true;
    buf_init(&longer, KIB);
    buf_printf(&longer, STR_FMT "_" STR_FMT, STR_ARG(*name), STR_ARG(agent->slug));
    bool kept = keep_name(config, buf_str(&longer), name);
    buf_done(&longer);
    return kept && !is_taken(config, *name);
}

static bool keep_description(struct config *config, const struct item *item, struct str *ret) {
    struct buf text;
    if (item->description.len) return arena_str(config->arena, item->description, ret);
    buf_init(&text, KIB);
    buf_printf(&text, "The %s " STR_FMT ".", item->what,
               STR_ARG(item->name.len ? item->name : breeder_last_part(item->ref)));
    bool kept = arena_str(config->arena, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

/* Escape braces, because the address is not a template. */
static bool keep_address(struct config *config, struct str url, struct str *ret,
                         struct err *e) {
    struct buf text;
    buf_init(&text, 64 * KIB);
    for (size_t i = 0; i < url.len; i++) {
        buf_append_byte(&text, url.at[i]);
        if (url.at[i] == '{' || url.at[i] == '}') buf_append_byte(&text, url.at[i]);
    }
    bool kept = config_keep_url(config, url, ret, e); /* checks that it is a valid address */
    if (kept && !(buf_ok(&text) && arena_str(config->arena, buf_str(&text), ret)))
        kept = err_set(e, ERR_TOO_LARGE, "it is too long");
    buf_done(&text);
    return kept;
}

/* Calls work as upstream: the arguments are posted as a JSON object. The result is the member
 * `output` of the answer, or the whole answer if it has none. */
static bool make_endpoint(struct config *config, const struct config_agent *agent,
                          const struct item *item, struct str url, struct config_own_tool *ret,
                          struct err *e) {
    struct str *agents = arena_alloc(config->arena, sizeof(*agents));
    struct schema *schema;
    *ret = config_own_tool_blank;
    ret->method = STR("POST");
    ret->pick = STR("output");
    if (item->schema.len) ret->parameters = item->schema;
    if (!schema_read(ret->parameters, &schema, e)) return err_add(e, "schema");
    schema_free(schema);
    if (!agents || !keep_address(config, url, &ret->url, e)) return false;
    agents[0] = agent->slug;
    ret->agents = agents;
    ret->agent_count = 1;
    return (tool_name(config, item, &ret->name) &&
            keep_description(config, item, &ret->description)) ||
           err_set(e, ERR_TOO_LARGE, "the settings are too large");
}

static bool add_endpoint(struct config *config, const struct config_agent *agent,
                         const struct item *item, struct str url, struct config_agent_tool *ret,
                         struct err *e) {
    struct config_own_tool tool;
    if (!make_endpoint(config, agent, item, url, &tool, e)) return false;
    if (!name_apart(config, agent, &tool.name))
        return err_set(e, ERR_INVALID_ARGUMENT, "there is a tool of this name already");
    ret->name = tool.name;
    return config_add_own_tool(config, &tool, item->at, e);
}

/* --- the section tools -------------------------------------------------------------------- */

static const struct config_own_tool *find_own(const struct config *config,
                                              const struct item *item) {
    struct str names[3];
    size_t count = candidates(item, names);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < config->agent_yaml.own_count; i++) {
            if (breeder_same(config->tools.own[i].name, names[n])) return &config->tools.own[i];
        }
    }
    return NULL;
}

static bool take_own(const struct config_own_tool *own, const struct config_agent *agent,
                     struct config_agent_tool *ret, struct err *e) {
    ret->name = own->name;
    for (size_t i = 0; i < own->agent_count; i++) {
        if (str_equal(own->agents[i], agent->slug)) return true;
    }
    return own->agent_count == 0 ||
           yaml_err(e, ret->at,
                    "the tool '" STR_FMT "' is for other agents; add " STR_FMT
                    " to its list 'agents'",
                    STR_ARG(own->name), STR_ARG(agent->slug));
}

/* --- built-in tools ----------------------------------------------------------------------- */

/* A tool without its settings does not exist. */
static bool is_there(const struct config *config, struct str built_in) {
    return config->tools.web_search.backend.len > 0 ||
           !str_equal(built_in, STR("web_search_tool"));
}

static bool find_built_in(const struct config *config, const struct item *item,
                          struct str *ret) {
    static const struct {
        struct str name, built_in;
    } others[] = {{STR("web_search"), STR("web_search_tool")},
                  {STR("fetch_url"), STR("web_fetch")},
                  {STR("get_current_time"), STR("current_time")}};
    struct str names[3];
    size_t count = candidates(item, names), row_count;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < row_count; i++) {
            *ret = rows[i].name;
            if (breeder_same(names[n], *ret)) return is_there(config, *ret);
        }
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
            *ret = others[i].built_in;
            if (breeder_same(names[n], others[i].name)) return is_there(config, *ret);
        }
    }
    *ret = STR_EMPTY;
    return false;
}

/* --- one tool ----------------------------------------------------------------------------- */

static bool is_hidden(const struct config *config, struct str name) {
    for (size_t i = 0; i < config->tools.policy_count; i++) {
        const struct config_agent_tool *policy = &config->tools.policies[i];
        if (breeder_same(policy->name, name)) return policy->policy == CONFIG_TOOL_HIDDEN;
    }
    return false;
}

/* Whether the tool may appear at run time, which cannot be checked here. */
static bool may_come(const struct config *config, struct str name) {
    return config->converse.mcp_endpoint.len > 0 || is_hidden(config, name) ||
           is_promised(config, name);
}

/* Where the missing line must be added. */
static const char *the_settings(const struct config *config) {
    return config->agent_yaml.alone
               ? "the settings file that lists this one (agents: [{agent_yaml: FILE}])"
               : "the settings";
}

static bool is_of_mcp(const struct item *item) {
    struct str last = breeder_last_part(item->ref);
    return bare_server(last).len < last.len || str_starts(item->ref, STR("mcp/"));
}

static bool miss_tool(struct config *config, const struct item *item, struct err *e) {
    struct str text = str_head(item->ref.len ? item->ref : item->name, 60);
    struct str last = str_head(item->name.len ? item->name : breeder_last_part(item->ref), 60);
    struct buf slug;
    struct str built_in = STR_EMPTY;
    buf_init(&slug, KIB);
    append_slug(last, &slug);
    bool done = !find_built_in(config, item, &built_in);
    if (str_equal(built_in, STR("web_search_tool"))) {
        done = breeder_missing(
            config, item->at, e,
            "%s '" STR_FMT "' needs a search engine; write tools: "
            "{web_search: {backend: searxng, url: URL}} into %s, or set " ENDPOINT STR_FMT
            "=URL",
            item->what, STR_ARG(text), the_settings(config), STR_ARG(buf_str(&slug)));
    } else if (is_of_mcp(item)) {
        done =
            breeder_missing(config, item->at, e,
                            "%s '" STR_FMT "' is nowhere here; write mcp: [{name: " STR_FMT
                            ", command: [PROGRAM]}] into %s, or set " ENDPOINT STR_FMT "=URL",
                            item->what, STR_ARG(text), STR_ARG(bare_server(last)),
                            the_settings(config), STR_ARG(buf_str(&slug)));
    } else {
        done = breeder_missing(config, item->at, e,
                               "%s '" STR_FMT "' is nowhere here; set " ENDPOINT STR_FMT
                               "=URL, or write tools: {" STR_FMT
                               ": {description: TEXT, command: [PROGRAM]}} into %s",
                               item->what, STR_ARG(text), STR_ARG(buf_str(&slug)),
                               STR_ARG(last), the_settings(config));
    }
    buf_done(&slug);
    return done;
}

/* *ret->name stays empty if the tool is left out. */
static bool find_tool(struct config *config, const struct config_input *input,
                      const struct config_agent *agent, const struct item *item,
                      struct config_agent_tool *ret, struct err *e) {
    const struct config_own_tool *own = find_own(config, item);
    const struct config_mcp *server = find_server(config, item);
    struct buf variable;
    struct err why;
    if (own) return take_own(own, agent, ret, e);
    if (server) return take_server(config, server, agent, ret, e);
    buf_init(&variable, KIB);
    struct str url = find_endpoint(input, item, &variable);
    bool done = !url.len || add_endpoint(config, agent, item, url, ret, &why);
    if (!done) yaml_err(e, item->at, "%s: %s", variable.at, why.text);
    buf_done(&variable);
    if (url.len || !done) return done;
    ret->optional = config->agent_yaml.missing_warns;
    if (find_built_in(config, item, &ret->name)) return true;
    ret->optional = true;
    if (!tool_name(config, item, &ret->name)) return config_too_large(item->at, e);
    if (may_come(config, ret->name)) return true;
    ret->name = STR_EMPTY;
    return miss_tool(config, item, e);
}

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

static bool take_text(struct config *config, struct json tool, const char *key,
                      struct str *ret) {
    struct json value = json_find(tool, str_from(key));
    return value.kind == JSON_NONE || value.kind == JSON_NULL ||
           json_str(value, config->arena, ret);
}

static bool item_of_json(struct config *config, struct json tool, struct item *ret,
                         struct err *e) {
    *ret = (struct item){.what = "tool",
                         .ref = STR_EMPTY,
                         .name = STR_EMPTY,
                         .description = STR_EMPTY,
                         .schema = STR_EMPTY};
    struct json schema = json_find(tool, STR("schema"));
    if (schema.kind == JSON_NONE) schema = json_find(tool, STR("schema_"));
    bool good = tool.kind == JSON_OBJECT && take_text(config, tool, "ref", &ret->ref) &&
                take_text(config, tool, "name", &ret->name) &&
                take_text(config, tool, "description", &ret->description) &&
                (ret->ref.len || ret->name.len);
    if (good && schema.kind == JSON_OBJECT)
        good = json_compact_copy(schema, config->arena, &ret->schema);
    return good || err_set(e, ERR_INVALID_ARGUMENT,
                           TOOLS_JSON ": a tool is an object with the text 'name' or 'ref'");
}

static bool is_same_tool(const struct item *a, const struct item *b) {
    struct str ours[3], theirs[3];
    size_t our_count = candidates(a, ours), their_count = candidates(b, theirs);
    for (size_t i = 0; i < our_count; i++) {
        for (size_t k = 0; k < their_count; k++) {
            if (breeder_same(ours[i], theirs[k])) return true;
        }
    }
    return false;
}

/* Fill in what the file does not say. */
static bool add_from_json(struct config *config, struct json tools, struct item *item,
                          struct err *e) {
    struct json_reader reader = json_enter(tools);
    struct json tool;
    while (json_next_item(&reader, &tool)) {
        struct item more;
        if (!item_of_json(config, tool, &more, e)) return false;
        if (!is_same_tool(item, &more)) continue;
        if (!item->description.len) item->description = more.description;
        if (!item->schema.len) item->schema = more.schema;
    }
    return true;
}

/* --- the tools of an agent ---------------------------------------------------------------- */

/* Whether it says "approval: true", "approval: required" or {require: true}. */
static bool asks(const struct yaml *item) {
    const struct yaml *approval = yaml_find(item, STR("approval"));
    const struct yaml *require = yaml_find(approval, STR("require"));
    const struct yaml *said = require ? require : approval;
    return said && said->kind == YAML_SCALAR &&
           (str_equal(said->text, STR("true")) || str_equal(said->text, STR("required")));
}

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
                         struct item *ret, struct err *e) {
    *ret = (struct item){.what = what,
                         .ref = breeder_text(node, "ref"),
                         .name = breeder_text(node, "name"),
                         .description = breeder_text(node, "description"),
                         .schema = STR_EMPTY,
                         .asks = asks(node),
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
                     struct config_agent *agent, const struct item *item, struct tools *ret,
                     struct err *e) {
    bool asked = item->asks || agent->breeder->asks;
    struct config_agent_tool tool = {.name = STR_EMPTY,
                                     .policy = asked ? CONFIG_TOOL_ASK : CONFIG_TOOL_ALLOW,
                                     .said = asked,
                                     .at = item->at};
    if (!find_tool(config, input, agent, item, &tool, e)) return config_goes_on(config, e);
    if (tool.name.len && !has_tool(ret, tool.name)) ret->at[ret->count++] = tool;
    return true;
}

static bool add_list(struct config *config, const struct config_input *input,
                     struct config_agent *agent, const struct yaml *list, const char *what,
                     struct json more, struct tools *ret, struct err *e) {
    for (const struct yaml *node = list ? list->first : NULL; node; node = node->next) {
        struct item item;
        if (!item_of_yaml(config, node, what, &item, e) ||
            !add_from_json(config, more, &item, e) ||
            !add_item(config, input, agent, &item, ret, e))
            return false;
    }
    return true;
}

static bool has_item(const struct yaml *list, const struct item *item) {
    for (const struct yaml *node = list ? list->first : NULL; node; node = node->next) {
        const struct item other = {.ref = breeder_text(node, "ref"),
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
        struct item item;
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
static bool url_of_json(struct config *config, struct json servers, const struct item *item,
                        struct str *ret, struct err *e) {
    struct json_reader reader = json_enter(servers);
    struct json key, value;
    struct str names[3];
    size_t count = candidates(item, names);
    while (json_next_member(&reader, &key, &value)) {
        struct str name;
        if (!json_str(key, config->arena, &name)) return config_too_large(item->at, e);
        for (size_t i = 0; i < count; i++) {
            if (!breeder_same(bare_server(name), bare_server(names[i]))) continue;
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

static bool miss_server(struct config *config, const struct item *item, struct err *e) {
    struct str name = str_head(bare_server(breeder_last_part(item->ref)), 60);
    return breeder_missing(
        config, item->at, e,
        "MCP server '" STR_FMT "' is nowhere here; write mcp: [{name: " STR_FMT
        ", command: [PROGRAM]}] into %s, or url: URL beside it",
        STR_ARG(str_head(item->ref, 60)), STR_ARG(name), the_settings(config));
}

static bool add_server(struct config *config, struct config_agent *agent,
                       const struct yaml *node, struct json servers, struct tools *ret,
                       struct err *e) {
    struct item item;
    struct str url = STR_EMPTY;
    struct config_agent_tool tool = {.policy = agent->breeder->asks ? CONFIG_TOOL_ASK
                                                                    : CONFIG_TOOL_ALLOW,
                                     .said = agent->breeder->asks,
                                     .at = node};
    if (!item_of_yaml(config, node, "MCP server", &item, e)) return false;
    const struct config_mcp *server = find_server(config, &item);
    if (!server && !url_of_json(config, servers, &item, &url, e)) return false;
    if (!server && !url.len && !url_of_file(node, &url, e)) return false;
    if (!server && !url.len) return miss_server(config, &item, e);
    if (!server && !config_add_mcp(config, bare_server(breeder_last_part(item.ref)), url,
                                   agent->slug, node, &server, e))
        return false;
    if (!take_server(config, server, agent, &tool, e)) return false;
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

static size_t count_of(const struct yaml *list) {
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
    size_t room = count_of(from->tools) + count_of(from->servers) + count_of(from->knowledge) +
                  json_count(more);
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
