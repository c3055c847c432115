#include "contract/nimi/facts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "contract/nimi/auth/sessions.h"
#include "contract/nimi/grant/grants.h"
#include "contract/nimi/once.h"
#include "store/changes.h"
#include "store/fact.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DECODED_MAX_BYTES (4 * MIB)
#define DECODED_TIMES 8 /* a token in memory is larger than its fact, by less than that */
#define AGAIN_MS 1000   /* the store was away */

struct facts {
    struct sessions *sessions;
    struct grants *grants;
    _Atomic(struct store *) store; /* NULL: not shared */
    atomic_bool watched;           /* some instance does */
    pthread_mutex_t lock;          /* guards the next, and the order of what is applied */
    int64_t applied;               /* the number of the newest fact in memory */
};

struct facts *facts_new(struct sessions *sessions, struct grants *grants) {
    struct facts *facts = MEM_NEW(struct facts);
    facts->sessions = sessions;
    facts->grants = grants;
    pthread_mutex_init(&facts->lock, NULL);
    return facts;
}

void facts_free(struct facts *facts) {
    if (!facts) return;
    pthread_mutex_destroy(&facts->lock);
    free(facts);
}

/* A session lasts no longer than its fact, so those that count are no more than twice the facts that
 * there may be: none pushes out another. A token in memory has a fact. */
void facts_share(struct facts *facts, struct store *store) {
    if (!store || !store_is_shared(store)) return;
    sessions_limit(facts->sessions, 2 * FACT_ALL_MAX);
    grants_limit(facts->grants, FACT_ALL_MAX, DECODED_TIMES * FACT_ALL_MAX_BYTES);
    atomic_store(&facts->store, store);
}

/* --- applying ----------------------------------------------------------------------------- */

static bool apply_app(struct facts *facts, const struct fact_app_fact *app) {
    sessions_register(facts->sessions, app->app_id, app->app_instance_id);
    return true;
}

static bool apply_session(struct facts *facts, const struct fact_session_fact *session) {
    if (session->session_id.len != ULID_LEN || session->digest.len != RANDOM_TOKEN_DIGEST_BYTES)
        return false;
    sessions_put(facts->sessions, session->session_id, session->app_id, session->subject,
                 (const uint8_t *)session->digest.at, session->expires_ms);
    return true;
}

static bool read_selectors(const struct fact_grant_fact *from, struct arena *arena,
                           struct nimi_resource_selectors *ret, struct grant *grant) {
    struct err e;
    if (!from->selects) return true;
    grant->selectors = ret;
    return pb_decode_view(&nimi_resource_selectors_table, from->selectors, arena, ret, &e);
}

static bool apply_grant(struct facts *facts, const struct fact_grant_fact *from,
                        struct arena *arena) {
    struct nimi_resource_selectors selectors;
    struct grant grant = {.app = from->app_id,
                          .subject = from->subject,
                          .principal = from->principal,
                          .consent_id = from->consent_id,
                          .consent_version = from->consent_version,
                          .policy = from->policy,
                          .catalog = from->catalog,
                          .scopes = from->scopes,
                          .scope_count = from->scopes_count,
                          .can_delegate = from->can_delegate,
                          .depth = from->depth,
                          .depth_max = from->depth_max,
                          .issued_ms = from->issued_ms,
                          .expires_ms = from->expires_ms};
    if (from->token_id.len != ULID_LEN || from->digest.len != RANDOM_TOKEN_DIGEST_BYTES ||
        !read_selectors(from, arena, &selectors, &grant))
        return false;
    memcpy(grant.id, from->token_id.at, ULID_LEN);
    memcpy(grant.digest, from->digest.at, RANDOM_TOKEN_DIGEST_BYTES);
    grants_lock(facts->grants);
    grants_put(facts->grants, &grant, from->parent_id, clock_unix_ms());
    grants_unlock(facts->grants);
    return true;
}

static void apply_revoked(struct facts *facts, struct str token) {
    grants_lock(facts->grants);
    struct grant *grant = grants_get(facts->grants, token);
    if (grant) grants_revoke(facts->grants, grant);
    grants_unlock(facts->grants);
}

