/* queue: who reads a tape's folder now: one at a time, in the order of asking.
 *
 * To read recordings takes a worker for as long as there are recordings, and tools need the workers
 * too. Who is next is woken. A reload opens the folder anew, with a queue of its own.
 *
 *     enter ─▶ reads ─▶ leave            nobody read it
 *       └▶ waits ─▶ granted() ─▶ leave   as the first that waits, when another leaves
 *
 * Memory   a place lies inside its owner, from enter until leave, or until a successful cancel.
 * Threads  any; a place is its loop's, and granted() runs there.
 */
#ifndef WEIR_TAPE_QUEUE_H
#define WEIR_TAPE_QUEUE_H

#include "base/list.h"
#include "loop/loop.h"

struct tape_queue; /* of one tape: tape_queue_of() */

struct tape_place {
    struct list link; /* while it waits */
    struct mail mail;
    struct loop *loop;
    task_fn *granted;
    void *ctx;
};

struct tape_queue *tape_queue_new(void);
void tape_queue_free(struct tape_queue *queue); /* nobody reads or waits */

/* True: read now. False: granted(ctx) comes on `loop`, later. Either way tape_queue_leave() ends
 * it. */
MUST_CHECK bool tape_queue_enter(struct tape_queue *queue, struct tape_place *place,
                                 struct loop *loop, task_fn *granted, void *ctx);

/* The folder was read, or need not be. */
void tape_queue_leave(struct tape_queue *queue);

/* True: it waited, and granted() does not come. False: it comes or has come. */
MUST_CHECK bool tape_queue_cancel(struct tape_queue *queue, struct tape_place *place);

#endif
