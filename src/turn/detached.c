#include "turn/detached.h"

#include "turn/turn.h"

#define LOOK_AGAIN_MS 1000 /* minimum pause while there are readers or a human is asked */

/* The run is not notified of readers, so it polls. A reader that left after the timer was set
 * has the full time from its own leaving. */
static void look_for_readers(void *ctx) {
    struct run *run = ctx;
    struct detached *detached = &run->detached;
    uint64_t now_ms = loop_now_ms(run->record.host->loop), left_ms;
    size_t readers = journal_readers(run->record.journal, &left_ms);
    uint64_t until_ms = left_ms + detached->for_ms;
    if (readers || run->state == RUN_WAITING) {
        timer_start(&detached->timer,
                    detached->for_ms > LOOK_AGAIN_MS ? detached->for_ms : LOOK_AGAIN_MS);
    } else if (until_ms > now_ms) {
        timer_start(&detached->timer, until_ms - now_ms);
    } else {
        run_cancel_left(run, STR("the caller left and did not come back in time"));
    }
}

void detached_init(struct run *run) {
    timer_init(&run->detached.timer, run->record.host->loop, look_for_readers, run);
}

void detached_stop(struct detached *detached) {
    timer_stop(&detached->timer);
}

void run_detach(struct run *run, uint64_t for_ms) {
    run->detached.for_ms = for_ms;
    if (for_ms) {
        timer_start(&run->detached.timer, for_ms);
    } else {
        timer_stop(&run->detached.timer);
    }
}

void run_leave(struct run *run, struct leaving leaving, struct str why) {
    if (run->ending_begun) return;
    switch (leaving.how) {
    case LEAVING_NONE: run_cancel(run, why); break;
    case LEAVING_CANCELS: run_cancel_left(run, why); break;
    case LEAVING_DETACHES: run_detach(run, leaving.for_ms); break;
    }
}
