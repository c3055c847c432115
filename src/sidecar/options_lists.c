#include "sidecar/options_lists.h"

#include "base/log.h"
#include "base/mem.h"
#include "client/forward.h"
#include "wire/json.h"
#include "wire/moment.h"

#include <stdio.h>

/* Make room for one more at the end of a list. */
#define GROW(list, count)                                                                      \
    ((list) = mem_resize((list), ((count) + 1) * sizeof(*(list))), &(list)[(count)++])

static bool expect(const struct yaml *node, enum yaml_kind kind, const char *what,
                   struct err *e) {
    return node->kind == kind ||
           yaml_err(e, node, "expected %s, found %s", what, yaml_kind_name(node));
}

/* --- guardrails ------------------------------------------------------------------------------- */

struct rule_texts {
    struct str name, type, pattern, action, replace;
    bool luhn;
};

static bool pick_rule(const struct yaml *node, const struct rule_texts *texts,
                      struct guardrail_rule *ret, struct err *e) {
    static const struct str actions[] = {
        [GUARDRAIL_REDACT] = STR_INIT("redact"),
        [GUARDRAIL_BLOCK] = STR_INIT("block"),
        [GUARDRAIL_WARN] = STR_INIT("warn"),
    };
    bool regex = str_equal(texts->type, STR("regex"));
    size_t action = 0;
    if (!regex && !str_equal(texts->type, STR("keyword")))
        return yaml_err(e, node, "a guardrail's type is regex or keyword");
    while (action < ARRAY_LEN(actions) && !str_equal(texts->action, actions[action])) action++;
    if (action == ARRAY_LEN(actions) && texts->action.len)
        return yaml_err(e, node, "a guardrail's action is redact, block or warn");
    *ret = (struct guardrail_rule){.name = texts->name,
                                   .kind = regex ? GUARDRAIL_REGEX : GUARDRAIL_KEYWORD,
                                   .pattern = texts->pattern,
                                   .replacement = texts->replace,
                                   .action = texts->action.len ? (enum guardrail_action)action
                                                               : GUARDRAIL_REDACT,
                                   .luhn = texts->luhn};
    return true;
}

static bool read_rule(struct sidecar_options *options, const struct yaml *node, struct err *e) {
    static const struct yaml_field fields[] = {
        {"name", YAML_TEXT, offsetof(struct rule_texts, name), true},
        {"type", YAML_TEXT, offsetof(struct rule_texts, type), true},
        {"pattern", YAML_TEXT, offsetof(struct rule_texts, pattern), true},
        {"action", YAML_TEXT, offsetof(struct rule_texts, action), false},
        {"replace", YAML_TEXT, offsetof(struct rule_texts, replace), false},
        {"luhn", YAML_BOOL, offsetof(struct rule_texts, luhn), false},
    };
    struct rule_texts texts = {.action = STR_EMPTY};
    struct guardrail_rule rule;
    if (!yaml_fields(node, "a guardrail", fields, ARRAY_LEN(fields), &texts, e) ||
        !pick_rule(node, &texts, &rule, e))
        return false;
    *GROW(options->rules, options->rule_count) = rule;
    return true;
}

/* --- peers ------------------------------------------------------------------------------------ */

/* "token@@URL", or a URL. */
static bool read_peer(struct sidecar_options *options, const struct yaml *node, struct err *e) {
    if (!expect(node, YAML_SCALAR, "a URL", e)) return false;
    size_t at = str_find(node->text, STR("@@"));
    bool has_token = at < node->text.len;
    *GROW(options->peers, options->peer_count) =
        (struct sidecar_peer){.name = node->key,
                              .url = has_token ? str_skip(node->text, at + 2) : node->text,
                              .token = has_token ? str_head(node->text, at) : STR_EMPTY};
    return true;
}

/* --- MCP servers ------------------------------------------------------------------------------ */

struct tool_texts {
    struct str transport, url, command;
    const struct yaml *args;
};

static bool options_lists_copy_text(struct arena *arena, struct str text, const char **ret) {
    struct str copy;
    if (!arena_str(arena, text, &copy)) return false;
    *ret = copy.at;
    return true;
}

