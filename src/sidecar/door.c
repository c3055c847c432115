#include "sidecar/door.h"

#include "base/same.h"
#include "sidecar/helpers.h"
#include "sidecar/path.h"
#include "sidecar/programs.h"
#include "sidecar/relay.h"
#include "wire/token.h"

#define MCP_PATH STR("/mcp/")

/* --- exchanges that are answered at once ------------------------------------------------------ */

static void drop_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    (void)ctx;
    exchange_consumed(exchange, lent_read(bytes).len);
}

static void drop_end(struct exchange *exchange, void *ctx) {
    (void)exchange;
    (void)ctx;
}

static void drop_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    (void)exchange;
    (void)how;
    (void)ctx;
}

/* Accept an exchange that is answered at once. */
static void door_accept(struct exchange *exchange) {
    static const struct exchange_events events = {drop_body, drop_end, NULL, drop_closed};
    exchange_accept(exchange, &events, NULL);
}

static void door_refuse(struct exchange *exchange, int status, struct str code,
                        struct str message) {
    door_accept(exchange);
    refusal_send(exchange,
                 &(struct refusal){.status = status, .code = code, .message = message});
}

void door_refusal_body(int status, struct str text, struct buf *out) {
    struct str code = STR("INVALID_INPUT");
    if (status == 413 || status == 414 || status == 431) code = STR("PAYLOAD_TOO_LARGE");
    if (status == 408) code = STR("REQUEST_TIMEOUT");
    if (status >= 500) code = STR("INTERNAL_ERROR");
    refusal_write(&(struct refusal){.status = status, .code = code, .message = text}, out);
}

/* --- callers ---------------------------------------------------------------------------------- */

/* The token of the one Authorization field; at == NULL: none. */
static struct str bearer_of(const struct exchange *exchange) {
    size_t count, found = 0;
    const struct field *fields = exchange_fields(exchange, &count);
    struct str value = {NULL, 0};
    for (size_t i = 0; i < count; i++) {
        if (!str_equal(fields[i].name, STR("authorization"))) continue;
        value = fields[i].value;
        found++;
    }
    return found == 1 ? bearer_token(value) : (struct str){NULL, 0};
}

/* False: it was refused. */
static bool let_in(struct sidecar *sidecar, struct exchange *exchange) {
    const struct sidecar_options *options = sidecar->options;
    struct str token = bearer_of(exchange);
    if (!options->token.len) {
        bool allowed = helpers_allow(exchange, true);
        if (!allowed)
            door_refuse(exchange, 403, STR("FORBIDDEN"),
                        STR("web pages of other places may not ask; set AGENT_AUTH_TOKEN"));
        return allowed;
    }
    if (token.at && same_secret(token, options->token)) {
        exchange_authenticated(exchange);
        return true;
    }
    sidecar->counts.refused++;
    if (!token.at)
        door_refuse(exchange, 401, STR("UNAUTHORIZED"), STR("Missing bearer token"));
    else if (options->wrong_token_401)
        door_refuse(exchange, 401, STR("UNAUTHORIZED"), STR("Invalid bearer token"));
    else
        door_refuse(exchange, 403, STR("FORBIDDEN"), STR("Invalid bearer token"));
    return false;
}

static bool door_take_rate(struct sidecar *sidecar, struct exchange *exchange,
                           enum rate_scope scope, struct str key) {
    struct rate_room room;
    if (rate_limits_take(sidecar->rates, scope, key, loop_now_ms(sidecar->loop), &room))
        return true;
    sidecar->counts.limited++;
    door_accept(exchange);
    refusal_send(exchange, &(struct refusal){.status = 429,
                                             .code = STR("RATE_LIMITED"),
                                             .message = rate_scope_refusal(scope),
                                             .retry_after_s = rate_wait_s(&room)});
    return false;
}

/* Peers on a unix socket count as one address. */
static struct str door_address_of(const struct exchange *exchange) {
    struct str owner = exchange_peer_owner(exchange);
    return owner.len ? owner : STR("unix");
}

/* The agent has one version of the contract. */
static bool check_version(struct exchange *exchange) {
    const struct field *field = exchange_field(exchange, STR("x-runtime-contract-version"));
    if (!field || str_equal(str_trim(field->value), CONTRACT_VERSION)) return true;
    struct buf details;
    buf_init(&details, 32 * KIB);
    struct json_writer json = json_writer(&details);
    json_open_object(&json);
    json_member_raw(&json, "supported", STR("[\"1\"]"));
    json_member_str(&json, "requested", str_trim(field->value));
    json_close(&json);
    door_accept(exchange);
    refusal_send(exchange, &(struct refusal){
                               .status = 400,
                               .code = STR("UNSUPPORTED_CONTRACT_VERSION"),
                               .message = STR("this agent speaks version 1 of the contract"),
                               .details = buf_str(&details)});
    buf_done(&details);
    return false;
}

/* --- routes ----------------------------------------------------------------------------------- */

