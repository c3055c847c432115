/* grants: access tokens that users granted to external principals, and those delegated of them.
 *
 *     granted ─▶ revoked ─▶ forgotten     a token takes what was delegated of it along
 *           └──▶ expired ─▶ forgotten     after GRANTS_EXPIRED_KEPT_MS, or for want of room
 *
 * A new policy of the same app, user and principal revokes all tokens of the old one. Only the
 * digest of a token's secret is kept. All of it is in memory, as the protocol has it; replicas
 * tell each other of it (facts.h).
 *
 * Memory   owns copies. Grants are valid under the lock.
 * Threads  any; one lock. Functions need it, unless they say otherwise.
 * Source   contracts/nimi.md 1.1, 3.9, 5.1 "x-nimi-access-token-id"; checks.md M4.
 */
#ifndef WEIR_CONTRACT_NIMI_GRANT_GRANTS_H
#define WEIR_CONTRACT_NIMI_GRANT_GRANTS_H

#include "base/arena.h"
#include "base/list.h"
#include "contract/nimi/random_token.h"
#include "contract/nimi/ulid.h"
#include "proto/nimi.pb.h"

#define GRANTS_MAX 10000
#define GRANTS_MAX_BYTES (16 * MIB)
#define GRANTS_ONE_MAX_BYTES (16 * KIB) /* what a request may say of one */
#define GRANTS_DEPTH_MAX 3
#define GRANTS_TTL_S 3600 /* unless the request says how long */
#define GRANTS_DELEGATED_TTL_S 1800
#define GRANTS_TTL_MIN_S 60
#define GRANTS_TTL_MAX_S 86400
#define GRANTS_EXPIRED_KEPT_MS (10 * 60 * 1000) /* so that its callers hear why it is refused */

struct grant {
    struct list link; /* in the order of issue */
    const struct grant
        *parent; /* NULL: granted by the user. It lives as long as its children */
    struct arena *arena;
    size_t bytes; /* that it counts */
    char id[ULID_LEN + 1];
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES]; /* of its secret */
    struct str app, subject, principal, consent_id, consent_version, policy, catalog;
    const struct str *scopes;
    size_t scope_count;
    const struct nimi_resource_selectors *selectors; /* NULL: none */
    bool can_delegate;
    int32_t depth, depth_max;
    int64_t issued_ms, expires_ms; /* Unix */
    bool revoked;
};

struct grants;

struct grants *grants_new(size_t max, size_t max_bytes);
void grants_free(struct grants *grants); /* NULL is fine */

void grants_lock(struct grants *grants);
void grants_unlock(struct grants *grants);

/* Give `grant` an id and a secret, if there is room for one more: grants_put() adds it. */
MUST_CHECK bool grants_make(struct grants *grants, struct grant *grant, int64_t now_ms,
                            char ret_secret[static RANDOM_TOKEN_BYTES + 1]);

/* Add a copy of `from`, with its id and digest, delegated of the token `parent_id` (empty: of none).
 * It is as good as its parent; one of a user revokes what its policy replaces. One that is there
 * stays as it is. NULL: without its parent, or without room, nothing comes of it. */
struct grant *grants_put(struct grants *grants, const struct grant *from, struct str parent_id,
                         int64_t now_ms);

/* The token of this id, whatever its app and state, or NULL. */
struct grant *grants_get(struct grants *grants, struct str id);

/* From now on there is room for so many. */
void grants_limit(struct grants *grants, size_t max, size_t max_bytes);

/* A token of this app, also a revoked one, as long as it would have been valid. NULL: unknown,
 * or another app's. */
struct grant *grants_find(struct grants *grants, struct str id, struct str app, int64_t now_ms);

enum grant_state {
    GRANT_GOOD,
    GRANT_UNKNOWN, /* unknown, another app's, or not its secret */
    GRANT_REVOKED,
    GRANT_EXPIRED,
};

/* What has become of the token that a call of this app brings. *ret is the grant, unless it is
 * unknown. */
enum grant_state grants_check(struct grants *grants, struct str id,
                              const uint8_t digest[static RANDOM_TOKEN_DIGEST_BYTES],
                              struct str app, int64_t now_ms, const struct grant **ret);

/* Revoke it, and what was delegated of it. */
void grants_revoke(struct grants *grants, struct grant *grant);

/* Whether `one` is `root` or was delegated of it. */
bool grant_descends(const struct grant *one, const struct grant *root);

/* The newest one; then the one before, or NULL. */
const struct grant *grants_newest(const struct grants *grants);
const struct grant *grants_before(const struct grants *grants, const struct grant *grant);

/* --- scopes ------------------------------------------------------------------------------- */

/* Whether the scopes of a grant cover one that is asked for; "read:*" covers "read:files". */
bool grant_covers(const struct str *scopes, size_t count, struct str asked);

/* Whether it is a scope of this protocol that a runtime may grant: realm.* are not. */
bool grant_scope_ok(struct str scope);

/* The label that limits what a token's calls may ask, instead of naming what it is for. */
#define GRANT_MODEL_LABEL STR("model")

/* What a token that is passed on selects: what was asked for (it lies within the parent's), and
 * the parent's model also when that was left out. `ret` may point into both, and into the arena.
 * False: the arena is full. */
MUST_CHECK bool grant_pass_on(const struct nimi_resource_selectors *parent,
                              const struct nimi_resource_selectors *asked, struct arena *arena,
                              struct nimi_resource_selectors *ret);

/* Whether what is asked for lies within what the parent has. NULL asks for nothing. */
bool grant_selects(const struct nimi_resource_selectors *parent,
                   const struct nimi_resource_selectors *asked);

#endif
