/* The operator's own tools in the section `tools`: programs, and requests to servers. */
#include "config/rows.h"

#include "tool/catalogue.h"
#include "tool/template.h"

#define NAME_MAX_BYTES 64
#define BODY_MAX_BYTES (64 * KIB)
#define FIELDS_MAX 32
#define SECRETS_MAX 16
#define AT_ONCE 16
#define OUTPUT_BYTES (1 * MIB)
#define DURATION_OF_NOTHING "a call needs some time; give it 1ms or more"

struct own_entry {
    struct config_own_tool tool;
    const struct yaml *policy, *command, *environment, *query, *headers, *body, *agents;
    struct str key_env, key_file;
    uint64_t timeout_ms;
};

/* State for reading the templates of one tool. */
struct own_reading {
    const struct reading *reading;
    struct config_own_tool *tool;
    struct tool_secret *secrets; /* room for SECRETS_MAX */
};

/* --- names -------------------------------------------------------------------------------- */

static bool own_tools_is_taken(struct str name) {
    static const char *const words[] = {"transfer_to_agent", "request_approval", "read_result",
                                        NULL};
    for (size_t i = 0; words[i]; i++) {
        if (str_equal(name, str_from(words[i]))) return true;
    }
    return catalogue_find(name) != NULL;
}

static bool own_tools_check_name(const struct yaml *node, struct err *e) {
    if (!node->key.len || node->key.len > NAME_MAX_BYTES || !str_is_plain(node->key, "-_"))
        return yaml_err_key(e, node, "a tool's name has 1 to %d letters, digits, '-' and '_'",
                            NAME_MAX_BYTES);
    return !own_tools_is_taken(node->key) ||
           yaml_err_key(e, node, "weir brings a tool of that name; choose another");
}

/* --- templates ---------------------------------------------------------------------------- */

static const struct tool_secret *find_secret(const struct own_reading *own, struct str name) {
    for (size_t i = 0; i < own->tool->secret_count; i++) {
        if (str_equal(own->secrets[i].name, name)) return &own->secrets[i];
    }
    return NULL;
}

static bool own_tools_is_plain(struct str value) {
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.at[i] < ' ' || value.at[i] == 0x7F) return false;
    }
    return true;
}

/* The value of a variable, or of the file that NAME_FILE names. */
static bool take_secret(struct own_reading *own, const struct yaml *node, struct str name,
                        struct err *e) {
    struct config *config = own->reading->config;
    const struct config_key_names names = {.names = {name}, .count = 1, .file = STR_EMPTY};
    struct tool_secret *secret = &own->secrets[own->tool->secret_count];
    struct str source;
    struct err why;
    if (find_secret(own, name)) return true;
    if (own->tool->secret_count == SECRETS_MAX)
        return yaml_err(e, node, "a tool names %d variables at most", SECRETS_MAX);
    if (!config_find_key(config, own->reading->input, &names, &secret->value, &source, &why))
        return yaml_err(e, node, "%s", why.text);
    if (!secret->value.len)
        config_warn(config,
                    "a tool needs the variable " STR_FMT ", which is not set: its calls fail; "
                    "set it, or name a file in " STR_FMT "_FILE",
                    STR_ARG(str_head(name, 80)), STR_ARG(str_head(name, 80)));
    secret->name = name;
    own->tool->secret_count++;
    return true;
}

static struct request_options own_tools_options_of(const struct own_reading *own) {
    return (struct request_options){.parameters = own->tool->parameters,
                                    .secrets = own->secrets,
                                    .secret_count = own->tool->secret_count};
}

static bool read_template(struct own_reading *own, const struct yaml *node, struct err *e) {
    struct template_piece piece;
    struct str text = node->text;
    struct err why;
    while (text.len) {
        if (!template_next(&text, &piece, &why)) return yaml_err(e, node, "%s", why.text);
        if (piece.kind == TEMPLATE_SECRET && !take_secret(own, node, piece.text, e))
            return false;
    }
    struct request_options options = own_tools_options_of(own);
    return request_check_template(&options, node->text, &why) ||
           yaml_err(e, node, "%s", why.text);
}

