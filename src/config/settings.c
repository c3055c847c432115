/* The table of settings, one row each. */
#include "config/rows.h"

#include "stream/stream.h"

#include <stdlib.h>

static const char *const durabilities[] = {
    [STORE_FULL] = "full", [STORE_NORMAL] = "normal", [STORE_OFF] = "off", NULL};
static const char *const busy_policies[] = {[SESSION_QUEUE] = "queue",
                                            [SESSION_REJECT] = "reject",
                                            [SESSION_INTERRUPT] = "interrupt",
                                            NULL};
static const char *const missing[] = {"refuse", "warn", NULL};
static const char *const expiries[] = {"refuse", "approve", NULL}; /* no or yes */
static const char *const webhooks[] = {[CONFIG_WEBHOOKS_PUBLIC] = "public",
                                       [CONFIG_WEBHOOKS_ANY] = "any",
                                       [CONFIG_WEBHOOKS_OFF] = "off",
                                       NULL};
static const char *const log_levels[] = {[LOG_DEBUG] = "debug",
                                         [LOG_INFO] = "info",
                                         [LOG_WARNING] = "warning",
                                         [LOG_ERROR] = "error",
                                         NULL};
static const char *const log_forms[] = {
    [CONFIG_LOG_AUTO] = "auto", [CONFIG_LOG_PLAIN] = "plain", [CONFIG_LOG_JSON] = "json", NULL};

static const char *const tape_paces[] = {
    [TAPE_AT_ONCE] = "at-once", [TAPE_REAL] = "real", NULL};

static const char *const bucket_styles[] = {[BUCKET_AUTO] = "auto",
                                            [BUCKET_VIRTUAL_HOST] = "virtual-host",
                                            [BUCKET_PATH] = "path",
                                            NULL};

#define ROW_OF struct config

/* For a limit whose key, flag and variable have the same name. */
#define LIMIT(name, flag_name, env_name)                                                       \
    .key = "limits." name, .flag = "limit-" flag_name, .env = {"WEIR_LIMIT_" env_name}