static bool apply_fact(struct facts *facts, const struct fact_fact *fact, struct arena *arena) {
    if (fact->app) return apply_app(facts, fact->app);
    if (fact->session) return apply_session(facts, fact->session);
    if (fact->grant) return apply_grant(facts, fact->grant, arena);
    if (fact->revoked_session_id.len) sessions_end(facts->sessions, fact->revoked_session_id);
    if (fact->revoked_token_id.len) apply_revoked(facts, fact->revoked_token_id);
    return true; /* one of a newer weir says nothing to this one */
}

bool facts_apply(struct facts *facts, struct str bytes, struct err *e) {
    struct arena *arena = arena_new(DECODED_MAX_BYTES);
    struct fact_fact fact;
    bool ok = pb_decode_view(&fact_fact_table, bytes, arena, &fact, e) &&
              (apply_fact(facts, &fact, arena) ||
               err_set(e, ERR_MALFORMED, "an id or a digest is missing"));
    arena_free(arena);
    return ok;
}

/* Another reader may have applied some of them already. */
static void apply_list(struct facts *facts, const struct fact_list *list) {
    struct err e;
    pthread_mutex_lock(&facts->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct fact *fact = &list->all[i];
        if (fact->number <= facts->applied) continue;
        if (!facts_apply(facts, fact->bytes, &e))
            log_often(LOG_ERROR, "fact %lld of the store cannot be read: %s",
                      (long long)fact->number, e.text);
        facts->applied = fact->number;
    }
    pthread_mutex_unlock(&facts->lock);
}

static int64_t applied_now(struct facts *facts) {
    pthread_mutex_lock(&facts->lock);
    int64_t applied = facts->applied;
    pthread_mutex_unlock(&facts->lock);
    return applied;
}

/* --- learning ----------------------------------------------------------------------------- */

/* Read all that is new. */
struct learning {
    struct facts *facts;
    struct loop *loop;
    struct fact_list list;
    void (*known)(const struct err *failed, void *ctx); /* once, later; NULL: left */
    void *ctx;
};

static void learn_on(struct learning *learning);

static void on_list(struct fact_list *list, const struct err *failed, void *ctx) {
    struct learning *learning = ctx;
    if (!failed) apply_list(learning->facts, list);
    bool more = !failed && list->more;
    fact_list_done(list);
    if (more && learning->known) {
        learn_on(learning);
        return;
    }
    if (learning->known) learning->known(failed, learning->ctx);
    free(learning);
}

static void learn_on(struct learning *learning) {
    learning->list.kind = FACT_NIMI;
    learning->list.after = applied_now(learning->facts);
    learning->list.on_done = on_list;
    learning->list.ctx = learning;
    fact_read(atomic_load(&learning->facts->store), learning->loop, &learning->list);
}

static struct learning *learn(struct facts *facts, struct loop *loop,
                              void (*known)(const struct err *failed, void *ctx), void *ctx) {
    struct learning *learning = MEM_NEW(struct learning);
    learning->facts = facts;
    learning->loop = loop;
    learning->known = known;
    learning->ctx = ctx;
    learn_on(learning);
    return learning;
}

static void learning_leave(struct learning *learning) {
    if (learning) learning->known = NULL;
}

static void watcher_learn(struct nimi_instance *instance);

/* What was published while the store was away is not reported to any watcher again. */
static void learned(const struct err *failed, void *ctx) {
    struct nimi_instance *instance = ctx;
    instance->learning = NULL;
    if (failed) {
        timer_start(&instance->facts_again, AGAIN_MS);
    } else if (instance->learn_again) {
        watcher_learn(instance);
    }
}

static void watcher_learn(struct nimi_instance *instance) {
    timer_stop(&instance->facts_again);
    instance->learn_again = false;
    instance->learning =
        learn(instance->runtime->facts, instance->host->loop, learned, instance);
}

static void on_change(void *ctx) {
    struct nimi_instance *instance = ctx;
    if (instance->learning)
        instance->learn_again = true;
    else
        watcher_learn(instance);
}

void facts_watch_init(struct nimi_instance *instance) {
    timer_init(&instance->facts_again, instance->host->loop, on_change, instance);
}

