#include "config/setting.h"

#include "base/id.h"
#include "base/nearest.h"
#include "base/units.h"
#include "config/build.h"
#include "wire/json.h"

#include <sys/un.h>

static const char *const durabilities[] = {
    [STORE_FULL] = "full", [STORE_NORMAL] = "normal", [STORE_OFF] = "off", NULL};
static const char *const busy_policies[] = {[CONFIG_BUSY_QUEUE] = "queue",
                                            [CONFIG_BUSY_REJECT] = "reject",
                                            [CONFIG_BUSY_INTERRUPT] = "interrupt",
                                            NULL};
static const char *const histories[] = {[CONFIG_HISTORY_SESSION] = "session",
                                        [CONFIG_HISTORY_CALLER] = "caller",
                                        [CONFIG_HISTORY_STRICT] = "strict",
                                        NULL};
static const char *const expiries[] = {
    [CONFIG_EXPIRY_REFUSE] = "refuse", [CONFIG_EXPIRY_APPROVE] = "approve", NULL};
static const char *const log_levels[] = {[LOG_DEBUG] = "debug",
                                         [LOG_INFO] = "info",
                                         [LOG_WARNING] = "warning",
                                         [LOG_ERROR] = "error",
                                         NULL};
static const char *const log_forms[] = {
    [CONFIG_LOG_AUTO] = "auto", [CONFIG_LOG_PLAIN] = "plain", [CONFIG_LOG_JSON] = "json", NULL};

static const char *const tape_paces[] = {
    [TAPE_AT_ONCE] = "at-once", [TAPE_REAL] = "real", NULL};

#define AT(member) offsetof(struct config, member)

/* A limit has the same name three times. */
#define LIMIT_(key, flag, env, kind, member, preset, help, fixed)                              \
    {                                                                                          \
        NULL, "limits." key, "limit-" flag, {"WEIR_LIMIT_" env}, SETTING_##kind,               \
            AT(limits.member), preset, NULL, help, NULL, fixed                                 \
    }
#define LIMIT(...) LIMIT_(__VA_ARGS__, false)
#define LIMIT_FIXED(...) LIMIT_(__VA_ARGS__, true)
#define FIXED true
#define LIVE false