/* Recursive; the depth is at most YAML_DEPTH_MAX. */
static bool read_templates(struct own_reading *own, const struct yaml *node, struct err *e) {
    if (node->kind == YAML_SCALAR) return read_template(own, node, e);
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!read_templates(own, item, e)) return false;
    }
    return true;
}

/* --- a request ---------------------------------------------------------------------------- */

static bool read_fields(struct own_reading *own, const struct yaml *map, const char *what,
                        const struct request_field **ret, size_t *ret_count, struct err *e) {
    struct config *config = own->reading->config;
    if (!map) return true;
    if (!config_want(map, YAML_MAP, what, e)) return false;
    if (map->count > FIELDS_MAX) return yaml_err(e, map, "these are more than %d", FIELDS_MAX);
    struct request_field *fields =
        arena_alloc(config->arena, (map->count + 1) * sizeof(*fields));
    if (!fields) return config_too_large(map, e);
    for (const struct yaml *node = map->first; node; node = node->next) {
        struct request_field *field = &fields[(*ret_count)++];
        field->name = node->key;
        if (!yaml_value(node, YAML_TEXT, &field->value, e) || !read_template(own, node, e))
            return false;
    }
    *ret = fields;
    return true;
}

static bool check_headers(const struct yaml *map, struct err *e) {
    for (const struct yaml *node = map ? map->first : NULL; node; node = node->next) {
        if (!config_header_name(node, e)) return false;
        if (node->kind == YAML_SCALAR && !own_tools_is_plain(node->text))
            return yaml_err(e, node, "this value holds a character that no header carries");
    }
    return true;
}

static bool own_tools_read_body(struct own_reading *own, const struct yaml *node,
                                struct err *e) {
    struct buf text;
    if (!node) return true;
    if (!read_templates(own, node, e)) return false;
    buf_init(&text, BODY_MAX_BYTES);
    bool fits = yaml_to_json(node, &text);
    bool kept =
        fits && arena_str(own->reading->config->arena, buf_str(&text), &own->tool->body);
    buf_done(&text);
    return kept || yaml_err(e, node, "this body is too long");
}

static bool own_tools_read_key(const struct own_reading *own, const struct own_entry *entry,
                               const struct yaml *node, struct err *e) {
    struct str source;
    return config_read_key(own->reading->config, own->reading->input, entry->key_env,
                           entry->key_file, node, &own->tool->key, &source, e);
}

static bool own_tools_read_request(struct own_reading *own, struct own_entry *entry,
                                   const struct yaml *node, struct err *e) {
    struct config_own_tool *tool = own->tool;
    struct err why;
    if (!tool->method.len) tool->method = entry->body ? STR("POST") : STR("GET");
    tool->has_query = entry->query != NULL;
    if (!read_template(own, yaml_find(node, STR("url")), e) ||
        !read_fields(own, entry->query, "parameters as a map, such as {q: \"{text}\"}",
                     &tool->query, &tool->query_count, e) ||
        !check_headers(entry->headers, e) ||
        !read_fields(own, entry->headers, "headers as a map, such as {x-team: blue}",
                     &tool->headers, &tool->header_count, e) ||
        !own_tools_read_body(own, entry->body, e) || !own_tools_read_key(own, entry, node, e))
        return false;
    struct request_options options = own_tools_options_of(own);
    options.url = tool->url;
    return request_check(&options, &why) ||
           yaml_err(e, yaml_find(node, STR("url")), "%s", why.text);
}

/* --- a program ---------------------------------------------------------------------------- */

