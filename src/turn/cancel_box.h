/* cancel_box: cancels the runs of this replica that other replicas wish to end.
 *
 * It reads the wishes (store/cancelling.h) whenever something was posted, and cancels each run that
 * is live here, as its own callers would. A run that left memory while it waits for a human is woken
 * before. A wish whose run is not live yet, as after a takeover, is read again a little later. The rows
 * of runs that are over are removed, and looked for again until they are gone.
 *
 *     idle ─▶ reading ─▶ idle, or waiting ─▶ reading
 *
 * It also ends the turns whose place a newer one of another replica takes. With session.busy: interrupt
 * a turn that waits for a session of another replica says so in the store (store/interrupting.h), again
 * and again until it has the session. The turns of that session that are older are cancelled: the one
 * that has it and those that wait for it, as a message that came here would. One that waits for a tool
 * is cancelled once the tool has answered.
 *
 * Memory   opaque.
 * Threads  the loop it was started on.
 */
#ifndef WEIR_TURN_CANCEL_BOX_H
#define WEIR_TURN_CANCEL_BOX_H

#include "base/states.h"
#include "session/session_table.h"

struct loop;
struct cancel_box;

enum cancel_box_state {
    CANCEL_BOX_IDLE,
    CANCEL_BOX_READING,
    CANCEL_BOX_WAITING, /* to read again: there are wishes, or rows of runs that are over */
    CANCEL_BOX_STOPPED,
    CANCEL_BOX_STATE_COUNT
};

extern const struct state cancel_box_states[CANCEL_BOX_STATE_COUNT];

/* NULL when the store is not shared. */
struct cancel_box *cancel_box_start(struct session_table *sessions, struct loop *loop);

/* NULL is fine. What the store still has to answer frees the rest. */
void cancel_box_stop(struct cancel_box *box);

#endif