/* clang-format off */
const struct setting settings[] = {
    {"Listening", "listen.http", "http", {"WEIR_HTTP", "PORT"}, SETTING_ADDRESS, AT(listen.http),
     "127.0.0.1:8080", "127.0.0.1:8080; 0.0.0.0:$PORT when PORT is set",
     "the HTTP listener: Runtime Contract", NULL, FIXED},
    {NULL, "listen.grpc", "grpc", {"WEIR_GRPC", "CRAWBL_GRPC_LISTEN"}, SETTING_ADDRESS, AT(listen.grpc),
     NULL, ":42618 with a signing key, else 127.0.0.1:42618",
     "the gRPC listener: Converse, health", NULL, FIXED},
    {NULL, "listen.nimi_grpc", "nimi-grpc", {"WEIR_NIMI_GRPC", "NIMI_RUNTIME_GRPC_ADDR"},
     SETTING_ADDRESS, AT(listen.nimi_grpc), "off", NULL,
     "the gRPC listener of nimi.runtime.v1, 127.0.0.1:46371 by habit: models, health", NULL, FIXED},
    {NULL, "listen.nimi_http", "nimi-http", {"WEIR_NIMI_HTTP", "NIMI_RUNTIME_HTTP_ADDR"},
     SETTING_ADDRESS, AT(listen.nimi_http), "off", NULL,
     "its HTTP health endpoints, 127.0.0.1:46372 by habit", NULL, FIXED},
    {NULL, "listen.admin", "admin", {"WEIR_ADMIN"}, SETTING_ADDRESS, AT(listen.admin),
     "off", NULL, "taken, but not served by this version: metrics", NULL, FIXED},
    {NULL, "tls.cert", "tls-cert", {"WEIR_TLS_CERT", "CRAWBL_TLS_CERT"}, SETTING_PATH, AT(tls.cert),
     NULL, "none: no TLS", "the certificate chain of the HTTP and gRPC listeners, PEM; read again on SIGHUP", NULL, FIXED},
    {NULL, "tls.key", "tls-key", {"WEIR_TLS_KEY", "CRAWBL_TLS_KEY"}, SETTING_PATH, AT(tls.key),
     NULL, "none", "its private key, PEM, without a password", NULL, FIXED},
    {NULL, "tls.ca", "tls-ca", {"WEIR_TLS_CA", "CRAWBL_TLS_CA"}, SETTING_PATH, AT(tls.ca),
     NULL, "none: callers need no certificate", "whose certificates callers must show, PEM", NULL, FIXED},
    {NULL, "ports_file", "ports-file", {"WEIR_PORTS_FILE"}, SETTING_PATH, AT(ports_file),
     NULL, "none", "write the ports that were really taken here, as JSON, once ready", NULL, FIXED},

    {"Agents", "script", "script", {"WEIR_SCRIPT"}, SETTING_PATH, AT(script),
     NULL, "the built-in demo", "the script that the offline provider plays", NULL, LIVE},
    {NULL, "model", "model", {"WEIR_MODEL", "AGENT_MODEL", "CRAWBL_OPENAI_MODEL"}, SETTING_TEXT, AT(model),
     NULL, "none: the script plays", "the model of every agent without one: openai/gpt-4o, ollama/gemma3, ...; --openai-model NAME says openai/NAME", NULL, LIVE},
    {NULL, "agent.instructions", "agent-instructions", {"WEIR_AGENT_INSTRUCTIONS", "AGENT_SYSTEM_PROMPT"}, SETTING_PROSE,
     AT(agent.instructions), NULL, "none", "the instructions of every agent without any", NULL, LIVE},
    {NULL, "agent.temperature", "agent-temperature", {"WEIR_AGENT_TEMPERATURE", "AGENT_TEMPERATURE"}, SETTING_TEMPERATURE,
     AT(agent.temperature), "none", "none: the model's own", "0 to 2: how freely the model of every agent without one answers", NULL, LIVE},
    {NULL, "agent.max_tokens", "agent-max-tokens", {"WEIR_AGENT_MAX_TOKENS", "AGENT_MAX_TOKENS"}, SETTING_COUNT,
     AT(agent.max_tokens), "0", "0: the model's own", "tokens of one reply of every agent without such a limit", NULL, LIVE},
    {NULL, "agent.thinking", "agent-thinking", {"WEIR_AGENT_THINKING", "AGENT_THINKING", "CRAWBL_THINKING"}, SETTING_BOOL,
     AT(agent.thinking), "false", NULL, "show callers the reasoning of every agent that does not say; a blueprint's agent says it with \"thinking\"", NULL, LIVE},
    {NULL, "agent.openai_base_url", "openai-base-url", {"WEIR_OPENAI_BASE_URL"}, SETTING_URL,
     AT(openai_url), NULL, "OPENAI_BASE_URL, CRAWBL_OPENAI_BASE_URL, else OpenAI's own", "where the provider openai is, unless it is listed", NULL, LIVE},
    {NULL, "agent.name", "agent-name", {"WEIR_AGENT_NAME", "AGENT_NAME"}, SETTING_TEXT, AT(agent.name),
     "weir", NULL, "the name that /health reports", NULL, LIVE},
    {NULL, "agent.version", "agent-version", {"WEIR_AGENT_VERSION", "AGENT_VERSION"}, SETTING_TEXT,
     AT(agent.version), "0.1.0", NULL, "the version that /health reports", NULL, LIVE},
    {NULL, "agent.framework", "agent-framework", {"WEIR_AGENT_FRAMEWORK", "AGENT_FRAMEWORK"}, SETTING_TEXT,
     AT(agent.framework), NULL, "none", "the framework that /health reports", NULL, LIVE},
    {NULL, "session.busy", "busy", {"WEIR_BUSY"}, SETTING_CHOICE, AT(session.busy),
     "queue", NULL, "what becomes of a second turn of a session: queue, reject, or interrupt: it takes the first one's place", busy_policies, LIVE},
    {NULL, "approvals.deadline", "approvals-deadline", {"WEIR_APPROVALS_DEADLINE"}, SETTING_DURATION, AT(approvals.deadline_ms),
     "0", "none", "how long a turn waits for a human's answer; 0 = as long as he takes", NULL, LIVE},
    {NULL, "approvals.in_memory", "approvals-in-memory", {"WEIR_APPROVALS_IN_MEMORY"}, SETTING_DURATION, AT(approvals.doze_ms),
     "10s", NULL, "how long a turn that waits for a human stays in memory when nobody reads it; the store has it", NULL, LIVE},
    {NULL, "approvals.expires", "approvals-expires", {"WEIR_APPROVALS_EXPIRES"}, SETTING_CHOICE, AT(approvals.expires),
     "refuse", NULL, "what his silence then means for a tool: refuse or approve", expiries, LIVE},
    {NULL, "approvals.yes", "approvals-yes", {"WEIR_APPROVALS_YES"}, SETTING_WORDS, AT(approvals.words.yes),
     "", "none", "words that allow a tool, beside yes, ok, approve, ...: a list, or with ; between them", NULL, LIVE},
    {NULL, "approvals.no", "approvals-no", {"WEIR_APPROVALS_NO"}, SETTING_WORDS, AT(approvals.words.no),
     "", "none", "words that refuse it, beside no, stop, refuse, ...", NULL, LIVE},

    {"Recording", "record", "record", {"WEIR_RECORD"}, SETTING_PATH, AT(tape.record),
     NULL, "none", "a folder to keep what models and tools are asked and answer, without secrets", NULL, LIVE},
    {NULL, "replay", "replay", {"WEIR_REPLAY"}, SETTING_PATH, AT(tape.play),
     NULL, "none", "answer for models and tools from such a folder; nobody else is asked", NULL, LIVE},
    {NULL, "replay_pace", "replay-pace", {"WEIR_REPLAY_PACE"}, SETTING_CHOICE, AT(tape.pace),
     "at-once", NULL, "at-once, or real: as it was timed", tape_paces, LIVE},

    {"Storage", "data", "data", {"WEIR_DATA"}, SETTING_PATH, AT(data),
     NULL, "$XDG_DATA_HOME/weir", "the folder of the store", NULL, FIXED},
    {NULL, "store.durability", "durability", {"WEIR_DURABILITY"}, SETTING_CHOICE, AT(durability),
     "full", NULL, "full: on disk before it is acknowledged; normal: survives kill -9; off: for measuring",
     durabilities, FIXED},

    {"Callers", "tokens.key_file", NULL, {"CRAWBL_MCP_SIGNING_KEY"}, SETTING_SECRET, AT(tokens.key),
     NULL, "none: callers are believed", "the key that signs tokens of Converse", NULL, LIVE},
    {NULL, "tokens.previous_key_file", NULL, {"CRAWBL_MCP_SIGNING_KEY_PREVIOUS"}, SETTING_SECRET,
     AT(tokens.key_previous), NULL, "none", "a second key that is still accepted, for rotation", NULL, LIVE},
    {NULL, "tokens.auth_token_file", NULL, {"AGENT_AUTH_TOKEN"}, SETTING_SECRET, AT(tokens.auth),
     NULL, "none: open", "the bearer token of the Runtime Contract", NULL, FIXED},
    {NULL, "tokens.strict", "strict-tokens", {"WEIR_STRICT_TOKENS"}, SETTING_BOOL, AT(tokens.strict),
     "false", NULL, "refuse tokens without a date, and those signed over the raw ids", NULL, LIVE},
    {NULL, "converse.workspace", "workspace-id", {"WEIR_WORKSPACE_ID", "CRAWBL_WORKSPACE_ID"}, SETTING_ID,
     AT(converse.workspace), NULL, "any", "serve this workspace only", NULL, LIVE},
    {NULL, "converse.user", "user-id", {"WEIR_USER_ID", "CRAWBL_USER_ID"}, SETTING_ID, AT(converse.user),
     NULL, "any", "serve this user only", NULL, LIVE},
    {NULL, "nimi.allow_loopback_provider_endpoint", "nimi-allow-loopback", {"WEIR_NIMI_ALLOW_LOOPBACK"},
     SETTING_BOOL, AT(nimi.allow_loopback), "false", NULL,
     "let connectors ask providers on this machine over plain http", NULL, LIVE},
    {NULL, "nimi.probe_interval", "nimi-probe-interval", {"WEIR_NIMI_PROBE_INTERVAL"}, SETTING_DURATION, AT(nimi.probe_ms),
     "8s", NULL, "how often the providers of connectors are asked whether they are there; 0 = never", NULL, LIVE},
    {NULL, "nimi.slots", "nimi-slots", {"WEIR_NIMI_SLOTS"}, SETTING_COUNT, AT(nimi.slots),
     "8", NULL, "how many calls of nimi.runtime.v1 ask models at once, the others wait; 0 = all", NULL, FIXED},
    {NULL, "nimi.slots_per_app", "nimi-slots-per-app", {"WEIR_NIMI_SLOTS_PER_APP"}, SETTING_COUNT, AT(nimi.slots_per_app),
     "2", NULL, "and how many of one app; 0 = all", NULL, FIXED},
    {NULL, "converse.lenient", "lenient", {"WEIR_LENIENT"}, SETTING_BOOL, AT(converse.lenient),
     "false", NULL, "fall back where a request lacks an agent, a session or ids, as upstream does", NULL, LIVE},
    {NULL, "converse.errors_as_text", "errors-as-text", {"WEIR_ERRORS_AS_TEXT"}, SETTING_BOOL,
     AT(converse.errors_as_text), "false", NULL,
     "also send a failed turn's reason as text, for clients that show nothing else", NULL, LIVE},
    {NULL, "converse.sticky", "sticky", {"WEIR_STICKY"}, SETTING_BOOL, AT(converse.sticky),
     "false", NULL, "let the agent that spoke last take the next turn, not the Manager", NULL, LIVE},
    {NULL, "converse.mcp_endpoint", "mcp-endpoint", {"WEIR_MCP_ENDPOINT", "CRAWBL_MCP_ENDPOINT"}, SETTING_URL,
     AT(converse.mcp_endpoint), NULL, "none: local tools",
     "the orchestrator's MCP server: tools for the turns of Converse; asked with tokens of the signing key", NULL, LIVE},
    {NULL, "converse.blueprint", "blueprint", {"WEIR_BLUEPRINT"}, SETTING_BOOL, AT(converse.blueprint),
     "true", NULL, "with an MCP endpoint, ask its host for the agents of each workspace, too", NULL, LIVE},
    {NULL, "converse.orchestrator_endpoint", "orchestrator-endpoint", {"CRAWBL_ORCHESTRATOR_ENDPOINT"}, SETTING_TEXT,
     AT(converse.orchestrator), NULL, "none", "not asked; with it weir stands in for the pod of a Crawbl workspace (docs/operations.md)", NULL, LIVE},
    {NULL, "converse.searxng_endpoint", "searxng-endpoint", {"WEIR_SEARXNG_ENDPOINT", "CRAWBL_SEARXNG_ENDPOINT"}, SETTING_URL,
     AT(converse.searxng), NULL, "none", "a SearXNG; gives agents of a blueprint web_fetch and web_search_tool", NULL, LIVE},
    {NULL, "converse.reflection", "enable-reflection", {"WEIR_REFLECTION", "CRAWBL_ENABLE_REFLECTION", LIVE},
     SETTING_BOOL, AT(converse.reflection), "true", NULL, "answer gRPC server reflection", NULL, FIXED},
    {NULL, "converse.on_disconnect", "converse-on-disconnect", {"WEIR_CONVERSE_ON_DISCONNECT"}, SETTING_LEAVING,
     AT(converse.on_disconnect), "cancel", NULL,
     "a caller of Converse who leaves: cancel his turn, detach it (it goes on), or detach-for=30s without a reader", NULL, LIVE},
    {NULL, "http.on_disconnect", "http-on-disconnect", {"WEIR_HTTP_ON_DISCONNECT"}, SETTING_LEAVING,
     AT(http.on_disconnect), "cancel", NULL,
     "the same for callers of the Runtime Contract; a request may say it itself, in X-Weir-On-Disconnect", NULL, LIVE},
    {NULL, "http.history", "http-history", {"WEIR_HTTP_HISTORY"}, SETTING_CHOICE, AT(http.history),
     "session", NULL,
     "a message list that a caller of the Runtime Contract brings: session adds what is new in it, caller takes it for the whole conversation, strict refuses one that tells of another past",
     histories, LIVE},
    {NULL, "http.hosts", "http-hosts", {"WEIR_HTTP_HOSTS"}, SETTING_HOSTS, AT(http.hosts),
     "", "none", "names that a loopback listener without a token answers to, beside localhost and loopback addresses: a list, or with ; between them", NULL, LIVE},
    {NULL, "http.origins", "http-origins", {"WEIR_HTTP_ORIGINS"}, SETTING_ORIGINS, AT(http.origins),
     "", "none", "web pages of other places that may use the HTTP listener, https://studio.example: a list, or with ; between them; switches CORS on for them", NULL, LIVE},
    {NULL, "http.sidecar", "http-sidecar", {"WEIR_HTTP_SIDECAR", "AGENTBREEDER_SIDECAR_ACTIVE"}, SETTING_BOOL, AT(http.sidecar),
     "false", NULL, "a sidecar stands in front and keeps its client's Host: without a token any name is answered", NULL, LIVE},
    {NULL, "http.workspace", "http-workspace", {"WEIR_HTTP_WORKSPACE"}, SETTING_ID, AT(http.workspace),
     "default", NULL, "the workspace of callers of the Runtime Contract", NULL, LIVE},

    {"Running", "threads", "threads", {"WEIR_THREADS"}, SETTING_COUNT, AT(threads),
     NULL, "one for each CPU", "loops that serve connections, 1 to 256", NULL, FIXED},
    {NULL, "log.level", "log-level", {"WEIR_LOG_LEVEL"}, SETTING_CHOICE, AT(log.level),
     "info", NULL, "debug, info, warning or error; -v is debug", log_levels, LIVE},
    {NULL, "log.form", "log-form", {"WEIR_LOG_FORM"}, SETTING_CHOICE, AT(log.form),
     "auto", NULL, "plain, json, or auto: plain on a terminal", log_forms, LIVE},

    {"Limits of a connection", "limits.connections", "limit-connections", {"WEIR_LIMIT_CONNECTIONS", LIVE},
     SETTING_COUNT, AT(limits.connections), "1024", NULL, "connections of one listener", NULL, FIXED},
    LIMIT_FIXED("connection", "connection", "CONNECTION", SIZE, connection_bytes, "1MiB", "bytes waiting to be written"),
    LIMIT_FIXED("streams", "streams", "STREAMS", COUNT, streams, "1000", "calls at once"),
    LIMIT_FIXED("streams_stranger", "streams-stranger", "STREAMS_STRANGER", COUNT, streams_stranger, "100",
          "the same before a call has shown a good token; 0 = no such rule"),
    LIMIT_FIXED("fields", "fields", "FIELDS", COUNT, fields, "100", "header fields of a request"),
    LIMIT_FIXED("field_bytes", "field-bytes", "FIELD_BYTES", SIZE, field_bytes, "16KiB", "their names and values, and 32 bytes each"),
    LIMIT_FIXED("target", "target", "TARGET", SIZE, target_bytes, "8KiB", "an HTTP request target"),
    LIMIT("message", "message", "MESSAGE", SIZE, message_bytes, "4MiB", "one gRPC message"),
    LIMIT("body", "body", "BODY", SIZE, body_bytes, "8MiB", "one HTTP body"),
    LIMIT_FIXED("header", "header", "HEADER", DURATION, header_ms, "10s", "for a complete header section"),
    LIMIT("body_grace", "body-grace", "BODY_GRACE", DURATION, body_grace_ms, "10s", "the stretch in which a body is measured: before the first is over, it may be slow"),
    LIMIT("body_rate", "body-rate", "BODY_RATE", SIZE, body_bytes_per_s, "1KiB", "the least a body must bring in a second of each stretch; 0 = it may take its time"),
    LIMIT_FIXED("write_stall", "write-stall", "WRITE_STALL", DURATION, write_stall_ms, "30s", "without progress while bytes wait"),
    LIMIT_FIXED("answer_rate", "answer-rate", "ANSWER_RATE", SIZE, answer_bytes_per_s, "1KiB", "the least of what waits that a peer must take in a second of such a time; 0 = as slowly as it likes"),
    LIMIT_FIXED("idle", "idle", "IDLE", DURATION, idle_ms, "5m", "without a call"),
    LIMIT_FIXED("keepalive", "keepalive", "KEEPALIVE", DURATION, keepalive_ms, "30s", "of silence before our HTTP/2 ping; 0 = none"),
    LIMIT_FIXED("keepalive_answer", "keepalive-answer", "KEEPALIVE_ANSWER", DURATION, keepalive_answer_ms, "10s", "for its answer"),
    LIMIT_FIXED("ping", "ping", "PING", DURATION, ping_ms, "15s", "between two pings of a client; 0 = as it likes"),
    LIMIT("heartbeat", "heartbeat", "HEARTBEAT", DURATION, heartbeat_ms, "15s", "of silence before an SSE comment"),

    {"Limits of a stream", "limits.lag", "limit-lag", {"WEIR_LIMIT_LAG"}, SETTING_SIZE,
     AT(limits.lag_bytes), "32KiB", NULL, "behind which a reader pauses its model", NULL, LIVE},

    {"Limits of a turn", "limits.turn", "limit-turn", {"WEIR_LIMIT_TURN"}, SETTING_DURATION,
     AT(limits.turn_ms), "10m", NULL, "in all, without the time a human takes", NULL, LIVE},
    LIMIT("model_calls", "model-calls", "MODEL_CALLS", COUNT, model_calls, "25", "how often a model is asked"),
    LIMIT("tool_calls", "tool-calls", "TOOL_CALLS", COUNT, tool_calls, "100", "tools asked for"),
    LIMIT("workspace_turns", "workspace-turns", "WORKSPACE_TURNS", COUNT, workspace_turns, "0", "turns of one workspace at once, those that wait for a human not counted; more wait for 30 s; 0 = no such rule"),
    LIMIT("transfers", "transfers", "TRANSFERS", COUNT, transfers, "16", "how often it goes from one agent to another"),
    LIMIT("tools_at_once", "tools-at-once", "TOOLS_AT_ONCE", COUNT, tools_at_once, "16", "of them at the same time"),
    LIMIT("reply", "reply", "REPLY", SIZE, reply_bytes, "4MiB", "the text of one reply"),
    LIMIT("run", "run", "RUN", SIZE, run_bytes, "16MiB", "the memory of one turn"),
    LIMIT("tool_output", "tool-output", "TOOL_OUTPUT", SIZE, tool_output_bytes, "30000B", "what a model reads of one result"),

    {"Limits of the process", "limits.token_window", "limit-token-window", {"WEIR_LIMIT_TOKEN_WINDOW", LIVE},
     SETTING_DURATION, AT(limits.token_window_ms), "5m", NULL, "how far a token's date may be from ours", NULL, LIVE},
    LIMIT_FIXED("memory", "memory", "MEMORY", SIZE, memory_bytes, "0B", "what turns, sessions, bodies and replies may hold together; 0 = a quarter of the machine's memory, or of its control group's"),
    LIMIT("idempotency", "idempotency", "IDEMPOTENCY", DURATION, idempotency_ms, "24h", "how long a key of a request stands for its turn"),
    LIMIT("shutdown", "shutdown", "SHUTDOWN", DURATION, shutdown_ms, "10s", "for turns in flight when it stops"),
};
/* clang-format on */