/* The program is written and found like an agent's. */
static bool read_program(const struct own_reading *own, const struct own_entry *entry,
                         struct err *e) {
    struct config_agent as_agent = {.command_count = 0};
    if (!config_read_command(own->reading, entry->command, &as_agent, e) ||
        !config_read_environment(own->reading, entry->environment, entry->command, &as_agent,
                                 e))
        return false;
    own->tool->command = as_agent.command;
    own->tool->command_count = as_agent.command_count;
    own->tool->environment = as_agent.environment;
    own->tool->environment_count = as_agent.environment_count;
    return true;
}

/* --- any tool ----------------------------------------------------------------------------- */

static bool check_parameters(const struct reading *reading, const struct yaml *node,
                             struct err *e) {
    struct schema *schema;
    struct err why;
    if (!schema_read(((struct own_entry *)reading->entry)->tool.parameters, &schema, &why))
        return yaml_err(e, node, "%s", why.text);
    schema_free(schema);
    return true;
}

static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", NULL};
static const char *const answers[] = {[TOOL_OUTPUT_AUTO] = "auto",
                                      [TOOL_OUTPUT_JSON] = "json",
                                      [TOOL_OUTPUT_TEXT] = "text",
                                      NULL};
static const char *const repeats[] = {[CONFIG_REPEAT_AUTO] = "auto",
                                      [CONFIG_REPEAT_HARMS] = "false",
                                      [CONFIG_REPEAT_HARMLESS] = "true",
                                      NULL};

#define ROW_OF struct own_entry

/* clang-format off */
static const struct setting rows[] = {
    {.key = "description", PROSE(tool.description), .required = true,
     .help = "what it does: models choose by it"},
    {.key = "parameters", JSON(tool.parameters), .read = check_parameters,
     .help = "JSON Schema of its arguments; left out: any object"},
    {.key = "command", NODE(command),
     .help = "a program and its arguments, as a list: it reads the arguments of the call as JSON "
             "and writes the result"},
    {.key = "environment", NODE(environment),
     .help = "of a program: a map of variables; one without a value is passed on"},
    {.key = "url", TEXT(tool.url), .help = "a template, in place of a program: where the request goes"},
    {.key = "method", WORD(tool.method), .choices = methods,
     .help = "left out: POST with a body, else GET"},
    {.key = "query", NODE(query), .help = "a map of parameters, each a template"},
    {.key = "headers", NODE(headers), .help = "a map of headers, each a template"},
    {.key = "body", NODE(body), .help = "of the request, as JSON: each text in it is a template"},
    {.key = "key_env", NAME(key_env), .help = "the variable that holds a key, sent as Bearer"},
    {.key = "key_file", TEXT(key_file), .help = "a file that holds it"},
    {.key = "public_only", BOOL(tool.public_only),
     .help = "of a request: only to a server with a public address"},
    {.key = "answer", CHOICE(tool.answer), .choices = answers,
     .help = "what it answers; auto: JSON if it reads as such, else text"},
    {.key = "pick", TEXT(tool.pick),
     .help = "a member of the answer that is the result, where the answer has it"},
    {.key = "output", SIZE(tool.output_bytes), .least = 1, .most = 16 * MIB,
     .beyond = "an answer has 1B to 16MiB", .help = "the longest answer, 1MiB where it is left out"},
    {.key = "timeout", DURATION(timeout_ms), .least = 1, .beyond = DURATION_OF_NOTHING,
     .help = "for one call; left out: 1m for a program, 30s for a request"},
    {.key = "at_once", COUNT(tool.at_once), .least = 1, .most = 1000,
     .beyond = "1 to 1000 calls may be made at once",
     .help = "calls at the same time, 16 where it is left out; more wait"},
    {.key = "idempotent", CHOICE(tool.idempotent), .choices = repeats,
     .help = "whether repeating a call does no harm; auto: only of GET and HEAD"},
    {.key = "agents", NODE(agents), .help = "who may have it; left out: every agent"},
    {.key = "policy", NODE(policy), .help = "allow, ask or hidden"},
};
/* clang-format on */

