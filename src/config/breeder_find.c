/* Finds what one reference of an agent.yaml names here.
 *
 *     tool, knowledge base   a tool of the section tools, a server of the section mcp, an
 *                            address in TOOL_ENDPOINT_NAME, a built-in tool, or a tool that a
 *                            server's map `tools` names
 *     MCP server             a server of the section mcp */
#include "config/breeder_item.h"

#include "tool/catalogue.h"

#include <fnmatch.h>
#include <stdio.h>

#define NAME_MAX_BYTES 64 /* limit of models' APIs */

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

size_t breeder_candidates(const struct breeder_item *item, struct str ret[3]) {
    size_t count = 0;
    struct str last = breeder_last_part(item->ref);
    if (item->ref.len) ret[count++] = item->ref;
    if (last.len && last.len < item->ref.len) ret[count++] = last;
    if (item->name.len) ret[count++] = item->name;
    return count;
}

struct str breeder_bare_server(struct str name) {
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
static bool tool_name(struct config *config, const struct breeder_item *item, struct str *ret) {
    return keep_name(config, item->name.len ? item->name : breeder_last_part(item->ref), ret);
}

/* --- the section mcp ---------------------------------------------------------------------- */

const struct config_mcp *breeder_find_server(const struct config *config,
                                             const struct breeder_item *item) {
    struct str names[3];
    size_t count = breeder_candidates(item, names);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < config->mcp_count; i++) {
            struct str server = config->mcp[i].name;
            if (breeder_same(server, names[n]) ||
                breeder_same(breeder_bare_server(server), breeder_bare_server(names[n])))
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
bool breeder_take_server(struct config *config, const struct config_mcp *server,
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
static struct str find_endpoint(const struct config_input *input,
                                const struct breeder_item *item, struct buf *ret_variable) {
    struct str names[3];
    size_t count = breeder_candidates(item, names);
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

static bool breeder_find_is_taken(const struct config *config, struct str name) {
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
    if (!breeder_find_is_taken(config, *name)) return true;
    buf_init(&longer, KIB);
    buf_printf(&longer, STR_FMT "_" STR_FMT, STR_ARG(*name), STR_ARG(agent->slug));
    bool kept = keep_name(config, buf_str(&longer), name);
    buf_done(&longer);
    return kept && !breeder_find_is_taken(config, *name);
}

static bool keep_description(struct config *config, const struct breeder_item *item,
                             struct str *ret) {
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
                          const struct breeder_item *item, struct str url,
                          struct config_own_tool *ret, struct err *e) {
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
                         const struct breeder_item *item, struct str url,
                         struct config_agent_tool *ret, struct err *e) {
    struct config_own_tool tool;
    if (!make_endpoint(config, agent, item, url, &tool, e)) return false;
    if (!name_apart(config, agent, &tool.name))
        return err_set(e, ERR_INVALID_ARGUMENT, "there is a tool of this name already");
    ret->name = tool.name;
    return config_add_own_tool(config, &tool, item->at, e);
}

/* --- the section tools -------------------------------------------------------------------- */

static const struct config_own_tool *find_own(const struct config *config,
                                              const struct breeder_item *item) {
    struct str names[3];
    size_t count = breeder_candidates(item, names);
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
static bool breeder_find_is_there(const struct config *config, struct str built_in) {
    return config->tools.web_search.backend.len > 0 ||
           !str_equal(built_in, STR("web_search_tool"));
}

static bool find_built_in(const struct config *config, const struct breeder_item *item,
                          struct str *ret) {
    static const struct {
        struct str name, built_in;
    } others[] = {{STR("web_search"), STR("web_search_tool")},
                  {STR("fetch_url"), STR("web_fetch")},
                  {STR("get_current_time"), STR("current_time")}};
    struct str names[3];
    size_t count = breeder_candidates(item, names), row_count;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < row_count; i++) {
            *ret = rows[i].name;
            if (breeder_same(names[n], *ret)) return breeder_find_is_there(config, *ret);
        }
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
            *ret = others[i].built_in;
            if (breeder_same(names[n], others[i].name))
                return breeder_find_is_there(config, *ret);
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
    return config->remote.tools || is_hidden(config, name) || is_promised(config, name);
}

const char *breeder_where(const struct config *config) {
    return config->agent_yaml.alone
               ? "the settings file that lists this one (agents: [{agent_yaml: FILE}])"
               : "the settings";
}

static bool is_of_mcp(const struct breeder_item *item) {
    struct str last = breeder_last_part(item->ref);
    return breeder_bare_server(last).len < last.len || str_starts(item->ref, STR("mcp/"));
}

static bool miss_tool(struct config *config, const struct breeder_item *item, struct err *e) {
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
            item->what, STR_ARG(text), breeder_where(config), STR_ARG(buf_str(&slug)));
    } else if (is_of_mcp(item)) {
        done =
            breeder_missing(config, item->at, e,
                            "%s '" STR_FMT "' is nowhere here; write mcp: [{name: " STR_FMT
                            ", command: [PROGRAM]}] into %s, or set " ENDPOINT STR_FMT "=URL",
                            item->what, STR_ARG(text), STR_ARG(breeder_bare_server(last)),
                            breeder_where(config), STR_ARG(buf_str(&slug)));
    } else {
        done = breeder_missing(config, item->at, e,
                               "%s '" STR_FMT "' is nowhere here; set " ENDPOINT STR_FMT
                               "=URL, or write tools: {" STR_FMT
                               ": {description: TEXT, command: [PROGRAM]}} into %s",
                               item->what, STR_ARG(text), STR_ARG(buf_str(&slug)),
                               STR_ARG(last), breeder_where(config));
    }
    buf_done(&slug);
    return done;
}

bool breeder_find_tool(struct config *config, const struct config_input *input,
                       const struct config_agent *agent, const struct breeder_item *item,
                       struct config_agent_tool *ret, struct err *e) {
    const struct config_own_tool *own = find_own(config, item);
    const struct config_mcp *server = breeder_find_server(config, item);
    struct buf variable;
    struct err why;
    if (own) return take_own(own, agent, ret, e);
    if (server) return breeder_take_server(config, server, agent, ret, e);
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
