/* interrupt_box: ends the turns of this replica whose place a newer one of another replica takes.
 *
 * With session.busy: interrupt a turn that waits for a session of another replica says so in the store
 * (store/interrupting.h), again and again until it has the session. The box reads what was said whenever
 * something was posted, and cancels the turns of that session that are older: the one that has it and
 * those that wait for it, as a message that came here would. One that waits for a tool is cancelled once
 * the tool has answered.
 *
 * Memory   opaque.
 * Threads  the loop it was started on.
 */
#ifndef WEIR_TURN_INTERRUPT_BOX_H
#define WEIR_TURN_INTERRUPT_BOX_H

#include "session/session_table.h"

struct loop;
struct interrupt_box;

/* NULL when the store is not shared. */
struct interrupt_box *interrupt_box_start(struct session_table *sessions, struct loop *loop);
void interrupt_box_stop(struct interrupt_box *box); /* NULL is fine */

#endif
