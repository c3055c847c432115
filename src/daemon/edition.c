#include "daemon/edition.h"

#include "base/mem.h"
#include "config/setting.h"
#include "tool/read_result.h"

#include <stdlib.h>

static void drop_settings(struct edition *edition) {
    for (size_t i = 0; i < edition->contracts.count; i++) {
        if (edition->settings[i])
            edition->contracts.rows[i]->settings.drop(edition->settings[i]);
    }
    free(edition->settings);
}

static void free_edition(struct edition *edition) {
    offers_free(edition->offers);
    price_book_free(edition->prices);
    tool_free(edition->reader);
    drop_settings(edition);
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

static struct contract_source source_of(const struct edition *edition,
                                        const struct edition_options *options) {
    const struct config *config = edition->config;
    const struct config_limits *limits = &config->limits;
    return (struct contract_source){
        .config = config,
        .first = options->first ? options->first : config,
        .team = &edition->team,
        .demo_key = options->demo_key,
        .pool = options->means.pool,
        .body_stretch_ms = limits->body_grace_ms,
        .body_stretch_bytes = limits->body_bytes_per_s * limits->body_grace_ms / 1000,
    };
}

static bool read_settings(struct edition *edition, const struct edition_options *options,
                          struct err *e) {
    const struct contract_source source = source_of(edition, options);
    if (!options->contracts) return true;
    edition->settings = mem_zero(options->contracts->count, sizeof(void *));
    edition->contracts = *options->contracts;
    for (size_t i = 0; i < edition->contracts.count; i++) {
        const struct contract *contract = edition->contracts.rows[i];
        if (contract->settings.read &&
            !contract->settings.read(&source, &edition->settings[i], e))
            return false;
    }
    return true;
}

const void *edition_settings(const struct edition *edition, const struct contract *contract) {
    for (size_t i = 0; i < edition->contracts.count; i++) {
        if (edition->contracts.rows[i] == contract) return edition->settings[i];
    }
    return NULL;
}

bool edition_new(const struct edition_options *options, struct edition **ret, struct err *e) {
    struct edition *edition = MEM_NEW(struct edition);
    const struct config *config = options->config;
    edition->config = config;
    if (options->owns_config) edition->owned = (struct config *)(uintptr_t)config;
    if (!team_assemble(config, &options->means, &edition->team, e) ||
        !read_settings(edition, options, e)) {
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
