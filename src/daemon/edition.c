#include "daemon/edition.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/setting.h"
#include "tool/read_result.h"

#include <stdlib.h>

static void free_edition(struct edition *edition) {
    offers_free(edition->offers);
    price_book_free(edition->prices);
    tool_free(edition->reader);
    token_keys_free(edition->keys);
    nimi_settings_done(&edition->nimi);
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

static void fill_converse(struct edition *edition) {
    const struct config *config = edition->config;
    edition->converse = (struct converse_settings){
        .guard = {edition->keys, config->converse.workspace, config->converse.user},
        .lenient = config->converse.lenient,
        .errors_as_text = config->converse.errors_as_text,
        .sticky = config->converse.sticky,
        .busy = config->session.busy,
        .message_max_bytes = config->limits.message_bytes,
        .stall_ms = config->limits.server.write_stall_ms,
        .on_disconnect = config->converse.on_disconnect,
    };
}

/* Agents and tools of the orchestrator are in no recording, so a replay must not ask for them.
 */
static void leave_house(struct edition *edition) {
    const struct config *config = edition->config;
    if (!edition->house.endpoint.len) return;
    if (config->tape.record.len)
        log_warning("calls to tools of the MCP endpoint are not recorded; a replay has the "
                    "agents and tools of the settings alone");
    if (!config->tape.play.len) return;
    log_warning("replaying: the MCP endpoint is not asked, agents and tools are those of the "
                "settings");
    edition->house.endpoint = STR_EMPTY;
}

/* Who asks for a workspace signs for it. */
static bool fill_house(struct edition *edition, struct http_pool *pool, struct err *e) {
    const struct config *config = edition->config;
    edition->house = (struct house_settings){.endpoint = config->converse.mcp_endpoint,
                                             .blueprint = config->converse.blueprint,
                                             .keys = edition->keys};
    leave_house(edition);
    if (!edition->house.endpoint.len || !pool) return true;
    return !edition->keys || http_pool_need(pool, e);
}

/* The Runtime Contract forbids that its bearer changes at run time (K34). */
static void fill_runtime(struct edition *edition, struct str bearer) {
    const struct config *config = edition->config;
    const struct config_limits *limits = &config->limits;
    edition->runtime = (struct runtime_settings){
        .token = bearer,
        .workspace = config->http.workspace,
        .agent_name = config->agent.name,
        .agent_version = config->agent.version,
        .framework = config->agent.framework,
        .body_max_bytes = limits->body_bytes,
        .body_stretch_ms = limits->body_grace_ms,
        .body_stretch_bytes = limits->body_bytes_per_s * limits->body_grace_ms / 1000,
        .busy = config->session.busy,
        .brought = config->http.history,
        .stall_ms = limits->server.write_stall_ms,
        .heartbeat_ms = limits->heartbeat_ms,
        .on_disconnect = config->http.on_disconnect,
        .keys_kept_ms = limits->idempotency_ms,
        .keyed_outlives = true,
    };
    edition->pages = (struct page_rules){.hosts = config->http.hosts,
                                         .origins = config->http.origins,
                                         .any_host = config->http.sidecar};
}

bool edition_new(const struct edition_options *options, struct edition **ret, struct err *e) {
    struct edition *edition = MEM_NEW(struct edition);
    const struct config *config = options->config;
    bool own_key = options->grpc_key.len > 0;
    struct str key = own_key ? options->grpc_key : config->tokens.key;
    struct str previous = own_key ? STR_EMPTY : config->tokens.key_previous;
    edition->config = config;
    struct str bearer = (options->first ? options->first : config)->tokens.auth;
    edition->secured = (!own_key && key.len) || bearer.len;
    if (options->owns_config) edition->owned = (struct config *)(uintptr_t)config;
    if (!team_assemble(config, &options->means, &edition->team, e) ||
        !add_key(edition, key, e) || !add_key(edition, previous, e) ||
        !fill_house(edition, options->means.pool, e)) {
        free_edition(edition);
        return false;
    }
    edition->engine.unused = on_unused;
    edition->engine.sessions = options->sessions;
    edition->engine.ledger = options->ledger;
    edition->prices = price_book_new(config->prices, config->price_count);
    edition->engine.prices = edition->prices;
    edition->engine.budgets = config->budgets;
    edition->engine.budget_count = config->budget_count;
    edition->engine.limits = config->limits.run;
    team_fill(&edition->team, &edition->engine);
    if (options->means.store) edition->reader = read_result_tool_new(options->means.store);
    edition->engine.store = options->means.store;
    edition->engine.reader = edition->reader;
    edition->offers = offers_new(&edition->engine);
    edition->engine.offers = edition->offers;
    fill_converse(edition);
    nimi_settings_init(&edition->nimi, config, &edition->team);
    fill_runtime(edition, bearer);
    *ret = edition_ref(edition);
    return true;
}

/* As text, a secret says only whether it is set. */
static bool same_secret_as(const struct setting *setting, const struct config *a,
                           const struct config *b) {
    const struct str *one = (const void *)((const char *)a + setting->offset);
    const struct str *other = (const void *)((const char *)b + setting->offset);
    return str_equal(*one, *other);
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
        bool same = settings[i].kind == SETTING_SECRET
                        ? same_secret_as(&settings[i], running, wanted)
                        : str_equal(buf_str(&before), buf_str(&after));
        if (same) continue;
        buf_printf(out, "%s%s", out->len ? ", " : "", settings[i].key);
    }
    buf_done(&before);
    buf_done(&after);
}
