#include "contract/nimi/grant/calls.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/facts.h"
#include "contract/nimi/grant/grants.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/owner.h"
#include "contract/nimi/page.h"

#include <stdlib.h>

static struct grants *grants_of(const struct nimi_call *call) {
    return call->instance->runtime->grants;
}

/* --- what a request says ------------------------------------------------------------------ */

static bool ttl_is_ok(int32_t ttl_s, int32_t otherwise_s, int64_t *ret_s, struct fault *fault) {
    *ret_s = ttl_s <= 0 ? otherwise_s : ttl_s;
    return (*ret_s >= GRANTS_TTL_MIN_S && *ret_s <= GRANTS_TTL_MAX_S) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "a token lasts between %d and %d seconds", GRANTS_TTL_MIN_S,
                     GRANTS_TTL_MAX_S);
}

static bool scopes_are_ok(const struct str *scopes, size_t count, struct fault *fault) {
    for (size_t i = 0; i < count; i++) {
        if (!grant_scope_ok(scopes[i]))
            return fault_set(fault, NIMI_APP_SCOPE_FORBIDDEN,
                             "'" STR_FMT "' is no scope that this runtime grants",
                             STR_ARG(str_head(scopes[i], 80)));
    }
    return true;
}

static void refuse_full(struct nimi_call *call) {
    nimi_refuse_code(call, NIMI_APP_AUTHORIZATION_DENIED, ERR_RESOURCE_EXHAUSTED,
                     "there are too many tokens (%d), or this one is larger than %zu bytes",
                     GRANTS_MAX, GRANTS_ONE_MAX_BYTES);
}

/* --- telling the other replicas ----------------------------------------------------------- */

#define REVOKED_KEPT_MS ((GRANTS_TTL_MAX_S + 3600) * 1000ll) /* until it would have expired */

/* With the lock: texts of the grant may be its parent's. */
static struct facts_change *change_of(struct nimi_call *call, const struct grant *grant,
                                      const struct pb_message *type, const void *reply) {
    struct buf selectors;
    buf_init(&selectors, GRANTS_ONE_MAX_BYTES);
    if (grant->selectors)
        pb_encode(&nimi_resource_selectors_table, grant->selectors, &selectors);
    const struct fact_grant_fact told = {
        .token_id = str_of(grant->id, ULID_LEN),
        .parent_id = grant->parent ? str_of(grant->parent->id, ULID_LEN) : STR_EMPTY,
        .digest = str_of(grant->digest, sizeof(grant->digest)),
        .app_id = grant->app,
        .subject = grant->subject,
        .principal = grant->principal,
        .consent_id = grant->consent_id,
        .consent_version = grant->consent_version,
        .policy = grant->policy,
        .catalog = grant->catalog,
        .scopes = grant->scopes,
        .scopes_count = grant->scope_count,
        .selectors = buf_str(&selectors),
        .selects = grant->selectors != NULL,
        .can_delegate = grant->can_delegate,
        .depth = grant->depth,
        .depth_max = grant->depth_max,
        .issued_ms = grant->issued_ms,
        .expires_ms = grant->expires_ms};
    /* It also revokes what its policy replaces, which may last longer than it. */
    struct facts_change *change = facts_change(call, &(struct fact_fact){.grant = &told},
                                               clock_unix_ms() + REVOKED_KEPT_MS, type, reply);
    buf_done(&selectors);
    return change;
}

/* --- AuthorizeExternalPrincipal ----------------------------------------------------------- */

static const struct str read_only[] = {STR_INIT("read:*")};
static const struct str full[] = {STR_INIT("read:*"), STR_INIT("write:*")};
static const struct str delegate[] = {STR_INIT("read:*"), STR_INIT("write:*"),
                                      STR_INIT("grant:delegate")};

static const struct {
    const struct str *scopes;
    size_t count;
} presets[] = {
    [NIMI_AUTHORIZATION_PRESET_UNSPECIFIED] = {NULL, 0},
    [NIMI_AUTHORIZATION_PRESET_READ_ONLY] = {read_only, ARRAY_LEN(read_only)},
    [NIMI_AUTHORIZATION_PRESET_FULL] = {full, ARRAY_LEN(full)},
    [NIMI_AUTHORIZATION_PRESET_DELEGATE] = {delegate, ARRAY_LEN(delegate)},
};

