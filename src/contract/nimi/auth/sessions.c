#include "contract/nimi/auth/sessions.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/same.h"
#include "base/text.h"

#include <pthread.h>
#include <stdlib.h>

struct app_session {
    struct list link; /* in `used` */
    char id[ULID_LEN + 1];
    char *app, *subject;
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES]; /* of its token */
    int64_t expires_ms;
};

struct registered {
    struct list link;
    struct text key; /* the app, a NUL, its instance */
};

struct sessions {
    pthread_mutex_t lock;
    size_t max;
    struct map *sessions, *apps;
    struct list used, apps_used; /* the least recently used first */
};

struct sessions *sessions_new(size_t max) {
    struct sessions *sessions = MEM_NEW(struct sessions);
    sessions->max = max;
    sessions->sessions = map_new();
    sessions->apps = map_new();
    list_init(&sessions->used);
    list_init(&sessions->apps_used);
    pthread_mutex_init(&sessions->lock, NULL);
    return sessions;
}

static void session_free(struct app_session *session) {
    free(session->app);
    free(session->subject);
    explicit_bzero(session->digest, sizeof(session->digest));
    free(session);
}

static void session_drop(struct sessions *sessions, struct app_session *session) {
    map_remove(sessions->sessions, str_of(session->id, ULID_LEN));
    list_remove(&session->link);
    session_free(session);
}

static void app_free(struct registered *app) {
    text_done(&app->key);
    free(app);
}

static void app_drop(struct sessions *sessions, struct registered *app) {
    map_remove(sessions->apps, text_str(app->key));
    list_remove(&app->link);
    app_free(app);
}

static void drop_oldest_session(struct sessions *sessions) {
    session_drop(sessions, CONTAINER_OF(sessions->used.next, struct app_session, link));
}

static void drop_oldest_app(struct sessions *sessions) {
    app_drop(sessions, CONTAINER_OF(sessions->apps_used.next, struct registered, link));
}

void sessions_free(struct sessions *sessions) {
    if (!sessions) return;
    size_t at = 0;
    struct str key;
    void *entry;
    while (map_next(sessions->sessions, &at, &key, &entry)) session_free(entry);
    at = 0;
    while (map_next(sessions->apps, &at, &key, &entry)) app_free(entry);
    map_free(sessions->sessions);
    map_free(sessions->apps);
    pthread_mutex_destroy(&sessions->lock);
    free(sessions);
}

/* --- apps --------------------------------------------------------------------------------- */

static struct text app_key(struct str app, struct str app_instance) {
    struct text key = {.len = app.len + 1 + app_instance.len};
    key.at = mem_zero(1, key.len + 1);
    if (app.len) memcpy(key.at, app.at, app.len);
    if (app_instance.len) memcpy(key.at + app.len + 1, app_instance.at, app_instance.len);
    return key;
}

static struct registered *app_find(struct sessions *sessions, struct str key) {
    struct registered *app = map_find(sessions->apps, key);
    if (!app) return NULL;
    list_remove(&app->link);
    list_append(&sessions->apps_used, &app->link);
    return app;
}

void sessions_register(struct sessions *sessions, struct str app, struct str app_instance) {
    struct text key = app_key(app, app_instance);
    pthread_mutex_lock(&sessions->lock);
    if (app_find(sessions, text_str(key))) {
        text_done(&key);
    } else {
        if (map_count(sessions->apps) >= sessions->max) drop_oldest_app(sessions);
        struct registered *fresh = MEM_NEW(struct registered);
        fresh->key = key;
        map_put(sessions->apps, text_str(key), fresh);
        list_append(&sessions->apps_used, &fresh->link);
    }
    pthread_mutex_unlock(&sessions->lock);
}

bool sessions_registered(struct sessions *sessions, struct str app, struct str app_instance) {
    struct text key = app_key(app, app_instance);
    pthread_mutex_lock(&sessions->lock);
    bool found = app_find(sessions, text_str(key)) != NULL;
    pthread_mutex_unlock(&sessions->lock);
    text_done(&key);
    return found;
}

bool sessions_knows_app(struct sessions *sessions, struct str app) {
    bool found = false;
    pthread_mutex_lock(&sessions->lock);
    for (struct list *link = sessions->apps_used.prev; link != &sessions->apps_used && !found;
         link = link->prev) {
        const struct registered *one = CONTAINER_OF(link, struct registered, link);
        struct str key = text_str(one->key);
        found = key.len > app.len && str_starts(key, app) && !key.at[app.len];
    }
    pthread_mutex_unlock(&sessions->lock);
    return found;
}

/* --- sessions ----------------------------------------------------------------------------- */

