#include "daemon/edition.h"

#include "base/mem.h"
#include "daemon/setting.h"

#include <stdlib.h>

static void free_edition(struct edition *edition) {
    token_keys_free(edition->keys);
    team_done(&edition->team);
    config_free(edition->owned);
    free(edition);
}

static void on_unused(struct engine *engine) {
    free_edition(CONTAINER_OF(engine, struct edition, engine));
}

struct edition *edition_ref(struct edition *edition) {
    engine_ref(&edition->engine);
    return edition;
}

void edition_unref(struct edition *edition) {
    if (edition) engine_unref(&edition->engine);
}

/* --- what is made of the settings --------------------------------------------------------- */

static bool add_key(struct edition *edition, struct str key, struct err *e) {
    const struct config *config = edition->config;
    bool trimmed;
    if (key.len == 0) return true;
    if (!edition->keys)
        edition->keys = token_keys_new(config->tokens.strict ? TOKEN_STRICT : TOKEN_LENIENT,
                                       (int64_t)config->limits.token_window_ms / 1000);
    return token_keys_add(edition->keys, key, &trimmed, e);
}

static struct run_limits run_limits_of(const struct config_limits *from) {
    return (struct run_limits){
        .model_calls_max = (unsigned)from->model_calls,
        .tool_calls_max = (unsigned)from->tool_calls,
        .tools_at_once = (unsigned)from->tools_at_once,
        .reply_max_bytes = from->reply_bytes,
        .memory_max_bytes = from->run_bytes,
        .result_max_bytes = from->tool_output_bytes,
        .pace_max_bytes = from->lag_bytes,
        .turn_max_ms = from->turn_ms,
    };
}

static enum session_policy policy_of(enum config_busy busy) {
    return busy == CONFIG_BUSY_REJECT ? SESSION_REJECT : SESSION_QUEUE;
}

static void fill_converse(struct edition *edition) {
    const struct config *config = edition->config;
    edition->converse = (struct converse_settings){
        .keys = edition->keys,
        .lenient = config->converse.lenient,
        .errors_as_text = config->converse.errors_as_text,
        .sticky = config->converse.sticky,
        .workspace = config->converse.workspace,
        .user = config->converse.user,
        .busy = policy_of(config->session.busy),
        .message_max_bytes = config->limits.message_bytes,
        .stall_ms = config->limits.write_stall_ms,
    };
}

static void fill_runtime(struct edition *edition) {
    const struct config *config = edition->config;
    const struct config_limits *limits = &config->limits;
    edition->runtime = (struct runtime_settings){
        .token = config->tokens.auth,
        .workspace = config->http.workspace,
        .agent_name = config->agent.name,
        .agent_version = config->agent.version,
        .framework = config->agent.framework,
        .body_max_bytes = limits->body_bytes,
        .body_stretch_ms = limits->body_grace_ms,
        .body_stretch_bytes = limits->body_bytes_per_s * limits->body_grace_ms / 1000,
        .busy = policy_of(config->session.busy),
        .stall_ms = limits->write_stall_ms,
        .heartbeat_ms = limits->heartbeat_ms,
    };
}

bool edition_new(const struct edition_options *options, struct edition **ret, struct err *e) {
    struct edition *edition = MEM_NEW(struct edition);
    const struct config *config = options->config;
    struct str key = options->grpc_key.len ? options->grpc_key : config->tokens.key;
    edition->config = config;
    if (options->owns_config) edition->owned = (struct config *)(uintptr_t)config;
    if (!team_assemble(config, &edition->team, e) || !add_key(edition, key, e) ||
        !add_key(edition, config->tokens.key_previous, e)) {
        free_edition(edition);
        return false;
    }
    edition->engine.unused = on_unused;
    edition->engine.sessions = options->sessions;
    edition->engine.limits = run_limits_of(&config->limits);
    team_fill(&edition->team, &edition->engine);
    fill_converse(edition);
    fill_runtime(edition);
    *ret = edition_ref(edition);
    return true;
}

void edition_needs_restart(const struct config *running, const struct config *wanted,
                           struct buf *out) {
    struct buf before, after;
    buf_init(&before, 64 * KIB);
    buf_init(&after, 64 * KIB);
    for (size_t i = 0; i < setting_count; i++) {
        if (!settings[i].fixed) continue;
        buf_clear(&before);
        buf_clear(&after);
        setting_append(&settings[i], running, &before);
        setting_append(&settings[i], wanted, &after);
        if (str_equal(buf_str(&before), buf_str(&after))) continue;
        buf_printf(out, "%s%s", out->len ? ", " : "", settings[i].key);
    }
    buf_done(&before);
    buf_done(&after);
}
