#include "contract/nimi/account/share.h"

#include "contract/nimi/account/caller.h"
#include "contract/nimi/account/waits.h"

/* --- what is on disk ---------------------------------------------------------------------- */

static bool trusts(struct str issuer, const void *ctx) {
    return issuers_know(ctx, issuer);
}

void account_take_records(struct nimi_instance *instance, const struct kept_record *records,
                          size_t count, const struct err *failed) {
    const struct account_now now = account_now(instance->host->loop, STR_EMPTY);
    const struct issuers *issuers = instance->settings->issuers;
    account_restore(instance->runtime->account, records, count, failed, issuers ? trusts : NULL,
                    issuers, &now);
}

struct kept_ask *account_read(struct nimi_instance *instance, kept_done_fn *done, void *ctx) {
    struct store *store = instance->host->engine->store;
    account_use_store(instance->runtime->account, store);
    if (store)
        return kept_read_start(store, instance->host->loop, KEPT_ACCOUNT, KEPT_ACCOUNT_BINDING,
                               done, ctx);
    account_take_records(instance, NULL, 0, NULL);
    return NULL;
}

static void share_on_read(const struct kept_record *records, size_t count,
                          const struct err *failed, void *ctx) {
    struct nimi_instance *instance = ctx;
    instance->account.reading = NULL;
    account_take_records(instance, records, count, failed);
    account_arm(instance);
}

static void read_if_needed(struct nimi_instance *instance) {
    struct account_share *share = &instance->account;
    if (!share->reading && account_wants_read(instance->runtime->account))
        share->reading = account_read(instance, share_on_read, instance);
}

/* --- time --------------------------------------------------------------------------------- */

static void share_on_time(void *ctx) {
    struct nimi_instance *instance = ctx;
    const struct account_now now = account_now(instance->host->loop, STR_EMPTY);
    account_tick(instance->runtime->account, &now);
    read_if_needed(instance);
    account_arm(instance);
}

void account_arm(struct nimi_instance *instance) {
    struct account_share *share = &instance->account;
    uint64_t due_ms = account_due_ms(instance->runtime->account);
    uint64_t now_ms = loop_now_ms(instance->host->loop);
    timer_stop(&share->timer);
    if (due_ms == UINT64_MAX || share->reading) return; /* the answer arms it */
    timer_start(&share->timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* --- its life ----------------------------------------------------------------------------- */

void account_share_init(struct nimi_instance *instance) {
    list_init(&instance->account.waits);
    timer_init(&instance->account.timer, instance->host->loop, share_on_time, instance);
}

void account_share_serving(struct nimi_instance *instance) {
    read_if_needed(instance);
    account_arm(instance);
}

void account_share_leave(struct nimi_instance *instance) {
    struct account_share *share = &instance->account;
    timer_stop(&share->timer);
    kept_forget(share->reading);
    share->reading = NULL;
    account_waits_leave(&share->waits);
}