static int64_t ttl_ms(int32_t ttl_s) {
    if (ttl_s <= 0) return SESSIONS_TTL_S * 1000;
    return (int64_t)(ttl_s > SESSIONS_TTL_MAX_S ? SESSIONS_TTL_MAX_S : ttl_s) * 1000;
}

static void make_token(int32_t ttl_s, int64_t now_ms, struct session_opened *ret) {
    random_token_new(ret->token);
    ret->issued_ms = now_ms;
    ret->expires_ms = now_ms + ttl_ms(ttl_s);
}

void session_make(int32_t ttl_s, int64_t now_ms, struct session_opened *ret) {
    ulid_new(ret->id);
    make_token(ttl_s, now_ms, ret);
}

static struct app_session *session_add(struct sessions *sessions, struct str id, struct str app,
                                       struct str subject) {
    struct app_session *session = MEM_NEW(struct app_session);
    memcpy(session->id, id.at, ULID_LEN);
    session->app = str_dup(app);
    session->subject = str_dup(subject);
    list_init(&session->link);
    if (map_count(sessions->sessions) >= sessions->max) drop_oldest_session(sessions);
    map_put(sessions->sessions, str_of(session->id, ULID_LEN), session);
    list_append(&sessions->used, &session->link);
    return session;
}

void sessions_put(struct sessions *sessions, struct str id, struct str app, struct str subject,
                  const uint8_t digest[static RANDOM_TOKEN_DIGEST_BYTES], int64_t expires_ms) {
    pthread_mutex_lock(&sessions->lock);
    struct app_session *session = map_find(sessions->sessions, id);
    if (!session) session = session_add(sessions, id, app, subject);
    memcpy(session->digest, digest, sizeof(session->digest));
    session->expires_ms = expires_ms;
    pthread_mutex_unlock(&sessions->lock);
}

/* An app's session that has not expired; an expired one is dropped. */
static enum session_verdict session_find(struct sessions *sessions, struct str id,
                                         struct str app, int64_t now_ms,
                                         struct app_session **ret) {
    struct app_session *session = map_find(sessions->sessions, id);
    if (!session || !str_equal(str_from(session->app), app)) return SESSION_UNKNOWN;
    if (now_ms >= session->expires_ms) {
        session_drop(sessions, session);
        return SESSION_OVER;
    }
    list_remove(&session->link);
    list_append(&sessions->used, &session->link);
    *ret = session;
    return SESSION_VALID;
}

enum session_verdict sessions_check(struct sessions *sessions, struct str id, struct str token,
                                    struct str app, int64_t now_ms) {
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES];
    struct app_session *session;
    random_token_digest(token, digest);
    pthread_mutex_lock(&sessions->lock);
    enum session_verdict verdict = session_find(sessions, id, app, now_ms, &session);
    if (verdict == SESSION_VALID && !same_bytes(digest, session->digest, sizeof(digest)))
        verdict = SESSION_UNKNOWN;
    pthread_mutex_unlock(&sessions->lock);
    return verdict;
}

static bool sessions_is_of(const struct app_session *session, struct str subject) {
    return session->subject[0] == '\0' || str_equal(str_from(session->subject), subject);
}

enum session_verdict sessions_renew(struct sessions *sessions, struct str id, struct str app,
                                    struct str subject, int32_t ttl_s, int64_t now_ms,
                                    struct session_opened *ret, struct buf *of) {
    struct app_session *session;
    pthread_mutex_lock(&sessions->lock);
    enum session_verdict verdict = session_find(sessions, id, app, now_ms, &session);
    if (verdict == SESSION_VALID && !sessions_is_of(session, subject))
        verdict = SESSION_UNKNOWN;
    if (verdict == SESSION_VALID) {
        memcpy(ret->id, session->id, sizeof(ret->id));
        make_token(ttl_s, now_ms, ret);
        buf_append(of, str_from(session->subject));
    }
    pthread_mutex_unlock(&sessions->lock);
    return verdict;
}

bool sessions_may_end(struct sessions *sessions, struct str id, struct str app,
                      struct str subject) {
    pthread_mutex_lock(&sessions->lock);
    const struct app_session *session = map_find(sessions->sessions, id);
    bool may =
        session && str_equal(str_from(session->app), app) && sessions_is_of(session, subject);
    pthread_mutex_unlock(&sessions->lock);
    return may;
}

void sessions_end(struct sessions *sessions, struct str id) {
    pthread_mutex_lock(&sessions->lock);
    struct app_session *session = map_find(sessions->sessions, id);
    if (session) session_drop(sessions, session);
    pthread_mutex_unlock(&sessions->lock);
}

void sessions_limit(struct sessions *sessions, size_t max) {
    pthread_mutex_lock(&sessions->lock);
    sessions->max = max;
    pthread_mutex_unlock(&sessions->lock);
}
