#include "contract/nimi/grant/grants.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/same.h"

#include <pthread.h>
#include <stdlib.h>

struct grants {
    pthread_mutex_t lock;
    size_t max, max_bytes, bytes;
    struct map *by_id;
    struct list all;
};

struct grants *grants_new(size_t max, size_t max_bytes) {
    struct grants *grants = MEM_NEW(struct grants);
    pthread_mutex_init(&grants->lock, NULL);
    grants->max = max;
    grants->max_bytes = max_bytes;
    grants->by_id = map_new();
    list_init(&grants->all);
    return grants;
}

static void drop(struct grants *grants, struct grant *grant) {
    map_remove(grants->by_id, str_of(grant->id, ULID_LEN));
    list_remove(&grant->link);
    grants->bytes -= grant->bytes;
    arena_free(grant->arena);
    free(grant);
}

void grants_free(struct grants *grants) {
    if (!grants) return;
    LIST_EACH(&grants->all, link) drop(grants, CONTAINER_OF(link, struct grant, link));
    map_free(grants->by_id);
    pthread_mutex_destroy(&grants->lock);
    free(grants);
}

void grants_lock(struct grants *grants) {
    pthread_mutex_lock(&grants->lock);
}

void grants_unlock(struct grants *grants) {
    pthread_mutex_unlock(&grants->lock);
}

void grants_limit(struct grants *grants, size_t max, size_t max_bytes) {
    grants_lock(grants);
    grants->max = max;
    grants->max_bytes = max_bytes;
    grants_unlock(grants);
}

/* --- adding ------------------------------------------------------------------------------- */

/* kept_ms 0: there is no room, and revoked ones go too. A child expires no later than its parent,
 * and is revoked with it, so the parent of what stays stays. */
static void drop_expired(struct grants *grants, int64_t now_ms, int64_t kept_ms) {
    LIST_EACH(&grants->all, link) {
        struct grant *grant = CONTAINER_OF(link, struct grant, link);
        if (now_ms >= grant->expires_ms + kept_ms || (kept_ms == 0 && grant->revoked))
            drop(grants, grant);
    }
}

static bool is_full(const struct grants *grants) {
    return map_count(grants->by_id) >= grants->max ||
           grants->bytes + GRANTS_ONE_MAX_BYTES > grants->max_bytes;
}

static bool copy_selectors(struct grant *grant, const struct nimi_resource_selectors *from) {
    struct nimi_resource_selectors *copy =
        ARENA_NEW(grant->arena, struct nimi_resource_selectors);
    struct buf bytes;
    struct err e;
    buf_init(&bytes, GRANTS_ONE_MAX_BYTES);
    bool ok = copy && pb_encode(&nimi_resource_selectors_table, from, &bytes) &&
              pb_decode(&nimi_resource_selectors_table, lent_of(buf_str(&bytes)), grant->arena,
                        copy, &e);
    buf_done(&bytes);
    grant->selectors = copy;
    return ok;
}

static bool copy_scopes(struct grant *grant, const struct grant *from) {
    struct str *copies = arena_alloc(grant->arena, (from->scope_count + 1) * sizeof(*copies));
    bool ok = copies != NULL;
    for (size_t i = 0; ok && i < from->scope_count; i++)
        ok = arena_str(grant->arena, from->scopes[i], &copies[i]);
    grant->scopes = copies;
    return ok;
}

static bool copy_texts(struct grant *grant, const struct grant *from) {
    return arena_str(grant->arena, from->app, &grant->app) &&
           arena_str(grant->arena, from->subject, &grant->subject) &&
           arena_str(grant->arena, from->principal, &grant->principal) &&
           arena_str(grant->arena, from->consent_id, &grant->consent_id) &&
           arena_str(grant->arena, from->consent_version, &grant->consent_version) &&
           arena_str(grant->arena, from->policy, &grant->policy) &&
           arena_str(grant->arena, from->catalog, &grant->catalog) &&
           copy_scopes(grant, from) &&
           (!from->selectors || copy_selectors(grant, from->selectors));
}

