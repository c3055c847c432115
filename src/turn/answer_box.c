#include "turn/answer_box.h"

#include "base/map.h"
#include "base/mem.h"
#include "journal/journal.h"
#include "session/directory.h"
#include "session/idempotency_claims.h"
#include "session/waiting.h"
#include "store/changes.h"
#include "store/posted.h"
#include "turn/dormant_wake.h"

#include <assert.h>
#include <stdlib.h>

#define AGAIN_MS 100 /* before an answer that could not be given is tried again, at first */
#define AGAIN_MAX_MS 2000 /* in the end */

#define ROWS (TO(ANSWER_BOX_READING) | TO(ANSWER_BOX_WAKING) | TO(ANSWER_BOX_TAKING))
#define ROWS_OVER (TO(ANSWER_BOX_IDLE) | TO(ANSWER_BOX_STOPPED))

const struct state answer_box_states[ANSWER_BOX_STATE_COUNT] = {
    [ANSWER_BOX_IDLE] = {"idle", TO(ANSWER_BOX_READING) | TO(ANSWER_BOX_STOPPED)},
    [ANSWER_BOX_READING] = {"reading", ROWS | ROWS_OVER},
    [ANSWER_BOX_WAKING] = {"waking", ROWS | ROWS_OVER},
    [ANSWER_BOX_TAKING] = {"taking", ROWS | ROWS_OVER},
    [ANSWER_BOX_STOPPED] = {"stopped", 0},
};

/* What the box knows of a row that is still there. */
struct seen_row {
    struct posted_id id;
    uint64_t pass;     /* the last one that read it */
    bool given;        /* its run has it; the sender will remove it */
    uint64_t again_ms; /* not before, by the loop's clock */
    uint64_t wait_ms;  /* the last time between two attempts */
};

struct answer_box {
    struct session_table *sessions;
    struct loop *loop;
    struct changes_watcher *watcher;
    struct timer again;
    enum answer_box_state state;
    bool asking; /* the store: its answer comes, also after the box was stopped */
    struct posted_list list;
    size_t next; /* of the list */
    bool woken;  /* the run of that one */
    struct posted_take take;
    struct dormant_wake *wake;
    bool changed; /* since the pass began */
    uint64_t pass;
    struct map *seen; /* of struct seen_row, by its id */
};

static void box_move(struct answer_box *box, enum answer_box_state next) {
    assert(states_allow(answer_box_states, box->state, next));
    box->state = next;
}

static struct store *box_store(const struct answer_box *box) {
    return session_table_store(box->sessions);
}

/* --- the rows that were seen -------------------------------------------------------------- */

static struct str answer_box_key_of(const struct posted_id *id) {
    return str_of((const char *)id, sizeof(*id));
}

static struct seen_row *see(struct answer_box *box, const struct posted_id *id) {
    struct seen_row *seen = map_find(box->seen, answer_box_key_of(id));
    if (!seen) {
        seen = MEM_NEW(struct seen_row);
        seen->id = *id;
        map_put(box->seen, answer_box_key_of(id), seen);
    }
    seen->pass = box->pass;
    return seen;
}

/* Runs that the last whole pass did not find are gone. `all`: every one. */
static void forget_seen(struct answer_box *box, bool all) {
    struct map *kept = map_new();
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(box->seen, &at, &key, &value)) {
        struct seen_row *seen = value;
        if (all || seen->pass != box->pass)
            free(seen);
        else
            map_put(kept, key, seen);
    }
    map_free(box->seen);
    box->seen = kept;
}

/* When the next one is to be tried again; 0: none. */
static uint64_t next_again_ms(const struct answer_box *box) {
    uint64_t soonest_ms = 0;
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(box->seen, &at, &key, &value)) {
        const struct seen_row *seen = value;
        if (!seen->given && seen->again_ms && (!soonest_ms || seen->again_ms < soonest_ms))
            soonest_ms = seen->again_ms;
    }
    return soonest_ms;
}

static void box_free(struct answer_box *box) {
    posted_list_done(&box->list);
    forget_seen(box, true);
    map_free(box->seen);
    free(box);
}

