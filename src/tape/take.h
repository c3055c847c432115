/* take: a call that is being recorded: its request and its events so far.
 *
 * Memory   owns copies of everything. A call that is too large is not recorded, which is logged
 *          once, like every other failure to record.
 * Threads  the loop's; a worker's while it is being written.
 */
#ifndef WEIR_TAPE_TAKE_H
#define WEIR_TAPE_TAKE_H

#include "loop/loop.h"
#include "tape/tape.h"

struct take {
    struct tape *tape;           /* a reference */
    uint64_t began_ms, heard_ms; /* heard: the newest event, since then */
    struct tape_call call;
    struct buf request, who;
    struct arena *arena;
    struct tape_event *events;
    size_t room;
    bool overflowed;
};

/* After this the caller writes one JSON object into take->request, and optionally one into
 * take->who. */
void take_begin(struct take *take, struct tape *tape, enum tape_kind kind,
                const struct loop *loop);
void take_done(struct take *take);

/* Keep a copy of `reply` with the current time. */
void take_hear(struct take *take, const struct loop *loop, const struct reply_event *reply);

/* On a worker, after the ending. */
void take_write(struct take *take);

#endif
