#include "session/shared_place.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/changes.h"
#include "store/place.h"

#include <assert.h>
#include <stdlib.h>

#define AGAIN_MS 500 /* a notification may be lost, or the store away */

const struct state shared_place_states[SHARED_PLACE_STATE_COUNT] = {
    /* clang-format off */
    [SHARED_PLACE_ASKING]  = {"asking",  TO(SHARED_PLACE_WAITING) | TO(SHARED_PLACE_HELD) | TO(SHARED_PLACE_LEFT)},
    [SHARED_PLACE_WAITING] = {"waiting", TO(SHARED_PLACE_ASKING) | TO(SHARED_PLACE_LEFT)},
    [SHARED_PLACE_HELD]    = {"held",    TO(SHARED_PLACE_LEFT)},
    [SHARED_PLACE_LEFT]    = {"left",    0},
    /* clang-format on */
};

struct shared_place {
    struct shared_place_options options; /* its text is in `texts` */
    struct buf texts;
    enum shared_place_state state;
    bool asking;  /* the store: its answer comes, also after it was left */
    bool freed;   /* one was given back while the store was asked */
    bool doubted; /* it may have been taken: the answer got lost */
    struct place_request request;
    struct changes_watcher *watcher;
    struct timer again;
};

static void place_move(struct shared_place *place, enum shared_place_state next) {
    assert(states_allow(shared_place_states, place->state, next));
    place->state = next;
}

static struct store *place_store(const struct shared_place *place) {
    return session_table_store(place->options.sessions);
}

static void place_free(struct shared_place *place) {
    buf_done(&place->texts);
    free(place);
}

static void place_ask(struct shared_place *place) {
    timer_stop(&place->again);
    place->freed = false;
    place->asking = true;
    place_take(place_store(place), place->options.loop, &place->request);
}

static void place_again(void *ctx) {
    struct shared_place *place = ctx;
    place->freed = true;
    if (place->state != SHARED_PLACE_WAITING) return;
    place_move(place, SHARED_PLACE_ASKING);
    place_ask(place);
}

/* From the first refusal on, others are heard; what was freed before that is asked for at once. */
static void place_wait(struct shared_place *place) {
    const struct shared_place_options *options = &place->options;
    place_move(place, SHARED_PLACE_WAITING);
    if (!place->watcher) {
        place->watcher =
            changes_watch(store_changes(place_store(place)), place_change(options->workspace),
                          options->loop, place_again, place);
        place->freed = true;
    }
    if (place->freed)
        place_again(place);
    else
        timer_start(&place->again, AGAIN_MS);
}

static void shared_place_on_answer(struct place_request *request, const struct err *failed,
                                   void *ctx) {
    struct shared_place *place = ctx;
    place->asking = false;
    if (place->state == SHARED_PLACE_LEFT) {
        place_free(place);
    } else if (!failed && request->taken) {
        place_move(place, SHARED_PLACE_HELD);
        changes_leave(place->watcher);
        place->watcher = NULL;
        place->options.on_held(place->options.ctx);
    } else {
        if (!failed) place->doubted = false;
        if (failed && failed->code == ERR_OUTCOME_UNKNOWN) place->doubted = true;
        if (failed) place->freed = false; /* the store is away: in a moment */
        place_wait(place);
    }
}

struct shared_place *shared_place_take(const struct shared_place_options *options) {
    struct shared_place *place = MEM_NEW(struct shared_place);
    place->options = *options;
    struct str *texts[] = {&place->options.workspace};
    buf_keep_texts(&place->texts, texts, ARRAY_LEN(texts));
    place->request = (struct place_request){.run = options->run,
                                            .workspace = place->options.workspace,
                                            .max = options->max,
                                            .on_done = shared_place_on_answer,
                                            .ctx = place};
    timer_init(&place->again, options->loop, place_again, place);
    place_ask(place);
    return place;
}

/* The row goes wherever there may be one: what the store answers now may be that it was taken. */
bool shared_place_leave(struct shared_place *place) {
    if (!place) return true;
    bool held = place->state == SHARED_PLACE_HELD, waits = place->state == SHARED_PLACE_WAITING;
    changes_leave(place->watcher);
    place->watcher = NULL;
    timer_stop(&place->again);
    place_move(place, SHARED_PLACE_LEFT);
    if (!waits || place->doubted)
        place_give_back(place_store(place), place->options.loop, place->options.run,
                        place->options.workspace);
    if (!place->asking) place_free(place);
    return held;
}