const size_t setting_count = ARRAY_LEN(settings);

const struct setting *setting_by_key(struct str key) {
    for (size_t i = 0; i < setting_count; i++) {
        if (str_equal(key, str_from(settings[i].key))) return &settings[i];
    }
    return NULL;
}

const struct setting *setting_by_flag(struct str flag) {
    for (size_t i = 0; i < setting_count; i++) {
        if (settings[i].flag && str_equal(flag, str_from(settings[i].flag)))
            return &settings[i];
    }
    return NULL;
}

/* --- text to value -------------------------------------------------------------------- */

/* Counts beyond this are slips, and some of them become an unsigned int. */
#define COUNT_MAX UINT64_C(1000000000)

static bool keep(struct str text, struct config *config, void *ret, struct err *e) {
    if (arena_str(config->arena, text, ret)) return true;
    return err_set(e, ERR_TOO_LARGE, "there is too much of it");
}

static bool has_control(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte < 0x20 || byte == 0x7F) return true;
    }
    return false;
}

static bool set_text(struct str text, struct config *config, void *ret, struct err *e) {
    if (text.len == 0) return err_set(e, ERR_INVALID_ARGUMENT, "it is empty; give it a value");
    if (has_control(text))
        return err_set(e, ERR_INVALID_ARGUMENT, "it holds a control character; remove it");
    return keep(text, config, ret, e);
}

