#include "sidecar/options.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/units.h"
#include "client/forward.h"
#include "sidecar/options_lists.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (4 * MIB)

/* --- one value -------------------------------------------------------------------------------- */

enum kind { TEXT, SECRET, BOOL, DURATION, SIZE, RATE, TOKENS, ROUTES };

struct row {
    const char *key; /* in the file; NULL: only a variable */
    const char *env;
    enum kind kind;
    size_t at;
    const char *preset; /* NULL: empty */
    const char *help;
};

#define AT(member) offsetof(struct sidecar_options, member)

/* clang-format off */
static const struct row rows[] = {
    {"agent_name", "AGENT_NAME", TEXT, AT(agent_name), NULL, "the agent's name; required"},
    {"agent_version", "AGENT_VERSION", TEXT, AT(agent_version), NULL, "its version"},
    {"agent_url", "AGENTBREEDER_SIDECAR_AGENT_URL", TEXT, AT(agent_url), "http://127.0.0.1:8081", "where it listens"},
    {"inbound_addr", "AGENTBREEDER_SIDECAR_INBOUND_ADDR", TEXT, AT(inbound), ":8080", "the listener in front of it"},
    {"a2a_addr", "AGENTBREEDER_SIDECAR_A2A_ADDR", TEXT, AT(a2a), "127.0.0.1:9090", "helpers for the agent; each address has all of them, or off"},
    {"mcp_addr", "AGENTBREEDER_SIDECAR_MCP_ADDR", TEXT, AT(mcp), "127.0.0.1:9091", "likewise"},
    {"cost_addr", "AGENTBREEDER_SIDECAR_COST_ADDR", TEXT, AT(cost), "127.0.0.1:9092", "likewise"},
    {NULL, "AGENT_AUTH_TOKEN", SECRET, AT(token), NULL, "the bearer token of callers; required, unless AGENTBREEDER_SIDECAR_ALLOW_NO_AUTH=1"},
    {"wrong_token_401", "WEIR_SIDECAR_WRONG_TOKEN_401", BOOL, AT(wrong_token_401), "false", "answer a wrong token with 401, as the published sidecar; the contract says 403"},
    {"otlp_endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", TEXT, AT(otlp_endpoint), NULL, "an OpenTelemetry collector: gets spans at its /v1/traces, unless the URL holds /v1/"},
    {"api_base_url", "AGENTBREEDER_API_URL", TEXT, AT(api_url), NULL, "the platform that gets events of cost; without it they go nowhere"},
    {NULL, "AGENTBREEDER_API_TOKEN", SECRET, AT(api_token), NULL, "its token"},
    {"api_routes", "WEIR_SIDECAR_API_ROUTES", ROUTES, AT(platform_routes), "published", "published: /api/v1/costs and /api/v1/audit; platform: /api/v1/costs/events, which needs team"},
    {"team", "WEIR_SIDECAR_TEAM", TEXT, AT(team), NULL, "the agent's team, for the platform's routes"},
    {"outbox", "WEIR_SIDECAR_OUTBOX", TEXT, AT(outbox), NULL, "a file where events wait for the platform; without it they wait in memory"},
    {"default_rules", "WEIR_SIDECAR_DEFAULT_RULES", BOOL, AT(default_rules), "true", "redact social security numbers, payment cards and e-mail addresses"},
    {"luhn", "WEIR_SIDECAR_LUHN", BOOL, AT(luhn), "false", "only card numbers with the right check digit"},
    {"scan_answers", "WEIR_SIDECAR_SCAN_ANSWERS", BOOL, AT(scan_answers), "false", "answers and streams pass the guardrails, too"},
    {"tokens", "WEIR_SIDECAR_TOKENS", TOKENS, AT(tokens), "object", "the form of `tokens` in answers: object, total (a number) or off"},
    {"connect", "WEIR_SIDECAR_CONNECT", DURATION, AT(connect_ms), "10s", "for a connection to the agent"},
    {"first_byte", "WEIR_SIDECAR_FIRST_BYTE", DURATION, AT(first_byte_ms), "5m", "until the agent begins to answer; 0: no limit"},
    {"stall", "WEIR_SIDECAR_STALL", DURATION, AT(stall_ms), "5m", "the longest silence in an answer; 0: no limit"},
    {"total", "WEIR_SIDECAR_TOTAL", DURATION, AT(total_ms), "0s", "for a whole answer; 0: no limit"},
    {"heartbeat", "WEIR_SIDECAR_HEARTBEAT", DURATION, AT(heartbeat_ms), "15s", "a comment in a silent stream; 0: none"},
    {"stop", "WEIR_SIDECAR_STOP", DURATION, AT(stop_ms), "5s", "for requests in flight when the sidecar stops"},
    {"body_max", "WEIR_SIDECAR_BODY_MAX", SIZE, AT(body_max_bytes), "8MiB", "of a request that is read whole; a larger one gets 413"},
    {"answer_max", "WEIR_SIDECAR_ANSWER_MAX", SIZE, AT(answer_max_bytes), "32MiB", "of an answer that is rewritten (a larger one is 502), and of an event"},
    {"bodies_max", "WEIR_SIDECAR_BODIES_MAX", SIZE, AT(bodies_max_bytes), "256MiB", "of all requests and answers that are kept at once; more get 503"},
    {"idempotency", "WEIR_SIDECAR_IDEMPOTENCY", DURATION, AT(idempotency_ms), "24h", "how long an idempotency key is known; 0: keys are only passed on"},
    {"rate_token", "WEIR_SIDECAR_RATE_TOKEN", RATE, AT(rates[RATE_TOKEN]), "off", "requests of one token, such as 10/s, 600/m; more get 429"},
    {"rate_agent", "WEIR_SIDECAR_RATE_AGENT", RATE, AT(rates[RATE_AGENT]), "off", "requests to the agent"},
    {"rate_address", "WEIR_SIDECAR_RATE_ADDRESS", RATE, AT(rates[RATE_ADDRESS]), "off", "requests of one address"},
};
/* clang-format on */

