#include "turn/answer_box.h"

#include "base/mem.h"
#include "journal/journal.h"
#include "session/directory.h"
#include "session/idempotency_claims.h"
#include "session/waiting.h"
#include "store/changes.h"
#include "store/posted.h"
#include "turn/dormant_wake.h"

#include <stdlib.h>

#define AGAIN_MS 100 /* while an answer waits for its run */

struct answer_box {
    struct session_table *sessions;
    struct loop *loop;
    struct changes_watcher *watcher;
    struct timer again;
    struct posted_list list;
    size_t next; /* of the list */
    bool woken;  /* the run of that one */
    struct dormant_wake *wake;
    bool reading; /* the store, or what was read */
    bool asking;  /* the store alone */
    bool changed, left, stopped;
};

static void box_free(struct answer_box *box) {
    posted_list_done(&box->list);
    free(box);
}

static struct store *box_store(const struct answer_box *box) {
    return session_table_store(box->sessions);
}

/* --- one answer --------------------------------------------------------------------------- */

/* As the run's own replica would be asked. */
static enum pending_found settle(struct answer_box *box, const struct posted_words *words,
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
                                          .key_mark = claimed.mark};
    enum pending_found found = session_settle(box->sessions, &answer, &answered, e);
    if (found == PENDING_TAKEN) journal_unref(answered.journal);
    return found;
}

static void give(struct answer_box *box, const struct posted *posted) {
    struct live_view view;
    struct err e;
    enum pending_found found = PENDING_NONE;
    if (directory_find(session_table_directory(box->sessions), posted->words.run, &view)) {
        found = settle(box, &posted->words, &view, &e);
        live_view_done(&view);
    }
    if (found == PENDING_TAKEN)
        posted_note(box_store(box), box->loop, posted, NULL);
    else if (found == PENDING_REFUSED || found == PENDING_UNDECIDED)
        posted_note(box_store(box), box->loop, posted, e.text);
    else
        box->left = true; /* its sender sees it if the run was answered, or is over */
}

/* --- all of them -------------------------------------------------------------------------- */

static void read_on(struct answer_box *box);

static void on_awake(const struct err *failed, void *ctx) {
    struct answer_box *box = ctx;
    (void)failed; /* then it is not found, and looked for again */
    box->wake = NULL;
    box->woken = true;
    read_on(box);
}

static bool wake(struct answer_box *box, uint64_t run) {
    const struct dormant_filter filter = {.run = run};
    if (box->woken) return false;
    box->wake = dormant_wake_start(session_table_directory(box->sessions), &filter, 1,
                                   box->loop, on_awake, box);
    return box->wake != NULL;
}

static void look(void *ctx);

static void read_on(struct answer_box *box) {
    for (; box->next < box->list.count; box->next++, box->woken = false) {
        const struct posted *posted = &box->list.all[box->next];
        if (wake(box, posted->words.run)) return;
        give(box, posted);
    }
    bool full = box->list.count == POSTED_MAX;
    posted_list_done(&box->list);
    box->reading = false;
    if (box->changed || (full && !box->left))
        look(box);
    else if (box->left)
        timer_start(&box->again, AGAIN_MS);
}

static void on_read(struct posted_list *list, const struct err *failed, void *ctx) {
    struct answer_box *box = ctx;
    box->asking = false;
    if (box->stopped) {
        box_free(box);
        return;
    }
    if (failed) list->count = 0;
    box->left = failed != NULL;
    box->next = 0;
    box->woken = false;
    read_on(box);
}

static void look(void *ctx) {
    struct answer_box *box = ctx;
    box->changed = box->reading;
    if (box->reading) return;
    timer_stop(&box->again);
    box->reading = box->asking = true;
    box->list.on_done = on_read;
    box->list.ctx = box;
    posted_read(box_store(box), box->loop, &box->list);
}

struct answer_box *answer_box_start(struct session_table *sessions, struct loop *loop) {
    struct store *store = session_table_store(sessions);
    if (!store || !store_is_shared(store)) return NULL;
    struct answer_box *box = MEM_NEW(struct answer_box);
    box->sessions = sessions;
    box->loop = loop;
    timer_init(&box->again, loop, look, box);
    box->watcher = changes_watch(store_changes(store), CHANGE_POSTED, loop, look, box);
    look(box); /* what was posted before */
    return box;
}

void answer_box_stop(struct answer_box *box) {
    if (!box) return;
    changes_leave(box->watcher);
    timer_stop(&box->again);
    dormant_wake_cancel(box->wake);
    box->stopped = true;
    if (!box->asking) box_free(box);
}
