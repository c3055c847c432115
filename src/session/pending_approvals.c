#include "session/pending_approvals.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/striped.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STRIPE_COUNT 16
#define KEY_MAX_BYTES (64 * KIB)

/* The runs of one workspace and session, for all its users; freed with the last of them. */
struct session_approvals {
    struct list parked, answered;
};

struct pending_stripe {
    pthread_mutex_t lock;
    struct map *sessions;
};

struct pending_approvals {
    atomic_size_t count, answered; /* runs that wait or are answered, and the latter alone; a
                                      turn without any looks no further */
    struct striped *stripes;
};

struct pending_approvals *pending_approvals_new(void) {
    struct pending_approvals *approvals = MEM_NEW(struct pending_approvals);
    approvals->stripes = STRIPED_NEW(STRIPE_COUNT, struct pending_stripe);
    struct pending_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(approvals->stripes, i)); i++)
        stripe->sessions = map_new();
    return approvals;
}

void pending_approvals_free(struct pending_approvals *approvals) {
    if (!approvals) return;
    const struct pending_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(approvals->stripes, i)); i++) {
        assert(map_count(stripe->sessions) == 0);
        map_free(stripe->sessions);
    }
    striped_free(approvals->stripes);
    free(approvals);
}

/* The key begins with a length, so that no two pairs of names share one. */
static bool write_key(struct buf *key, const struct session_name *name) {
    buf_init(key, KEY_MAX_BYTES);
    buf_append_u64(key, name->workspace.len);
    buf_append_byte(key, ':');
    buf_append(key, name->workspace);
    buf_append(key, name->session);
    return buf_ok(key);
}

void pending_approvals_add(struct pending_approvals *approvals,
                           struct pending_approval *parked) {
    struct buf key;
    bool fits = write_key(&key, &parked->name);
    assert(fits); /* the session's own key is longer */
    (void)fits;
    struct pending_stripe *stripe = striped_lock(approvals->stripes, buf_str(&key));
    struct session_approvals *session_approvals = map_find(stripe->sessions, buf_str(&key));
    if (!session_approvals) {
        session_approvals = MEM_NEW(struct session_approvals);
        list_init(&session_approvals->parked);
        list_init(&session_approvals->answered);
        map_put(stripe->sessions, buf_str(&key), session_approvals);
    }
    parked->answered = false;
    list_append(&session_approvals->parked, &parked->link);
    atomic_fetch_add(&approvals->count, 1);
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
}

static struct pending_approval *oldest_of(struct session_approvals *session_approvals,
                                          struct str user) {
    LIST_EACH(&session_approvals->parked, link) {
        struct pending_approval *parked = CONTAINER_OF(link, struct pending_approval, link);
        if (!user.at || str_equal(parked->name.user, user)) return parked;
    }
    return NULL;
}

static void pending_approvals_take_out(struct pending_approvals *approvals,
                                       struct pending_stripe *stripe, struct str key,
                                       struct pending_approval *parked) {
    struct session_approvals *session_approvals = map_find(stripe->sessions, key);
    list_remove(&parked->link);
    atomic_fetch_sub(&approvals->count, 1);
    if (parked->answered) atomic_fetch_sub(&approvals->answered, 1);
    if (!list_empty(&session_approvals->parked) || !list_empty(&session_approvals->answered))
        return;
    map_remove(stripe->sessions, key);
    free(session_approvals);
}

static void pending_approvals_note_answered(struct pending_approvals *approvals,
                                            struct session_approvals *session_approvals,
                                            struct pending_approval *parked) {
    list_remove(&parked->link);
    list_append(&session_approvals->answered, &parked->link);
    parked->answered = true;
    atomic_fetch_add(&approvals->answered, 1);
}

/* The run must be the user's, where the user is known. */
static struct pending_approval *find_run(struct session_approvals *session_approvals,
                                         struct str user, uint64_t run, uint64_t seq) {
    LIST_EACH(&session_approvals->parked, link) {
        struct pending_approval *parked = CONTAINER_OF(link, struct pending_approval, link);
        bool own = !user.at || str_equal(parked->name.user, user);
        if (own && parked->run == run && parked->seq == seq) return parked;
    }
    return NULL;
}

/* Choose the run that is meant. PENDING_NONE or PENDING_SEVERAL: there is no single one. */
static enum pending_found choose(struct session_approvals *session_approvals,
                                 const struct pending_approvals_wish *wish,
                                 struct pending_approval **ret) {
    struct str user = wish->name->user;
    if (wish->run) {
        *ret = find_run(session_approvals, user, wish->run, wish->seq);
        return *ret ? PENDING_TAKEN : PENDING_NONE;
    }
    struct pending_approval *oldest = oldest_of(session_approvals, user);
    if (!oldest) return PENDING_NONE;
    LIST_EACH(&session_approvals->parked, link) {
        const struct pending_approval *other =
            CONTAINER_OF(link, struct pending_approval, link);
        bool same_user = str_equal(other->name.user, oldest->name.user);
        if (other == oldest || (user.at && !same_user)) continue;
        if (wish->rule == PENDING_ONLY_ONE) return PENDING_SEVERAL;
        if (wish->rule == PENDING_OF_ONE_USER && !same_user) return PENDING_SEVERAL;
    }
    *ret = oldest;
    return PENDING_TAKEN;
}

