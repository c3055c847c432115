/* detached: a run that goes on without its caller, for a time or to its end.
 *
 * The time does not pass while it has a reader or waits for a human, and starts again when the
 * last reader leaves.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run.
 * Source   leaving.h; docs/internals/runtime-v1.md "Who leaves". */
#ifndef WEIR_TURN_DETACHED_H
#define WEIR_TURN_DETACHED_H

#include "loop/loop.h"

struct run;

struct detached {
    struct timer timer; /* ends the run after `for_ms` without a reader */
    uint64_t for_ms;    /* 0: no limit */
};

void detached_init(struct run *run);
void detached_stop(struct detached *detached);

/* The caller has left: cancel the run after `for_ms` without a reader; 0: never. */
void run_detach(struct run *run, uint64_t for_ms);

#endif