void facts_watch(struct nimi_instance *instance) {
    struct facts *facts = instance->runtime->facts;
    struct store *store = atomic_load(&facts->store);
    if (!store || atomic_exchange(&facts->watched, true)) return;
    instance->facts_watcher = changes_watch(store_changes(store), CHANGE_FACTS,
                                            instance->host->loop, on_change, instance);
    on_change(instance);
}

void facts_unwatch(struct nimi_instance *instance) {
    changes_leave(instance->facts_watcher);
    instance->facts_watcher = NULL;
    learning_leave(instance->learning);
    instance->learning = NULL;
    timer_stop(&instance->facts_again);
}

/* --- a call that needs them --------------------------------------------------------------- */

struct facts_wait {
    struct nimi_call *call;
    struct learning *learning;
};

static void refuse_unknown(struct nimi_call *call, const struct err *why) {
    nimi_refuse_code(call, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                     "what other replicas decided cannot be read now: %s", why->text);
}

static void on_known(const struct err *failed, void *ctx) {
    struct facts_wait *wait = ctx;
    struct nimi_call *call = wait->call;
    call->facts_wait = NULL;
    call->facts_known = true;
    if (failed)
        refuse_unknown(call, failed);
    else
        nimi_resume(call);
    free(wait);
}

bool facts_wait(struct nimi_call *call) {
    struct facts *facts = call->instance->runtime->facts;
    bool needs = call->row->facts & NIMI_KNOWS || call->grant || call->session_asked.len;
    if (!needs || call->facts_known || !atomic_load(&facts->store)) return false;
    struct facts_wait *wait = MEM_NEW(struct facts_wait);
    wait->call = call;
    call->facts_wait = wait;
    wait->learning = learn(facts, call->loop, on_known, wait);
    return true;
}

void facts_leave(struct nimi_call *call) {
    struct facts_wait *wait = call->facts_wait;
    if (!wait) return;
    call->facts_wait = NULL;
    learning_leave(wait->learning);
    free(wait);
}

/* --- a call that changes them ------------------------------------------------------------- */

/* Lives as long as its call, and as long as the store is asked. */
struct facts_change {
    struct nimi_call *call; /* NULL: closed */
    struct facts *facts;
    struct fact_put put;
    struct kept_reply made;
    struct buf bytes, reply, name;
    struct share_owner owner;
    struct buf texts;         /* its own */
    char token[ULID_LEN + 1]; /* that it makes; empty: none */
    bool delegated;           /* that token */
    struct learning *learning;
    bool asking;
};

static void change_free(struct facts_change *change) {
    buf_done(&change->bytes);
    buf_done(&change->reply);
    buf_done(&change->name);
    buf_done(&change->texts);
    free(change);
}

static void refuse_token(struct facts_change *change, const struct grant *grant) {
    if (grant)
        nimi_refuse_for(change->call, NIMI_APP_TOKEN_REVOKED, "the parent token is revoked");
    else
        nimi_refuse_code(
            change->call, NIMI_APP_AUTHORIZATION_DENIED, ERR_RESOURCE_EXHAUSTED,
            "there is no room for this token in memory; ask again when others have expired");
}

/* The change is in memory. A delegated token's parent may have been revoked at another replica
 * before. */
static void change_reply(struct facts_change *change) {
    struct grants *grants = change->facts->grants;
    grants_lock(grants);
    const struct grant *grant = grants_get(grants, str_from(change->token));
    bool good = !change->token[0] || (grant && !(change->delegated && grant->revoked));
    grants_unlock(grants);
    if (good)
        once_made_with_effect(change->call, buf_str(&change->reply));
    else
        refuse_token(change, grant);
}

static void on_read_back(const struct err *failed, void *ctx) {
    struct facts_change *change = ctx;
    change->learning = NULL;
    if (change->call->over) return;
    if (failed)
        refuse_unknown(change->call, failed);
    else
        change_reply(change);
}

