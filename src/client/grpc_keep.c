#include "client/grpc_keep.h"

#include "base/log.h"
#include "base/mem.h"
#include "client/place.h"

#include <assert.h>
#include <stdlib.h>

struct kept {
    struct list link; /* in place->kept, oldest first */
    enum grpc_keep_state state;
    struct grpc_call *call;
    struct text server, name;
    struct timer timer; /* PARKED: until it is too old; ENDING: until the end is overdue */
};

/* --- states ------------------------------------------------------------------------------- */

const struct state grpc_keep_states[GRPC_KEEP_STATE_COUNT] = {
    [GRPC_KEEP_PARKED] = {"parked", TO(GRPC_KEEP_ENDING) | TO(GRPC_KEEP_GONE)},
    [GRPC_KEEP_ENDING] = {"ending", TO(GRPC_KEEP_GONE)},
    [GRPC_KEEP_GONE] = {"gone", 0},
};

/* The only function that writes kept->state. */
static void grpc_keep_move(struct kept *kept, enum grpc_keep_state next) {
    assert(states_allow(grpc_keep_states, kept->state, next));
    kept->state = next;
}

/* --- one kept call ------------------------------------------------------------------------ */

/* The call was taken, or is over. */
static void kept_free(struct kept *kept) {
    grpc_keep_move(kept, GRPC_KEEP_GONE);
    timer_stop(&kept->timer);
    list_remove(&kept->link);
    text_done(&kept->server);
    text_done(&kept->name);
    free(kept);
}

static void kept_drop(struct kept *kept) {
    struct grpc_call *call = kept->call;
    kept_free(kept);
    grpc_call_cancel(call);
}

static void kept_end(struct kept *kept) {
    grpc_keep_move(kept, GRPC_KEEP_ENDING);
    timer_start(&kept->timer, GRPC_KEEP_END_MS);
    grpc_call_finish(kept->call);
}

static void grpc_keep_on_time(void *ctx) {
    struct kept *kept = ctx;
    if (kept->state == GRPC_KEEP_PARKED)
        kept_end(kept);
    else
        kept_drop(kept);
}

/* A parked call expects no message. One that comes when the call has been taken again is read as
 * the next turn's. */
static void grpc_keep_on_message(struct lent message, void *ctx) {
    struct kept *kept = ctx;
    (void)message;
    if (kept->state == GRPC_KEEP_PARKED)
        log_often(
            LOG_WARNING,
            "the server at " STR_FMT " says something after the end of its turn; if it "
            "comes late, the next turn takes it for its own answer: repair the server, or "
            "set stream_per_turn: true",
            STR_ARG(text_str(kept->server)));
    kept_drop(kept);
}

static void grpc_keep_on_end(const struct grpc_call_end *end, void *ctx) {
    (void)end;
    kept_free(ctx);
}

static const struct grpc_call_sink sink = {.on_message = grpc_keep_on_message,
                                           .on_end = grpc_keep_on_end};

static struct kept *kept_new(struct place *place, struct str server, struct str name,
                             struct grpc_call *call) {
    struct kept *kept = MEM_NEW(struct kept);
    kept->call = call;
    kept->server = text_copy(server);
    kept->name = text_copy(name);
    timer_init(&kept->timer, place->loop, grpc_keep_on_time, kept);
    list_append(&place->kept, &kept->link);
    grpc_call_hand_over(call, &sink, kept);
    return kept;
}

/* --- public functions --------------------------------------------------------------------- */

void grpc_keep_put(struct http_pool *pool, struct loop *loop, struct str server,
                   struct str name, struct grpc_call *call) {
    struct kept *kept = kept_new(http_place_of(pool, loop), server, name, call);
    timer_start(&kept->timer, GRPC_KEEP_MS);
}

struct grpc_call *grpc_keep_take(struct http_pool *pool, struct loop *loop, struct str name,
                                 const struct grpc_call_sink *to, void *ctx) {
    struct place *place = http_place_of(pool, loop);
    for (struct list *at = place->kept.prev; at != &place->kept; at = at->prev) {
        struct kept *kept = CONTAINER_OF(at, struct kept, link);
        if (kept->state != GRPC_KEEP_PARKED || !str_equal(text_str(kept->name), name)) continue;
        struct grpc_call *call = kept->call;
        kept_free(kept);
        grpc_call_hand_over(call, to, ctx);
        return call;
    }
    return NULL;
}

void grpc_keep_end(struct http_pool *pool, struct loop *loop, struct grpc_call *call) {
    kept_end(kept_new(http_place_of(pool, loop), STR_EMPTY, STR_EMPTY, call));
}

void grpc_keep_make_room(struct http_pool *pool, struct loop *loop, struct str server) {
    LIST_EACH(&http_place_of(pool, loop)->kept, link) {
        struct kept *kept = CONTAINER_OF(link, struct kept, link);
        if (kept->state != GRPC_KEEP_PARKED || !str_equal(text_str(kept->server), server))
            continue;
        kept_end(kept);
        return;
    }
}

void grpc_keep_leave(struct place *place) {
    LIST_EACH(&place->kept, link) kept_drop(CONTAINER_OF(link, struct kept, link));
}
