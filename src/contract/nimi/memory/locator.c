#include "contract/nimi/memory/locator.h"

#include "base/mem.h"
#include "contract/nimi/owner.h"

#include <assert.h>
#include <stdlib.h>

static bool locator_refuse(struct fault *fault) {
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the bank's locator is missing, or names no owner");
}

/* A row per scope: its number, which is the owner's field number less one, and the ids. */
static bool ids_are_ok(const struct nimi_memory_bank_locator *at, struct fault *fault) {
    switch (at->which_owner) {
    case NIMI_MEMORY_BANK_LOCATOR_AGENT_CORE:
        return owner_id("agent_core.agent_id", at->agent_core->agent_id, fault);
    case NIMI_MEMORY_BANK_LOCATOR_AGENT_DYADIC:
        return owner_id("agent_dyadic.agent_id", at->agent_dyadic->agent_id, fault) &&
               owner_id("agent_dyadic.user_id", at->agent_dyadic->user_id, fault);
    case NIMI_MEMORY_BANK_LOCATOR_WORLD_SHARED:
        return owner_id("world_shared.world_id", at->world_shared->world_id, fault);
    case NIMI_MEMORY_BANK_LOCATOR_APP_PRIVATE:
        return owner_id("app_private.account_id", at->app_private->account_id, fault) &&
               owner_id("app_private.app_id", at->app_private->app_id, fault);
    case NIMI_MEMORY_BANK_LOCATOR_WORKSPACE_PRIVATE:
        return owner_id("workspace_private.account_id", at->workspace_private->account_id,
                        fault) &&
               owner_id("workspace_private.workspace_id", at->workspace_private->workspace_id,
                        fault);
    default: return locator_refuse(fault);
    }
}

bool locator_read(const struct nimi_memory_bank_locator *from, struct locator *ret,
                  struct fault *fault) {
    if (!from) return locator_refuse(fault);
    if (!ids_are_ok(from, fault)) return false;
    int32_t scope = from->which_owner - 1;
    if (from->scope && from->scope != scope)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "the locator's scope is %d, and its owner is one of scope %d",
                         from->scope, scope);
    ret->message = *from;
    ret->message.scope = scope;
    struct buf key = {
        .at = ret->room, .room = sizeof(ret->room), .max_bytes = sizeof(ret->room)};
    bool fits = pb_encode(&nimi_memory_bank_locator_table, &ret->message, &key);
    assert(fits); /* two ids of ID_MAX_BYTES */
    (void)fits;
    ret->key = buf_str(&key);
    return true;
}

bool locator_read_public(const struct nimi_public_memory_bank_locator *from,
                         struct locator *ret, struct fault *fault) {
    struct nimi_memory_bank_locator whole = {.scope = 0};
    if (!from || !from->which_locator) return locator_refuse(fault);
    if (from->which_locator == NIMI_PUBLIC_MEMORY_BANK_LOCATOR_APP_PRIVATE) {
        whole.which_owner = NIMI_MEMORY_BANK_LOCATOR_APP_PRIVATE;
        whole.app_private = from->app_private;
    } else {
        whole.which_owner = NIMI_MEMORY_BANK_LOCATOR_WORKSPACE_PRIVATE;
        whole.workspace_private = from->workspace_private;
    }
    return locator_read(&whole, ret, fault);
}

/* The owners of a filter are those of a locator, each under the number before. */
bool locator_read_filter(const struct nimi_memory_bank_owner_filter *from, struct locator *ret,
                         struct fault *fault) {
    struct nimi_memory_bank_locator whole = {.scope = 0};
    if (!from->which_owner) return locator_refuse(fault);
    whole.which_owner = from->which_owner + 1;
    switch (from->which_owner) {
    case NIMI_MEMORY_BANK_OWNER_FILTER_AGENT_CORE: whole.agent_core = from->agent_core; break;
    case NIMI_MEMORY_BANK_OWNER_FILTER_AGENT_DYADIC:
        whole.agent_dyadic = from->agent_dyadic;
        break;
    case NIMI_MEMORY_BANK_OWNER_FILTER_WORLD_SHARED:
        whole.world_shared = from->world_shared;
        break;
    case NIMI_MEMORY_BANK_OWNER_FILTER_APP_PRIVATE:
        whole.app_private = from->app_private;
        break;
    default: whole.workspace_private = from->workspace_private; break;
    }
    return locator_read(&whole, ret, fault);
}

/* --- filters ------------------------------------------------------------------------------ */

static bool take_scopes(struct locator_filter *filter, const int32_t *scopes, size_t count,
                        struct fault *fault) {
    for (size_t i = 0; i < count; i++) {
        if (scopes[i] <= 0 || scopes[i] > NIMI_MEMORY_BANK_SCOPE_WORKSPACE_PRIVATE)
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "there is no scope %d",
                             scopes[i]);
        filter->scopes |= 1u << scopes[i];
    }
    return true;
}

static bool take_owners(struct locator_filter *filter, char *room,
                        const struct nimi_memory_bank_owner_filter *owners, size_t count,
                        struct fault *fault) {
    struct locator locator = {.key = STR_INIT("")};
    for (size_t i = 0; i < count; i++) {
        if (!locator_read_filter(&owners[i], &locator, fault)) return false;
        char *at = room + i * BANK_LOCATOR_MAX_BYTES;
        memcpy(at, locator.key.at, locator.key.len);
        filter->keys[filter->count++] = str_of(at, locator.key.len);
    }
    return true;
}

struct locator_filter *locator_filter_new(const int32_t *scopes, size_t scope_count,
                                          const struct nimi_memory_bank_owner_filter *owners,
                                          size_t owner_count, struct fault *fault) {
    if (owner_count > LOCATOR_FILTERS_MAX) {
        fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                  "there are %zu owner_filters, at most %d are allowed", owner_count,
                  LOCATOR_FILTERS_MAX);
        return NULL;
    }
    struct locator_filter *filter = mem_zero(
        1, sizeof(*filter) + owner_count * (sizeof(filter->keys[0]) + BANK_LOCATOR_MAX_BYTES));
    char *room = (char *)&filter->keys[owner_count];
    if (take_scopes(filter, scopes, scope_count, fault) &&
        take_owners(filter, room, owners, owner_count, fault))
        return filter;
    free(filter);
    return NULL;
}

/* A key begins with field 1, the scope, as one varint byte. */
bool locator_filter_wants(struct str key, const void *ctx) {
    const struct locator_filter *filter = ctx;
    if (filter->scopes && !(filter->scopes >> key.at[1] & 1)) return false;
    for (size_t i = 0; i < filter->count; i++) {
        if (str_equal(filter->keys[i], key)) return true;
    }
    return filter->count == 0;
}