/* NULL: it is too large for what is left. */
static struct grant *grant_insert(struct grants *grants, const struct grant *from) {
    struct grant *grant = MEM_NEW(struct grant);
    *grant = *from;
    list_init(&grant->link);
    grant->arena = arena_new(8 * GRANTS_ONE_MAX_BYTES);
    bool ok = copy_texts(grant, from);
    grant->bytes = sizeof(*grant) + arena_used(grant->arena);
    if (!ok || grants->bytes + grant->bytes > grants->max_bytes) {
        arena_free(grant->arena);
        free(grant);
        return NULL;
    }
    grants->bytes += grant->bytes;
    list_append(&grants->all, &grant->link);
    map_put(grants->by_id, str_of(grant->id, ULID_LEN), grant);
    return grant;
}

static void grants_make_room(struct grants *grants, int64_t now_ms) {
    drop_expired(grants, now_ms, is_full(grants) ? 0 : GRANTS_EXPIRED_KEPT_MS);
}

/* What a request says of one: a fact and a reply have room for twice as much. */
static bool is_small(const struct grant *grant) {
    size_t bytes = grant->app.len + grant->subject.len + grant->principal.len +
                   grant->consent_id.len + grant->consent_version.len + grant->policy.len +
                   grant->catalog.len;
    for (size_t i = 0; i < grant->scope_count; i++)
        bytes += sizeof(struct str) + grant->scopes[i].len;
    return bytes <= 4 * GRANTS_ONE_MAX_BYTES &&
           (!grant->selectors || pb_encoded_len(&nimi_resource_selectors_table,
                                                grant->selectors) <= GRANTS_ONE_MAX_BYTES);
}

bool grants_make(struct grants *grants, struct grant *grant, int64_t now_ms,
                 char ret_secret[static RANDOM_TOKEN_BYTES + 1]) {
    grants_make_room(grants, now_ms);
    if (map_count(grants->by_id) >= grants->max || !is_small(grant)) return false;
    ulid_new(grant->id);
    random_token_new(ret_secret);
    random_token_digest(str_of(ret_secret, RANDOM_TOKEN_BYTES), grant->digest);
    return true;
}

/* Revoke what this app, user and principal have under another policy. */
static void use_policy(struct grants *grants, const struct grant *of) {
    LIST_EACH(&grants->all, link) {
        struct grant *one = CONTAINER_OF(link, struct grant, link);
        if (str_equal(one->app, of->app) && str_equal(one->subject, of->subject) &&
            str_equal(one->principal, of->principal) && !str_equal(one->policy, of->policy))
            one->revoked = true;
    }
}

/* Each that makes one looks whether there is room. Here there may be a few more. */
struct grant *grants_put(struct grants *grants, const struct grant *from, struct str parent_id,
                         int64_t now_ms) {
    struct grant *grant = grants_get(grants, str_from(from->id));
    struct grant fresh = *from;
    if (grant) return grant;
    grants_make_room(grants, now_ms);
    fresh.parent = grants_get(grants, parent_id);
    if (parent_id.len && !fresh.parent) return NULL; /* it may have expired */
    fresh.revoked = fresh.parent && fresh.parent->revoked;
    grant = grant_insert(grants, &fresh);
    if (!grant) return NULL;
    if (!grant->parent) use_policy(grants, grant);
    return grant;
}

/* --- finding and revoking ----------------------------------------------------------------- */

struct grant *grants_get(struct grants *grants, struct str id) {
    return id.len ? map_find(grants->by_id, id) : NULL;
}

struct grant *grants_find(struct grants *grants, struct str id, struct str app,
                          int64_t now_ms) {
    drop_expired(grants, now_ms, GRANTS_EXPIRED_KEPT_MS);
    struct grant *grant = map_find(grants->by_id, id);
    return grant && str_equal(grant->app, app) && now_ms < grant->expires_ms ? grant : NULL;
}

enum grant_state grants_check(struct grants *grants, struct str id,
                              const uint8_t digest[static RANDOM_TOKEN_DIGEST_BYTES],
                              struct str app, int64_t now_ms, const struct grant **ret) {
    static const uint8_t nobodys[RANDOM_TOKEN_DIGEST_BYTES];
    const struct grant *grant = map_find(grants->by_id, id);
    const uint8_t *wanted = grant ? grant->digest : nobodys;
    bool same = same_bytes(wanted, digest, RANDOM_TOKEN_DIGEST_BYTES);
    if (!grant || !same || !str_equal(grant->app, app)) return GRANT_UNKNOWN;
    *ret = grant;
    if (grant->revoked) return GRANT_REVOKED;
    return now_ms < grant->expires_ms ? GRANT_GOOD : GRANT_EXPIRED;
}

