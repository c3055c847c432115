#include "session/lease.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* A lent lease may be released; its children are passed to its own lender. */
const struct state lease_states[LEASE_STATE_COUNT] = {
    /* clang-format off */
    [LEASE_IDLE]    = {"idle",    TO(LEASE_WAITING) | TO(LEASE_HELD)},
    [LEASE_WAITING] = {"waiting", TO(LEASE_HELD) | TO(LEASE_IDLE)},
    [LEASE_HELD]    = {"held",    TO(LEASE_LENT) | TO(LEASE_IDLE)},
    [LEASE_LENT]    = {"lent",    TO(LEASE_HELD) | TO(LEASE_IDLE)},
    /* clang-format on */
};

void lease_move(struct lease *lease, enum lease_state next) {
    assert(states_allow(lease_states, lease->state, next));
    lease->state = next;
}

static void lease_report_granted(void *ctx) {
    struct lease *lease = ctx;
    lease->events->granted(lease->ctx);
}

void lease_post_granted(struct lease *lease) {
    loop_post(lease->loop, &lease->mail, lease_report_granted, lease);
}

static void lease_report_refused(void *ctx) {
    struct lease *lease = ctx;
    struct err why = *lease->refusal;
    free(lease->refusal);
    lease->refusal = NULL;
    lease->events->refused(&why, lease->ctx);
}

void lease_refuse(struct lease *lease, const struct err *why) {
    list_remove(&lease->link);
    lease_move(lease, LEASE_IDLE);
    lease->refusal = MEM_NEW(struct err);
    *lease->refusal = *why;
    loop_post(lease->loop, &lease->mail, lease_report_refused, lease);
}

/* A mail to a lender whose children are done. The lender may be gone when it arrives. It
 * belongs to the lender's loop. */
struct lease_note {
    struct mail mail;
    struct lease *lease; /* NULL: gone */
};

static void lease_report_children_done(void *ctx) {
    struct lease_note *note = ctx;
    struct lease *lease = note->lease;
    free(note);
    if (!lease) return;
    lease->note = NULL;
    lease->events->children_done(lease->ctx);
}

void lease_post_children_done(struct lease *lender) {
    struct lease_note *note = MEM_NEW(struct lease_note);
    note->lease = lender;
    lender->note = note;
    loop_post(lender->loop, &note->mail, lease_report_children_done, note);
}

void lease_drop_note(struct lease *lease) {
    if (lease->note) lease->note->lease = NULL;
    lease->note = NULL;
}