/* clang-format off */
const struct setting settings[] = {
    {.group = "Listening", .key = "ports_file", .flag = "ports-file", .env = {"WEIR_PORTS_FILE"}, PATH(ports_file),
     .fixed = true, .help = "write the ports that were really taken here, as JSON, once ready"},

    {.group = "TLS", .key = "tls.cert", .flag = "tls-cert", .env = {"WEIR_TLS_CERT", "CRAWBL_TLS_CERT"},
     PATH(tls.cert), .shown = "none: no TLS", .fixed = true,
     .help = "the certificate chain of the HTTP and gRPC listeners, PEM; read again on "
             "SIGHUP"},
    {.key = "tls.key", .flag = "tls-key", .env = {"WEIR_TLS_KEY", "CRAWBL_TLS_KEY"},
     PATH(tls.key), .fixed = true, .help = "its private key, PEM, without a password"},
    {.key = "tls.ca", .flag = "tls-ca", .env = {"WEIR_TLS_CA", "CRAWBL_TLS_CA"}, PATH(tls.ca),
     .shown = "none: callers need no certificate", .fixed = true,
     .help = "whose certificates callers must show, PEM"},
    {.key = "tls.trust", .flag = "tls-trust", .env = {"WEIR_TLS_TRUST"}, PATH(tls.trust),
     .shown = "what SSL_CERT_FILE and SSL_CERT_DIR name, or the system's", .fixed = true,
     .help = "the certificate authorities that https: servers are checked with: a file, or a "
             "folder of files, PEM"},

    {.group = "Agents", .key = "script", .flag = "script", .env = {"WEIR_SCRIPT"}, PATH(script),
     .shown = "the built-in demo", .help = "the script that the offline provider plays"},
    {.key = "model", .flag = "model",
     .env = {"WEIR_MODEL", "AGENT_MODEL", "CRAWBL_OPENAI_MODEL"}, TEXT(model),
     .shown = "none: the script plays",
     .also = {.flag = "openai-model", .env = "CRAWBL_OPENAI_MODEL", .before = "openai/"},
     .help = "the model of every agent without one: openai/gpt-4o, ollama/gemma3, ...; "
             "--openai-model NAME says openai/NAME"},
    {.key = "agent.instructions", .flag = "agent-instructions",
     .env = {"WEIR_AGENT_INSTRUCTIONS", "AGENT_SYSTEM_PROMPT"}, PROSE(agent.instructions),
     .help = "the instructions of every agent without any"},
    {.key = "agent.temperature", .flag = "agent-temperature",
     .env = {"WEIR_AGENT_TEMPERATURE", "AGENT_TEMPERATURE"}, DECIMAL(agent.temperature),
     .digits = 6, .most = 2, .beyond = "'%s' is more than 2", .preset = "none",
     .shown = "none: the model's own",
     .help = "0 to 2: how freely the model of every agent without one answers"},
    {.key = "agent.max_tokens", .flag = "agent-max-tokens",
     .env = {"WEIR_AGENT_MAX_TOKENS", "AGENT_MAX_TOKENS"}, COUNT(agent.max_tokens),
     .preset = "0", .shown = "0: the model's own",
     .help = "tokens of one reply of every agent without such a limit"},
    {.key = "agent.thinking", .flag = "agent-thinking",
     .env = {"WEIR_AGENT_THINKING", "AGENT_THINKING", "CRAWBL_THINKING"}, BOOL(agent.thinking),
     .preset = "false",
     .help = "show callers the reasoning of every agent that does not say; a blueprint's "
             "agent says it with \"thinking\""},
    {.key = "agent_yaml.missing", .flag = "agent-yaml-missing",
     .env = {"WEIR_AGENT_YAML_MISSING"}, CHOICE(agent_yaml.missing_warns), .choices = missing,
     .preset = "refuse",
     .help = "what an agent.yaml names and nothing here explains: refuse the file, or warn and "
             "go without it"},
    {.key = "agent.openai_base_url", .flag = "openai-base-url", .env = {"WEIR_OPENAI_BASE_URL"},
     URL(openai_url), .shown = "OPENAI_BASE_URL, CRAWBL_OPENAI_BASE_URL, else OpenAI's own",
     .help = "where the provider openai is, unless it is listed"},
    {.key = "agent.name", .flag = "agent-name", .env = {"WEIR_AGENT_NAME", "AGENT_NAME"},
     TEXT(agent.name), .preset = "weir", .help = "the name that /health reports"},
    {.key = "agent.version", .flag = "agent-version",
     .env = {"WEIR_AGENT_VERSION", "AGENT_VERSION"}, TEXT(agent.version), .preset = "0.1.0",
     .help = "the version that /health reports"},
    {.key = "agent.framework", .flag = "agent-framework",
     .env = {"WEIR_AGENT_FRAMEWORK", "AGENT_FRAMEWORK"}, TEXT(agent.framework),
     .help = "the framework that /health reports"},
    {.key = "agent.url", .flag = "agent-url", .env = {"WEIR_AGENT_URL"}, URL(agent.url),
     .shown = "the host that a request names",
     .help = "where others reach this program, https://agents.example: agent cards give "
             "addresses below it"},
    {.key = "session.busy", .flag = "busy", .env = {"WEIR_BUSY"}, CHOICE(session.busy),
     .choices = busy_policies, .preset = "queue",
     .help = "what becomes of a second turn of a session: queue, reject, or interrupt: it "
             "takes the first one's place"},
    {.key = "approvals.deadline", .flag = "approvals-deadline",
     .env = {"WEIR_APPROVALS_DEADLINE"}, DURATION(limits.run.approval_max_ms), .shown = "none",
     .help = "how long a turn waits for a human's answer; 0 = as long as he takes"},
    {.key = "approvals.in_memory", .flag = "approvals-in-memory",
     .env = {"WEIR_APPROVALS_IN_MEMORY"}, DURATION(limits.run.approval_doze_ms),
     .help = "how long a turn that waits for a human stays in memory when nobody reads it; "
             "the store has it"},
    {.key = "approvals.expires", .flag = "approvals-expires", .env = {"WEIR_APPROVALS_EXPIRES"},
     CHOICE(limits.run.approval_expires_yes), .choices = expiries,
     .help = "what a missing answer then means for a tool: refuse or approve"},
    {.key = "approvals.yes", .flag = "approvals-yes", .env = {"WEIR_APPROVALS_YES"},
     WORDS(limits.run.decision_words.yes),
     .help = "words that allow a tool, beside yes, ok, approve, ...: a list, or with ; "
             "between them"},
    {.key = "approvals.no", .flag = "approvals-no", .env = {"WEIR_APPROVALS_NO"},
     WORDS(limits.run.decision_words.no),
     .help = "words that refuse it, beside no, stop, refuse, ..."},

    {.group = "Recording", .key = "record", .flag = "record", .env = {"WEIR_RECORD"},
     PATH(tape.record),
     .help = "a folder to keep what models and tools are asked and answer, without secrets"},
    {.key = "replay", .flag = "replay", .env = {"WEIR_REPLAY"}, PATH(tape.play),
     .help = "answer for models and tools from such a folder; no provider is asked"},
    {.key = "replay_pace", .flag = "replay-pace", .env = {"WEIR_REPLAY_PACE"},
     CHOICE(tape.pace), .choices = tape_paces, .preset = "at-once",
     .help = "at-once, or real: as it was timed"},

    {.group = "Storage", .key = "data", .flag = "data", .env = {"WEIR_DATA"}, PATH(data),
     .shown = "$XDG_DATA_HOME/weir", .fixed = true, .help = "the folder of the store"},
    {.key = "store.durability", .flag = "durability", .env = {"WEIR_DURABILITY"},
     CHOICE(durability), .choices = durabilities, .preset = "full", .fixed = true,
     .help = "full: on disk before it is acknowledged; normal: survives kill -9; off: for "
             "measuring"},

    {.key = "store.url_file", .env = {"WEIR_STORE_URL"}, SECRET(store.url), .shown = "none: SQLite",
     .fixed = true,
     .help = "a PostgreSQL server that has the store: postgres://user:password@host/database. "
             "weir migrate makes its tables"},
    {.key = "store.schema", .flag = "store-schema", .env = {"WEIR_STORE_SCHEMA"},
     TEXT(store.schema), .shown = "as the server has it", .fixed = true,
     .help = "the schema of those tables, one name of a-z, 0-9 and _"},
    {.key = "store.replica", .flag = "replica", .env = {"WEIR_STORE_REPLICA"},
     TEXT(store.replica), .shown = "none: one daemon has the store", .fixed = true,
     .help = "with PostgreSQL: several daemons share the store, each under a name of its own"},
    {.key = "store.lease", .flag = "lease", .env = {"WEIR_STORE_LEASE"},
     DURATION(store.lease_ms), .preset = "10s", .fixed = true,
     .help = "how long what a replica holds stays its own after its last word, 1s to 1h"},
    {.key = "store.searches", .flag = "store-searches", .env = {"WEIR_STORE_SEARCHES"},
     COUNT(store.searches), .preset = "4", .least = 1, .most = 64, .fixed = true,
     .help = "with PostgreSQL: connections for lists and searches of memories, beside the one for "
             "all else; a workspace has half of them at most"},
    {.key = "files.s3.endpoint", .flag = "spaces-endpoint",
     .env = {"WEIR_FILES_S3_ENDPOINT", "CRAWBL_SPACES_ENDPOINT"}, TEXT(s3.endpoint),
     .shown = "none: files stay on this machine", .fixed = true,
     .help = "S3-compatible storage for artifacts and the files of tools: "
             "https://fra1.example.com. The next four belong to it"},
    {.key = "files.s3.bucket", .flag = "spaces-bucket",
     .env = {"WEIR_FILES_S3_BUCKET", "CRAWBL_SPACES_BUCKET"}, TEXT(s3.bucket), .fixed = true,
     .help = "the bucket in it"},
    {.key = "files.s3.region", .flag = "spaces-region",
     .env = {"WEIR_FILES_S3_REGION", "CRAWBL_SPACES_REGION"}, TEXT(s3.region), .fixed = true,
     .help = "its region, which requests are signed for: us-east-1, fra1, ..."},
    {.key = "files.s3.access_key_file",
     .env = {"WEIR_FILES_S3_ACCESS_KEY", "CRAWBL_SPACES_ACCESS_KEY"}, SECRET(s3.access_key),
     .shown = "none", .fixed = true, .help = "the name of the key, as the storage gave it"},
    {.key = "files.s3.secret_key_file",
     .env = {"WEIR_FILES_S3_SECRET_KEY", "CRAWBL_SPACES_SECRET_KEY"}, SECRET(s3.secret_key),
     .shown = "none", .fixed = true, .help = "the key itself, which signs requests"},
    {.key = "files.s3.style", .flag = "files-s3-style", .env = {"WEIR_FILES_S3_STYLE"},
     CHOICE(s3.style), .choices = bucket_styles, .preset = "auto", .fixed = true,
     .help = "where the bucket's name stands: virtual-host, path, or auto: in the host, unless "
             "that is an address"},
    {.key = "files.s3.sweep", .flag = "files-s3-sweep", .env = {"WEIR_FILES_S3_SWEEP"},
     DURATION(s3.sweep_ms), .preset = "1m", .least = 100, .most = 86400000, .fixed = true,
     .help = "how often objects of erased sessions are looked for, to delete them"},

    {.key = "audit.keep", .flag = "audit-keep", .env = {"WEIR_AUDIT_KEEP"},
     DURATION(audit.keep_ms), .preset = "8760h",
     .help = "how long records of the audit log are kept; 0 = for ever"},
    {.key = "audit.keep_bytes", .flag = "audit-keep-bytes", .env = {"WEIR_AUDIT_KEEP_BYTES"},
     SIZE(audit.keep_bytes), .preset = "1GiB",
     .help = "bytes of them that are kept, the newest; 0 = no such limit"},

    {.group = "Callers", .key = "converse.reflection", .flag = "enable-reflection",
     .env = {"WEIR_REFLECTION", "CRAWBL_ENABLE_REFLECTION"}, BOOL(reflection),
     .preset = "true", .fixed = true, .help = "answer gRPC server reflection"},

    {.group = "A2A", .key = "a2a.enabled", .flag = "a2a", .env = {"WEIR_A2A"}, BOOL(agent.a2a),
     .preset = "true", .fixed = true,
     .help = "serve the agents by the Agent2Agent protocol, at /a2a, /message:send and /tasks "
             "on the HTTP listener"},
    {.key = "a2a.webhooks", .flag = "a2a-webhooks", .env = {"WEIR_A2A_WEBHOOKS"},
     CHOICE(agent.webhooks), .choices = webhooks, .preset = "public",
     .fixed = true, .help = "which addresses A2A clients may name for push notifications: public, any (also "
             "private ones and this machine) or off"},

    {.group = "Running", .key = "threads", .flag = "threads", .env = {"WEIR_THREADS"},
     COUNT(threads), .shown = "one for each CPU", .fixed = true, .least = 1, .most = 256,
     .help = "loops that serve connections, 1 to 256"},
    {.key = "log.level", .flag = "log-level", .env = {"WEIR_LOG_LEVEL"}, CHOICE(log.level),
     .choices = log_levels, .preset = "info",
     .help = "debug, info, warning or error; -v is debug"},
    {.key = "log.form", .flag = "log-form", .env = {"WEIR_LOG_FORM"}, CHOICE(log.form),
     .choices = log_forms, .preset = "auto",
     .help = "plain, json, or auto: plain on a terminal"},

    {.group = "Limits of a connection", LIMIT("connections", "connections", "CONNECTIONS"),
     COUNT(limits.server.connections_max), .fixed = true,
     .help = "connections of one listener; a peer's that have sent no request get a quarter"},
    {LIMIT("connection", "connection", "CONNECTION"), SIZE(limits.server.connection_max_bytes),
     .fixed = true, .help = "bytes waiting to be written"},
    {LIMIT("streams", "streams", "STREAMS"), COUNT(limits.server.streams_max), .fixed = true,
     .help = "calls at once"},
    {LIMIT("streams_stranger", "streams-stranger", "STREAMS_STRANGER"),
     COUNT(limits.server.streams_max_stranger), .fixed = true,
     .help = "the same before a call has shown a good token; 0 = no such rule"},
    {LIMIT("fields", "fields", "FIELDS"), COUNT(limits.server.fields_max), .fixed = true,
     .help = "header fields of a request"},
    {LIMIT("field_bytes", "field-bytes", "FIELD_BYTES"), SIZE(limits.server.fields_max_bytes),
     .fixed = true, .help = "their names and values, and 32 bytes each"},
    {LIMIT("target", "target", "TARGET"), SIZE(limits.server.target_max_bytes), .fixed = true,
     .help = "an HTTP request target"},
    {LIMIT("message", "message", "MESSAGE"), SIZE(limits.message_bytes), .preset = "4MiB",
     .least = 1, .help = "one gRPC message"},
    {LIMIT("body", "body", "BODY"), SIZE(limits.body_bytes), .preset = "8MiB",
     .help = "one HTTP body"},
    {LIMIT("header", "header", "HEADER"), DURATION(limits.server.header_timeout_ms),
     .fixed = true, .help = "for a complete header section"},
    {LIMIT("body_grace", "body-grace", "BODY_GRACE"), DURATION(limits.body_grace_ms),
     .preset = "10s",
     .help = "the stretch in which a body is measured: before the first is over, it may be "
             "slow"},
    {LIMIT("body_rate", "body-rate", "BODY_RATE"), SIZE(limits.body_bytes_per_s),
     .preset = "1KiB",
     .help = "the least a body must bring in a second of each stretch; 0 = it may take its "
             "time"},
    {LIMIT("write_stall", "write-stall", "WRITE_STALL"), DURATION(limits.server.write_stall_ms),
     .fixed = true, .least = 1, .help = "without progress while bytes wait"},
    {LIMIT("answer_rate", "answer-rate", "ANSWER_RATE"), SIZE(limits.server.answer_bytes_per_s),
     .fixed = true,
     .help = "the least of what waits that a peer must take in a second of such a time; 0 = "
             "as slowly as it likes"},
    {LIMIT("idle", "idle", "IDLE"), DURATION(limits.server.idle_timeout_ms), .fixed = true,
     .help = "without a call"},
    {LIMIT("keepalive", "keepalive", "KEEPALIVE"), DURATION(limits.server.keepalive_ms),
     .fixed = true, .help = "of silence before our HTTP/2 ping; 0 = none"},
    {LIMIT("keepalive_answer", "keepalive-answer", "KEEPALIVE_ANSWER"),
     DURATION(limits.server.keepalive_timeout_ms), .fixed = true, .help = "for its answer"},
    {LIMIT("ping", "ping", "PING"), DURATION(limits.server.ping_apart_ms), .fixed = true,
     .help = "between two pings of a client; 0 = as it likes"},
    {LIMIT("heartbeat", "heartbeat", "HEARTBEAT"), DURATION(limits.heartbeat_ms), .least = 1,
     .help = "of silence before an SSE comment"},

    {.group = "Limits of a caller", LIMIT("rate_address", "rate-address", "RATE_ADDRESS"),
     RATE(limits.rates[RATE_ADDRESS]), .preset = "off",
     .help = "requests of one address; of IPv6, of one /64. As 10/s, 600/m or 5000/h, and as many "
             "at once; more are refused, with when to come again"},
    {LIMIT("rate_token", "rate-token", "RATE_TOKEN"), RATE(limits.rates[RATE_TOKEN]),
     .preset = "off", .help = "requests with one token"},
    {LIMIT("rate_agent", "rate-agent", "RATE_AGENT"), RATE(limits.rates[RATE_AGENT]),
     .preset = "off", .help = "turns of one agent, of all callers together"},

    {.group = "Limits of a stream", LIMIT("lag", "lag", "LAG"), SIZE(limits.run.pace_max_bytes),
     .least = 1, .help = "unsent bytes at which a slow reader pauses its model"},

    {.group = "Limits of a turn", LIMIT("turn", "turn", "TURN"),
     DURATION(limits.run.turn_max_ms), .least = 1,
     .help = "in all, without the time a human takes"},
    {LIMIT("model_calls", "model-calls", "MODEL_CALLS"), COUNT(limits.run.model_calls_max),
     .help = "how often a model is asked"},
    {LIMIT("tool_calls", "tool-calls", "TOOL_CALLS"), COUNT(limits.run.tool_calls_max),
     .help = "tools asked for"},
    {LIMIT("workspace_turns", "workspace-turns", "WORKSPACE_TURNS"),
     COUNT(limits.run.workspace_turns_max),
     .help = "turns of one workspace at once, those that wait for a human not counted; more "
             "wait for 30 s; 0 = no such rule"},
    {LIMIT("transfers", "transfers", "TRANSFERS"), COUNT(limits.run.transfers_max),
     .help = "how often it goes from one agent to another"},
    {LIMIT("tools_at_once", "tools-at-once", "TOOLS_AT_ONCE"),
     COUNT(limits.run.tools_at_once), .help = "of them at the same time"},
    {LIMIT("tool", "tool", "TOOL"), DURATION(limits.run.tool_max_ms),
     .help = "for one call of a tool that has no limit of its own; 0 = as long as the turn"},
    {LIMIT("reply", "reply", "REPLY"), SIZE(limits.run.reply_max_bytes),
     .help = "the text of one reply"},
    {LIMIT("run", "run", "RUN"), SIZE(limits.run.memory_max_bytes),
     .help = "the memory of one turn"},
    {LIMIT("tool_output", "tool-output", "TOOL_OUTPUT"), SIZE(limits.run.result_max_bytes),
     .least = 1, .help = "what a model reads of one result"},

    {.group = "Limits of the process", LIMIT("memory", "memory", "MEMORY"), SIZE(limits.memory_bytes), .preset = "0B",
     .fixed = true,
     .help = "what turns, sessions, bodies and replies may hold together; 0 = a quarter of "
             "the machine's memory, or of its control group's"},
    {LIMIT("idempotency", "idempotency", "IDEMPOTENCY"), DURATION(limits.idempotency_ms),
     .preset = "24h", .help = "how long a key of a request stands for its turn"},
    {LIMIT("shutdown", "shutdown", "SHUTDOWN"), DURATION(limits.shutdown_ms), .preset = "10s",
     .help = "for turns in flight when it stops"},
};
/* clang-format on */