bool grant_descends(const struct grant *one, const struct grant *root) {
    while (one && one != root) one = one->parent;
    return one != NULL;
}

void grants_revoke(struct grants *grants, struct grant *grant) {
    LIST_EACH(&grants->all, link) {
        struct grant *one = CONTAINER_OF(link, struct grant, link);
        if (grant_descends(one, grant)) one->revoked = true;
    }
}

const struct grant *grants_newest(const struct grants *grants) {
    return list_empty(&grants->all) ? NULL : CONTAINER_OF(grants->all.prev, struct grant, link);
}

const struct grant *grants_before(const struct grants *grants, const struct grant *grant) {
    return grant->link.prev == &grants->all
               ? NULL
               : CONTAINER_OF(grant->link.prev, struct grant, link);
}

/* --- scopes and selectors ----------------------------------------------------------------- */

bool grant_covers(const struct str *scopes, size_t count, struct str asked) {
    for (size_t i = 0; i < count; i++) {
        struct str scope = scopes[i];
        if (str_equal(scope, asked)) return true;
        if (scope.len && scope.at[scope.len - 1] == '*' &&
            str_starts(asked, str_head(scope, scope.len - 1)))
            return true;
    }
    return false;
}

bool grant_scope_ok(struct str scope) {
    static const struct str prefixes[] = {
        STR_INIT("runtime."), STR_INIT("app."),   STR_INIT("ai."),
        STR_INIT("read:"),    STR_INIT("write:"), STR_INIT("grant:"),
    };
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (str_starts(scope, prefixes[i])) return true;
    }
    return false;
}

static bool all_among(const struct str *asked, size_t asked_count, const struct str *of,
                      size_t of_count) {
    for (size_t i = 0; i < asked_count; i++) {
        bool found = false;
        for (size_t j = 0; j < of_count && !found; j++) found = str_equal(asked[i], of[j]);
        if (!found) return false;
    }
    return true;
}

static bool labels_match(const struct nimi_resource_selectors *parent,
                         const struct nimi_resource_selectors *asked) {
    for (size_t i = 0; i < asked->labels_count; i++) {
        bool found = false;
        for (size_t j = 0; j < parent->labels_count && !found; j++)
            found = str_equal(asked->labels[i].key, parent->labels[j].key) &&
                    str_equal(asked->labels[i].value, parent->labels[j].value);
        if (!found) return false;
    }
    return true;
}

bool grant_selects(const struct nimi_resource_selectors *parent,
                   const struct nimi_resource_selectors *asked) {
    if (!asked) return true;
    if (!parent) return false;
    return all_among(asked->conversation_ids, asked->conversation_ids_count,
                     parent->conversation_ids, parent->conversation_ids_count) &&
           all_among(asked->message_ids, asked->message_ids_count, parent->message_ids,
                     parent->message_ids_count) &&
           all_among(asked->document_ids, asked->document_ids_count, parent->document_ids,
                     parent->document_ids_count) &&
           labels_match(parent, asked);
}

static const struct nimi_resource_selectors_labels_entry *
model_label(const struct nimi_resource_selectors *selectors) {
    for (size_t i = 0; i < selectors->labels_count; i++) {
        if (str_equal(selectors->labels[i].key, GRANT_MODEL_LABEL))
            return &selectors->labels[i];
    }
    return NULL;
}

bool grant_pass_on(const struct nimi_resource_selectors *parent,
                   const struct nimi_resource_selectors *asked, struct arena *arena,
                   struct nimi_resource_selectors *ret) {
    const struct nimi_resource_selectors_labels_entry *model = model_label(parent);
    *ret = *asked;
    if (!model || model_label(asked)) return true;
    struct nimi_resource_selectors_labels_entry *labels =
        arena_alloc(arena, (asked->labels_count + 1) * sizeof(*labels));
    if (!labels) return false;
    for (size_t i = 0; i < asked->labels_count; i++) labels[i] = asked->labels[i];
    labels[ret->labels_count++] = *model;
    ret->labels = labels;
    return true;
}
