#include "toolserver/sessions.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

struct session {
    struct list link; /* in `unused`, the longest unused first */
    char id[TOOLSERVER_SESSION_BYTES];
    struct text workspace, user;
    const char *version;
    uint64_t used_ms;
    struct list calls;
};

/* Each request looks one up by its id. */
struct toolserver_sessions {
    pthread_mutex_t lock;
    struct map *by_id;
    size_t max;
    size_t refs; /* the owner's, and one of each wish */
    uint64_t idle_ms;
    struct list unused;
};

/* A wish to cancel a call, on its way to the call's loop. */
struct toolserver_wish {
    struct mail mail;
    struct toolserver_sessions *sessions;
    struct toolserver_entry *entry; /* NULL: the call has left meanwhile */
};

/* --- the table ---------------------------------------------------------------------------- */

struct toolserver_sessions *toolserver_sessions_new(size_t max, uint64_t idle_ms) {
    struct toolserver_sessions *sessions = MEM_NEW(struct toolserver_sessions);
    assert(max > 0);
    pthread_mutex_init(&sessions->lock, NULL);
    sessions->max = max;
    sessions->idle_ms = idle_ms;
    sessions->by_id = map_new();
    list_init(&sessions->unused);
    sessions->refs = 1;
    return sessions;
}

static struct str sessions_id_of(const struct session *session) {
    return str_of(session->id, TOOLSERVER_SESSION_BYTES - 1);
}

static void session_free(struct toolserver_sessions *sessions, struct session *session) {
    map_remove(sessions->by_id, sessions_id_of(session));
    list_remove(&session->link);
    text_done(&session->workspace);
    text_done(&session->user);
    free(session);
}

static void sessions_unref(struct toolserver_sessions *sessions) {
    struct list *link;
    pthread_mutex_lock(&sessions->lock);
    bool last = --sessions->refs == 0;
    pthread_mutex_unlock(&sessions->lock);
    if (!last) return;
    while ((link = list_pop(&sessions->unused)))
        session_free(sessions, CONTAINER_OF(link, struct session, link));
    pthread_mutex_destroy(&sessions->lock);
    map_free(sessions->by_id);
    free(sessions);
}

void toolserver_sessions_free(struct toolserver_sessions *sessions) {
    if (sessions) sessions_unref(sessions);
}

/* --- opening and using -------------------------------------------------------------------- */

