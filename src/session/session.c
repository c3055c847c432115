#include "session/session.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/striped.h"
#include "base/text.h"
#include "journal/journal.h"
#include "loop/slots.h"
#include "session/directory.h"
#include "session/dormant_runs.h"
#include "session/history_read.h"
#include "session/holding.h"
#include "session/idempotency_claims.h"
#include "session/key_leases.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STRIPE_COUNT 64
#define STRIPE_RESIDENT_MAX (SESSIONS_RESIDENT_MAX / STRIPE_COUNT)
#define KEY_MAX_BYTES (64 * KIB)
#define LOAD_MAX_BYTES (1 * MIB)

/* The state of a session; more of it is in the leases on its stack. */
struct session {
    struct session_stripe *stripe;
    struct text key;
    struct session_name name;  /* in `key` */
    struct lease_key lease;    /* of a shared store */
    struct loop *held_by;      /* the lease is this replica's, and given back from that loop */
    bool loaded;               /* the history was read from the store */
    struct turn_record **late; /* records that arrived before that */
    size_t late_count;
    struct history *history; /* of finished turns */
    struct list stack;       /* leases, the deepest child last */
    struct list waiters;     /* leases, the oldest first */
    struct list idle;        /* in the stripe's list, least recently used first */
    uint64_t idle_since_ms;  /* when it became idle */
};

struct session_stripe {
    pthread_mutex_t lock;
    struct session_table *table;
    struct map *sessions;
    struct list idle;
    size_t idle_count;
};

struct session_table {
    struct store *store;
    struct directory *directory;
    struct idempotency_claims *claims;
    struct slots *turns; /* turns at once, per workspace */
    struct pending_approvals *approvals;
    _Atomic uint64_t last_run;
    struct key_leases *keys;   /* of replicas, like holdings */
    struct holdings *holdings; /* NULL: the store is not shared with other replicas */
    uint64_t wait_ms;
    atomic_bool leaving; /* what is held is given back when the store is closed */
    struct history *empty;
    struct striped *stripes;
};

/* One reading of a session from the store. */
struct loading {
    struct store_load load;
    bool recovers; /* for a run that waits here, not for a turn */
    struct session *session;
    struct buf names;
};

/* --- the states of a lease ---------------------------------------------------------------- */

#define TO(state) (1u << (state))

/* A lent lease may be released; its children are passed to its own lender. */
static const struct {
    const char *name;
    unsigned may_become;
} states[LEASE_STATE_COUNT] = {
    /* clang-format off */
    [LEASE_IDLE]    = {"idle",    TO(LEASE_WAITING) | TO(LEASE_HELD)},
    [LEASE_WAITING] = {"waiting", TO(LEASE_HELD) | TO(LEASE_IDLE)},
    [LEASE_HELD]    = {"held",    TO(LEASE_LENT) | TO(LEASE_IDLE)},
    [LEASE_LENT]    = {"lent",    TO(LEASE_HELD) | TO(LEASE_IDLE)},
    /* clang-format on */
};

struct str lease_state_name(enum lease_state state) {
    return str_from(states[state].name);
}

bool lease_may_become(enum lease_state state, enum lease_state next) {
    return (states[state].may_become & TO(next)) != 0;
}

/* The only function that writes lease->state. Called with the stripe's lock held. */
static void lease_move(struct lease *lease, enum lease_state next) {
    assert(lease_may_become(lease->state, next));
    lease->state = next;
}

/* --- table -------------------------------------------------------------------------------- */

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
    table->stripes = STRIPED_NEW(STRIPE_COUNT, struct session_stripe);
    struct session_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(table->stripes, i)); i++) {
        stripe->table = table;
        stripe->sessions = map_new();
        list_init(&stripe->idle);
    }
    return table;
}

/* The writes of its turns are in front of this in the store's queue. */
static void give_back(struct session *session) {
    if (!session->held_by || atomic_load(&session->stripe->table->leaving)) return;
    lease_give_back(session->stripe->table->store, session->held_by, &session->lease);
    session->held_by = NULL;
}

static void free_session(struct session *session) {
    assert(list_empty(&session->stack) && list_empty(&session->waiters));
    give_back(session);
    list_remove(&session->idle);
    for (size_t i = 0; i < session->late_count; i++) turn_record_unref(session->late[i]);
    free(session->late);
    history_unref(session->history);
    text_done(&session->key);
    free(session);
}