/* --- one answer --------------------------------------------------------------------------- */

/* As the run's own replica would be asked. ASLEEP: the claims changed meanwhile. */
static enum pending_found answer_box_settle(struct answer_box *box,
                                            const struct posted_words *words,
                                            const struct live_view *view, struct err *e) {
    struct claim_view claimed = {0};
    const struct claim_name name = {view->workspace, words->key_user, words->key};
    struct pending_answered answered;
    if (words->key.len)
        idempotency_claims_look(session_table_claims(box->sessions), &name, &claimed);
    const struct pending_answer answer = {.name = {view->workspace, view->user, view->session},
                                          .run = words->run,
                                          .seq = words->seq,
                                          .text = words->text,
                                          .key = words->key,
                                          .key_user = words->key_user,
                                          .print = words->print,
                                          .asks_again = words->print.len > 0,
                                          .key_mark = claimed.mark};
    enum pending_found found = session_settle(box->sessions, &answer, &answered, e);
    if (found == PENDING_TAKEN) journal_unref(answered.journal);
    if (found == PENDING_CLAIMED && !claimed.run) return PENDING_ASLEEP; /* try again */
    if (found == PENDING_CLAIMED)
        err_set(e, ERR_ALREADY_EXISTS, "another request took its idempotency key");
    return found;
}

static void answer_box_leave(struct answer_box *box, struct seen_row *seen) {
    uint64_t longer_ms = 2 * seen->wait_ms;
    seen->wait_ms = !seen->wait_ms             ? AGAIN_MS
                    : longer_ms > AGAIN_MAX_MS ? AGAIN_MAX_MS
                                               : longer_ms;
    seen->again_ms = loop_now_ms(box->loop) + seen->wait_ms;
}

/* The row is this replica's. Its sender sees in the log if the run was answered, or is over. */
static void give(struct answer_box *box, const struct posted *posted, struct seen_row *seen) {
    struct live_view view;
    struct err e = {0};
    enum pending_found found = PENDING_NONE;
    if (directory_find(session_table_directory(box->sessions), posted->words.run, &view)) {
        found = answer_box_settle(box, &posted->words, &view, &e);
        live_view_done(&view);
    }
    seen->given = found == PENDING_TAKEN;
    if (found == PENDING_REFUSED)
        posted_refuse(box_store(box), box->loop, posted->id, POSTED_MISFIT, e.text);
    else if (found == PENDING_UNDECIDED)
        posted_refuse(box_store(box), box->loop, posted->id, POSTED_UNDECIDED, e.text);
    else if (found == PENDING_CLAIMED)
        posted_refuse(box_store(box), box->loop, posted->id, POSTED_KEY_TAKEN, e.text);
    else if (found != PENDING_TAKEN) {
        posted_release(box_store(box), box->loop, posted->id);
        answer_box_leave(box, seen);
    }
}

/* --- all of them -------------------------------------------------------------------------- */

static void read_rows(struct answer_box *box);
static void read_on(struct answer_box *box);

/* The box was stopped meanwhile, and is freed now. */
static bool is_stopped(struct answer_box *box) {
    box->asking = false;
    if (box->state != ANSWER_BOX_STOPPED) return false;
    box_free(box);
    return true;
}

static void on_take(struct posted_take *take, const struct err *failed, void *ctx) {
    struct answer_box *box = ctx;
    if (is_stopped(box)) return;
    const struct posted *posted = &box->list.all[box->next];
    struct seen_row *seen = see(box, &posted->id);
    if (failed)
        answer_box_leave(box, seen);
    else if (take->taken)
        give(box, posted, seen);
    box->next++;
    box->woken = false;
    read_on(box);
}

static void answer_box_on_awake(const struct err *failed, void *ctx) {
    struct answer_box *box = ctx;
    (void)failed; /* then it is not found, and looked for again */
    box->wake = NULL;
    box->woken = true;
    read_on(box);
}

static bool answer_box_wake(struct answer_box *box, uint64_t run) {
    const struct dormant_filter filter = {.run = run};
    if (box->woken) return false;
    box->wake = dormant_wake_start(session_table_directory(box->sessions), &filter, 1,
                                   box->loop, answer_box_on_awake, box);
    if (box->wake) box_move(box, ANSWER_BOX_WAKING);
    return box->wake != NULL;
}

