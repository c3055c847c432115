/* admission: how a turn enters its session and leaves it.
 *
 * Where a workspace limits its turns, a turn first takes one of the workspace's places: one of this
 * process, and then, where replicas share the store, one of all replicas. Then it acquires the
 * session, and may have to wait for it. A turn that waits for a human is outside
 * again until the answer comes.
 *
 *     outside ─▶ (waits for a place) ─▶ waits ─▶ inside ─▶ outside
 *                                         └── withdrawn ────▲
 *
 * Memory   inside its run; owns its place. While it waits it holds a reference to the run.
 * Threads  the loop of its run.
 * Source   session.h; loop/slots.h.
 */
#ifndef WEIR_TURN_ADMISSION_H
#define WEIR_TURN_ADMISSION_H

#include "base/states.h"
#include "loop/slots.h"
#include "session/session.h"
#include "session/shared_place.h"

struct run;

#define INTERRUPT_MAX 64 /* turns that one message may replace */
#define INTERRUPT_WHY "a newer message of the session took its place"

enum admission_state {
    ADMISSION_OUTSIDE,
    ADMISSION_WAITS,  /* for the session: an answer comes unless it is withdrawn */
    ADMISSION_INSIDE, /* its lease is held or lent */
    ADMISSION_STATE_COUNT,
};

struct admission {
    enum admission_state state;
    struct lease lease;
    struct slot *place;          /* among its workspace's turns; NULL: it needed none */
    struct shared_place *shared; /* the same, among replicas; NULL: it has or needs none */
    bool awaits_shared;          /* it is not held yet; a reference to the run is held */
    enum session_policy policy;  /* to acquire with, once it has its place */
};

extern const struct state admission_states[ADMISSION_STATE_COUNT];

void admission_init(struct run *run);
void admission_done(struct admission *admission); /* it must be outside, without a place */

/* Begin the turn with run_begin() once it has a place and its session. It is in the directory
 * from now on.
 * errors  as session_acquire(): then nothing has begun */
MUST_CHECK bool run_admit(struct run *run, enum session_policy policy, struct err *e);

/* Continue the turn with run_work_answered() once it has its session again.
 * errors  as session_acquire() */
MUST_CHECK bool run_readmit(struct run *run, struct err *e);

/* Stop waiting for a place or for the session, unless the answer is already on its way. */
void run_stop_waiting(struct run *run);

/* The turn is over or waits for a human: give its place to another turn of the workspace. */
void run_leave_slot(struct run *run);

/* Release the session, which remembers `record` (taken; NULL: nothing). */
void run_leave_session(struct run *run, struct turn_record *record);

#endif