static bool choose_scopes(const struct nimi_authorize_external_principal_request *from,
                          struct grant *ret, struct fault *fault) {
    if (from->policy_mode == NIMI_POLICY_MODE_CUSTOM) {
        ret->scopes = from->scopes;
        ret->scope_count = from->scopes_count;
        return (from->scopes_count && from->resource_selectors) ||
               fault_set(fault, NIMI_APP_GRANT_INVALID,
                         "a custom policy needs scopes and resource_selectors");
    }
    if (from->policy_mode != NIMI_POLICY_MODE_PRESET || from->preset <= 0 ||
        from->preset >= (int)ARRAY_LEN(presets) || from->scopes_count)
        return fault_set(fault, NIMI_APP_GRANT_INVALID,
                         "policy_mode must be custom, or preset with a preset and no scopes");
    ret->scopes = presets[from->preset].scopes;
    ret->scope_count = presets[from->preset].count;
    return true;
}

static bool consent_is_there(const struct nimi_authorize_external_principal_request *from,
                             struct fault *fault) {
    if (!from->consent_id.len || !from->consent_version.len)
        return fault_set(fault, NIMI_APP_CONSENT_MISSING,
                         "a grant needs consent_id and consent_version");
    return (from->decision_at && from->decision_at->seconds > 0) ||
           fault_set(fault, NIMI_APP_CONSENT_INVALID,
                     "a grant needs decision_at, when the user consented");
}

static bool may_authorize(const struct nimi_call *call,
                          const struct nimi_authorize_external_principal_request *from,
                          struct fault *fault) {
    if (!owner_app(call, from->app_id, fault) ||
        !owner_id("external_principal_id", from->external_principal_id, fault) ||
        !owner_id("subject_user_id", from->subject_user_id, fault) ||
        !consent_is_there(from, fault))
        return false;
    if (!nimi_runtime_knows_app(call->instance->runtime, from->app_id))
        return fault_set(fault, NIMI_APP_NOT_REGISTERED,
                         "the app is not registered; call RegisterApp first");
    return from->scope_catalog_version.len ||
           fault_set(fault, NIMI_APP_SCOPE_CATALOG_UNPUBLISHED,
                     "a grant needs scope_catalog_version");
}

/* How far it may be passed on. */
static void set_depth(const struct nimi_authorize_external_principal_request *from,
                      struct grant *ret) {
    bool is_delegate = from->policy_mode == NIMI_POLICY_MODE_PRESET &&
                       from->preset == NIMI_AUTHORIZATION_PRESET_DELEGATE;
    int32_t asked = from->max_delegation_depth;
    if (is_delegate && asked <= 0) asked = 1;
    ret->can_delegate = from->can_delegate || is_delegate;
    ret->depth_max = !ret->can_delegate                       ? 0
                     : asked <= 0 || asked > GRANTS_DEPTH_MAX ? GRANTS_DEPTH_MAX
                                                              : asked;
}

static struct facts_change *authorized(struct nimi_call *call, const struct grant *grant,
                                       const char *secret) {
    const struct google_timestamp expires = nimi_moment(grant->expires_ms);
    const struct nimi_consent_ref consent = {grant->subject, grant->consent_id,
                                             grant->consent_version};
    return change_of(call, grant, &nimi_authorize_external_principal_response_table,
                     &(struct nimi_authorize_external_principal_response){
                         .token_id = str_of(grant->id, ULID_LEN),
                         .app_id = grant->app,
                         .subject_user_id = grant->subject,
                         .external_principal_id = grant->principal,
                         .effective_scopes = grant->scopes,
                         .effective_scopes_count = grant->scope_count,
                         .resource_selectors = grant->selectors,
                         .consent_ref = &consent,
                         .policy_version = grant->policy,
                         .issued_scope_catalog_version = grant->catalog,
                         .can_delegate = grant->can_delegate,
                         .expires_at = &expires,
                         .secret = str_from(secret)});
}

