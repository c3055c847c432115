#include "session/session_table.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/slots.h"
#include "session/directory.h"
#include "session/holding.h"
#include "session/idempotency_claims.h"
#include "session/key_leases.h"
#include "session/resident.h"

#include <stdlib.h>

struct session_table *session_table_new(struct store *store) {
    struct session_table *table = MEM_NEW(struct session_table);
    table->store = store;
    table->empty = history_new();
    table->directory = directory_new();
    table->claims = idempotency_claims_new();
    if (store && store_is_shared(store)) {
        table->holdings = holdings_new();
        table->keys = key_leases_new(store, table->claims);
    }
    table->turns =
        slots_new(&(struct slots_limits){.all = SLOTS_NO_LIMIT, .queue_max = SIZE_MAX});
    table->approvals = pending_approvals_new();
    table->stripes = STRIPED_NEW(SESSION_STRIPE_COUNT, struct session_stripe);
    struct session_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(table->stripes, i)); i++) {
        stripe->table = table;
        stripe->sessions = map_new();
        list_init(&stripe->idle);
    }
    return table;
}

void session_table_free(struct session_table *table) {
    if (!table) return;
    const struct session_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(table->stripes, i)); i++) {
        size_t at = 0;
        struct str key;
        void *session;
        while (map_next(stripe->sessions, &at, &key, &session)) resident_free(session);
        map_free(stripe->sessions);
    }
    striped_free(table->stripes);
    history_unref(table->empty);
    holdings_free(table->holdings);
    key_leases_free(table->keys);
    directory_free(table->directory);
    idempotency_claims_free(table->claims);
    slots_free(table->turns);
    pending_approvals_free(table->approvals);
    free(table);
}

void session_table_wait(struct session_table *table, uint64_t wait_ms) {
    table->wait_ms = wait_ms;
}

uint64_t session_table_wait_ms(const struct session_table *table) {
    return table->wait_ms;
}

void session_table_leave(struct session_table *table, const struct loop *loop) {
    if (!table->holdings) return;
    atomic_store(&table->leaving, true);
    holdings_leave(table->holdings, loop);
    key_leases_leave(table->keys, loop);
}

struct key_leases *session_table_key_leases(struct session_table *table) {
    return table->keys;
}

struct pending_approvals *session_table_approvals(struct session_table *table) {
    return table->approvals;
}

struct slots *session_table_slots(struct session_table *table) {
    return table->turns;
}

struct directory *session_table_directory(struct session_table *table) {
    return table->directory;
}

struct idempotency_claims *session_table_claims(struct session_table *table) {
    return table->claims;
}

struct store *session_table_store(struct session_table *table) {
    return table->store;
}

_Atomic uint64_t *session_table_last_run(struct session_table *table) {
    return &table->last_run;
}

int64_t session_table_number_posted(struct session_table *table) {
    return atomic_fetch_add(&table->posted, 1) + 1;
}

/* Forgets one session of each stripe in turn, which is nearly the order of last use. */
size_t session_table_shed(struct session_table *table, size_t bytes) {
    size_t shed = 0;
    for (bool any = true; any && shed < bytes;) {
        any = false;
        struct session_stripe *stripe;
        for (size_t i = 0; shed < bytes && (stripe = striped_at(table->stripes, i)); i++) {
            pthread_mutex_lock(&stripe->lock);
            /* Among replicas only those are idle whose runs wait for a human. */
            struct session *oldest = table->holdings ? NULL : resident_oldest(stripe);
            if (oldest) shed += resident_forget(oldest);
            any = any || oldest;
            pthread_mutex_unlock(&stripe->lock);
        }
    }
    return shed;
}

/* It may have become idle after `now_ms`. */
static bool is_unused(const struct session *oldest, uint64_t now_ms, uint64_t unused_ms) {
    return oldest && oldest->idle_since_ms + unused_ms <= now_ms;
}

