#include "session/session.h"

#include "base/buf.h"
#include "base/mem.h"
#include "session/holding.h"
#include "session/resident.h"
#include "session/session_load.h"
#include "store/interrupting.h"

#include <assert.h>
#include <stdlib.h>

#define KEY_MAX_BYTES (64 * KIB)

/* Each name is preceded by its length, so that no two triples share a key. */
static void session_append_key(struct buf *key, const struct session_name *name) {
    const size_t lens[] = {name->workspace.len, name->user.len}; /* they tell keys apart */
    buf_append(key, str_of(lens, sizeof(lens)));
    buf_append(key, name->workspace);
    buf_append(key, name->user);
    buf_append(key, name->session);
}

/* --- giving; called with the stripe's lock held ------------------------------------------- */

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

static void set_too_deep(struct err *e) {
    err_set(e, ERR_RESOURCE_EXHAUSTED,
            "turns of this session already stand %d deep inside each other; an agent seems to "
            "call itself",
            SESSION_DEPTH_MAX);
}

static void set_busy(struct err *e) {
    err_set(e, ERR_ABORTED,
            "another turn of this session is running; wait for it to end, then ask again");
}

/* Whether a run of the session was answered and is about to ask for it again. */
static bool awaits_return(const struct session *session) {
    uint64_t run;
    return pending_approvals_answered(session->stripe->table->approvals, &session->name, &run,
                                      1) > 0;
}

/* Grant the session to waiting leases, the longest waiting first, while it is free. A lent
 * session is free unless its lender wants it back. */
static void serve_waiters(struct session *session) {
    while (!list_empty(&session->waiters)) {
        struct lease *lease = CONTAINER_OF(session->waiters.next, struct lease, link);
        struct lease *lender;
        if (!is_free(session, &lender)) return;
        if (!lease->returns && awaits_return(session)) return;
        list_remove(&lease->link);
        session_give(session, lease, lender);
        lease_post_granted(lease);
    }
}

static void refuse_impatient(struct session *session) {
    struct err busy;
    set_busy(&busy);
    LIST_EACH(&session->waiters, link) {
        struct lease *lease = CONTAINER_OF(link, struct lease, link);
        if (lease->impatient) lease_refuse(lease, &busy);
    }
}

/* --- loading ------------------------------------------------------------------------------ */

/* A session that could not be read is discarded: the next turn reads it again. */
static void session_on_loaded(struct history *history, const struct err *why, void *ctx) {
    struct session *session = ctx;
    struct session_stripe *stripe = session->stripe;
    pthread_mutex_lock(&stripe->lock);
    if (history) {
        resident_loaded(session, history);
        serve_waiters(session);
        refuse_impatient(session); /* a run that was answered meanwhile comes first */
        resident_rest(session);
    }
    while (!history && !list_empty(&session->waiters)) {
        lease_refuse(CONTAINER_OF(session->waiters.next, struct lease, link), why);
    }
    if (!history) resident_discard(session);
    pthread_mutex_unlock(&stripe->lock);
}

/* --- among replicas ----------------------------------------------------------------------- */

struct lease_key session_lease_key(const struct session_name *name) {
    const struct str names[] = {name->workspace, name->user, name->session};
    return lease_key(LEASE_OF_SESSION, names, ARRAY_LEN(names));
}

/* One that asks the other replicas. */
struct claiming {
    struct session *session;
    struct loop *loop;
    bool recovers; /* for a run that waits here, not for a turn */
    bool wished;   /* that the turns of another replica make way */
};

/* The newest turn that does not wait for older ones to end by themselves; 0: there is none. */
static uint64_t newest_that_interrupts(struct session *session) {
    uint64_t newest = 0;
    LIST_EACH(&session->waiters, link) {
        const struct lease *lease = CONTAINER_OF(link, struct lease, link);
        if (lease->interrupts && lease->run > newest) newest = lease->run;
    }
    return newest;
}

/* Each time that it has to wait: another replica may have the session by now, which has not heard of
 * it. */
static void wish_to_interrupt(struct claiming *claiming, uint64_t run) {
    const struct session *session = claiming->session;
    const struct interrupting wish = {.run = run,
                                      .lease = session->lease,
                                      .workspace = session->name.workspace,
                                      .user = session->name.user,
                                      .session = session->name.session};
    claiming->wished = true;
    interrupting_wish(session->stripe->table->store, claiming->loop, &wish);
}

