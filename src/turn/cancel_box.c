#include "turn/cancel_box.h"

#include "base/mem.h"
#include "session/directory.h"
#include "session/session.h"
#include "store/cancelling.h"
#include "store/changes.h"
#include "store/interrupting.h"
#include "turn/admission.h"
#include "turn/dormant_wake.h"

#include <assert.h>
#include <stdlib.h>

#define AGAIN_MS 250 /* while there are wishes */

const struct state cancel_box_states[CANCEL_BOX_STATE_COUNT] = {
    /* clang-format off */
    [CANCEL_BOX_IDLE]    = {"idle",    TO(CANCEL_BOX_READING) | TO(CANCEL_BOX_STOPPED)},
    [CANCEL_BOX_READING] = {"reading", TO(CANCEL_BOX_IDLE) | TO(CANCEL_BOX_WAITING) | TO(CANCEL_BOX_STOPPED)},
    [CANCEL_BOX_WAITING] = {"waiting", TO(CANCEL_BOX_READING) | TO(CANCEL_BOX_STOPPED)},
    [CANCEL_BOX_STOPPED] = {"stopped", 0},
    /* clang-format on */
};

struct cancel_box {
    struct session_table *sessions;
    struct loop *loop;
    struct changes_watcher *watcher;
    struct timer again;
    enum cancel_box_state state;
    struct cancelling_list list;
    struct list sleepers; /* runs on their way into memory */
    bool asking;          /* the store: its answer comes, also after the box was stopped */
    bool changed;         /* since the pass began */
    bool has;             /* wishes, or rows to remove, as far as this pass has read */
    struct interrupting_ask *newer; /* the newer turns of others are read; or NULL */
    bool newer_changed;             /* since then */
};

/* A run that is cancelled as soon as it is in memory. */
struct sleeper {
    struct list link; /* in box->sleepers */
    struct cancel_box *box;
    struct dormant_wake *wake;
    uint64_t run;
    struct str why; /* in `room` */
    char room[];
};

static void box_move(struct cancel_box *box, enum cancel_box_state next) {
    assert(states_allow(cancel_box_states, box->state, next));
    box->state = next;
}

static struct store *box_store(const struct cancel_box *box) {
    return session_table_store(box->sessions);
}

static struct directory *box_directory(const struct cancel_box *box) {
    return session_table_directory(box->sessions);
}

static void box_free(struct cancel_box *box) {
    cancelling_list_done(&box->list);
    free(box);
}

/* --- one run ------------------------------------------------------------------------------ */

static void sleeper_free(struct sleeper *sleeper) {
    list_remove(&sleeper->link);
    dormant_wake_cancel(sleeper->wake);
    free(sleeper);
}

/* One that could not be brought back is tried again in the next pass. */
static void cancel_box_on_awake(const struct err *failed, void *ctx) {
    struct sleeper *sleeper = ctx;
    (void)failed;
    sleeper->wake = NULL;
    directory_cancel(box_directory(sleeper->box), sleeper->run, sleeper->why);
    sleeper_free(sleeper);
}

static bool is_waking(struct cancel_box *box, uint64_t run) {
    LIST_EACH(&box->sleepers, link) {
        if (CONTAINER_OF(link, struct sleeper, link)->run == run) return true;
    }
    return false;
}

static void cancel_box_wake(struct cancel_box *box, const struct cancelling *wish) {
    const struct dormant_filter filter = {.run = wish->run};
    if (is_waking(box, wish->run)) return;
    struct sleeper *sleeper = mem_zero(1, sizeof(*sleeper) + wish->why.len);
    if (wish->why.len) memcpy(sleeper->room, wish->why.at, wish->why.len);
    sleeper->why = str_of(sleeper->room, wish->why.len);
    sleeper->run = wish->run;
    sleeper->box = box;
    list_append(&box->sleepers, &sleeper->link);
    sleeper->wake = dormant_wake_start(box_directory(box), &filter, 1, box->loop,
                                       cancel_box_on_awake, sleeper);
    if (!sleeper->wake) sleeper_free(sleeper);
}

