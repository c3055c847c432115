#include "session/resident.h"

#include "base/clock.h"
#include "base/mem.h"
#include "session/directory.h"
#include "session/dormant_runs.h"

#include <assert.h>
#include <stdlib.h>

#define STRIPE_RESIDENT_MAX (SESSIONS_RESIDENT_MAX / SESSION_STRIPE_COUNT)

/* The writes of its turns are in front of this in the store's queue. */
static void resident_give_back(struct session *session) {
    const struct session_table *table = session->stripe->table;
    if (!session->held_by || atomic_load(&table->leaving)) return;
    lease_give_back(table->store, session->held_by, &session->lease);
    session->held_by = NULL;
}

void resident_free(struct session *session) {
    assert(list_empty(&session->stack) && list_empty(&session->waiters));
    resident_give_back(session);
    list_remove(&session->idle);
    for (size_t i = 0; i < session->late_count; i++) turn_record_unref(session->late[i]);
    free(session->late);
    history_unref(session->history);
    text_done(&session->key);
    free(session);
}

/* --- what idle sessions hold -------------------------------------------------------------- */

/* Nearly all that would be freed with it. */
static size_t resident_bytes(const struct session *session) {
    return sizeof(*session) + 2 * text_str(session->key).len + history_bytes(session->history);
}

/* Only of sessions that may leave for it. */
static void resident_count(struct session *session, size_t bytes) {
    struct session_table *table = session->stripe->table;
    if (!table->store || table->holdings) return;
    struct idle_memory *idle = &table->idle;
    size_t before = session->idle_bytes;
    session->idle_bytes = bytes;
    size_t all = atomic_fetch_add(&idle->bytes, bytes - before) + bytes - before;
    if (!bytes) return;
    atomic_fetch_add(&idle->rested, bytes);
    session_table_many_fn *many = atomic_load(&idle->many);
    if (all <= SESSIONS_IDLE_BYTES || !many || atomic_load(&idle->trimming)) return;
    if (atomic_exchange(&idle->trimming, true)) return;
    atomic_store(&idle->rested, bytes); /* the first window begins */
    many(idle->ctx);
}

static void resident_touch(struct session *session) {
    if (!list_linked(&session->idle)) return;
    list_remove(&session->idle);
    session->stripe->idle_count--;
    resident_count(session, 0);
}

struct session *resident_oldest(struct session_stripe *stripe) {
    if (list_empty(&stripe->idle)) return NULL;
    return CONTAINER_OF(stripe->idle.next, struct session, idle);
}

size_t resident_forget(struct session *session) {
    struct session_stripe *stripe = session->stripe;
    size_t bytes = session->history->text_bytes;
    resident_touch(session);
    map_remove(stripe->sessions, text_str(session->key));
    resident_free(session);
    return bytes;
}

void resident_discard(struct session *session) {
    map_remove(session->stripe->sessions, text_str(session->key));
    resident_free(session);
}

/* In memory, or answered and about to ask for the session again. */
static bool has_parked(struct pending_approvals *approvals, const struct session_name *name) {
    uint64_t run;
    return pending_approvals_has(approvals, name) ||
           pending_approvals_answered(approvals, name, &run, 1) > 0;
}

/* Whether a run of it waits here for a human, in memory or not. */
static bool resident_waits(const struct session *session) {
    const struct session_table *table = session->stripe->table;
    const struct session_name *name = &session->name;
    const struct dormant_filter filter = {
        .workspace = name->workspace, .user = name->user, .session = name->session};
    struct dormant_runs *dormant = directory_dormant(table->directory);
    return has_parked(table->approvals, name) || dormant_runs_has(dormant, &filter) ||
           has_parked(table->approvals, name); /* it may have come back meanwhile */
}

void resident_rest(struct session *session) {
    struct session_stripe *stripe = session->stripe;
    if (!list_empty(&session->stack) || !list_empty(&session->waiters)) return;
    resident_touch(session);
    session->idle_since_ms = clock_mono_ms();
    list_append(&stripe->idle, &session->idle);
    stripe->idle_count++;
    resident_count(session, resident_bytes(session));
    if (stripe->table->holdings) {
        if (!resident_waits(session)) resident_forget(session);
        return;
    }
    struct session *oldest = resident_oldest(stripe);
    if (oldest && stripe->idle_count > STRIPE_RESIDENT_MAX) resident_forget(oldest);
}

/* The names are at the end of the key. */
static struct session_name names_in(struct str key, const struct session_name *like) {
    size_t len = like->workspace.len + like->user.len + like->session.len;
    struct str names = str_skip(key, key.len - len);
    struct str rest = str_skip(names, like->workspace.len);
    return (struct session_name){str_head(names, like->workspace.len),
                                 str_head(rest, like->user.len),
                                 str_skip(rest, like->user.len)};
}

struct session *resident_find_or_add(struct session_stripe *stripe, struct str key,
                                     const struct session_name *name, bool *ret_new) {
    struct session *session = map_find(stripe->sessions, key);
    *ret_new = session == NULL;
    if (session) {
        resident_touch(session);
        return session;
    }
    session = MEM_NEW(struct session);
    session->stripe = stripe;
    session->key = text_copy(key);
    session->name = names_in(text_str(session->key), name);
    session->loaded = stripe->table->store == NULL;
    session->history = history_ref(stripe->table->empty);
    list_init(&session->stack);
    list_init(&session->waiters);
    list_init(&session->idle);
    map_put(stripe->sessions, key, session);
    return session;
}

void resident_remember(struct session *session, struct turn_record *record) {
    struct history *longer = history_with(session->history, record);
    history_unref(session->history);
    session->history = longer;
    if (session->idle_bytes) resident_count(session, resident_bytes(session));
}

void resident_remember_later(struct session *session, struct turn_record *record) {
    size_t size = (session->late_count + 1) * sizeof(struct turn_record *);
    session->late = mem_resize(session->late, size);
    session->late[session->late_count++] = record;
}

static bool has_run(const struct history *history, uint64_t run) {
    for (size_t i = 0; i < history->record_count; i++) {
        if (history->records[i]->run == run) return true;
    }
    return false;
}

/* Add records of turns that ended during the read. The store's answer may already contain some
 * of them. */
static void resident_remember_late(struct session *session) {
    for (size_t i = 0; i < session->late_count; i++) {
        if (has_run(session->history, session->late[i]->run)) {
            turn_record_unref(session->late[i]);
        } else {
            resident_remember(session, session->late[i]);
        }
    }
    free(session->late);
    session->late = NULL;
    session->late_count = 0;
}

void resident_loaded(struct session *session, struct history *history) {
    history_unref(session->history);
    session->history = history;
    session->loaded = true;
    resident_remember_late(session);
}