static bool pending_approvals_copy(const struct pending_approval *parked, struct arena *arena,
                                   struct pending_view *ret);

static enum pending_found consider(struct session_approvals *session_approvals,
                                   const struct pending_approvals_wish *wish,
                                   struct pending_approval **ret) {
    struct pending_approval *parked;
    enum pending_found found = choose(session_approvals, wish, &parked);
    if (found != PENDING_TAKEN) return found;
    found = wish->check(&parked->asked, wish->ctx);
    if (found == PENDING_TAKEN) *ret = parked;
    if (found != PENDING_TAKEN && wish->view &&
        !pending_approvals_copy(parked, wish->arena, wish->view))
        return PENDING_NONE; /* its text does not fit in the arena */
    return found;
}

enum pending_found pending_approvals_take(struct pending_approvals *approvals,
                                          const struct pending_approvals_wish *wish,
                                          struct pending_approval **ret) {
    enum pending_found found = PENDING_NONE;
    struct buf key;
    if (atomic_load(&approvals->count) == 0) return PENDING_NONE;
    if (write_key(&key, wish->name)) {
        struct pending_stripe *stripe = striped_lock(approvals->stripes, buf_str(&key));
        struct session_approvals *session_approvals = map_find(stripe->sessions, buf_str(&key));
        if (session_approvals) found = consider(session_approvals, wish, ret);
        if (found == PENDING_TAKEN)
            pending_approvals_note_answered(approvals, session_approvals, *ret);
        pthread_mutex_unlock(&stripe->lock);
    }
    buf_done(&key);
    return found;
}

/* The run's stripe, locked. */
static struct pending_stripe *lock_of(struct pending_approvals *approvals,
                                      const struct pending_approval *parked, struct buf *key) {
    bool fits = write_key(key, &parked->name);
    assert(fits);
    (void)fits;
    return striped_lock(approvals->stripes, buf_str(key));
}

static bool waits(const struct pending_approval *parked) {
    return list_linked(&parked->link) && !parked->answered;
}

bool pending_approvals_remove(struct pending_approvals *approvals,
                              struct pending_approval *parked) {
    struct buf key;
    struct pending_stripe *stripe = lock_of(approvals, parked, &key);
    bool here = waits(parked);
    if (here) pending_approvals_take_out(approvals, stripe, buf_str(&key), parked);
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    return here;
}

bool pending_approvals_expire(struct pending_approvals *approvals,
                              struct pending_approval *parked) {
    struct buf key;
    struct pending_stripe *stripe = lock_of(approvals, parked, &key);
    bool here = waits(parked);
    if (here)
        pending_approvals_note_answered(approvals, map_find(stripe->sessions, buf_str(&key)),
                                        parked);
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    return here;
}

void pending_approvals_leave(struct pending_approvals *approvals,
                             struct pending_approval *parked) {
    struct buf key;
    struct pending_stripe *stripe = lock_of(approvals, parked, &key);
    assert(list_linked(&parked->link) && parked->answered);
    pending_approvals_take_out(approvals, stripe, buf_str(&key), parked);
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
}

/* Run with the name's stripe locked. */
typedef bool look_fn(struct session_approvals *session_approvals, const void *ctx);

static bool look_under(struct pending_approvals *approvals, const struct session_name *name,
                       look_fn *look, const void *ctx) {
    struct buf key;
    bool found = false;
    if (atomic_load(&approvals->count) == 0) return false;
    if (write_key(&key, name)) {
        struct pending_stripe *stripe = striped_lock(approvals->stripes, buf_str(&key));
        struct session_approvals *session_approvals = map_find(stripe->sessions, buf_str(&key));
        found = session_approvals && look(session_approvals, ctx);
        pthread_mutex_unlock(&stripe->lock);
    }
    buf_done(&key);
    return found;
}

static bool has_any(struct session_approvals *session_approvals, const void *ctx) {
    const struct session_name *name = ctx;
    return oldest_of(session_approvals, name->user) != NULL;
}

bool pending_approvals_has(struct pending_approvals *approvals,
                           const struct session_name *name) {
    return look_under(approvals, name, has_any, name);
}

struct one_question {
    struct str user;
    uint64_t run, seq;
};

static bool has_question(struct session_approvals *session_approvals, const void *ctx) {
    const struct one_question *one = ctx;
    return find_run(session_approvals, one->user, one->run, one->seq) != NULL;
}

bool pending_approvals_asks(struct pending_approvals *approvals,
                            const struct session_name *name, uint64_t run, uint64_t seq) {
    const struct one_question one = {name->user, run, seq};
    return look_under(approvals, name, has_question, &one);
}

struct answered_runs {
    struct str user;
    uint64_t *runs;
    size_t max;
    size_t *count;
};

