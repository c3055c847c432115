/* take: one call while it is recorded: what was asked, and what was heard so far.
 *
 * Memory   owns copies of all that it is told; too much of it is not recorded, and that is told
 *          once like everything that keeps a call from being recorded.
 * Threads  a loop's; while it is written, a worker's.
 */
#ifndef WEIR_TAPE_TAKE_H
#define WEIR_TAPE_TAKE_H

#include "loop/loop.h"
#include "tape/tape.h"

struct take {
    struct tape *tape; /* a reference */
    uint64_t began_ms;
    struct tape_call call;
    struct buf request, who;
    struct arena *arena;
    struct tape_event *events;
    size_t room;
    bool overflowed;
};

/* Whoever begins one writes one JSON object into take->request, and into take->who or not. */
void take_begin(struct take *take, struct tape *tape, enum tape_kind kind,
                const struct loop *loop);
void take_done(struct take *take);

/* Keep a copy of `reply`, at this moment. */
void take_hear(struct take *take, const struct loop *loop, const struct reply_event *reply);

/* On a worker, after the ending. */
void take_write(struct take *take);

#endif