/* A run that is ending already takes no notice of it. */
static void obey(struct cancel_box *box, const struct cancelling *wish) {
    if (!directory_cancel(box_directory(box), wish->run, wish->why)) cancel_box_wake(box, wish);
}

/* --- all of them -------------------------------------------------------------------------- */

static void box_look(void *ctx);
static void read_page(struct cancel_box *box);

static void end_pass(struct cancel_box *box) {
    if (box->has) timer_start(&box->again, AGAIN_MS);
    box_move(box, box->has ? CANCEL_BOX_WAITING : CANCEL_BOX_IDLE);
    if (box->changed) box_look(box);
}

static void on_list(struct cancelling_list *list, const struct err *failed, void *ctx) {
    struct cancel_box *box = ctx;
    box->asking = false;
    if (box->state == CANCEL_BOX_STOPPED) {
        box_free(box);
        return;
    }
    for (size_t i = 0; !failed && i < list->count; i++) obey(box, &list->all[i]);
    box->has = box->has || failed || list->count > 0 || list->over;
    if (!failed && list->count == CANCELLING_MAX) {
        list->after = list->all[list->count - 1].run;
        read_page(box);
    } else {
        if (!failed && list->over) cancelling_tidy(box_store(box), box->loop);
        end_pass(box);
    }
}

static void read_page(struct cancel_box *box) {
    box->asking = true;
    box->list.on_done = on_list;
    box->list.ctx = box;
    cancelling_read(box_store(box), box->loop, &box->list);
}

static void box_look(void *ctx) {
    struct cancel_box *box = ctx;
    box->changed = box->state == CANCEL_BOX_READING;
    if (box->changed) return;
    timer_stop(&box->again);
    box_move(box, CANCEL_BOX_READING);
    box->has = false;
    box->list.after = 0;
    read_page(box);
}

/* --- newer turns -------------------------------------------------------------------------- */

static void look_for_newer(struct cancel_box *box);

static void make_way(struct cancel_box *box, const struct interrupting *wish) {
    const struct session_name name = {wish->workspace, wish->user, wish->session};
    uint64_t runs[INTERRUPT_MAX];
    size_t count = session_older(box->sessions, &name, wish->run, runs, INTERRUPT_MAX);
    for (size_t i = 0; i < count; i++)
        directory_cancel(box_directory(box), runs[i], STR(INTERRUPT_WHY));
}

/* After a failure nothing is lost: who waits says it again. */
static void on_newer(const struct interrupting *wishes, size_t count, const struct err *failed,
                     void *ctx) {
    struct cancel_box *box = ctx;
    (void)failed;
    box->newer = NULL;
    for (size_t i = 0; i < count; i++) make_way(box, &wishes[i]);
    if (box->newer_changed) look_for_newer(box);
}

static void look_for_newer(struct cancel_box *box) {
    box->newer_changed = box->newer != NULL;
    if (box->newer_changed) return;
    box->newer = interrupting_read(box_store(box), box->loop, on_newer, box);
}

/* --- life --------------------------------------------------------------------------------- */

static void on_posted(void *ctx) {
    box_look(ctx);
    look_for_newer(ctx);
}

struct cancel_box *cancel_box_start(struct session_table *sessions, struct loop *loop) {
    struct store *store = session_table_store(sessions);
    if (!store || !store_is_shared(store)) return NULL;
    struct cancel_box *box = MEM_NEW(struct cancel_box);
    box->sessions = sessions;
    box->loop = loop;
    list_init(&box->sleepers);
    timer_init(&box->again, loop, box_look, box);
    box->watcher = changes_watch(store_changes(store), CHANGE_POSTED, loop, on_posted, box);
    box_look(box); /* what was wished before */
    return box;
}

void cancel_box_stop(struct cancel_box *box) {
    if (!box) return;
    changes_leave(box->watcher);
    timer_stop(&box->again);
    interrupting_forget(box->newer);
    LIST_EACH(&box->sleepers, link) sleeper_free(CONTAINER_OF(link, struct sleeper, link));
    box_move(box, CANCEL_BOX_STOPPED);
    if (!box->asking) box_free(box);
}
