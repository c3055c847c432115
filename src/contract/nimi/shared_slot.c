#include "contract/nimi/shared_slot.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/changes.h"
#include "store/slot.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AGAIN_MS 500 /* a notification may be lost, or the store away */

const struct state shared_slot_states[SHARED_SLOT_STATE_COUNT] = {
    /* clang-format off */
    [SHARED_SLOT_ASKING]  = {"asking",  TO(SHARED_SLOT_WAITING) | TO(SHARED_SLOT_HELD) | TO(SHARED_SLOT_LEFT)},
    [SHARED_SLOT_WAITING] = {"waiting", TO(SHARED_SLOT_ASKING) | TO(SHARED_SLOT_LEFT)},
    [SHARED_SLOT_HELD]    = {"held",    TO(SHARED_SLOT_LEFT)},
    [SHARED_SLOT_LEFT]    = {"left",    0},
    /* clang-format on */
};

struct shared_slot {
    struct shared_slot_options options; /* its texts are in `texts` */
    struct buf texts;
    enum shared_slot_state state;
    bool asking;  /* the store: its answer comes, also after it was left */
    bool entered; /* there may be a row of it */
    bool freed;   /* one was given back while the store was asked */
    struct slot_request request;
    struct changes_watcher *watcher;
    struct timer again;
};

static void slot_move(struct shared_slot *slot, enum shared_slot_state next) {
    assert(states_allow(shared_slot_states, slot->state, next));
    slot->state = next;
}

static void slot_free(struct shared_slot *slot) {
    buf_done(&slot->texts);
    free(slot);
}

static void shared_slot_ask(struct shared_slot *slot) {
    timer_stop(&slot->again);
    slot->freed = false;
    slot->asking = true;
    slot_ask(slot->options.store, slot->options.loop, &slot->request);
}

static void shared_slot_again(void *ctx) {
    struct shared_slot *slot = ctx;
    slot->freed = true;
    if (slot->state != SHARED_SLOT_WAITING) return;
    slot_move(slot, SHARED_SLOT_ASKING);
    shared_slot_ask(slot);
}

/* From the first refusal on, others are heard; what was freed before that is asked for at once. */
static void shared_slot_wait(struct shared_slot *slot) {
    const struct shared_slot_options *options = &slot->options;
    slot_move(slot, SHARED_SLOT_WAITING);
    if (!slot->watcher) {
        slot->watcher = changes_watch(store_changes(options->store), CHANGE_SLOTS,
                                      options->loop, shared_slot_again, slot);
        slot->freed = true;
    }
    if (slot->freed)
        shared_slot_again(slot);
    else
        timer_start(&slot->again, AGAIN_MS);
}

static void shared_slot_on_answer(struct slot_request *request, const struct err *failed,
                                  void *ctx) {
    struct shared_slot *slot = ctx;
    slot->asking = false;
    slot->entered |= !failed || failed->code == ERR_OUTCOME_UNKNOWN;
    if (slot->state == SHARED_SLOT_LEFT) {
        slot_free(slot);
    } else if (!failed && request->held) {
        slot_move(slot, SHARED_SLOT_HELD);
        changes_leave(slot->watcher);
        slot->watcher = NULL;
        slot->options.on_held(slot->options.ctx);
    } else {
        if (failed) slot->freed = false; /* the store is away: in a moment */
        shared_slot_wait(slot);
    }
}

/* One for each call of this process. */
static int64_t next_number(void) {
    static _Atomic int64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

struct shared_slot *shared_slot_take(const struct shared_slot_options *options) {
    struct shared_slot *slot = MEM_NEW(struct shared_slot);
    slot->options = *options;
    struct str *texts[] = {&slot->options.pool, &slot->options.app};
    buf_keep_texts(&slot->texts, texts, ARRAY_LEN(texts));
    slot->request = (struct slot_request){.number = next_number(),
                                          .pool = slot->options.pool,
                                          .app = slot->options.app,
                                          .background = options->background,
                                          .all_max = options->all_max,
                                          .app_max = options->app_max,
                                          .background_max = options->background_max,
                                          .on_done = shared_slot_on_answer,
                                          .ctx = slot};
    timer_init(&slot->again, options->loop, shared_slot_again, slot);
    shared_slot_ask(slot);
    return slot;
}

/* One that waits has its place in the line, which is a row as well. */
void shared_slot_leave(struct shared_slot *slot) {
    if (!slot) return;
    changes_leave(slot->watcher);
    slot->watcher = NULL;
    timer_stop(&slot->again);
    slot_move(slot, SHARED_SLOT_LEFT);
    if (slot->asking || slot->entered)
        slot_give_back(slot->options.store, slot->options.loop, slot->request.number);
    if (!slot->asking) slot_free(slot);
}
