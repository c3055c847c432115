#include "turn/admission.h"

#include "base/mem.h"
#include "turn/turn.h"

#include <assert.h>
#include <stdlib.h>

const struct state admission_states[ADMISSION_STATE_COUNT] = {
    /* clang-format off */
    [ADMISSION_OUTSIDE] = {"outside", TO(ADMISSION_WAITS) | TO(ADMISSION_INSIDE)},
    [ADMISSION_WAITS]   = {"waits",   TO(ADMISSION_INSIDE) | TO(ADMISSION_OUTSIDE)},
    [ADMISSION_INSIDE]  = {"inside",  TO(ADMISSION_OUTSIDE)},
    /* clang-format on */
};

/* The only function that writes run->admission.state. */
static void admission_move(struct run *run, enum admission_state next) {
    assert(states_allow(admission_states, run->admission.state, next));
    run->admission.state = next;
}

/* --- the session's callbacks -------------------------------------------------------------- */

static void admission_on_granted(void *ctx) {
    struct run *run = ctx;
    admission_move(run, ADMISSION_INSIDE);
    if (run->ending_begun) { /* it was cancelled while the answer was on its way */
        run_leave_session(run, NULL);
    } else if (run->state == RUN_QUEUED) {
        run_begin(run);
    } else {
        run_work_answered(run);
    }
    run_unref(run);
}

static void on_refused(const struct err *why, void *ctx) {
    struct run *run = ctx;
    admission_move(run, ADMISSION_OUTSIDE);
    run_fail(run, why->code, err_name(why->code), err_text(why));
    run_unref(run);
}

static void on_children_done(void *ctx) {
    struct run *run = ctx;
    if (!run->ending_begun) run_work_children_done(run);
}

static const struct lease_events lease_events = {admission_on_granted, on_refused,
                                                 on_children_done};

/* --- the session -------------------------------------------------------------------------- */

/* The reference is held until the session answers. */
static void wait_for_session(struct run *run) {
    admission_move(run, ADMISSION_WAITS);
    run_ref(run);
}

/* A newer message replaces the ones being answered. */
static void interrupt_others(struct run *run) {
    uint64_t others[INTERRUPT_MAX];
    struct directory *directory = session_table_directory(run->record.engine->sessions);
    size_t count = session_before(&run->admission.lease, others, INTERRUPT_MAX);
    for (size_t i = 0; i < count; i++) {
        directory_cancel(directory, others[i], STR(INTERRUPT_WHY));
    }
}

/* False: the turn is refused and nothing was started. */
static bool start_in_session(struct run *run, enum session_policy policy, struct err *e) {
    switch (session_acquire(run->record.engine->sessions, &run->request.name, policy,
                            &run->admission.lease, e)) {
    case SESSION_REFUSED: return false;
    case SESSION_WAITS:
        run_enter_directory(run);
        wait_for_session(run);
        if (policy == SESSION_INTERRUPT) interrupt_others(run);
        break;
    case SESSION_GRANTED:
        run_enter_directory(run);
        admission_move(run, ADMISSION_INSIDE);
        run_begin(run);
        break;
    }
    return true;
}

/* --- a place in its workspace ------------------------------------------------------------- */

/* No effect if it needed none. */
void run_leave_slot(struct run *run) {
    if (run->admission.place) slots_leave(run->admission.place);
    shared_place_leave(run->admission.shared);
    run->admission.shared = NULL;
}

/* It has its places: ask for the session. The reference of the wait is held. */
static void enter_session(struct run *run) {
    struct err e;
    timer_stop(&run->limit);
    if (!start_in_session(run, run->admission.policy, &e))
        run_fail(run, e.code, err_name(e.code), err_text(&e));
}

static void on_shared_place(void *ctx) {
    struct run *run = ctx;
    run->admission.awaits_shared = false;
    enter_session(run); /* one that has ended does not wait any more */
    run_unref(run);
}