static bool read_args(struct sidecar_options *options, const struct tool_texts *texts,
                      const struct yaml *node, const char *const **ret, struct err *e) {
    size_t count = texts->args ? texts->args->count : 0, at = 0;
    if (texts->args && !expect(texts->args, YAML_LIST, "a list of arguments", e)) return false;
    const char **args = arena_alloc(options->arena, (count + 2) * sizeof(*args));
    bool good = args && options_lists_copy_text(options->arena, texts->command, &args[at++]);
    const struct yaml *item = texts->args ? texts->args->first : NULL;
    for (; good && item; item = item->next) {
        if (!expect(item, YAML_SCALAR, "an argument", e)) return false;
        good = options_lists_copy_text(options->arena, item->text, &args[at++]);
    }
    *ret = args;
    return good || yaml_err(e, node, "the settings are too long");
}

/* Upstream's agent.yaml calls the same transport `streamable_http`. */
static bool is_http(struct str transport) {
    return str_equal(transport, STR("http")) || str_equal(transport, STR("sse")) ||
           str_equal(transport, STR("streamable_http")) ||
           str_equal(transport, STR("streamable-http"));
}

static struct sidecar_tools *tools_named(struct sidecar_options *options, struct str name) {
    for (size_t i = 0; i < options->tool_count; i++) {
        if (str_equal(options->tools[i].name, name)) return &options->tools[i];
    }
    return GROW(options->tools, options->tool_count);
}

static bool read_server(struct sidecar_options *options, const struct yaml *node,
                        struct err *e) {
    static const struct yaml_field fields[] = {
        {"transport", YAML_TEXT, offsetof(struct tool_texts, transport), true},
        {"url", YAML_TEXT, offsetof(struct tool_texts, url), false},
        {"command", YAML_TEXT, offsetof(struct tool_texts, command), false},
        {"args", YAML_NODE, offsetof(struct tool_texts, args), false},
    };
    struct tool_texts texts = {.url = STR_EMPTY};
    struct sidecar_tools tools = {.name = node->key, .url = STR_EMPTY};
    if (!yaml_fields(node, "an MCP server", fields, ARRAY_LEN(fields), &texts, e)) return false;
    struct forward_server server;
    struct err why;
    bool http = is_http(texts.transport), stdio = str_equal(texts.transport, STR("stdio"));
    if (!http && !stdio)
        return yaml_err(e, node, "an MCP server's transport is stdio, http or sse");
    if (http && !texts.url.len) return yaml_err(e, node, "transport %s needs a url", "http");
    if (stdio && !texts.command.len)
        return yaml_err(e, node, "transport %s needs a command", "stdio");
    if (http && !forward_server_of(texts.url, &server, &why))
        return yaml_err(e, node, "url: %s", why.text);
    if (http) tools.url = texts.url;
    if (stdio && !read_args(options, &texts, node, &tools.args, e)) return false;
    *tools_named(options, node->key) = tools;
    return true;
}

/* --- headers ---------------------------------------------------------------------------------- */

static bool read_header(struct sidecar_options *options, const struct yaml *node,
                        struct err *e) {
    struct err why;
    return expect(node, YAML_SCALAR, "a header's value", e) &&
           (exporter_headers_add(&options->otlp_headers, node->key, node->text, &why) ||
            yaml_err(e, node, "%s", why.text));
}

/* The variable's take the place of the file's. */
bool sidecar_read_headers(struct sidecar_options *options, struct str text, struct err *e) {
    if (!text.len) return true;
    exporter_headers_done(&options->otlp_headers);
    return exporter_headers_read(&options->otlp_headers, text, e) ||
           err_add(e, "OTEL_EXPORTER_OTLP_HEADERS");
}

/* --- prices ----------------------------------------------------------------------------------- */

struct price_texts {
    struct str model, from, input, output, cached;
};

static bool read_dollars(const struct yaml *node, struct str text, int64_t *ret,
                         struct err *e) {
    struct err why;
    return price_read_dollars(text, ret, &why) || yaml_err(e, node, "%s", why.text);
}

static bool read_day(const struct yaml *node, struct str text, int64_t *ret, struct err *e) {
    char moment[64];
    int64_t unix_s;
    struct err why;
    snprintf(moment, sizeof(moment), STR_FMT "T00:00:00Z", STR_ARG(str_head(text, 32)));
    if (!moment_read(str_from(moment), &unix_s, &why))
        return yaml_err(e, node, "'" STR_FMT "' is not a date such as 2026-01-31",
                        STR_ARG(str_head(text, 32)));
    *ret = unix_s / MOMENT_DAY_S;
    return true;
}