/* Another replica holds the session. */
static bool waits_for_holder(const struct err *busy, void *ctx) {
    struct claiming *claiming = ctx;
    struct session *session = claiming->session;
    (void)busy;
    pthread_mutex_lock(&session->stripe->lock);
    refuse_impatient(session);
    bool waits = claiming->recovers || !list_empty(&session->waiters);
    uint64_t run = newest_that_interrupts(session);
    pthread_mutex_unlock(&session->stripe->lock);
    if (run) wish_to_interrupt(claiming, run);
    return waits;
}

static void on_held(const struct err *failed, void *ctx) {
    struct claiming claiming = *(struct claiming *)ctx;
    struct session *session = claiming.session;
    free(ctx);
    if (claiming.wished)
        interrupting_end(session->stripe->table->store, claiming.loop, &session->lease);
    if (failed) {
        session_on_loaded(NULL, failed, session);
        return;
    }
    session->held_by = claiming.loop;
    session_load(session->stripe->table->store, &session->name, claiming.loop,
                 session_on_loaded, session);
}

static void session_claim(struct session_table *table, struct session *session,
                          struct loop *loop, bool recovers) {
    struct claiming *claiming = MEM_NEW(struct claiming);
    *claiming = (struct claiming){.session = session, .loop = loop, .recovers = recovers};
    session->lease = session_lease_key(&session->name);
    holding_start(&(struct holding_options){.all = table->holdings,
                                            .store = table->store,
                                            .loop = loop,
                                            .key = session->lease,
                                            .recovers = recovers,
                                            .wait_ms = table->wait_ms,
                                            .waits = waits_for_holder,
                                            .on_end = on_held,
                                            .ctx = claiming});
}

void session_hold(struct session_table *table, const struct session_name *name,
                  struct loop *loop) {
    struct buf key;
    if (!table->holdings) return;
    buf_init(&key, KEY_MAX_BYTES);
    session_append_key(&key, name);
    struct session_stripe *stripe = striped_lock(table->stripes, buf_str(&key));
    bool is_new = !map_find(stripe->sessions, buf_str(&key));
    struct session *session =
        is_new ? resident_find_or_add(stripe, buf_str(&key), name, &is_new) : NULL;
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    if (session) session_claim(table, session, loop, true);
}

/* --- leases ------------------------------------------------------------------------------- */

/* After the others that return. */
static void wait_ahead(struct session *session, struct lease *lease) {
    struct list *last = &session->waiters;
    while (last->next != &session->waiters &&
           CONTAINER_OF(last->next, struct lease, link)->returns)
        last = last->next;
    list_add_after(last, &lease->link);
}

static bool is_first(const struct session *session, const struct lease *lease) {
    if (list_empty(&session->waiters)) return lease->returns || !awaits_return(session);
    return lease->returns && !CONTAINER_OF(session->waiters.next, struct lease, link)->returns;
}

static enum session_answer session_ask(struct session *session, enum session_policy policy,
                                       struct lease *lease, struct err *e) {
    struct lease *lender;
    bool first = is_first(session, lease);
    lease->session = session;
    lease->impatient = policy == SESSION_REJECT;
    lease->interrupts = policy == SESSION_INTERRUPT;
    if (first && is_free(session, &lender)) {
        session_give(session, lease, lender);
        return SESSION_GRANTED;
    }
    if (session->loaded && is_too_deep(session)) {
        set_too_deep(e);
        return SESSION_REFUSED;
    }
    if (policy == SESSION_REJECT && (session->loaded || !first)) {
        set_busy(e);
        return SESSION_REFUSED;
    }
    lease_move(lease, LEASE_WAITING);
    if (lease->returns)
        wait_ahead(session, lease);
    else
        list_append(&session->waiters, &lease->link);
    return SESSION_WAITS;
}

/* returning: what its run asked; NULL: a new turn. */
static enum session_answer session_enter(struct session_table *table,
                                         const struct session_name *name,
                                         enum session_policy policy,
                                         struct pending_approval *returning,
                                         struct lease *lease, struct err *e) {
    struct buf key;
    buf_init(&key, KEY_MAX_BYTES);
    session_append_key(&key, name);
    if (!buf_ok(&key)) {
        assert(!returning); /* it had the session */
        buf_done(&key);
        err_set(e, ERR_INVALID_ARGUMENT, "the session's ids are longer than %zu bytes together",
                KEY_MAX_BYTES);
        return SESSION_REFUSED;
    }
    assert(lease->state == LEASE_IDLE);
    list_init(&lease->link);
    lease->returns = returning != NULL;
    struct session_stripe *stripe = striped_of(table->stripes, buf_str(&key));
    lease->stripe = stripe;
    pthread_mutex_lock(&stripe->lock);
    bool is_new;
    struct session *session = resident_find_or_add(stripe, buf_str(&key), name, &is_new);
    if (returning) pending_approvals_leave(table->approvals, returning);
    enum session_answer answer = session_ask(session, policy, lease, e);
    if (answer == SESSION_REFUSED && returning) serve_waiters(session);
    if (answer == SESSION_REFUSED && session->loaded) resident_rest(session);
    bool must_load = is_new && !session->loaded;
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    if (must_load && table->holdings)
        session_claim(table, session, lease->loop, false);
    else if (must_load)
        session_load(table->store, name, lease->loop, session_on_loaded, session);
    return answer;
}