/* True: it waits for a place among replicas, with a reference. */
static bool take_shared_place(struct run *run) {
    struct session_table *sessions = run->record.engine->sessions;
    struct store *store = session_table_store(sessions);
    const struct slot *place = run->admission.place;
    if (!place || place->state != SLOT_TAKEN || !store || !store_is_shared(store)) return false;
    run_ref(run);
    run->admission.awaits_shared = true;
    run->admission.shared = shared_place_take(
        &(struct shared_place_options){.sessions = sessions,
                                       .loop = run->record.host->loop,
                                       .run = record_id(&run->record),
                                       .workspace = run->request.name.workspace,
                                       .max = run->record.engine->limits.workspace_turns_max,
                                       .on_held = on_shared_place,
                                       .ctx = run});
    return true;
}

/* The slot is granted: ask for the session. */
static void on_slot(void *ctx) {
    struct run *run = ctx;
    if (run->ending_begun) { /* it ended while the answer was on its way */
        timer_stop(&run->limit);
        run_leave_slot(run);
    } else if (!take_shared_place(run)) {
        enter_session(run);
    }
    run_unref(run);
}

/* Take a slot of the workspace. In a session with other turns, a turn runs inside one of them
 * or after it. It then needs no slot of its own, and must not wait for a slot that they
 * hold. */
static bool take_slot(struct run *run) {
    const struct session_name *name = &run->request.name;
    unsigned slots_max = run->record.engine->limits.workspace_turns_max;
    struct session_runs others;
    if (slots_max == 0) return true;
    directory_of_session(session_table_directory(run->record.engine->sessions), name->workspace,
                         name->user, name->session, &others);
    if (others.count) return true;
    struct slot *place = run->admission.place = MEM_NEW(struct slot);
    *place = (struct slot){.loop = run->record.host->loop, .granted = on_slot, .ctx = run};
    return slots_enter(session_table_slots(run->record.engine->sessions), name->workspace,
                       slots_max, place) == SLOTS_TAKEN;
}

static void wait_for_place(struct run *run, enum session_policy policy) {
    run_enter_directory(run);
    run->admission.policy = policy;
    timer_start(&run->limit, run->record.engine->limits.place_max_ms);
}

bool run_admit(struct run *run, enum session_policy policy, struct err *e) {
    bool taken = take_slot(run);
    if (taken && !take_shared_place(run)) return start_in_session(run, policy, e);
    if (!taken) run_ref(run); /* until the slot is granted */
    wait_for_place(run, policy);
    return true;
}

void run_stop_waiting(struct run *run) {
    if (run->admission.place && slots_withdraw(run->admission.place)) {
        run_unref(run);
        return; /* it has not asked for the session yet */
    }
    if (run->admission.awaits_shared) {
        run->admission.awaits_shared = false;
        run_leave_slot(run);
        run_unref(run);
        return;
    }
    if (run->admission.state != ADMISSION_WAITS) return;
    if (!session_withdraw(&run->admission.lease)) return;
    admission_move(run, ADMISSION_OUTSIDE);
    run_unref(run);
}

void admission_init(struct run *run) {
    run->admission.lease = (struct lease){.loop = run->record.host->loop,
                                          .run = record_id(&run->record),
                                          .events = &lease_events,
                                          .ctx = run};
}

void admission_done(struct admission *admission) {
    free(admission->place);
}

bool run_readmit(struct run *run, struct err *e) {
    switch (session_return(run->record.engine->sessions, run->approval.parked,
                           &run->admission.lease, e)) {
    case SESSION_REFUSED: return false;
    case SESSION_WAITS: wait_for_session(run); break;
    case SESSION_GRANTED:
        admission_move(run, ADMISSION_INSIDE);
        run_work_answered(run);
        break;
    }
    return true;
}

void run_leave_session(struct run *run, struct turn_record *record) {
    if (run->admission.state == ADMISSION_INSIDE) {
        admission_move(run, ADMISSION_OUTSIDE);
        session_release(&run->admission.lease, record);
    } else if (record) {
        session_remember(run->record.engine->sessions, &run->request.name, record);
    }
}