static bool read_price(struct sidecar_options *options, const struct yaml *node,
                       struct err *e) {
    static const struct yaml_field fields[] = {
        {"model", YAML_NAME, offsetof(struct price_texts, model), true},
        {"from", YAML_TEXT, offsetof(struct price_texts, from), false},
        {"input", YAML_TEXT, offsetof(struct price_texts, input), true},
        {"output", YAML_TEXT, offsetof(struct price_texts, output), true},
        {"cached", YAML_TEXT, offsetof(struct price_texts, cached), false},
    };
    struct price_texts texts = {.from = STR_EMPTY};
    struct price price = {.cached = TOKENS_UNKNOWN,
                          .cache_write = TOKENS_UNKNOWN,
                          .cache_write_hour = TOKENS_UNKNOWN};
    if (!yaml_fields(node, "a price", fields, ARRAY_LEN(fields), &texts, e)) return false;
    price.model = texts.model;
    if (!read_dollars(node, texts.input, &price.input, e) ||
        !read_dollars(node, texts.output, &price.output, e) ||
        (texts.cached.len && !read_dollars(node, texts.cached, &price.cached, e)) ||
        (texts.from.len && !read_day(node, texts.from, &price.from_day, e)))
        return false;
    *GROW(options->prices, options->price_count) = price;
    return true;
}

/* --- all of them ------------------------------------------------------------------------------ */

typedef bool entry_fn(struct sidecar_options *options, const struct yaml *node, struct err *e);

static const struct option_list {
    struct str key;
    enum yaml_kind kind;
    const char *what;
    entry_fn *read;
    const char *help;
} lists[] = {
    {STR_INIT("guardrails"), YAML_LIST, "a list of guardrails", read_rule,
     "list of {name, type: regex|keyword, pattern, action: block|redact|warn, replace, luhn}"},
    {STR_INIT("a2a_peers"), YAML_MAP, "a map of peers", read_peer,
     "other agents, map of name to URL, or to token@@URL"},
    {STR_INIT("mcp_servers"), YAML_MAP, "a map of MCP servers", read_server,
     "map of name to {transport: http|sse|stdio, url, command, args}; as JSON in "
     "AGENTBREEDER_SIDECAR_MCP_SERVERS"},
    {STR_INIT("otlp_headers"), YAML_MAP, "a map of headers", read_header,
     "headers for otlp_endpoint, 16 at most; k=v,k=v in OTEL_EXPORTER_OTLP_HEADERS, with %XX "
     "for "
     "a byte of a value"},
    {STR_INIT("prices"), YAML_LIST, "a list of prices", read_price,
     "list of {model, from, input, output, cached}: dollars for a million tokens"},
};

bool sidecar_read_list(struct sidecar_options *options, const struct yaml *node,
                       bool *ret_known, struct err *e) {
    const struct option_list *list = lists;
    while (list < lists + ARRAY_LEN(lists) && !str_equal(node->key, list->key)) list++;
    *ret_known = list < lists + ARRAY_LEN(lists);
    if (!*ret_known) return true;
    if (!expect(node, list->kind, list->what, e)) return false;
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        if (!list->read(options, entry, e)) return false;
    }
    return true;
}

/* JSON is read as the YAML that it is. */
bool sidecar_read_tools(struct sidecar_options *options, struct str text, struct err *e) {
    struct json json;
    struct err why;
    const struct yaml *root;
    if (!text.len) return true;
    if (!json_read(text, &json, &why) || json.kind != JSON_OBJECT ||
        !yaml_parse(options->arena, STR("AGENTBREEDER_SIDECAR_MCP_SERVERS"), text, &root,
                    &why)) {
        log_warning("AGENTBREEDER_SIDECAR_MCP_SERVERS is no JSON object and is ignored");
        return true;
    }
    for (const struct yaml *entry = root->first; entry; entry = entry->next) {
        if (!read_server(options, entry, e)) return false;
    }
    return true;
}

void sidecar_lists_help(struct buf *out) {
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        buf_printf(out, "  " STR_FMT "\n      %s\n", STR_ARG(lists[i].key), lists[i].help);
}