static bool set_prose(struct str text, struct config *config, void *ret, struct err *e) {
    if (str_trim(text).len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "it is empty; give it a value");
    return keep(text, config, ret, e);
}

/* What is to be an entry must be readable as one. */
static bool check_word(struct str word, struct err *e) {
    const struct yes_no_words as_yes = {.yes = {&word, 1}}, as_no = {.no = {&word, 1}};
    if (yes_no_read(word, &as_yes) != YES_NO_NEITHER ||
        yes_no_read(word, &as_no) != YES_NO_NEITHER)
        return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' cannot be a decision: it is empty, longer than %d bytes, or "
                   "has a sentence's end in its middle",
                   STR_ARG(str_head(word, 40)), YES_NO_MAX_BYTES);
}

typedef bool check_entry_fn(struct str entry, struct err *e);

/* What stands between the ';' of a text, each entry checked. */
static bool set_list(struct str text, struct config *config, check_entry_fn *check,
                     const struct str **ret, size_t *ret_count, struct err *e) {
    struct str kept, words[SETTING_WORDS_MAX];
    size_t count = 0;
    if (!keep(text, config, &kept, e)) return false;
    while (kept.len) {
        struct str word = str_trim(str_split(kept, ';', &kept));
        if (!check(word, e)) return false;
        if (count == SETTING_WORDS_MAX)
            return err_set(e, ERR_TOO_LARGE, "more than %d words", SETTING_WORDS_MAX);
        words[count++] = word;
    }
    size_t size = count * sizeof(struct str);
    struct str *entries = count ? arena_alloc(config->arena, size) : NULL;
    if (count && !entries) return err_set(e, ERR_TOO_LARGE, "there is too much of it");
    if (entries) memcpy(entries, words, size);
    *ret = entries;
    *ret_count = count;
    return true;
}

