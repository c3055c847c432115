/* answer_box: takes the answers that other replicas have posted for the runs of this one.
 *
 * It reads what was posted (store/posted.h) whenever something was, and again a moment later
 * while some of it could not be given: its run may be on its way into memory, or not yet parked.
 * A run that left memory is woken.
 *
 * Memory   opaque.
 * Threads  the host's loop.
 */
#ifndef WEIR_TURN_ANSWER_BOX_H
#define WEIR_TURN_ANSWER_BOX_H

struct answer_box;
struct loop;
struct session_table;

/* NULL when the store is not shared. */
struct answer_box *answer_box_start(struct session_table *sessions, struct loop *loop);

/* NULL is fine. What the store still has to answer frees the rest. */
void answer_box_stop(struct answer_box *box);

#endif