static bool note_answered(struct session_approvals *session_approvals, const void *ctx) {
    const struct answered_runs *to = ctx;
    LIST_EACH(&session_approvals->answered, link) {
        const struct pending_approval *parked =
            CONTAINER_OF(link, struct pending_approval, link);
        if (*to->count < to->max && str_equal(parked->name.user, to->user))
            to->runs[(*to->count)++] = parked->run;
    }
    return *to->count > 0;
}

size_t pending_approvals_answered(struct pending_approvals *approvals,
                                  const struct session_name *name, uint64_t *ret_runs,
                                  size_t max) {
    size_t count = 0;
    const struct answered_runs to = {name->user, ret_runs, max, &count};
    if (atomic_load(&approvals->answered))
        (void)look_under(approvals, name, note_answered, &to);
    return count;
}

/* --- listing ------------------------------------------------------------------------------ */

static bool matches(const struct pending_approval *parked,
                    const struct pending_approvals_filter *filter) {
    const struct session_name *name = &parked->name;
    return (!filter->workspace.at || str_equal(name->workspace, filter->workspace)) &&
           (!filter->user.at || str_equal(name->user, filter->user)) &&
           (!filter->session.at || str_equal(name->session, filter->session)) &&
           (!filter->run || parked->run == filter->run);
}

typedef bool visit_fn(const struct pending_approval *parked, void *ctx);

/* Each stripe is visited with its lock held, so that its runs stay parked meanwhile. */
static bool visit(struct pending_approvals *approvals,
                  const struct pending_approvals_filter *filter, visit_fn *each, void *ctx) {
    bool on = true;
    struct pending_stripe *stripe;
    for (size_t i = 0; on && (stripe = striped_at(approvals->stripes, i)); i++) {
        size_t at = 0;
        struct str key;
        void *session_approvals;
        pthread_mutex_lock(&stripe->lock);
        while (on && map_next(stripe->sessions, &at, &key, &session_approvals)) {
            LIST_EACH(&((struct session_approvals *)session_approvals)->parked, link) {
                const struct pending_approval *parked =
                    CONTAINER_OF(link, struct pending_approval, link);
                if (on && matches(parked, filter)) on = each(parked, ctx);
            }
        }
        pthread_mutex_unlock(&stripe->lock);
    }
    return on;
}

struct listing {
    struct pending_view *views; /* the lowest runs, sorted */
    size_t count, count_max;
    struct arena *arena;
    bool more;
};

/* First only collect the matching runs. Texts are copied later, only for those returned. */
static bool pending_approvals_note(const struct pending_approval *parked, void *ctx) {
    struct listing *listing = ctx;
    size_t at = listing->count;
    while (at > 0 && listing->views[at - 1].run > parked->run) at--;
    if (listing->count == listing->count_max) {
        listing->more = true;
        if (at == listing->count) return true;
        listing->count--;
    }
    memmove(listing->views + at + 1, listing->views + at,
            (listing->count - at) * sizeof(struct pending_view));
    listing->views[at] = (struct pending_view){.run = parked->run};
    listing->count++;
    return true;
}

static bool pending_approvals_copy(const struct pending_approval *parked, struct arena *arena,
                                   struct pending_view *ret) {
    const struct pending_question *asked = &parked->asked;
    struct pending_view view = {.run = parked->run, .asked = *asked};
    view.asked.schema = NULL;
    view.asked.words = NULL;
    if (!arena_str(arena, parked->name.workspace, &view.name.workspace) ||
        !arena_str(arena, parked->name.user, &view.name.user) ||
        !arena_str(arena, parked->name.session, &view.name.session) ||
        !arena_str(arena, asked->agent, &view.asked.agent) ||
        !arena_str(arena, asked->question, &view.asked.question) ||
        !arena_str(arena, asked->tool, &view.asked.tool) ||
        !arena_str(arena, asked->args, &view.asked.args) ||
        !arena_str(arena, asked->guards, &view.asked.guards))
        return false;
    view.seq = parked->seq; /* set: the copy is complete */
    *ret = view;
    return true;
}

static bool pending_approvals_fill(const struct pending_approval *parked, void *ctx) {
    struct listing *listing = ctx;
    size_t low = 0, high = listing->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (listing->views[middle].run < parked->run) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == listing->count || listing->views[low].run != parked->run) return true;
    if (!pending_approvals_copy(parked, listing->arena, &listing->views[low]))
        listing->more = true;
    return true;
}

size_t pending_approvals_list(struct pending_approvals *approvals,
                              const struct pending_approvals_filter *filter, size_t count,
                              struct arena *arena, struct pending_view *ret, bool *ret_more) {
    struct listing listing = {.views = ret, .count_max = count, .arena = arena};
    size_t whole = 0;
    *ret_more = false;
    if (count == 0) return 0;
    visit(approvals, filter, pending_approvals_note, &listing);
    visit(approvals, filter, pending_approvals_fill, &listing);
    for (size_t i = 0; i < listing.count; i++) { /* answered meanwhile: no text */
        if (ret[i].seq) ret[whole++] = ret[i];
    }
    *ret_more = listing.more;
    return whole;
}