size_t session_table_tidy(struct session_table *table, uint64_t unused_ms) {
    uint64_t now_ms = clock_mono_ms();
    size_t count = 0;
    struct session_stripe *stripe;
    for (size_t i = 0; table->store && (stripe = striped_at(table->stripes, i)); i++) {
        pthread_mutex_lock(&stripe->lock);
        /* Among replicas one may come back to the end of the list, so each is looked at once. */
        for (size_t left = stripe->idle_count; left > 0; left--) {
            struct session *oldest = resident_oldest(stripe);
            if (!is_unused(oldest, now_ms, unused_ms)) break;
            if (table->holdings) {
                resident_rest(oldest); /* it stays if a run of it still waits for a human */
            } else {
                resident_forget(oldest);
            }
            count++;
        }
        pthread_mutex_unlock(&stripe->lock);
    }
    return count;
}

/* --- trimming ----------------------------------------------------------------------------- */

#define TRIM_COUNT_MAX 512 /* sessions freed by one call, so that the loop goes on */
#define TRIM_SOON_MS 2     /* then the next one */
#define KEPT_SECONDS 60
#define TRIMS_A_SECOND (1000 / SESSIONS_TRIM_MS)

void session_table_many_with(struct session_table *table, session_table_many_fn *many,
                             void *ctx) {
    table->idle.ctx = ctx;
    atomic_store(&table->idle.many, many);
}

void session_table_many_end(struct session_table *table) {
    atomic_store(&table->idle.many, NULL);
}

size_t session_table_idle_bytes(const struct session_table *table) {
    return atomic_load(&table->idle.bytes);
}

/* Forgets one session of each stripe in turn. Returns whether it stopped at TRIM_COUNT_MAX. */
static bool trim_to(struct session_table *table, size_t bytes, uint64_t unused_ms) {
    uint64_t now_ms = clock_mono_ms();
    size_t count = 0;
    for (bool any = true; any && session_table_idle_bytes(table) > bytes;) {
        if (count >= TRIM_COUNT_MAX) return true;
        any = false;
        struct session_stripe *stripe;
        for (size_t i = 0; (stripe = striped_at(table->stripes, i)); i++) {
            if (session_table_idle_bytes(table) <= bytes) break;
            pthread_mutex_lock(&stripe->lock);
            struct session *oldest = resident_oldest(stripe);
            bool leaves = is_unused(oldest, now_ms, unused_ms);
            if (leaves) resident_forget(oldest);
            pthread_mutex_unlock(&stripe->lock);
            count += leaves;
            any = any || leaves;
        }
    }
    return false;
}

static bool window_is_over(const struct idle_memory *idle, size_t bytes) {
    return idle->calls * bytes >= SESSIONS_WINDOW_BYTES;
}

/* What may stay, by the window that ends. */
static size_t idle_allowance(struct idle_memory *idle) {
    size_t rested = atomic_exchange(&idle->rested, 0);
    size_t kept = rested / idle->calls * TRIMS_A_SECOND * KEPT_SECONDS;
    idle->calls = 0;
    return kept > SESSIONS_IDLE_BYTES ? kept : SESSIONS_IDLE_BYTES;
}

/* True: nothing more to do before many(). */
static bool trim_ends(struct idle_memory *idle) {
    if (atomic_load(&idle->bytes) > SESSIONS_IDLE_BYTES) return false;
    idle->calls = 0;
    atomic_store(&idle->trimming, false);
    /* More came meanwhile, perhaps before its thread could see that. */
    return atomic_load(&idle->bytes) <= SESSIONS_IDLE_BYTES ||
           atomic_exchange(&idle->trimming, true);
}

uint64_t session_table_trim(struct session_table *table, uint64_t unused_ms) {
    struct idle_memory *idle = &table->idle;
    if (!idle->cut_short) {
        if (trim_ends(idle)) return 0;
        idle->calls++;
        if (!window_is_over(idle, atomic_load(&idle->bytes))) return SESSIONS_TRIM_MS;
        idle->kept = idle_allowance(idle);
    }
    idle->cut_short = trim_to(table, idle->kept, unused_ms);
    if (idle->cut_short) return TRIM_SOON_MS;
    return trim_ends(idle) ? 0 : SESSIONS_TRIM_MS;
}
