/* What apps do with bindings. */
#include "contract/nimi/account/inner.h"

#define DONE NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED
#define STALE NIMI_ACCOUNT_REASON_CODE_BINDING_STALE
#define NOT_FOUND NIMI_ACCOUNT_REASON_CODE_BINDING_NOT_FOUND

static void account_bind_show(const struct binding *binding, struct buf *ret) {
    pb_encode(&nimi_scoped_app_binding_relation_table, &binding->relation, ret);
}

/* --- issue -------------------------------------------------------------------------------- */

static void set_times(struct binding *binding, int32_t ttl_s, const struct account_now *now) {
    int64_t lasts_s = ttl_s <= 0                   ? BINDINGS_TTL_S
                      : ttl_s > BINDINGS_TTL_MAX_S ? BINDINGS_TTL_MAX_S
                                                   : ttl_s;
    int64_t until_ms = now->unix_ms + 1000 * lasts_s;
    binding->expires_ms = now->ms + 1000 * (uint64_t)lasts_s;
    binding->issued = (struct google_timestamp){
        .seconds = now->unix_ms / 1000, .nanos = (int32_t)(now->unix_ms % 1000) * 1000000};
    binding->expires = (struct google_timestamp){.seconds = until_ms / 1000,
                                                 .nanos = (int32_t)(until_ms % 1000) * 1000000};
}

static void supersede(struct nimi_account *account, const struct binding *by,
                      const struct account_now *now) {
    LIST_EACH(&account->bindings.all, link) {
        struct binding *binding = CONTAINER_OF(link, struct binding, link);
        if (binding == by || binding->relation.purpose != by->relation.purpose ||
            !binding_same_relation(&binding->relation, &by->relation))
            continue;
        account_end_binding(account, binding, BINDING_SUPERSEDED,
                            NIMI_ACCOUNT_EVENT_TYPE_BINDING_SUPERSEDED, STALE, now);
    }
}

static int bind(struct nimi_account *account,
                const struct nimi_scoped_app_binding_relation *relation, int32_t ttl_s,
                const struct account_now *now, struct buf *ret) {
    if (account_is_foreign(account, now->by))
        return NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED;
    if (account->state != ACCOUNT_AUTHENTICATED)
        return NIMI_ACCOUNT_REASON_CODE_ACCOUNT_UNAVAILABLE;
    struct binding *binding = bindings_add(&account->bindings, relation);
    if (!binding) return ACCOUNT_FULL;
    set_times(binding, ttl_s, now);
    account_keep_binding(account, binding, false, now);
    account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_BINDING_ISSUED, DONE, binding, now);
    supersede(account, binding, now);
    binding_move(binding, BINDING_ACTIVE, DONE);
    account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_BINDING_ACTIVATED, DONE, binding, now);
    account_bind_show(binding, ret);
    return DONE;
}

int account_bind(struct nimi_account *account,
                 const struct nimi_scoped_app_binding_relation *relation, int32_t ttl_s,
                 const struct account_now *now, struct buf *ret) {
    account_tick(account, now);
    account_lock(account);
    int reason = bind(account, relation, ttl_s, now, ret);
    account_unlock(account);
    return reason;
}

/* --- revoke ------------------------------------------------------------------------------- */

static bool account_bind_is_of(const struct binding *binding, struct str app,
                               struct str app_instance) {
    return binding && str_equal(binding->relation.runtime_app_id, app) &&
           str_equal(binding->relation.app_instance_id, app_instance);
}

int account_unbind(struct nimi_account *account, struct str id, struct str app,
                   struct str app_instance, int reason, const struct account_now *now,
                   struct buf *ret) {
    account_tick(account, now);
    account_lock(account);
    struct binding *binding = bindings_find(&account->bindings, id);
    bool found =
        account_bind_is_of(binding, app, app_instance) && !account_is_foreign(account, now->by);
    if (found) {
        binding_move(binding, BINDING_REVOKED, reason);
        account_bind_show(binding, ret);
        account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_BINDING_REVOKED, reason, binding, now);
        account_keep_binding(account, binding, true, now);
        bindings_remove(&account->bindings, binding);
    }
    account_unlock(account);
    return found ? reason : NOT_FOUND;
}

/* --- use ---------------------------------------------------------------------------------- */

static bool is_replayed(const struct binding *binding,
                        const struct nimi_scoped_runtime_binding_attachment *attached) {
    const struct nimi_scoped_app_binding_relation shown = {
        .runtime_app_id = attached->runtime_app_id,
        .app_instance_id = attached->app_instance_id,
        .window_id = attached->window_id,
        .avatar_instance_id = attached->avatar_instance_id,
        .agent_id = attached->agent_id,
        .conversation_anchor_id = attached->conversation_anchor_id,
        .world_id = attached->world_id};
    return !binding_same_relation(&binding->relation, &shown);
}

static int account_bind_check(struct nimi_account *account,
                              const struct nimi_scoped_runtime_binding_attachment *attached,
                              const struct account_now *now) {
    struct binding *binding = bindings_find(&account->bindings, attached->binding_id);
    if (!binding) return NOT_FOUND;
    if (is_replayed(binding, attached)) {
        account_end_binding(account, binding, BINDING_REVOKED,
                            NIMI_ACCOUNT_EVENT_TYPE_BINDING_REPLAY_DETECTED,
                            NIMI_ACCOUNT_REASON_CODE_BINDING_REPLAY, now);
        return NOT_FOUND; /* who shows another's learns nothing */
    }
    return binding->state == BINDING_ACTIVE ? DONE : STALE;
}

int account_check_binding(struct nimi_account *account,
                          const struct nimi_scoped_runtime_binding_attachment *attached,
                          const struct account_now *now) {
    account_tick(account, now);
    account_lock(account);
    int reason = account_bind_check(account, attached, now);
    account_unlock(account);
    return reason;
}