static bool set_words(struct str text, struct config *config, void *ret, struct err *e) {
    struct yes_no_list *list = ret;
    return set_list(text, config, check_word, &list->entries, &list->count, e);
}

static bool check_host(struct str host, struct err *e) {
    if (page_host_ok(host)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' is no host name; write it like agent.example, without a port",
                   STR_ARG(str_head(host, 80)));
}

static bool set_hosts(struct str text, struct config *config, void *ret, struct err *e) {
    struct page_list *list = ret;
    return set_list(text, config, check_host, &list->entries, &list->count, e);
}

static bool check_origin(struct str origin, struct err *e) {
    if (page_origin_ok(origin)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' is no origin; write it like https://studio.example or "
                   "http://localhost:5173, without a path",
                   STR_ARG(str_head(origin, 80)));
}

static bool set_origins(struct str text, struct config *config, void *ret, struct err *e) {
    struct page_list *list = ret;
    return set_list(text, config, check_origin, &list->entries, &list->count, e);
}

static bool set_id(struct str text, struct config *config, void *ret, struct err *e) {
    if (str_find_byte(text, ':') < text.len || str_find_byte(text, ' ') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is no id: ':' and spaces cannot stand in a token",
                       STR_ARG(str_head(text, 80)));
    if (text.len && !id_check("an id", text, e)) return false;
    return set_text(text, config, ret, e);
}