bool toolserver_random_id(char ret_id[TOOLSERVER_SESSION_BYTES], struct err *e) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[(TOOLSERVER_SESSION_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return err_set(e, ERR_UNAVAILABLE, "the system gave no random bytes (errno %d)", errno);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ret_id[2 * i] = digits[bytes[i] >> 4];
        ret_id[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_id[TOOLSERVER_SESSION_BYTES - 1] = '\0';
    return true;
}

/* Forget sessions that were not used for too long, and one more if there is no room. */
static void sessions_prune(struct toolserver_sessions *sessions, uint64_t now_ms) {
    LIST_EACH(&sessions->unused, link) {
        struct session *session = CONTAINER_OF(link, struct session, link);
        bool full = map_count(sessions->by_id) >= sessions->max;
        if (!full && now_ms - session->used_ms < sessions->idle_ms) return;
        if (list_empty(&session->calls)) session_free(sessions, session);
    }
}

static void sessions_add(struct toolserver_sessions *sessions,
                         const struct toolserver_owner *owner, const char *version,
                         uint64_t now_ms, const char id[TOOLSERVER_SESSION_BYTES]) {
    struct session *session = MEM_NEW(struct session);
    memcpy(session->id, id, TOOLSERVER_SESSION_BYTES);
    session->workspace = text_copy(owner->workspace);
    session->user = text_copy(owner->user);
    session->version = version;
    session->used_ms = now_ms;
    list_init(&session->calls);
    list_append(&sessions->unused, &session->link);
    map_put(sessions->by_id, sessions_id_of(session), session);
}

bool toolserver_sessions_open(struct toolserver_sessions *sessions,
                              const struct toolserver_owner *owner, const char *version,
                              uint64_t now_ms, char ret_id[TOOLSERVER_SESSION_BYTES],
                              struct err *e) {
    if (!toolserver_random_id(ret_id, e)) return false;
    pthread_mutex_lock(&sessions->lock);
    sessions_prune(sessions, now_ms);
    bool room = map_count(sessions->by_id) < sessions->max;
    if (room) sessions_add(sessions, owner, version, now_ms, ret_id);
    pthread_mutex_unlock(&sessions->lock);
    return room || err_set(e, ERR_RESOURCE_EXHAUSTED,
                           "all %zu sessions have open calls; try again later", sessions->max);
}

static struct session *sessions_find(const struct toolserver_sessions *sessions,
                                     struct str id) {
    return map_find(sessions->by_id, id);
}

static struct session *find_own(const struct toolserver_sessions *sessions, struct str id,
                                const struct toolserver_owner *owner) {
    struct session *session = sessions_find(sessions, id);
    bool own = session && str_equal(text_str(session->workspace), owner->workspace) &&
               str_equal(text_str(session->user), owner->user);
    return own ? session : NULL;
}

static bool is_forgotten(const struct toolserver_sessions *sessions,
                         const struct session *session, uint64_t now_ms) {
    return now_ms - session->used_ms >= sessions->idle_ms && list_empty(&session->calls);
}

bool toolserver_sessions_use(struct toolserver_sessions *sessions, struct str id,
                             const struct toolserver_owner *owner, uint64_t now_ms,
                             const char **ret_version) {
    pthread_mutex_lock(&sessions->lock);
    struct session *session = find_own(sessions, id, owner);
    if (session && is_forgotten(sessions, session, now_ms)) {
        session_free(sessions, session);
        session = NULL;
    }
    if (session) {
        session->used_ms = now_ms;
        list_remove(&session->link);
        list_append(&sessions->unused, &session->link);
        *ret_version = session->version;
    }
    pthread_mutex_unlock(&sessions->lock);
    return session != NULL;
}

size_t toolserver_sessions_count(struct toolserver_sessions *sessions) {
    pthread_mutex_lock(&sessions->lock);
    size_t count = map_count(sessions->by_id);
    pthread_mutex_unlock(&sessions->lock);
    return count;
}

/* --- calls -------------------------------------------------------------------------------- */

void toolserver_sessions_enter(struct toolserver_sessions *sessions, struct str id,
                               struct str request, struct toolserver_entry *entry) {
    list_init(&entry->link);
    entry->request = request;
    pthread_mutex_lock(&sessions->lock);
    struct session *session = sessions_find(sessions, id);
    if (session) list_append(&session->calls, &entry->link);
    pthread_mutex_unlock(&sessions->lock);
    entry->entered = true;
}

void toolserver_sessions_leave(struct toolserver_sessions *sessions,
                               struct toolserver_entry *entry) {
    if (!entry->entered) return;
    pthread_mutex_lock(&sessions->lock);
    list_remove(&entry->link);
    if (entry->wish) entry->wish->entry = NULL;
    pthread_mutex_unlock(&sessions->lock);
    entry->entered = false;
}

/* On the loop of the call: it leaves on this loop only, so it cannot leave meanwhile. */
static void on_wish(void *ctx) {
    struct toolserver_wish *wish = ctx;
    struct toolserver_sessions *sessions = wish->sessions;
    pthread_mutex_lock(&sessions->lock);
    struct toolserver_entry *entry = wish->entry;
    if (entry) entry->wish = NULL;
    pthread_mutex_unlock(&sessions->lock);
    free(wish);
    if (entry) entry->cancel(entry->ctx);
    sessions_unref(sessions);
}

/* Under the lock. A call that is cancelled cannot be found any more. */
static void cancel_entry(struct toolserver_sessions *sessions, struct toolserver_entry *entry) {
    struct toolserver_wish *wish = MEM_NEW(struct toolserver_wish);
    wish->sessions = sessions;
    wish->entry = entry;
    entry->wish = wish;
    list_remove(&entry->link);
    sessions->refs++;
    loop_post(entry->loop, &wish->mail, on_wish, wish);
}

void toolserver_sessions_cancel(struct toolserver_sessions *sessions, struct str id,
                                struct str request) {
    pthread_mutex_lock(&sessions->lock);
    struct session *session = sessions_find(sessions, id);
    if (session) {
        LIST_EACH(&session->calls, link) {
            struct toolserver_entry *entry = CONTAINER_OF(link, struct toolserver_entry, link);
            if (str_equal(entry->request, request)) cancel_entry(sessions, entry);
        }
    }
    pthread_mutex_unlock(&sessions->lock);
}

bool toolserver_sessions_close(struct toolserver_sessions *sessions, struct str id,
                               const struct toolserver_owner *owner) {
    pthread_mutex_lock(&sessions->lock);
    struct session *session = find_own(sessions, id, owner);
    if (session) {
        LIST_EACH(&session->calls, link) {
            cancel_entry(sessions, CONTAINER_OF(link, struct toolserver_entry, link));
        }
        session_free(sessions, session);
    }
    pthread_mutex_unlock(&sessions->lock);
    return session != NULL;
}
