#include "daemon/config_snapshot.h"

#include "base/mem.h"
#include "config/setting.h"
#include "tool/read_result.h"

#include <stdlib.h>

static void drop_settings(struct config_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        if (snapshot->settings[i])
            snapshot->contracts.rows[i]->settings.drop(snapshot->settings[i]);
    }
    free(snapshot->settings);
}

static void free_config_snapshot(struct config_snapshot *snapshot) {
    offers_free(snapshot->offers);
    price_book_free(snapshot->prices);
    tool_free(snapshot->reader);
    drop_settings(snapshot);
    team_done(&snapshot->team);
    struct config_snapshot *owner = snapshot->owner;
    config_free(snapshot->owned);
    free(snapshot);
    config_snapshot_unref(owner);
}

static void on_unused(struct engine *engine) {
    free_config_snapshot(CONTAINER_OF(engine, struct config_snapshot, engine));
}

struct config_snapshot *config_snapshot_ref(struct config_snapshot *snapshot) {
    engine_ref(&snapshot->engine);
    return snapshot;
}

void config_snapshot_unref(struct config_snapshot *snapshot) {
    if (snapshot) engine_unref(&snapshot->engine);
}

/* --- building from the settings ----------------------------------------------------------- */

static struct contract_source source_of(const struct config_snapshot *snapshot,
                                        const struct config_snapshot_options *options) {
    const struct config *config = snapshot->config;
    const struct config_limits *limits = &config->limits;
    return (struct contract_source){
        .config = config,
        .first = options->first ? options->first : config,
        .team = &snapshot->team,
        .demo_key = options->demo_key,
        .pool = options->resources.pool,
        .body_stretch_ms = limits->body_grace_ms,
        .body_stretch_bytes = limits->body_bytes_per_s * limits->body_grace_ms / 1000,
    };
}

static bool read_settings(struct config_snapshot *snapshot,
                          const struct config_snapshot_options *options, struct err *e) {
    const struct contract_source source = source_of(snapshot, options);
    if (!options->contracts) return true;
    snapshot->settings = mem_zero(options->contracts->count, sizeof(void *));
    snapshot->contracts = *options->contracts;
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        const struct contract *contract = snapshot->contracts.rows[i];
        if (contract->settings.read &&
            !contract->settings.read(&source, &snapshot->settings[i], e))
            return false;
    }
    return true;
}

const void *config_snapshot_settings(const struct config_snapshot *snapshot,
                                     const struct contract *contract) {
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        if (snapshot->contracts.rows[i] == contract) return snapshot->settings[i];
    }
    return NULL;
}

static struct team_resources resources_of(const struct config_snapshot_options *options,
                                          const struct config *config) {
    struct team_resources resources = options->resources;
    for (size_t i = 0; options->contracts && i < options->contracts->count; i++) {
        const struct contract *contract = options->contracts->rows[i];
        resources.media |= contract->asks_media && contract_is_wanted(contract, config) &&
                           contract->asks_media(config);
    }
    return resources;
}

bool config_snapshot_new(const struct config_snapshot_options *options,
                         struct config_snapshot **ret, struct err *e) {
    struct config_snapshot *snapshot = MEM_NEW(struct config_snapshot);
    const struct config *config = options->owner ? options->owner->config : options->config;
    snapshot->config = config;
    if (options->owner)
        snapshot->owner =
            config_snapshot_ref(options->owner->owner ? options->owner->owner : options->owner);
    if (options->owns_config) snapshot->owned = (struct config *)(uintptr_t)config;
    const struct team_resources resources = resources_of(options, config);
    if (!team_assemble(config, &resources, &snapshot->team, e) ||
        !read_settings(snapshot, options, e)) {
        free_config_snapshot(snapshot);
        return false;
    }
    snapshot->engine.unused = on_unused;
    snapshot->engine.sessions = options->sessions;
    snapshot->engine.ledger = options->ledger;
    snapshot->prices = price_book_new(config->prices, config->price_count);
    snapshot->engine.prices = snapshot->prices;
    snapshot->engine.budgets = config->budgets;
    snapshot->engine.budget_count = config->budget_count;
    snapshot->engine.limits = config->limits.run;
    team_fill(&snapshot->team, &snapshot->engine);
    if (options->resources.store)
        snapshot->reader = read_result_tool_new(options->resources.store);
    snapshot->engine.store = options->resources.store;
    snapshot->engine.reader = snapshot->reader;
    snapshot->offers = offers_new(&snapshot->engine);
    snapshot->engine.offers = snapshot->offers;
    *ret = config_snapshot_ref(snapshot);
    return true;
}

/* As text, secrets only show whether they are set, so compare their values. */
static bool same_secret_as(const struct setting *setting, const struct config *a,
                           const struct config *b) {
    return str_equal(setting_text(setting, a), setting_text(setting, b));
}

void config_snapshot_needs_restart(const struct config *running, const struct config *wanted,
                                   struct buf *out) {
    struct buf before, after;
    buf_init(&before, 64 * KIB);
    buf_init(&after, 64 * KIB);
    for (size_t i = 0; i < running->setting_count; i++) {
        if (!running->settings[i].fixed) continue;
        buf_clear(&before);
        buf_clear(&after);
        setting_append(&running->settings[i], running, &before);
        setting_append(&running->settings[i], wanted, &after);
        bool same = running->settings[i].kind == SETTING_SECRET
                        ? same_secret_as(&running->settings[i], running, wanted)
                        : str_equal(buf_str(&before), buf_str(&after));
        if (same) continue;
        buf_printf(out, "%s%s", out->len ? ", " : "", running->settings[i].key);
    }
    buf_done(&before);
    buf_done(&after);
}