static bool refuse_address(struct str text, const char *why, struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' %s; write host:port, [v6]:port, unix:/path or off",
                   STR_ARG(str_head(text, 80)), why);
}

static bool is_host(struct str host) {
    bool brackets = str_starts(host, STR("[")) && str_ends(host, STR("]"));
    if (brackets) host = str_skip(str_head(host, host.len - 1), 1);
    if (brackets && host.len == 0) return false;
    for (size_t i = 0; i < host.len; i++) {
        char c = host.at[i];
        bool name = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                    (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
        if (!name && !(brackets && (c == ':' || c == '%'))) return false;
    }
    return true;
}

static bool set_unix(struct str text, struct config *config, void *ret, struct err *e) {
    size_t path_len = str_skip(text, 5).len;
    if (path_len == 0 || path_len >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return refuse_address(text, "has a path that is empty or too long for a socket", e);
    return set_text(text, config, ret, e);
}

/* A password has no business here: the value is shown and logged. */
static bool set_url(struct str text, struct config *config, void *ret, struct err *e) {
    bool web = str_starts(text, STR("http://")) || str_starts(text, STR("https://"));
    size_t host = str_find(text, STR("://")) + 3;
    if (!web || host >= text.len || str_find_byte(text, ' ') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it is no URL; write it like http://orchestrator:7171/mcp/v1");
    if (str_find_byte(text, '@') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it names a user or a password; leave everything up to '@' out");
    return set_text(text, config, ret, e);
}

static bool set_address(struct str text, struct config *config, void *ret, struct err *e) {
    if (str_equal(text, STR("off"))) return keep(STR_EMPTY, config, ret, e);
    if (str_starts(text, STR("unix:"))) return set_unix(text, config, ret, e);

    size_t colon = text.len;
    while (colon > 0 && text.at[colon - 1] != ':') colon--;
    if (colon == 0) return refuse_address(text, "has no port", e);
    struct str host = str_head(text, colon - 1), port = str_skip(text, colon);
    uint64_t number;
    if (port.len > 5 || !str_to_u64(port, &number) || number > 65535)
        return refuse_address(text, "has no port from 0 to 65535", e);
    if (!is_host(host)) return refuse_address(text, "names no host", e);
    return keep(text, config, ret, e);
}

static bool set_secret(struct str text, struct config *config, void *ret, struct err *e) {
    return keep(text, config, ret, e);
}

static bool set_bool(struct str text, struct config *config, void *ret, struct err *e) {
    static const char *const words[2][5] = {{"false", "0", "off", "no", "f"},
                                            {"true", "1", "on", "yes", "t"}};
    (void)config;
    for (size_t i = 0; i < ARRAY_LEN(words[0]); i++) {
        for (int value = 0; value <= 1; value++) {
            if (!str_equal_nocase(text, str_from(words[value][i]))) continue;
            *(bool *)ret = value;
            return true;
        }
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is neither true nor false",
                   STR_ARG(str_head(text, 40)));
}

static bool set_count(struct str text, struct config *config, void *ret, struct err *e) {
    (void)config;
    uint64_t number;
    if (!str_to_u64(text, &number) || number > COUNT_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is not a whole number up to %llu",
                       STR_ARG(str_head(text, 40)), (unsigned long long)COUNT_MAX);
    *(uint64_t *)ret = number;
    return true;
}

static bool set_size(struct str text, struct config *config, void *ret, struct err *e) {
    (void)config;
    return units_size(text, ret, e);
}

static bool set_duration(struct str text, struct config *config, void *ret, struct err *e) {
    (void)config;
    uint64_t us;
    if (!units_duration(str_equal(text, STR("off")) ? STR("0") : text, &us, e)) return false;
    if (us % 1000 != 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is not a whole number of "
                       "milliseconds",
                       STR_ARG(str_head(text, 40)));
    *(uint64_t *)ret = us / 1000;
    return true;
}

static bool set_leaving(struct str text, struct config *config, void *ret, struct err *e) {
    (void)config;
    return leaving_parse(text, ret, e);
}

/* With six digits behind the point, as an agent's own. */
static bool set_temperature(struct str text, struct config *config, void *ret, struct err *e) {
    (void)config;
    uint64_t millionths;
    if (str_equal(text, STR("none"))) {
        *(double *)ret = -1;
        return true;
    }
    if (!config_decimal_text(text, 6, &millionths, e)) return false;
    if (millionths > 2000000)
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is more than 2",
                       STR_ARG(str_head(text, 40)));
    *(double *)ret = (double)millionths / 1000000;
    return true;
}

static bool set_choice(const struct setting *setting, struct str text, void *ret,
                       struct err *e) {
    for (unsigned i = 0; setting->choices[i]; i++) {
        if (!str_equal(text, str_from(setting->choices[i]))) continue;
        memcpy(ret, &i, sizeof(i)); /* an enum counts from 0 as its names do */
        return true;
    }
    struct str meant = nearest_name(text, setting->choices);
    if (meant.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "'; did you mean '" STR_FMT "'?",
                       STR_ARG(str_head(text, 40)), STR_ARG(meant));
    return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is not one of: %s",
                   STR_ARG(str_head(text, 40)), setting->help);
}

bool setting_set(const struct setting *setting, struct str text, struct config *config,
                 struct err *e) {
    static bool (*const set[])(struct str, struct config *, void *, struct err *) = {
        [SETTING_TEXT] = set_text,
        [SETTING_ID] = set_id,
        [SETTING_PROSE] = set_prose,
        [SETTING_PATH] = set_text,
        [SETTING_ADDRESS] = set_address,
        [SETTING_SECRET] = set_secret,
        [SETTING_BOOL] = set_bool,
        [SETTING_COUNT] = set_count,
        [SETTING_SIZE] = set_size,
        [SETTING_DURATION] = set_duration,
        [SETTING_LEAVING] = set_leaving,
        [SETTING_URL] = set_url,
        [SETTING_TEMPERATURE] = set_temperature,
        [SETTING_WORDS] = set_words,
        [SETTING_HOSTS] = set_hosts,
        [SETTING_ORIGINS] = set_origins,
    };
    void *at = (char *)config + setting->offset;
    if (setting->kind == SETTING_CHOICE) return set_choice(setting, text, at, e);
    return set[setting->kind](text, config, at, e);
}

/* --- value to text -------------------------------------------------------------------- */

static void append_text(const struct setting *setting, struct str text, struct buf *out) {
    if (setting->kind == SETTING_SECRET) {
        buf_append(out, text.len ? STR("set") : STR("not set"));
    } else if (text.len) {
        buf_append(out, text);
    } else {
        buf_append(out, setting->kind == SETTING_ADDRESS ? STR("off") : STR("none"));
    }
}

/* In one line, as JSON has it. */
static void append_prose(struct str text, struct buf *out) {
    if (text.len) {
        json_put_str(out, text);
    } else {
        buf_append(out, STR("none"));
    }
}

static void append_list(const struct str *entries, size_t count, struct buf *out) {
    if (count == 0) buf_append(out, STR("none"));
    for (size_t i = 0; i < count; i++) {
        if (i) buf_append(out, STR("; "));
        buf_append(out, entries[i]);
    }
}

static void append_words(const struct yes_no_list *list, struct buf *out) {
    append_list(list->entries, list->count, out);
}

static void append_names(const struct page_list *list, struct buf *out) {
    append_list(list->entries, list->count, out);
}

static void append_temperature(double temperature, struct buf *out) {
    if (temperature < 0) {
        buf_append(out, STR("none"));
    } else {
        buf_printf(out, "%.6g", temperature);
    }
}

void setting_append(const struct setting *setting, const struct config *config,
                    struct buf *out) {
    const void *at = (const char *)config + setting->offset;
    unsigned choice;
    switch (setting->kind) {
    case SETTING_PROSE: append_prose(*(const struct str *)at, out); break;
    case SETTING_TEXT:
    case SETTING_ID:
    case SETTING_PATH:
    case SETTING_ADDRESS:
    case SETTING_URL:
    case SETTING_SECRET: append_text(setting, *(const struct str *)at, out); break;
    case SETTING_BOOL: buf_append(out, *(const bool *)at ? STR("true") : STR("false")); break;
    case SETTING_CHOICE:
        memcpy(&choice, at, sizeof(choice));
        buf_append(out, str_from(setting->choices[choice]));
        break;
    case SETTING_COUNT: buf_append_u64(out, *(const uint64_t *)at); break;
    case SETTING_SIZE: units_append_size(out, *(const uint64_t *)at); break;
    case SETTING_DURATION: units_append_duration(out, *(const uint64_t *)at * 1000); break;
    case SETTING_LEAVING: leaving_append(*(const struct leaving *)at, out); break;
    case SETTING_TEMPERATURE: append_temperature(*(const double *)at, out); break;
    case SETTING_WORDS: append_words(at, out); break;
    case SETTING_HOSTS:
    case SETTING_ORIGINS: append_names(at, out); break;
    }
}

const char *setting_placeholder(const struct setting *setting) {
    static const char *const names[] = {
        [SETTING_TEXT] = "TEXT",   [SETTING_PROSE] = "TEXT",      [SETTING_ID] = "ID",
        [SETTING_PATH] = "PATH",   [SETTING_ADDRESS] = "ADDR",    [SETTING_SECRET] = "",
        [SETTING_BOOL] = "",       [SETTING_CHOICE] = "WORD",     [SETTING_COUNT] = "N",
        [SETTING_SIZE] = "SIZE",   [SETTING_DURATION] = "TIME",   [SETTING_LEAVING] = "HOW",
        [SETTING_URL] = "URL",     [SETTING_TEMPERATURE] = "0-2", [SETTING_WORDS] = "WORDS",
        [SETTING_HOSTS] = "NAMES", [SETTING_ORIGINS] = "ORIGINS",
    };
    return names[setting->kind];
}