void session_table_free(struct session_table *table) {
    if (!table) return;
    const struct session_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(table->stripes, i)); i++) {
        size_t at = 0;
        struct str key;
        void *session;
        while (map_next(stripe->sessions, &at, &key, &session)) free_session(session);
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

void session_table_leave(struct session_table *table, const struct loop *loop) {
    if (!table->holdings) return;
    atomic_store(&table->leaving, true);
    holdings_leave(table->holdings, loop);
    key_leases_leave(table->keys, loop);
}

struct key_leases *session_table_key_leases(struct session_table *table) {
    return table->keys;
}

uint64_t session_table_wait_ms(const struct session_table *table) {
    return table->wait_ms;
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

/* Each name is preceded by its length, so that no two triples share a key. */
static void append_key(struct buf *key, const struct session_name *name) {
    buf_append_u64(key, name->workspace.len);
    buf_append_byte(key, ':');
    buf_append_u64(key, name->user.len);
    buf_append_byte(key, ':');
    buf_append(key, name->workspace);
    buf_append(key, name->user);
    buf_append(key, name->session);
}

/* --- sessions; all below is called with the stripe's lock held unless it says otherwise --- */

static void touch(struct session *session) {
    if (!list_linked(&session->idle)) return;
    list_remove(&session->idle);
    session->stripe->idle_count--;
}

static struct session *oldest_of(struct session_stripe *stripe) {
    if (list_empty(&stripe->idle)) return NULL;
    return CONTAINER_OF(stripe->idle.next, struct session, idle);
}

/* Returns the bytes of text that were freed. */
static size_t run_session_forget(struct session *session) {
    struct session_stripe *stripe = session->stripe;
    size_t bytes = session->history->text_bytes;
    stripe->idle_count--;
    map_remove(stripe->sessions, text_str(session->key));
    free_session(session);
    return bytes;
}

/* Whether a run of it waits here for a human, in memory or not. */
static bool waits_for_human(const struct session *session) {
    const struct session_table *table = session->stripe->table;
    const struct session_name *name = &session->name;
    const struct dormant_filter filter = {
        .workspace = name->workspace, .user = name->user, .session = name->session};
    struct dormant_runs *dormant = directory_dormant(table->directory);
    return pending_approvals_has(table->approvals, name) ||
           dormant_runs_has(dormant, &filter) || pending_approvals_has(table->approvals, name);
}

/* If no lease holds it, make it idle. The least recently used idle sessions are forgotten
 * first. */
static void rest(struct session *session) {
    struct session_stripe *stripe = session->stripe;
    if (!list_empty(&session->stack) || !list_empty(&session->waiters)) return;
    touch(session);
    session->idle_since_ms = clock_mono_ms();
    list_append(&stripe->idle, &session->idle);
    stripe->idle_count++;
    if (stripe->table->holdings) {
        if (!waits_for_human(session)) run_session_forget(session);
        return;
    }
    struct session *oldest = oldest_of(stripe);
    if (oldest && stripe->idle_count > STRIPE_RESIDENT_MAX) run_session_forget(oldest);
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

static struct session *find_or_add(struct session_stripe *stripe, struct str key,
                                   const struct session_name *name, bool *ret_new) {
    struct session *session = map_find(stripe->sessions, key);
    *ret_new = session == NULL;
    if (session) {
        touch(session);
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

static struct lease *top_of(struct session *session) {
    if (list_empty(&session->stack)) return NULL;
    return CONTAINER_OF(session->stack.prev, struct lease, link);
}

/* Whether a new turn can have the session now. *ret_lender is the lease that would lend it, or
 * NULL. */
static bool is_free(struct session *session, struct lease **ret_lender) {
    struct lease *top = top_of(session);
    *ret_lender = top;
    if (!session->loaded) return false;
    if (!top) return true;
    return top->state == LEASE_LENT && !top->wants_back && top->depth < SESSION_DEPTH_MAX;
}

static bool is_too_deep(struct session *session) {
    struct lease *top = top_of(session);
    return top && top->state == LEASE_LENT && !top->wants_back &&
           top->depth >= SESSION_DEPTH_MAX;
}

static void session_give(struct session *session, struct lease *lease, struct lease *lender) {
    lease_move(lease, LEASE_HELD);
    lease->children = 0;
    lease->lender = lender;
    lease->depth = lender ? lender->depth + 1 : 0;
    lease->parent = lender ? lender->run : 0;
    lease->history = history_ref(lender ? lender->history : session->history);
    if (lender) lender->children++;
    list_append(&session->stack, &lease->link);
}

static void tell_granted(void *ctx) {
    struct lease *lease = ctx;
    lease->events->granted(lease->ctx);
}

static void tell_refused(void *ctx) {
    struct lease *lease = ctx;
    struct err why = lease->refusal;
    lease->events->refused(&why, lease->ctx);
}

/* A mail to a lender whose children are done. The lender may be gone when it arrives. It
 * belongs to the lender's loop. */
struct note {
    struct mail mail;
    struct lease *lease; /* NULL: gone */
};

static void tell_children_done(void *ctx) {
    struct note *note = ctx;
    struct lease *lease = note->lease;
    free(note);
    if (!lease) return;
    lease->note = NULL;
    lease->events->children_done(lease->ctx);
}

static void post_children_done(struct lease *lender) {
    struct note *note = MEM_NEW(struct note);
    note->lease = lender;
    lender->note = note;
    loop_post(lender->loop, &note->mail, tell_children_done, note);
}

static void session_refuse(struct lease *lease, const struct err *why) {
    list_remove(&lease->link);
    lease_move(lease, LEASE_IDLE);
    lease->refusal = *why;
    loop_post(lease->loop, &lease->mail, tell_refused, lease);
}

static void set_too_deep(struct err *e) {
    err_set(e, ERR_RESOURCE_EXHAUSTED,
            "turns of this session already stand %d deep inside each other; an agent seems to "
            "call itself",
            SESSION_DEPTH_MAX);
}

/* Grant the session to waiting leases, the longest waiting first, while it is free. A lent
 * session is free unless its lender wants it back. */
static void serve_waiters(struct session *session) {
    while (!list_empty(&session->waiters)) {
        struct lease *lease = CONTAINER_OF(session->waiters.next, struct lease, link);
        struct lease *lender;
        if (!is_free(session, &lender)) return;
        list_remove(&lease->link);
        session_give(session, lease, lender);
        loop_post(lease->loop, &lease->mail, tell_granted, lease);
    }
}

static void remember(struct session *session, struct turn_record *record);
static void remember_late(struct session *session);

/* --- forgetting, without a lock ----------------------------------------------------------- */

/* Forgets one session of each stripe in turn, which is nearly the order of last use. */
size_t session_table_shed(struct session_table *table, size_t bytes) {
    size_t shed = 0;
    for (bool any = true; any && shed < bytes;) {
        any = false;
        struct session_stripe *stripe;
        for (size_t i = 0; shed < bytes && (stripe = striped_at(table->stripes, i)); i++) {
            pthread_mutex_lock(&stripe->lock);
            /* Among replicas only those are idle whose runs wait for a human. */
            struct session *oldest = table->holdings ? NULL : oldest_of(stripe);
            if (oldest) shed += run_session_forget(oldest);
            any = any || oldest;
            pthread_mutex_unlock(&stripe->lock);
        }
    }
    return shed;
}

size_t session_table_tidy(struct session_table *table, uint64_t unused_ms) {
    uint64_t now_ms = clock_mono_ms();
    size_t count = 0;
    struct session_stripe *stripe;
    for (size_t i = 0; table->store && (stripe = striped_at(table->stripes, i)); i++) {
        pthread_mutex_lock(&stripe->lock);
        struct session *oldest = oldest_of(stripe);
        while (oldest && now_ms - oldest->idle_since_ms >= unused_ms) {
            if (table->holdings) {
                rest(oldest); /* it stays if a run of it still waits for a human */
            } else {
                run_session_forget(oldest);
            }
            count++;
            oldest = oldest_of(stripe);
        }
        pthread_mutex_unlock(&stripe->lock);
    }
    return count;
}

/* --- loading ------------------------------------------------------------------------------ */

/* `history` (taken) is NULL: it could not be read, for the reason `e`. */
static void loading_end(struct loading *loading, struct history *history, const struct err *e) {
    struct session *session = loading->session;
    bool whole = history != NULL;
    struct session_stripe *stripe = session->stripe;
    pthread_mutex_lock(&stripe->lock);
    if (whole) {
        history_unref(session->history);
        session->history = history;
        session->loaded = true;
        remember_late(session);
        serve_waiters(session);
    }
    while (!whole && !list_empty(&session->waiters)) {
        session_refuse(CONTAINER_OF(session->waiters.next, struct lease, link), e);
    }
    if (!whole) {
        map_remove(stripe->sessions, text_str(session->key)); /* the next turn reads it again */
        free_session(session);
    } else {
        rest(session);
    }
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&loading->names);
    free(loading);
}

static void session_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct loading *loading = ctx;
    struct history *history = NULL;
    struct err e;
    if (failed) e = *failed;
    bool whole = !failed && history_read(load->sections, load->section_count, &history, &e);
    arena_free(load->arena);
    loading_end(loading, whole ? history : NULL, &e);
}

static struct str keep_name(struct buf *names, struct str name) {
    size_t at = names->len;
    buf_append(names, name);
    return str_of(names->at + at, name.len);
}

static bool has_run(const struct history *history, uint64_t run) {
    for (size_t i = 0; i < history->record_count; i++) {
        if (history->records[i]->run == run) return true;
    }
    return false;
}

/* Add records of turns that ended during the read. The store's answer may already contain some
 * of them. */
static void remember_late(struct session *session) {
    for (size_t i = 0; i < session->late_count; i++) {
        if (has_run(session->history, session->late[i]->run)) {
            turn_record_unref(session->late[i]);
        } else {
            remember(session, session->late[i]);
        }
    }
    free(session->late);
    session->late = NULL;
    session->late_count = 0;
}

/* --- among replicas ----------------------------------------------------------------------- */

static void refuse_impatient(struct session *session) {
    struct err busy;
    err_set(&busy, ERR_ABORTED,
            "another turn of this session is running; wait for it to end, then ask again");
    LIST_EACH(&session->waiters, link) {
        struct lease *lease = CONTAINER_OF(link, struct lease, link);
        if (lease->policy == SESSION_REJECT) session_refuse(lease, &busy);
    }
}

/* Another replica holds the session. */
static bool waits_for_holder(const struct err *busy, void *ctx) {
    const struct loading *loading = ctx;
    struct session *session = loading->session;
    (void)busy;
    pthread_mutex_lock(&session->stripe->lock);
    refuse_impatient(session);
    bool waits = loading->recovers || !list_empty(&session->waiters);
    pthread_mutex_unlock(&session->stripe->lock);
    return waits;
}

static void on_held(const struct err *failed, void *ctx) {
    struct loading *loading = ctx;
    if (failed) {
        loading_end(loading, NULL, failed);
        return;
    }
    loading->session->held_by = loading->load.home;
    store_load(loading->session->stripe->table->store, &loading->load);
}

static void hold(struct session_table *table, struct loading *loading) {
    const struct str names[] = {loading->load.workspace, loading->load.user,
                                loading->load.session};
    loading->session->lease = lease_key(LEASE_OF_SESSION, names, ARRAY_LEN(names));
    holding_start(&(struct holding_options){.all = table->holdings,
                                            .store = table->store,
                                            .loop = loading->load.home,
                                            .key = loading->session->lease,
                                            .recovers = loading->recovers,
                                            .wait_ms = table->wait_ms,
                                            .waits = waits_for_holder,
                                            .on_end = on_held,
                                            .ctx = loading});
}

/* Called without the lock: the answer may arrive before this returns. */
static void load(struct session_table *table, struct session *session,
                 const struct session_name *name, struct loop *home, bool recovers) {
    struct loading *loading = MEM_NEW(struct loading);
    loading->session = session;
    loading->recovers = recovers;
    size_t len = name->workspace.len + name->user.len + name->session.len + 1;
    buf_init(&loading->names, len);
    char *room = buf_room(&loading->names, len);
    assert(room);
    (void)room;
    loading->load =
        (struct store_load){.question = STORE_SESSION,
                            .workspace = keep_name(&loading->names, name->workspace),
                            .user = keep_name(&loading->names, name->user),
                            .session = keep_name(&loading->names, name->session),
                            .runs_max = HISTORY_TURNS_MAX,
                            .max_bytes = LOAD_MAX_BYTES,
                            .home = home,
                            .on_loaded = session_on_loaded,
                            .ctx = loading};
    if (table->holdings)
        hold(table, loading);
    else
        store_load(table->store, &loading->load);
}

/* --- leases ------------------------------------------------------------------------------- */

static enum session_answer session_ask(struct session *session, enum session_policy policy,
                                       struct lease *lease, struct err *e) {
    struct lease *lender;
    lease->session = session;
    lease->policy = policy;
    if (list_empty(&session->waiters) && is_free(session, &lender)) {
        session_give(session, lease, lender);
        return SESSION_GRANTED;
    }
    if (session->loaded && is_too_deep(session)) {
        set_too_deep(e);
        return SESSION_REFUSED;
    }
    if (policy == SESSION_REJECT && (session->loaded || !list_empty(&session->waiters))) {
        err_set(e, ERR_ABORTED,
                "another turn of this session is running; wait for it to end, then ask again");
        return SESSION_REFUSED;
    }
    lease_move(lease, LEASE_WAITING);
    list_append(&session->waiters, &lease->link);
    return SESSION_WAITS;
}

enum session_answer session_acquire(struct session_table *table,
                                    const struct session_name *name, enum session_policy policy,
                                    struct lease *lease, struct err *e) {
    struct buf key;
    buf_init(&key, KEY_MAX_BYTES);
    append_key(&key, name);
    if (!buf_ok(&key)) {
        buf_done(&key);
        err_set(e, ERR_INVALID_ARGUMENT, "the session's ids are longer than %zu bytes together",
                KEY_MAX_BYTES);
        return SESSION_REFUSED;
    }
    assert(lease->state == LEASE_IDLE);
    list_init(&lease->link);
    struct session_stripe *stripe = striped_of(table->stripes, buf_str(&key));
    lease->stripe = stripe;
    pthread_mutex_lock(&stripe->lock);
    bool is_new;
    struct session *session = find_or_add(stripe, buf_str(&key), name, &is_new);
    enum session_answer answer = session_ask(session, policy, lease, e);
    if (answer == SESSION_REFUSED) rest(session);
    bool must_load = is_new && !session->loaded;
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    if (must_load) load(table, session, name, lease->loop, false);
    return answer;
}

size_t session_before(struct lease *lease, uint64_t *ret_runs, size_t max) {
    struct session_stripe *stripe = lease->stripe;
    size_t count = 0;
    pthread_mutex_lock(&stripe->lock);
    bool waits = lease->state == LEASE_WAITING; /* false: it was granted meanwhile */
    struct lease *top = waits ? top_of(lease->session) : NULL;
    if (top && count < max) ret_runs[count++] = top->run;
    if (waits) {
        LIST_EACH(&lease->session->waiters, link) {
            struct lease *waiter = CONTAINER_OF(link, struct lease, link);
            if (waiter == lease || count == max) break;
            ret_runs[count++] = waiter->run;
        }
    }
    pthread_mutex_unlock(&stripe->lock);
    return count;
}

bool session_withdraw(struct lease *lease) {
    struct session_stripe *stripe = lease->stripe; /* a refused lease's session may be gone */
    pthread_mutex_lock(&stripe->lock);
    bool waited = lease->state == LEASE_WAITING;
    if (waited) {
        list_remove(&lease->link);
        lease_move(lease, LEASE_IDLE);
        if (lease->session->loaded) rest(lease->session);
    }
    pthread_mutex_unlock(&stripe->lock);
    return waited;
}

void session_lend(struct lease *lease, struct history *so_far) {
    struct session *session = lease->session;
    pthread_mutex_lock(&session->stripe->lock);
    assert(lease->state == LEASE_HELD && top_of(session) == lease);
    history_unref(lease->history);
    lease->history = so_far;
    lease_move(lease, LEASE_LENT);
    lease->wants_back = false;
    serve_waiters(session);
    pthread_mutex_unlock(&session->stripe->lock);
}

bool session_reclaim(struct lease *lease) {
    struct session *session = lease->session;
    pthread_mutex_lock(&session->stripe->lock);
    assert(lease->state == LEASE_LENT);
    bool back = lease->children == 0;
    lease->wants_back = !back;
    if (back) lease_move(lease, LEASE_HELD);
    pthread_mutex_unlock(&session->stripe->lock);
    return back;
}

/* Add a child's turn to its lender's records. */
static void hand_to_lender(struct lease *lender, struct turn_record *record) {
    size_t size = (lender->child_record_count + 1) * sizeof(struct turn_record *);
    lender->child_records = mem_resize(lender->child_records, size);
    lender->child_records[lender->child_record_count++] = record;
    /* The lender's next child sees this turn. */
    struct history *longer = history_with(lender->history, turn_record_ref(record));
    history_unref(lender->history);
    lender->history = longer;
}

static void remember(struct session *session, struct turn_record *record) {
    struct history *longer = history_with(session->history, record);
    history_unref(session->history);
    session->history = longer;
}

/* A lender that ends before its children passes them to its own lender. */
static void bequeath(struct session *session, struct lease *gone) {
    LIST_EACH(&session->stack, link) {
        struct lease *lease = CONTAINER_OF(link, struct lease, link);
        if (lease->lender != gone) continue;
        lease->lender = gone->lender;
        if (gone->lender) gone->lender->children++;
    }
}

/* Add `record` to the lender's records, or to the session's history. */
static void hand_up(struct session *session, struct lease *lender, struct turn_record *record) {
    if (lender) {
        hand_to_lender(lender, record);
    } else {
        remember(session, record);
    }
}

/* Records of turns inside a turn come after it (K11). */
static void hand_up_children(struct session *session, struct lease *lease) {
    for (size_t i = 0; i < lease->child_record_count; i++) {
        hand_up(session, lease->lender, lease->child_records[i]);
    }
    free(lease->child_records);
    lease->child_records = NULL;
    lease->child_record_count = 0;
}

void session_release(struct lease *lease, struct turn_record *record) {
    struct session *session = lease->session;
    struct session_stripe *stripe = session->stripe;
    pthread_mutex_lock(&stripe->lock);
    assert(lease->state == LEASE_HELD || lease->state == LEASE_LENT);
    struct lease *lender = lease->lender;
    bequeath(session, lease);
    list_remove(&lease->link);
    if (record) hand_up(session, lender, record);
    hand_up_children(session, lease);
    if (lender && --lender->children == 0 && lender->wants_back) post_children_done(lender);
    if (lease->note) lease->note->lease = NULL;
    lease->note = NULL;
    lease->wants_back = false;
    history_unref(lease->history);
    lease->history = NULL;
    lease_move(lease, LEASE_IDLE);
    lease->session = NULL;
    serve_waiters(session);
    rest(session);
    pthread_mutex_unlock(&stripe->lock);
}

/* If the session is not in memory, its next turn reads it from the store. */
void session_remember(struct session_table *table, const struct session_name *name,
                      struct turn_record *record) {
    struct buf key;
    buf_init(&key, KEY_MAX_BYTES);
    append_key(&key, name);
    struct session_stripe *stripe = striped_lock(table->stripes, buf_str(&key));
    struct session *session = map_find(stripe->sessions, buf_str(&key));
    if (session && session->loaded) {
        remember(session, record);
        if (table->holdings) rest(session);
    } else if (session) {
        size_t size = (session->late_count + 1) * sizeof(struct turn_record *);
        session->late = mem_resize(session->late, size);
        session->late[session->late_count++] = record;
    } else {
        turn_record_unref(record);
    }
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
}

void session_hold(struct session_table *table, const struct session_name *name,
                  struct loop *loop) {
    struct buf key;
    if (!table->holdings) return;
    buf_init(&key, KEY_MAX_BYTES);
    append_key(&key, name);
    struct session_stripe *stripe = striped_lock(table->stripes, buf_str(&key));
    bool is_new = !map_find(stripe->sessions, buf_str(&key));
    struct session *session = is_new ? find_or_add(stripe, buf_str(&key), name, &is_new) : NULL;
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    if (session) load(table, session, name, loop, true);
}

void session_forget(struct lease *lease) {
    struct session *session = lease->session;
    pthread_mutex_lock(&session->stripe->lock);
    assert(lease->state == LEASE_HELD && !lease->lender);
    history_unref(session->history);
    session->history = history_ref(session->stripe->table->empty);
    pthread_mutex_unlock(&session->stripe->lock);
}
