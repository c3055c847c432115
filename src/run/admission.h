/* admission: how a turn comes to its session, and leaves it.
 *
 * First a place of its workspace, where turns are limited; then the session itself, which it
 * may have to wait for. A turn that waits for a human is outside again until he answers.
 *
 *     outside ─▶ (waits for a place) ─▶ waits ─▶ inside ─▶ outside
 *                                         └── withdrawn ────▲
 *
 * Memory   a plain value inside its run. Whoever waits holds a reference to the run.
 * Threads  the loop of its run.
 * Source   session.h; loop/slots.h.
 */
#ifndef WEIR_RUN_ADMISSION_H
#define WEIR_RUN_ADMISSION_H

#include "loop/slots.h"
#include "run/session.h"

struct run;

enum admission_state {
    ADMISSION_OUTSIDE,
    ADMISSION_WAITS,  /* for the session: an answer will come, unless it is withdrawn */
    ADMISSION_INSIDE, /* its lease is held or lent */
    ADMISSION_STATE_COUNT,
};

struct admission {
    enum admission_state state;
    struct lease lease;
    struct slot place;          /* of its workspace */
    enum session_policy policy; /* while it waits for that */
};

struct str admission_state_name(enum admission_state state);
bool admission_may_become(enum admission_state state, enum admission_state next);

void admission_init(struct run *run);

/* Have it begin (run_begin()) when there is a place and the session is ours; it is in the
 * directory from now on.
 * errors  as session_acquire(): then nothing has begun */
MUST_CHECK bool run_admit(struct run *run, enum session_policy policy, struct err *e);

/* Have it go on (run_work_answered()) when the session is ours again.
 * errors  as session_acquire() */
MUST_CHECK bool run_readmit(struct run *run, struct err *e);

/* Give up waiting for a place or for the session, unless the answer is on its way. */
void run_stop_waiting(struct run *run);

/* It does not run any more, or waits for a human: let another turn of its workspace in. */
void run_leave_place(struct run *run);

/* The session is another turn's, and remembers `record` (taken; NULL: nothing). */
void run_leave_session(struct run *run, struct turn_record *record);

#endif
