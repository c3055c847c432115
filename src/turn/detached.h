/* detached: a run that goes on without its caller, for a time or to its end.
 *
 * A reader keeps it, and so does a human whom it waits for; when the last reader leaves, its
 * time begins anew.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run.
 * Source   leaving.h; docs/internals/runtime-v1.md "Who leaves".
 */
#ifndef WEIR_TURN_DETACHED_H
#define WEIR_TURN_DETACHED_H

#include "loop/loop.h"

struct run;

struct detached {
    struct timer timer; /* ends the run when nobody has read it for `for_ms` */
    uint64_t for_ms;    /* 0: it may go on for ever */
};

void detached_init(struct run *run);
void detached_stop(struct detached *detached);

/* The caller has left: cancel the run when nobody has read it for so long; 0: never. */
void run_detach(struct run *run, uint64_t for_ms);

#endif