const size_t setting_count = ARRAY_LEN(settings);

const struct setting *setting_by_key(const struct config *config, struct str key) {
    for (size_t i = 0; i < config->setting_count; i++) {
        if (str_equal(key, str_from(config->settings[i].key))) return &config->settings[i];
    }
    return NULL;
}

const struct setting *setting_by_flag(const struct config *config, struct str flag) {
    for (size_t i = 0; i < config->setting_count; i++) {
        const struct setting *setting = &config->settings[i];
        const char *names[] = {setting->flag, setting->also.flag};
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            if (names[n] && str_equal(flag, str_from(names[n]))) return setting;
        }
    }
    return NULL;
}

/* --- defaults ----------------------------------------------------------------------------- */

/* Defaults that the modules define themselves; their rows need no preset. */
static void defaults_of_parts(struct config *config) {
    config->limits.server = server_limits_default;
    config->limits.run = run_limits_default;
    config->limits.heartbeat_ms = STREAM_HEARTBEAT_MS;
}

void settings_default(struct config *config) {
    defaults_of_parts(config);
    for (size_t i = 0; i < config->setting_count; i++) {
        const struct setting *setting = &config->settings[i];
        struct str *text = (void *)((char *)config + setting->offset);
        struct err e;
        if (setting_is_text(setting)) *text = STR_EMPTY;
        /* Cannot fail: the text is ours and the arena is empty. */
        if (setting->preset && !setting_set(setting, str_from(setting->preset), config, &e))
            abort();
    }
}

void setting_append_default(const struct setting *setting, struct buf *out) {
    const char *said = setting->shown ? setting->shown : setting->preset;
    struct config config = {0};
    defaults_of_parts(&config);
    if (said) {
        buf_append(out, str_from(said));
    } else if (setting->offset < sizeof(config)) { /* not part of a contract's settings */
        setting_append(setting, &config, out);
    }
}