const struct config_own_tool config_own_tool_blank = {.name = STR_INIT(""),
                                                      .description = STR_INIT(""),
                                                      .parameters =
                                                          STR_INIT("{\"type\":\"object\"}"),
                                                      .method = STR_INIT(""),
                                                      .url = STR_INIT(""),
                                                      .body = STR_INIT(""),
                                                      .key = STR_INIT(""),
                                                      .pick = STR_INIT(""),
                                                      .output_bytes = OUTPUT_BYTES,
                                                      .at_once = AT_ONCE};

const struct entry_schema config_own_tool_schema = {.what = "a tool of your own", ROWS(rows)};

static bool has_row(struct str key) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (str_equal(key, str_from(rows[i].key))) return true;
    }
    return false;
}

/* Whether the entry is an own tool: no other entry of the section has keys like these. */
bool config_is_own_tool(const struct yaml *node) {
    bool known = true;
    if (node->kind != YAML_MAP) return false;
    if (yaml_find(node, STR("command")) || yaml_find(node, STR("description")) ||
        yaml_find(node, STR("parameters")))
        return true;
    for (const struct yaml *item = node->first; item; item = item->next)
        known = known && has_row(item->key);
    return known && yaml_find(node, STR("url"));
}

bool config_add_own_tool(struct config *config, const struct config_own_tool *tool,
                         const struct yaml *at, struct err *e) {
    struct config_own_tool *all = (struct config_own_tool *)(uintptr_t)config->tools.own;
    if (!all) {
        all = arena_alloc(config->arena, CONFIG_OWN_TOOLS_MAX * sizeof(*all));
        if (!all) return config_too_large(at, e);
        config->tools.own = all;
    }
    if (config->tools.own_count == CONFIG_OWN_TOOLS_MAX)
        return yaml_err(e, at, "there are more than %d tools", CONFIG_OWN_TOOLS_MAX);
    all[config->tools.own_count] = *tool;
    all[config->tools.own_count++].at = at;
    return true;
}

/* Refuse keys of the other kind of tool. */
static bool check_kind(const struct own_entry *entry, const struct yaml *node, struct err *e) {
    static const char *const of_request[] = {"method",  "query",    "headers",    "body",
                                             "key_env", "key_file", "public_only"};
    if (!entry->command == !entry->tool.url.len)
        return yaml_err_key(e, node, "a tool of your own needs either 'command' or 'url'");
    if (entry->environment && !entry->command)
        return yaml_err_key(e, entry->environment, "only a program has an environment");
    for (size_t i = 0; entry->command && i < ARRAY_LEN(of_request); i++) {
        const struct yaml *found = yaml_find(node, str_from(of_request[i]));
        if (found) return yaml_err_key(e, found, "a program has no '%s'", of_request[i]);
    }
    return true;
}

bool config_read_own_tool(const struct reading *reading, const struct yaml *node,
                          const struct yaml **ret_policy, uint64_t *ret_timeout_ms,
                          struct err *e) {
    struct own_entry entry = {
        .tool = config_own_tool_blank, .key_env = STR_EMPTY, .key_file = STR_EMPTY};
    const struct reading inner = {reading->config, reading->input, node, &entry, 0};
    struct own_reading own = {.reading = &inner, .tool = &entry.tool};
    own.secrets = arena_alloc(reading->config->arena, SECRETS_MAX * sizeof(*own.secrets));
    if (!own.secrets) return config_too_large(node, e);
    if (!own_tools_check_name(node, e) ||
        !entry_read(&config_own_tool_schema, &inner, node, e) || !check_kind(&entry, node, e))
        return false;
    entry.tool.name = node->key;
    entry.tool.secrets = own.secrets;
    if (!config_read_names(reading->config, entry.agents, "a list of agents", &own.tool->agents,
                           &own.tool->agent_count, e))
        return false;
    bool read = entry.command ? read_program(&own, &entry, e)
                              : own_tools_read_request(&own, &entry, node, e);
    *ret_policy = entry.policy;
    *ret_timeout_ms = entry.timeout_ms;
    return read && config_add_own_tool(reading->config, &entry.tool, node, e);
}