static void refuse_untold(struct nimi_call *call, const struct err *why) {
    if (why->code == ERR_RESOURCE_EXHAUSTED)
        nimi_refuse_code(call, NIMI_APP_AUTHORIZATION_DENIED, why->code, "%s", why->text);
    else
        nimi_refuse_code(call, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                         "the other replicas cannot be told now, ask again: %s", why->text);
}

static void on_told(struct fact_put *put, const struct err *failed, void *ctx) {
    struct facts_change *change = ctx;
    struct nimi_call *call = change->call;
    (void)put;
    change->asking = false;
    if (!call) {
        change_free(change);
    } else if (failed && !call->over) {
        refuse_untold(call, failed);
    } else if (!call->over) {
        change->learning = learn(change->facts, call->loop, on_read_back, change);
    }
}

static void change_closed(void *ctx) {
    struct facts_change *change = ctx;
    change->call = NULL;
    learning_leave(change->learning);
    if (!change->asking) change_free(change);
}

static const struct nimi_work change_work = {.closed = change_closed};

/* A later fact of this name says all that the earlier one said. */
static void name_fact(const struct fact_fact *fact, struct buf *out) {
    if (fact->app)
        buf_printf(out, "app " STR_FMT " " STR_FMT, STR_ARG(fact->app->app_id),
                   STR_ARG(fact->app->app_instance_id));
    if (fact->session) buf_printf(out, "session " STR_FMT, STR_ARG(fact->session->session_id));
    if (fact->revoked_session_id.len)
        buf_printf(out, "session " STR_FMT, STR_ARG(fact->revoked_session_id));
    if (fact->revoked_token_id.len)
        buf_printf(out, "revoked " STR_FMT, STR_ARG(fact->revoked_token_id));
}

/* Whose share it counts in. What ends something is bounded by what it ends, and never refused. */
static struct str share_of(const struct fact_fact *fact) {
    if (fact->app) return fact->app->app_id;
    if (fact->session) return fact->session->app_id;
    return fact->grant ? fact->grant->app_id : STR_EMPTY;
}

struct facts_change *facts_change(struct nimi_call *call, const struct fact_fact *fact,
                                  int64_t until_ms, const struct pb_message *type,
                                  const void *reply) {
    struct facts_change *change = MEM_NEW(struct facts_change);
    change->call = call;
    change->facts = call->instance->runtime->facts;
    buf_init(&change->bytes, FACT_MAX_BYTES);
    buf_init(&change->reply, FACT_MAX_BYTES);
    buf_init(&change->name, FACT_NAME_MAX_BYTES);
    if (fact->grant) memcpy(change->token, fact->grant->token_id.at, ULID_LEN);
    change->delegated = fact->grant && fact->grant->parent_id.len;
    bool fits = pb_encode(&fact_fact_table, fact, &change->bytes) &&
                pb_encode(type, reply, &change->reply);
    name_fact(fact, &change->name);
    assert(fits && buf_ok(&change->name)); /* every member has a limit of ours */
    (void)fits;
    struct str app = share_of(fact);
    if (app.len) change->owner = nimi_share_owner(call, app);
    buf_keep_texts(&change->texts,
                   (struct str *const[]){&change->owner.caller, &change->owner.app}, 2);
    change->put.until_ms = until_ms;
    return change;
}

/* There is no other replica. */
static void change_here(struct facts_change *change) {
    struct err e;
    bool applied = facts_apply(change->facts, buf_str(&change->bytes), &e);
    assert(applied); /* it was made here */
    (void)applied;
    change_reply(change);
    change_free(change);
}

void facts_tell(struct facts_change *change) {
    struct nimi_call *call = change->call;
    struct store *store = atomic_load(&change->facts->store);
    if (!store) {
        change_here(change);
        return;
    }
    nimi_work(call, &change_work, change);
    change->put = (struct fact_put){
        .kind = FACT_NIMI,
        .bytes = buf_str(&change->bytes),
        .name = buf_str(&change->name),
        .owner = change->owner,
        .until_ms = change->put.until_ms,
        .unix_ms = clock_unix_ms(),
        .made = once_with_effect(call, buf_str(&change->reply), &change->made),
        .on_done = on_told,
        .ctx = change};
    change->asking = true;
    fact_tell(store, call->loop, &change->put);
}