enum session_answer session_acquire(struct session_table *table,
                                    const struct session_name *name, enum session_policy policy,
                                    struct lease *lease, struct err *e) {
    return session_enter(table, name, policy, NULL, lease, e);
}

enum session_answer session_return(struct session_table *table, struct pending_approval *parked,
                                   struct lease *lease, struct err *e) {
    return session_enter(table, &parked->name, SESSION_QUEUE, parked, lease, e);
}

/* The session's stripe, locked. *ret: NULL if it is not in memory. */
static struct session_stripe *lock_of(struct session_table *table,
                                      const struct session_name *name, struct session **ret) {
    struct buf key;
    buf_init(&key, KEY_MAX_BYTES);
    session_append_key(&key, name);
    struct session_stripe *stripe = striped_lock(table->stripes, buf_str(&key));
    *ret = map_find(stripe->sessions, buf_str(&key));
    buf_done(&key);
    return stripe;
}

void session_forgo(struct session_table *table, struct pending_approval *parked) {
    struct session *session;
    struct session_stripe *stripe = lock_of(table, &parked->name, &session);
    pending_approvals_leave(table->approvals, parked);
    if (session && session->loaded) {
        serve_waiters(session);
        resident_rest(session);
    }
    pthread_mutex_unlock(&stripe->lock);
}

size_t session_before(struct lease *lease, uint64_t *ret_runs, size_t max) {
    struct session_stripe *stripe = lease->stripe;
    size_t count = 0;
    pthread_mutex_lock(&stripe->lock);
    bool waits = lease->state == LEASE_WAITING; /* false: it was granted meanwhile */
    if (waits)
        count = pending_approvals_answered(stripe->table->approvals, &lease->session->name,
                                           ret_runs, max);
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

static void add_older(const struct lease *lease, uint64_t run, uint64_t *ret_runs, size_t max,
                      size_t *count) {
    if (lease->run < run && *count < max) ret_runs[(*count)++] = lease->run;
}

size_t session_older(struct session_table *table, const struct session_name *name, uint64_t run,
                     uint64_t *ret_runs, size_t max) {
    size_t count = 0;
    struct session *session;
    struct session_stripe *stripe = lock_of(table, name, &session);
    struct lease *top = session ? top_of(session) : NULL;
    if (top && top->state == LEASE_HELD) add_older(top, run, ret_runs, max, &count);
    if (session) {
        LIST_EACH(&session->waiters, link) {
            add_older(CONTAINER_OF(link, struct lease, link), run, ret_runs, max, &count);
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
        if (lease->session->loaded) resident_rest(lease->session);
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

/* A lender that ends before its children passes them to its own lender. */
static void pass_on_children(struct session *session, struct lease *gone) {
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
        resident_remember(session, record);
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
    pass_on_children(session, lease);
    list_remove(&lease->link);
    if (record) hand_up(session, lender, record);
    hand_up_children(session, lease);
    if (lender && --lender->children == 0 && lender->wants_back)
        lease_post_children_done(lender);
    lease_drop_note(lease);
    lease->wants_back = false;
    history_unref(lease->history);
    lease->history = NULL;
    lease_move(lease, LEASE_IDLE);
    lease->session = NULL;
    serve_waiters(session);
    resident_rest(session);
    pthread_mutex_unlock(&stripe->lock);
}

/* If the session is not in memory, its next turn reads it from the store. */
void session_remember(struct session_table *table, const struct session_name *name,
                      struct turn_record *record) {
    struct session *session;
    struct session_stripe *stripe = lock_of(table, name, &session);
    if (session && session->loaded) {
        resident_remember(session, record);
        if (table->holdings) resident_rest(session);
    } else if (session) {
        resident_remember_later(session, record);
    } else {
        turn_record_unref(record);
    }
    pthread_mutex_unlock(&stripe->lock);
}

void session_forget(struct lease *lease) {
    struct session *session = lease->session;
    pthread_mutex_lock(&session->stripe->lock);
    assert(lease->state == LEASE_HELD && !lease->lender);
    history_unref(session->history);
    session->history = history_ref(session->stripe->table->empty);
    pthread_mutex_unlock(&session->stripe->lock);
}
