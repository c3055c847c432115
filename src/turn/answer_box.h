/* answer_box: takes the answers that other replicas have posted for the runs of this one.
 *
 * It reads what was posted (store/posted.h) whenever something was. One after another, an answer
 * whose run waits here is taken, and then given to the run; a run that left memory is woken
 * before. What cannot be given now (its run is on its way into memory, or not yet parked) is left,
 * tried again after a time of its own that grows, and holds up no other one.
 *
 *     idle ─▶ reading ─▶ waking ─▶ taking ─▶ the next one ... ─▶ idle
 *               ▲  └──────────────────────────▶┘   │
 *               └──── the next page ◀──────────────┘
 *
 * Memory   opaque.
 * Threads  the host's loop.
 */
#ifndef WEIR_TURN_ANSWER_BOX_H
#define WEIR_TURN_ANSWER_BOX_H

#include "base/states.h"

enum answer_box_state {
    ANSWER_BOX_IDLE,
    ANSWER_BOX_READING, /* a page of rows */
    ANSWER_BOX_WAKING,  /* the run of the current row */
    ANSWER_BOX_TAKING,  /* the current row */
    ANSWER_BOX_STOPPED,
    ANSWER_BOX_STATE_COUNT
};

extern const struct state answer_box_states[ANSWER_BOX_STATE_COUNT];

struct answer_box;
struct loop;
struct session_table;

/* NULL when the store is not shared. */
struct answer_box *answer_box_start(struct session_table *sessions, struct loop *loop);

/* NULL is fine. What the store still has to answer frees the rest. */
void answer_box_stop(struct answer_box *box);

#endif