/* What is not here is passed on, and needs the token. */
static const struct path {
    struct str method, path; /* method empty: any */
    enum relay_kind kind;
    bool open;
} known_paths[] = {
    {STR_INIT("POST"), STR_INIT("/invoke"), RELAY_TURN, false},
    {STR_INIT("POST"), STR_INIT("/resume"), RELAY_TURN, false},
    {STR_INIT("POST"), STR_INIT("/stream"), RELAY_STREAM, false},
    {STR_INIT("GET"), STR_INIT("/openapi.json"), RELAY_OPENAPI, true},
    {STR_INIT(""), STR_INIT("/openapi.json"), RELAY_PLAIN, true},
    {STR_INIT(""), STR_INIT("/.well-known/agent.json"), RELAY_PLAIN, true},
    {STR_INIT(""), STR_INIT("/.well-known/agent-card.json"), RELAY_PLAIN, true},
};

static const struct path *known_path(struct str path, struct str method) {
    for (size_t i = 0; i < ARRAY_LEN(known_paths); i++) {
        const struct path *known = &known_paths[i];
        if (!str_equal(path, known->path)) continue;
        if (!known->method.len || str_equal(method, known->method)) return known;
    }
    return NULL;
}

/* An agent may take /%69nvoke, //invoke, /Invoke or /invoke/ for /invoke. Then it is a turn here
 * too. No spelling but the known one opens a path to callers without a token. */
static struct path path_of(const struct exchange *exchange) {
    struct str method = exchange_method(exchange), spelled = exchange_path(exchange);
    const struct path *known = known_path(spelled, method);
    if (known) return *known;
    struct path ret = {.kind = RELAY_PLAIN};
    struct buf plain;
    buf_init(&plain, spelled.len + 1);
    path_plain(spelled, &plain);
    known = known_path(buf_str(&plain), method);
    if (known && !known->open) ret.kind = known->kind;
    buf_done(&plain);
    return ret;
}

/* Methods are case-sensitive, but some agents take `post` for POST. */
static bool check_method(struct exchange *exchange) {
    struct str method = exchange_method(exchange);
    for (size_t i = 0; i < method.len; i++) {
        if (method.at[i] < 'a' || method.at[i] > 'z') continue;
        door_refuse(exchange, 400, STR("INVALID_INPUT"),
                    STR("the method of a request is written in capitals"));
        return false;
    }
    return true;
}

static bool is_health(const struct exchange *exchange) {
    struct str method = exchange_method(exchange);
    return str_equal(exchange_path(exchange), STR("/health")) &&
           (str_equal(method, STR("GET")) || str_equal(method, STR("HEAD")));
}

static void answer_health(const struct sidecar *sidecar, struct exchange *exchange) {
    struct buf body;
    buf_init(&body, 1 * MIB);
    sidecar_write_health(sidecar, false, &body);
    door_accept(exchange);
    refusal_reply(exchange, 200, STR("application/json"), buf_str(&body), STR_EMPTY);
    buf_done(&body);
}

void door_on_request(struct exchange *exchange, void *ctx) {
    struct sidecar *sidecar = ctx;
    struct path path = path_of(exchange);
    bool turn = path.kind == RELAY_TURN || path.kind == RELAY_STREAM;
    sidecar->counts.requests++;
    if (is_health(exchange)) {
        answer_health(sidecar, exchange);
        return;
    }
    if (!door_take_rate(sidecar, exchange, RATE_ADDRESS, door_address_of(exchange))) return;
    if (!check_method(exchange)) return;
    if (!path.open && !let_in(sidecar, exchange)) return;
    if (turn && !check_version(exchange)) return;
    if (!path.open && (!door_take_rate(sidecar, exchange, RATE_TOKEN, STR("token")) ||
                       !door_take_rate(sidecar, exchange, RATE_AGENT, STR("agent"))))
        return;
    if (sidecar->stopping) {
        door_refuse(exchange, 503, STR("UNAVAILABLE"), STR("the sidecar stops"));
        return;
    }
    relay_start(sidecar, exchange,
                &(struct relay_target){.url = sidecar->options->agent_url,
                                       .path = exchange_path(exchange),
                                       .kind = path.kind,
                                       .is_agent = true});
}

/* --- helpers ---------------------------------------------------------------------------------- */

/* "/mcp/NAME" or "/mcp/NAME/more". */
static struct str server_name(struct str path, struct str *ret_rest) {
    struct str name = str_skip(path, MCP_PATH.len);
    size_t len = str_find_byte(name, '/');
    *ret_rest = str_skip(name, len);
    return str_head(name, len);
}

static void pass_to_server(struct sidecar *sidecar, struct exchange *exchange) {
    struct str rest, name = server_name(exchange_path(exchange), &rest);
    const struct sidecar_options *options = sidecar->options;
    if (!helpers_allow(exchange, false)) {
        door_refuse(exchange, 403, STR("FORBIDDEN"), STR("web pages may not use the helpers"));
        return;
    }
    for (size_t i = 0; i < options->tool_count; i++) {
        const struct sidecar_tools *tools = &options->tools[i];
        if (!str_equal(tools->name, name)) continue;
        if (sidecar->programs[i])
            program_ask(sidecar->programs[i], exchange);
        else
            relay_start(
                sidecar, exchange,
                &(struct relay_target){.url = tools->url, .path = rest, .name = tools->name});
        return;
    }
    door_refuse(exchange, 502, STR("UPSTREAM_UNREACHABLE"), STR("there is no such MCP server"));
}

void door_on_helper_request(struct exchange *exchange, void *ctx) {
    struct sidecar *sidecar = ctx;
    if (str_starts(exchange_path(exchange), MCP_PATH))
        pass_to_server(sidecar, exchange);
    else
        route_serve(sidecar->helpers, exchange);
}