/* Whether the run waits here, in memory, with this very question. */
static bool waits(struct answer_box *box, const struct posted_words *words) {
    struct live_view view;
    if (!directory_find(session_table_directory(box->sessions), words->run, &view))
        return false;
    const struct session_name name = {view.workspace, view.user, view.session};
    bool here = pending_approvals_asks(session_table_approvals(box->sessions), &name,
                                       words->run, words->seq);
    live_view_done(&view);
    return here;
}

static void start_taking(struct answer_box *box, const struct posted *posted) {
    box_move(box, ANSWER_BOX_TAKING);
    box->take = (struct posted_take){.id = posted->id, .on_done = on_take, .ctx = box};
    box->asking = true;
    posted_take(box_store(box), box->loop, &box->take);
}

/* True: it is on its way, and the box goes on later. */
static bool take_up(struct answer_box *box, const struct posted *posted) {
    struct seen_row *seen = see(box, &posted->id);
    if (seen->given || loop_now_ms(box->loop) < seen->again_ms) return false;
    if (answer_box_wake(box, posted->words.run)) return true;
    if (waits(box, &posted->words)) {
        start_taking(box, posted);
        return true;
    }
    answer_box_leave(box, seen);
    return false;
}

static void end_pass(struct answer_box *box) {
    box_move(box, ANSWER_BOX_IDLE);
    forget_seen(box, false);
    uint64_t now_ms = loop_now_ms(box->loop), again_ms = next_again_ms(box);
    if (again_ms) timer_start(&box->again, again_ms > now_ms ? again_ms - now_ms : 1);
}

static void answer_box_look(void *ctx);

static void read_on(struct answer_box *box) {
    for (; box->next < box->list.count; box->next++, box->woken = false) {
        if (take_up(box, &box->list.all[box->next])) return;
    }
    bool more = box->list.more && box->list.count;
    if (more) box->list.after = box->list.all[box->list.count - 1].id;
    posted_list_done(&box->list);
    if (more) {
        read_rows(box);
        return;
    }
    end_pass(box);
    if (box->changed) answer_box_look(box);
}

static void answer_box_on_read(struct posted_list *list, const struct err *failed, void *ctx) {
    struct answer_box *box = ctx;
    if (is_stopped(box)) return;
    box->next = 0;
    box->woken = false;
    if (!failed) {
        read_on(box);
        return;
    }
    posted_list_done(list);
    box_move(box, ANSWER_BOX_IDLE);
    timer_start(&box->again, AGAIN_MS); /* the rows that were seen stay known */
}

static void read_rows(struct answer_box *box) {
    box_move(box, ANSWER_BOX_READING);
    box->asking = true;
    box->list.on_done = answer_box_on_read;
    box->list.ctx = box;
    posted_read(box_store(box), box->loop, &box->list);
}

static void answer_box_look(void *ctx) {
    struct answer_box *box = ctx;
    box->changed = box->state != ANSWER_BOX_IDLE;
    if (box->changed) return;
    timer_stop(&box->again);
    box->pass++;
    box->list.after = (struct posted_id){0, 0};
    read_rows(box);
}

struct answer_box *answer_box_start(struct session_table *sessions, struct loop *loop) {
    struct store *store = session_table_store(sessions);
    if (!store || !store_is_shared(store)) return NULL;
    struct answer_box *box = MEM_NEW(struct answer_box);
    box->sessions = sessions;
    box->loop = loop;
    box->seen = map_new();
    timer_init(&box->again, loop, answer_box_look, box);
    box->watcher =
        changes_watch(store_changes(store), CHANGE_POSTED, loop, answer_box_look, box);
    answer_box_look(box); /* what was posted before */
    return box;
}

void answer_box_stop(struct answer_box *box) {
    if (!box) return;
    changes_leave(box->watcher);
    timer_stop(&box->again);
    dormant_wake_cancel(box->wake);
    box_move(box, ANSWER_BOX_STOPPED);
    if (!box->asking) box_free(box);
}