static bool read_duration(struct str text, uint64_t *ret_ms, struct err *e) {
    uint64_t us = 0;
    if (!str_equal(text, STR("0")) && !units_duration(text, &us, e)) return false;
    *ret_ms = us / 1000;
    return true;
}

static bool read_bool(struct str text, bool *ret, struct err *e) {
    bool yes = str_equal_nocase(text, STR("true")) || str_equal(text, STR("1")) ||
               str_equal_nocase(text, STR("yes")) || str_equal_nocase(text, STR("on"));
    bool no = str_equal_nocase(text, STR("false")) || str_equal(text, STR("0")) ||
              str_equal_nocase(text, STR("no")) || str_equal_nocase(text, STR("off"));
    *ret = yes;
    return yes || no || err_set(e, ERR_INVALID_ARGUMENT, "it is true or false");
}

static bool read_choice(struct str text, const char *const *names, size_t *ret, struct err *e) {
    for (size_t i = 0; names[i]; i++) {
        *ret = i;
        if (str_equal(text, str_from(names[i]))) return true;
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "it is %s, %s%s%s", names[0], names[1],
                   names[2] ? " or " : "", names[2] ? names[2] : "");
}

static bool set(struct sidecar_options *options, const struct row *row, struct str text,
                struct err *e) {
    static const char *const tokens[] = {"object", "total", "off", NULL};
    static const char *const routes[] = {"published", "platform", NULL};
    void *at = (char *)options + row->at;
    size_t choice;
    switch (row->kind) {
    case TEXT:
    case SECRET:
        return arena_str(options->arena, text, at) ||
               err_set(e, ERR_TOO_LARGE, "the settings are too long");
    case BOOL: return read_bool(text, at, e);
    case DURATION: return read_duration(text, at, e);
    case SIZE: return units_size(text, at, e);
    case RATE: return rate_limit_read(text, at, e);
    case TOKENS:
        if (!read_choice(text, tokens, &choice, e)) return false;
        options->tokens = (enum reserved_tokens)choice;
        return true;
    case ROUTES: break;
    }
    if (!read_choice(text, routes, &choice, e)) return false;
    options->platform_routes = choice == 1;
    return true;
}

static bool set_presets(struct sidecar_options *options, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str preset = str_from(rows[i].preset);
        if (rows[i].kind != TEXT && rows[i].kind != SECRET && !rows[i].preset) continue;
        if (!set(options, &rows[i], preset, e)) return false;
    }
    return true;
}

/* --- the file --------------------------------------------------------------------------------- */

static const struct row *row_of(struct str key) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].key && str_equal(key, str_from(rows[i].key))) return &rows[i];
    }
    return NULL;
}

/* The published sidecar ignores keys that it does not know, so a file of a later one is read. */
static void warn_unknown(const struct yaml *node) {
    struct nearest nearest;
    nearest_init(&nearest, node->key);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].key) nearest_offer(&nearest, str_from(rows[i].key));
    }
    log_warning(STR_FMT ":%u:%u: '" STR_FMT "' is no setting of the sidecar and is ignored%s",
                STR_ARG(node->document->file), node->key_line, node->key_column,
                STR_ARG(node->key), nearest_hint(&nearest));
}

static bool options_read_key(struct sidecar_options *options, const struct yaml *node,
                             struct err *e) {
    const struct row *row = row_of(node->key);
    struct err why;
    bool known = true;
    if (yaml_is_null(node)) return true;
    if (!row) {
        bool good = sidecar_read_list(options, node, &known, e);
        if (!known) warn_unknown(node);
        return good;
    }
    if (node->kind != YAML_SCALAR)
        return yaml_err(e, node, "expected a value, found %s", yaml_kind_name(node));
    return set(options, row, node->text, &why) || yaml_err(e, node, "%s", why.text);
}