void grant_authorize(struct nimi_call *call, const void *request) {
    const struct nimi_authorize_external_principal_request *from = request;
    struct grants *grants = grants_of(call);
    char secret[RANDOM_TOKEN_BYTES + 1];
    struct grant wish = {.app = from->app_id,
                         .subject = from->subject_user_id,
                         .principal = from->external_principal_id,
                         .consent_id = from->consent_id,
                         .consent_version = from->consent_version,
                         .policy = from->policy_version.len ? from->policy_version : STR("v1"),
                         .catalog = from->scope_catalog_version,
                         .selectors = from->resource_selectors,
                         .issued_ms = clock_unix_ms()};
    struct fault fault;
    int64_t lasts_s;
    if (!may_authorize(call, from, &fault) || !choose_scopes(from, &wish, &fault) ||
        !scopes_are_ok(wish.scopes, wish.scope_count, &fault) ||
        !ttl_is_ok(from->ttl_seconds, GRANTS_TTL_S, &lasts_s, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    set_depth(from, &wish);
    wish.expires_ms = wish.issued_ms + 1000 * lasts_s;
    grants_lock(grants);
    bool made = grants_make(grants, &wish, wish.issued_ms, secret);
    grants_unlock(grants);
    if (made)
        facts_tell(authorized(call, &wish, secret));
    else
        refuse_full(call);
    explicit_bzero(secret, sizeof(secret));
}

/* --- ValidateAppAccessToken --------------------------------------------------------------- */

struct verdict {
    int reason;
    const char *hint;
};

static struct verdict calls_judge(const struct grant *grant,
                                  const struct nimi_validate_app_access_token_request *from) {
    if (!grant) return (struct verdict){NIMI_APP_GRANT_INVALID, "reauthorize"};
    if (grant->revoked) return (struct verdict){NIMI_APP_TOKEN_REVOKED, "reauthorize"};
    if (from->subject_user_id.len && !str_equal(from->subject_user_id, grant->subject))
        return (struct verdict){NIMI_APP_GRANT_INVALID, "reauthorize"};
    for (size_t i = 0; i < from->requested_scopes_count; i++) {
        if (!grant_covers(grant->scopes, grant->scope_count, from->requested_scopes[i]))
            return (struct verdict){NIMI_APP_SCOPE_FORBIDDEN, "request_allowed_scopes_only"};
    }
    if (!grant_selects(grant->selectors, from->resource_selectors))
        return (struct verdict){NIMI_APP_RESOURCE_OUT_OF_SCOPE,
                                "request_resources_within_selector"};
    return (struct verdict){NIMI_ACTION_EXECUTED, "none"};
}

static void reply_judged(struct nimi_call *call, const struct grant *grant,
                         struct verdict verdict) {
    bool valid = verdict.reason == NIMI_ACTION_EXECUTED;
    nimi_reply(call, &nimi_validate_app_access_token_response_table,
               &(struct nimi_validate_app_access_token_response){
                   .valid = valid,
                   .reason_code = verdict.reason,
                   .effective_scopes = valid ? grant->scopes : NULL,
                   .effective_scopes_count = valid ? grant->scope_count : 0,
                   .policy_version = valid ? grant->policy : STR_EMPTY,
                   .issued_scope_catalog_version = valid ? grant->catalog : STR_EMPTY,
                   .action_hint = str_from(verdict.hint)});
}

void grant_validate(struct nimi_call *call, const void *request) {
    const struct nimi_validate_app_access_token_request *from = request;
    struct grants *grants = grants_of(call);
    struct fault fault;
    if (!owner_app(call, from->app_id, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    grants_lock(grants);
    const struct grant *grant =
        grants_find(grants, from->token_id, from->app_id, clock_unix_ms());
    reply_judged(call, grant, calls_judge(grant, from));
    grants_unlock(grants);
}

/* --- RevokeAppAccessToken ----------------------------------------------------------------- */

/* Whose subject a caller may act for: with issuers, its own. */
static bool is_callers(const struct nimi_call *call, const struct grant *grant) {
    return grant &&
           (!call->instance->settings->issuers || str_equal(call->subject, grant->subject));
}

/* Revoking what is not there is no mistake: the token is over either way. */
void grant_revoke(struct nimi_call *call, const void *request) {
    const struct nimi_revoke_app_access_token_request *from = request;
    struct grants *grants = grants_of(call);
    struct fault fault;
    if (!owner_app(call, from->app_id, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    grants_lock(grants);
    const struct grant *grant =
        grants_find(grants, from->token_id, from->app_id, clock_unix_ms());
    bool is_its = is_callers(call, grant);
    grants_unlock(grants);
    const struct fact_fact fact = {.revoked_token_id = from->token_id};
    const struct nimi_ack ack = {.ok = true, .reason_code = NIMI_ACTION_EXECUTED};
    if (is_its)
        facts_tell(facts_change(call, &fact, clock_unix_ms() + REVOKED_KEPT_MS, &nimi_ack_table,
                                &ack));
    else
        nimi_reply(call, &nimi_ack_table, &ack);
}

/* --- IssueDelegatedAccessToken ------------------------------------------------------------ */

static bool may_delegate(const struct nimi_call *call, const struct grant *parent,
                         const struct nimi_issue_delegated_access_token_request *from,
                         struct fault *fault) {
    if (!is_callers(call, parent))
        return fault_set_code(fault, NIMI_APP_GRANT_INVALID, ERR_NOT_FOUND,
                              "this app has no such token");
    if (parent->revoked)
        return fault_set(fault, NIMI_APP_TOKEN_REVOKED, "the parent token is revoked");
    if (!parent->can_delegate)
        return fault_set(fault, NIMI_APP_DELEGATION_FORBIDDEN,
                         "the parent token may not be passed on");
    if (parent->depth + 1 > parent->depth_max)
        return fault_set(fault, NIMI_APP_DELEGATION_DEPTH_EXCEEDED,
                         "a token of this grant may be passed on %d times", parent->depth_max);
    for (size_t i = 0; i < from->scopes_count; i++) {
        if (!grant_covers(parent->scopes, parent->scope_count, from->scopes[i]))
            return fault_set(fault, NIMI_APP_SCOPE_FORBIDDEN,
                             "the parent token does not have the scope '" STR_FMT "'",
                             STR_ARG(str_head(from->scopes[i], 80)));
    }
    return grant_selects(parent->selectors, from->resource_selectors) ||
           fault_set(fault, NIMI_APP_RESOURCE_OUT_OF_SCOPE,
                     "the parent token does not select these resources");
}

static struct grant child_of(const struct grant *parent,
                             const struct nimi_issue_delegated_access_token_request *from,
                             int64_t lasts_s, int64_t now_ms) {
    struct grant child = *parent;
    int64_t until_ms = now_ms + 1000 * lasts_s;
    child.parent = parent;
    child.depth = parent->depth + 1;
    child.can_delegate = child.depth < parent->depth_max;
    child.issued_ms = now_ms;
    child.expires_ms = until_ms < parent->expires_ms ? until_ms : parent->expires_ms;
    if (from->scopes_count) {
        child.scopes = from->scopes;
        child.scope_count = from->scopes_count;
    }
    return child;
}

static struct facts_change *delegated(struct nimi_call *call, const struct grant *grant,
                                      const char *secret) {
    const struct google_timestamp expires = nimi_moment(grant->expires_ms);
    return change_of(call, grant, &nimi_issue_delegated_access_token_response_table,
                     &(struct nimi_issue_delegated_access_token_response){
                         .token_id = str_of(grant->id, ULID_LEN),
                         .parent_token_id = str_of(grant->parent->id, ULID_LEN),
                         .effective_scopes = grant->scopes,
                         .effective_scopes_count = grant->scope_count,
                         .expires_at = &expires,
                         .secret = str_from(secret)});
}

/* With the lock. NULL: it was refused. */
static struct facts_change *issue(struct nimi_call *call, struct grants *grants,
                                  const struct nimi_issue_delegated_access_token_request *from,
                                  int64_t lasts_s, struct arena *arena) {
    char secret[RANDOM_TOKEN_BYTES + 1];
    int64_t now_ms = clock_unix_ms();
    struct fault fault;
    const struct grant *parent =
        grants_find(grants, from->parent_token_id, from->app_id, now_ms);
    if (!may_delegate(call, parent, from, &fault)) {
        nimi_refuse(call, &fault);
        return NULL;
    }
    struct grant child = child_of(parent, from, lasts_s, now_ms);
    struct nimi_resource_selectors selectors;
    bool fits = true;
    if (from->resource_selectors) {
        child.selectors = &selectors;
        fits = grant_pass_on(parent->selectors, from->resource_selectors, arena, &selectors);
    }
    bool made = fits && grants_make(grants, &child, now_ms, secret);
    struct facts_change *change = made ? delegated(call, &child, secret) : NULL;
    if (!change) refuse_full(call);
    explicit_bzero(secret, sizeof(secret));
    return change;
}

void grant_delegate(struct nimi_call *call, const void *request) {
    const struct nimi_issue_delegated_access_token_request *from = request;
    struct grants *grants = grants_of(call);
    struct fault fault;
    int64_t lasts_s;
    if (!owner_app(call, from->app_id, &fault) ||
        !ttl_is_ok(from->ttl_seconds, GRANTS_DELEGATED_TTL_S, &lasts_s, &fault) ||
        !scopes_are_ok(from->scopes, from->scopes_count, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    grants_lock(grants);
    struct facts_change *change = issue(call, grants, from, lasts_s, call->arena);
    grants_unlock(grants);
    if (change) facts_tell(change);
}

/* --- ListTokenChain ----------------------------------------------------------------------- */

/* A page of entries, with their times. */
struct chain {
    struct nimi_token_chain_entry entries[PAGE_SIZE_MAX];
    struct google_timestamp issued[PAGE_SIZE_MAX], expires[PAGE_SIZE_MAX];
    size_t count;
    bool more;
};

static void take_entry(struct chain *chain, const struct grant *grant) {
    size_t at = chain->count++;
    chain->issued[at] = nimi_moment(grant->issued_ms);
    chain->expires[at] = nimi_moment(grant->expires_ms);
    chain->entries[at] = (struct nimi_token_chain_entry){
        .token_id = str_of(grant->id, ULID_LEN),
        .parent_token_id = grant->parent ? str_of(grant->parent->id, ULID_LEN) : STR_EMPTY,
        .principal_id = grant->principal,
        .principal_type = STR("external_principal"),
        .effective_scopes = grant->scopes,
        .effective_scopes_count = grant->scope_count,
        .issued_at = &chain->issued[at],
        .expires_at = &chain->expires[at],
        .revoked = grant->revoked,
        .delegation_depth = grant->depth,
        .policy_version = grant->policy,
        .issued_scope_catalog_version = grant->catalog};
}

static void take_chain(struct chain *chain, const struct grants *grants,
                       const struct grant *root, bool with_revoked, size_t first, size_t size) {
    size_t index = 0;
    int64_t now_ms = clock_unix_ms();
    for (const struct grant *one = grants_newest(grants); one && !chain->more;
         one = grants_before(grants, one)) {
        if (!grant_descends(one, root) || (one->revoked && !with_revoked) ||
            now_ms >= one->expires_ms)
            continue;
        if (index++ < first) continue;
        if (chain->count == size) {
            chain->more = true;
        } else {
            take_entry(chain, one);
        }
    }
}

static void list_chain(struct nimi_call *call, struct grants *grants, struct str app,
                       const struct nimi_list_token_chain_request *from,
                       const struct page *page, size_t first) {
    const struct grant *root = grants_find(grants, from->root_token_id, app, clock_unix_ms());
    if (!is_callers(call, root)) {
        nimi_refuse_for(call, NIMI_GRANT_TOKEN_CHAIN_ROOT_NOT_FOUND,
                        "this app has no such token");
        return;
    }
    struct chain *chain = MEM_NEW(struct chain);
    struct buf next;
    buf_init(&next, PAGE_TOKEN_MAX_BYTES);
    take_chain(chain, grants, root, from->include_revoked, first, page->size);
    if (chain->more) page_next_index(page, first + chain->count, &next);
    nimi_reply(call, &nimi_list_token_chain_response_table,
               &(struct nimi_list_token_chain_response){.entries = chain->entries,
                                                        .entries_count = chain->count,
                                                        .next_page_token = buf_str(&next),
                                                        .has_more = chain->more});
    buf_done(&next);
    free(chain);
}

void grant_list_chain(struct nimi_call *call, const void *request) {
    const struct nimi_list_token_chain_request *from = request;
    struct grants *grants = grants_of(call);
    struct str app = from->app_id.len ? from->app_id : call->envelope.app_id;
    const struct str filter[] = {STR("ListTokenChain"), app, from->root_token_id,
                                 from->include_revoked ? STR("all") : STR("valid")};
    struct page page;
    struct fault fault;
    size_t first;
    if (!from->root_token_id.len) {
        nimi_refuse_for(call, NIMI_GRANT_TOKEN_CHAIN_ROOT_REQUIRED,
                        "the request needs root_token_id");
    } else if (!owner_app(call, app, &fault) ||
               !page_begin(from->page_size, from->page_token, filter, ARRAY_LEN(filter), &page,
                           &fault) ||
               !page_index(&page, &first, &fault)) {
        nimi_refuse(call, &fault);
    } else {
        grants_lock(grants);
        list_chain(call, grants, app, from, &page, first);
        grants_unlock(grants);
    }
}