static bool options_read_file(struct sidecar_options *options, const char *file,
                              struct err *e) {
    struct buf text;
    struct err why;
    const struct yaml *root;
    struct str path = str_from(file ? file : SIDECAR_FILE);
    buf_init(&text, YAML_MAX_BYTES);
    bool good = file_read(path, &text, &why);
    if (!good && why.code == ERR_NOT_FOUND) {
        /* The published sidecar takes it for an empty one. */
        if (file)
            log_warning("there is no file '%s': defaults and the environment count", file);
        buf_done(&text);
        return true;
    }
    if (!good) *e = why;
    good = good && yaml_parse(options->arena, path, buf_str(&text), &root, e);
    if (good && root->kind != YAML_MAP && !yaml_is_null(root))
        good = yaml_err(e, root, "the file is a map of settings, not %s", yaml_kind_name(root));
    const struct yaml *node = good && root->kind == YAML_MAP ? root->first : NULL;
    for (; good && node; node = node->next) good = options_read_key(options, node, e);
    buf_done(&text);
    return good;
}

/* --- the environment -------------------------------------------------------------------------- */

/* Empty for a variable that is absent or empty. */
static struct str variable(const char *const *environment, const char *name) {
    struct str wanted = str_from(name);
    for (; *environment; environment++) {
        struct str entry = str_from(*environment);
        if (str_starts(entry, wanted) && str_starts(str_skip(entry, wanted.len), STR("=")))
            return str_skip(entry, wanted.len + 1);
    }
    return STR_EMPTY;
}

static bool read_environment(struct sidecar_options *options, const char *const *environment,
                             struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str value = variable(environment, rows[i].env);
        if (value.len && !set(options, &rows[i], value, e))
            return err_add(e, "%s", rows[i].env);
    }
    return sidecar_read_headers(options, variable(environment, "OTEL_EXPORTER_OTLP_HEADERS"),
                                e) &&
           sidecar_read_tools(options,
                              variable(environment, "AGENTBREEDER_SIDECAR_MCP_SERVERS"), e);
}

static bool is_disabled(struct str word) {
    static const char *const words[] = {"disabled", "off", "0", "false", "no"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_equal_nocase(str_trim(word), str_from(words[i]))) return true;
    }
    return false;
}

/* --- what fits together ----------------------------------------------------------------------- */

static bool check_token(struct sidecar_options *options, bool may_be_open, struct err *e) {
    bool set = options->token.len > 0;
    options->token = str_trim(options->token);
    if (set && !options->token.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "AGENT_AUTH_TOKEN is only white space");
    if (!set && !may_be_open)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "AGENT_AUTH_TOKEN is required: set it, or set "
                       "AGENTBREEDER_SIDECAR_ALLOW_NO_AUTH=1 to let everybody in");
    if (!set) log_warning("no AGENT_AUTH_TOKEN: everybody who reaches the sidecar may ask");
    return true;
}

static bool check(struct sidecar_options *options, bool may_be_open, struct err *e) {
    struct str *const addresses[] = {&options->inbound, &options->a2a, &options->mcp,
                                     &options->cost};
    struct forward_server server;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        if (str_equal(*addresses[i], STR("off"))) *addresses[i] = STR_EMPTY;
    }
    if (!options->agent_name.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "agent_name is required: set it in the file, or AGENT_NAME");
    if (!forward_server_of(options->agent_url, &server, e)) return err_add(e, "agent_url");
    if (options->api_url.len && !forward_server_of(options->api_url, &server, e))
        return err_add(e, "api_base_url");
    if (options->platform_routes && !options->team.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "api_routes: platform needs a team");
    return check_token(options, may_be_open, e);
}

/* --- life ------------------------------------------------------------------------------------- */

bool sidecar_options_read(const char *file, const char *const *environment,
                          struct sidecar_options **ret, struct err *e) {
    struct sidecar_options *options = MEM_NEW(struct sidecar_options);
    options->arena = arena_new(ARENA_MAX_BYTES);
    options->disabled = is_disabled(variable(environment, "AGENTBREEDER_SIDECAR"));
    bool may_be_open =
        str_equal(variable(environment, "AGENTBREEDER_SIDECAR_ALLOW_NO_AUTH"), STR("1"));
    bool good = options->disabled ||
                (set_presets(options, e) && options_read_file(options, file, e) &&
                 read_environment(options, environment, e) && check(options, may_be_open, e));
    if (good)
        *ret = options;
    else
        sidecar_options_free(options);
    return good;
}

void sidecar_options_free(struct sidecar_options *options) {
    if (!options) return;
    arena_free(options->arena);
    exporter_headers_done(&options->otlp_headers);
    free(options->rules);
    free(options->peers);
    free(options->tools);
    free(options->prices);
    free(options);
}

void sidecar_options_help(struct buf *out) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        buf_printf(out, "  %s%s%s\n      %s", row->key ? row->key : "", row->key ? ", " : "",
                   row->env, row->help);
        if (row->preset) buf_printf(out, " (%s)", row->preset);
        buf_append_byte(out, '\n');
    }
    sidecar_lists_help(out);
}
